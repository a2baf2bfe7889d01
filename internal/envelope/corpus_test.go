package envelope

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

var update = flag.Bool("update", false, "write testdata/golden.txt again")

// sample is an envelope that a program stored, and where it was stored.
type sample struct{ place, raw string }

// dumps are the stores of the real programs, which sources are tested with, too.
const dumps = "../source/testdata/"

// corpus is every envelope in the dumps of the real programs' stores.
func corpus(t testing.TB) (all []sample) {
	t.Helper()
	var files []string
	for _, program := range []string{"babelqueue-go", "initphp-queue"} {
		some, err := filepath.Glob(dumps + program + "/*")
		if err != nil || len(some) == 0 {
			t.Fatalf("%d dumps of %s, %v", len(some), program, err)
		}
		files = append(files, some...)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		place := strings.TrimPrefix(filepath.ToSlash(file), dumps)
		if strings.HasSuffix(file, ".sql") {
			all = append(all, fromSQL(place, string(data))...)
			continue
		}
		var dump any
		if err := json.Unmarshal(data, &dump); err != nil {
			t.Fatal(err)
		}
		all = append(all, fromJSON(place, dump)...)
	}
	return all
}

// fromJSON finds the envelopes among the texts of a dump.
func fromJSON(place string, dump any) (all []sample) {
	switch v := dump.(type) {
	case string:
		if strings.HasPrefix(v, "{") {
			all = append(all, sample{place, v})
		}
	case []any:
		for i, part := range v {
			all = append(all, fromJSON(fmt.Sprintf("%s[%d]", place, i), part)...)
		}
	case map[string]any:
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if strings.HasPrefix(name, "{") { // a member of a sorted set
				all = append(all, sample{fmt.Sprintf("%s{%d}", place, i), name})
				continue
			}
			all = append(all, fromJSON(place+" "+name, v[name])...)
		}
	}
	return all
}

var payloadColumn = regexp.MustCompile(`'(\{.*?\})','`)

// fromSQL finds the envelopes in the rows of a dump.
func fromSQL(place, dump string) (all []sample) {
	plain := strings.NewReplacer(`''`, `'`)
	if strings.Contains(place, "mariadb") {
		plain = strings.NewReplacer(`''`, `'`, `\'`, `'`, `\"`, `"`, `\\`, `\`)
	}
	for i, found := range payloadColumn.FindAllStringSubmatch(dump, -1) {
		all = append(all, sample{fmt.Sprintf("%s row %d", place, i+1), plain.Replace(found[1])})
	}
	return all
}

// aDeadLetter is a dead letter with text that an encoder would change.
func aDeadLetter() job.DeadLetter {
	return job.DeadLetter{
		Reason: retry.AttemptsExhausted, Error: "Café <b>&</b> \"a\"/b", Exception: "http.503", Queue: "orders",
		Attempts: 3, FailedAt: time.UnixMilli(1795206563165),
	}
}

// TestCorpus_Golden reads all that the real programs stored, and compares with
// what was read, marked and restored when a person looked at it.
func TestCorpus_Golden(t *testing.T) {
	var b strings.Builder
	for _, s := range corpus(t) {
		e, poison := Parse([]byte(s.raw))
		verdict := "readable"
		if poison != nil {
			verdict = string(poison.Reason) + ": " + poison.Problem
		}
		annotated, _ := Annotate([]byte(s.raw), aDeadLetter())
		original, _ := Tried([]byte(s.raw), 0)
		fmt.Fprintf(&b, "%s\n  %s\n  urn=%s trace=%s id=%s attempts=%d\n  data=%s\n  meta=%s\n  came      %s\n  annotated %s\n  original  %s\n",
			s.place, verdict, e.URN, e.TraceID, e.ID, e.Attempts, e.Data, e.Meta, s.raw, annotated, original)
	}
	const file = "testdata/golden.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(b.String(), "\n"); !slices.Equal(got, strings.Split(string(want), "\n")) {
		for i, line := range strings.Split(string(want), "\n") {
			if i >= len(got) || got[i] != line {
				t.Fatalf("line %d:\n%s\nwant:\n%s", i+1, got[min(i, len(got)-1)], line)
			}
		}
		t.Fatalf("%d lines more than in %s", len(got)-strings.Count(string(want), "\n"), file)
	}
}

// TestCorpus_PeersAgree compares our verdict with the block that the real
// worker wrote when it gave the same envelope up.
func TestCorpus_PeersAgree(t *testing.T) {
	seen := map[retry.Reason]int{}
	for _, s := range corpus(t) {
		var theirs struct {
			DeadLetter struct{ Reason retry.Reason } `json:"dead_letter"`
		}
		if err := json.Unmarshal([]byte(s.raw), &theirs); err != nil {
			t.Fatal(err)
		}
		want := theirs.DeadLetter.Reason
		if !slices.Contains(retry.Poison(), want) || want == retry.InvalidAttempts { // the worker had put those right
			want = ""
		}
		if strings.HasPrefix(s.raw, `{"job":""`) { // the Go worker runs those, and finds no handler
			want = retry.MissingURN
		}
		var got retry.Reason
		if _, poison := Parse([]byte(s.raw)); poison != nil {
			got = poison.Reason
		}
		if seen[got]++; got != want {
			t.Errorf("%s: %q, the peer says %q: %s", s.place, got, want, s.raw)
		}
	}
	for _, reason := range []retry.Reason{"", retry.MissingURN, retry.MissingMeta, retry.InvalidData, retry.MissingTraceID, retry.UnsupportedVersion} {
		if seen[reason] == 0 {
			t.Errorf("no sample is %q", reason)
		}
	}
}

// TestCorpus_RoundTrip marks each envelope and restores it.
func TestCorpus_RoundTrip(t *testing.T) {
	for _, s := range corpus(t) {
		e, _ := Parse([]byte(s.raw))
		original, _ := Tried([]byte(s.raw), 0)
		annotated, _ := Annotate(original, aDeadLetter())
		again, _ := Tried(annotated, 0)
		if string(again) != string(original) {
			t.Errorf("%s: %s\nbecame %s", s.place, original, again)
		}
		if e.Attempts == 0 && !strings.Contains(s.raw, "dead_letter") && !strings.Contains(s.raw, "__bq_frame") && string(original) != s.raw {
			t.Errorf("%s: nothing had to be changed, and %s\nbecame %s", s.place, s.raw, original)
		}
	}
}
