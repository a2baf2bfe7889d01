package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/net/html"

	"redrive/internal/config"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store"
)

// hostile are the strings of testdata/hostile.txt.
func hostile(t *testing.T) []string {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "hostile.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		if line[0] == '"' {
			if line, err = strconv.Unquote(line); err != nil {
				t.Fatalf("%s: %v", lines.Text(), err)
			}
		}
		all = append(all, line)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// harmless has the shape of s, and nothing in it that means anything to HTML.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return 'x'
	}, s)
}

// The queues of the hostile shop, by what happens to their jobs.
const hostileConfig = `
queues:
  dead:    {policy: {max_attempts: 1}}
  refused: {policy: {max_attempts: 1}}
  retried: {policy: {max_attempts: 5, initial_interval: 1h}}
  active:  {ttr: 1h}
  done:    {ttr: 1h}
  held:    {ttr: 1h}
`

// shop is a database in which every word stands in every field that a producer,
// a handler or a person fills, in every state that a job can be in.
type shop struct {
	t      *testing.T
	store  *store.Store
	config *config.Config
	now    time.Time
}

// openShop writes the words down and serves them.
func openShop(t *testing.T, words []string) (url string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "redrive.yaml", hostileConfig)
	c, err := config.Parse("redrive.yaml", []byte(hostileConfig))
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(t.Context(), store.Options{Path: filepath.Join(dir, "redrive.db"), Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	s := shop{t, st, c, time.Now().Add(-time.Minute)}
	s.fill(words)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return startProcess(t, dir).url
}

// hostileID is the id of the n-th job of a queue.
func hostileID(queue string, n int) string {
	return fmt.Sprintf("01900000-0000-7000-8%03x-%012x", strings.Index(hostileConfig, queue), n)
}

func (s shop) fill(words []string) {
	s.t.Helper()
	rest := len(words) / 6
	for _, queue := range s.config.Queues() {
		all := words
		if queue != "dead" { // every word is in a dead letter, every sixth in all the others
			all = make([]string, rest)
			for i := range all {
				all[i] = words[i*6]
			}
		}
		s.enqueue(queue, all)
		if queue != "held" {
			s.run(queue)
		}
	}
	for i := range rest { // people act, under the words as their names
		by := job.Actor{Name: words[i*6], Address: words[i*6]}
		_, replayed := s.store.Replay(s.t.Context(), s.now, hostileID("dead", i*6+1), 1, by)
		_, discarded := s.store.Discard(s.t.Context(), s.now, hostileID("dead", i*6+2), 1, by)
		_, cancelled := s.store.Cancel(s.t.Context(), s.now, hostileID("retried", i), 1, by)
		if replayed != nil || discarded != nil || cancelled != nil && i%2 == 0 {
			s.t.Fatal(replayed, discarded, cancelled)
		}
	}
	if err := s.store.Pause(s.t.Context(), s.now, "dead", job.Actor{Name: words[1], Address: words[1]}); err != nil {
		s.t.Fatal(err)
	}
	s.operate(words)
	s.judge(words)
}

// operate acts on many jobs, which a hostile filter selects.
func (s shop) operate(words []string) {
	s.t.Helper()
	ctx := s.t.Context()
	now := s.now.Add(time.Second) // a scope is what changed before it was asked for
	for i, word := range words[:40] {
		by := job.Actor{Name: word, Address: word}
		f := job.Filter{Status: job.StatusDeadLetter, Type: word, Queue: "dead"}
		if f.Check() != nil { // nobody gets that far with a * in a type
			continue
		}
		o, err := s.store.NewOperation(ctx, now, job.NewOperation{Kind: job.OpReplay, Filter: f, Start: i%2 == 0, Key: word}, by)
		for more := true; more && err == nil; {
			more, err = s.store.Collect(ctx, now, o.ID)
		}
		if err == nil {
			_, err = s.store.Work(ctx, now, o.ID, 10)
		}
		if err == nil && i%4 == 3 {
			_, err = s.store.AbortOperation(ctx, now, o.ID, by)
		}
		if err != nil {
			s.t.Fatalf("%q: %v", word, err)
		}
	}
}

// judge writes notes on groups of failures, and says what becomes of them.
func (s shop) judge(words []string) {
	s.t.Helper()
	groups, err := s.store.Groups(s.t.Context(), s.now, job.GroupFilter{}, job.GroupCursor{}, 60)
	if err != nil {
		s.t.Fatal(err)
	}
	for i, g := range groups.Groups {
		by := job.Actor{Name: words[i], Address: words[i]}
		_, noted := s.store.NoteGroup(s.t.Context(), s.now, g.Fingerprint, words[i]+" "+words[i], by)
		to := job.Standing{State: job.GroupStates()[i%3]}
		_, stands := s.store.SetGroup(s.t.Context(), s.now, g.Fingerprint, to, by)
		if noted != nil || stands != nil && i%3 != 0 {
			s.t.Fatal(noted, stands)
		}
	}
}

func (s shop) enqueue(queue string, words []string) {
	s.t.Helper()
	var jobs []job.Job
	for i, word := range words {
		text, err := json.Marshal(map[string]any{word: word, "list": []any{word, 1, nil, map[string]any{word: true}}})
		if err != nil {
			s.t.Fatal(err)
		}
		j := job.Job{
			Token: job.Token{ID: hostileID(queue, i)}, Queue: queue, Type: word, Payload: text, Meta: text,
			Key: fmt.Sprintf("%s%s%d", word, queue, i), TraceID: word, Note: word,
		}
		if queue == "done" {
			j.Payload = []byte(word) // not JSON at all
		}
		patch := retry.Patch{}
		if queue == "held" {
			patch.NonRetryable = &[]string{word}
		}
		if err := s.config.Admit(&j, patch); err != nil {
			s.t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	if _, err := s.store.Enqueue(s.t.Context(), s.now, jobs); err != nil {
		s.t.Fatal(err)
	}
}

// run lets the jobs of a queue end as its name says, each in the hands of a
// worker that is called as the job.
func (s shop) run(queue string) {
	s.t.Helper()
	claimed, _, err := s.store.Exchange(context.Background(), nil, job.Claim{
		Worker: "<b>worker", Now: s.now, Lease: time.Hour, Free: map[string]int{queue: 10_000},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if queue == "active" {
		return
	}
	var ended []job.Settlement
	for _, j := range claimed {
		word := j.Type
		j.Worker = word
		end := job.Ending{
			Outcome: job.Failed, FinishedAt: s.now.Add(time.Second), Note: word,
			Error: job.ErrorInfo{Type: word, Message: word}, Trace: word + "\n\tat " + word,
		}
		if queue == "done" {
			end = job.Ending{Outcome: job.Succeeded, FinishedAt: end.FinishedAt}
		}
		delivery := job.Delivery{}
		if queue == "refused" {
			delivery = job.Delivery{Problem: word}
		}
		ended = append(ended, j.Settle(end, func() float64 { return 0.5 }).Delivered(delivery))
	}
	if _, _, err := s.store.Exchange(context.Background(), ended, job.Claim{}); err != nil {
		s.t.Fatal(err)
	}
}

// asked are addresses in which the words are parameters, of every page in turn:
// of every parameter, or of those that any text fits.
func asked(routes, words []string) []string {
	var all []string
	for i, word := range words {
		route := routes[i/2%len(routes)]
		if strings.Contains(route, ":") || strings.HasPrefix(route, "/export.") { // no page
			route = "/jobs"
		}
		names := []string{"q", "type", "queue", "error", "reason", "state", "from", "after", "sort", "preset", "schedule"}
		if i%2 == 0 {
			names = []string{"type", "error"}
		}
		query := url.Values{}
		for _, name := range names {
			query.Set(name, word)
		}
		all = append(all, route+"?"+query.Encode())
	}
	return all
}

// outline is what a page is made of, without what it says: each element with the
// names of its attributes, and that in which it stands.
func outline(root *html.Node) map[string]bool {
	seen := map[string]bool{}
	var visit func(n *html.Node, within string)
	visit = func(n *html.Node, within string) {
		switch n.Type {
		case html.ElementNode:
			var names []string
			for _, a := range n.Attr {
				names = append(names, a.Key)
			}
			slices.Sort(names)
			element := n.Data + "[" + strings.Join(names, " ") + "]"
			seen[within+" > "+element] = true
			within = element
		case html.CommentNode:
			seen[within+" > <!-- -->"] = true
		}
		for child := range n.ChildNodes() {
			visit(child, within)
		}
	}
	visit(root, "")
	return seen
}

// Whatever is enqueued, fails, is asked for or done: nothing of it becomes an
// element, an attribute or a comment of a page, and nothing on a page runs,
// styles or leads out by itself.
func TestPages_DataNeverBecomesMarkup(t *testing.T) {
	words := hostile(t)
	if len(words) < 500 {
		t.Fatalf("%d hostile words, want 500", len(words))
	}
	tame := []string{"https://user:pass@example.org/"} // what is redacted has a button to reveal it
	for _, word := range words {
		tame = append(tame, harmless(word))
	}
	want := map[string]bool{}
	crawlShop(t, tame, reach{addresses: 12, kinds: 12}, 5, func(p sitePage) {
		maps.Copy(want, outline(p.root))
	})
	pages := 0
	crawlShop(t, words, reach{addresses: 6, kinds: 12}, 1, func(p sitePage) {
		pages++
		for element := range outline(p.root) {
			if !want[element] {
				t.Errorf("%s has an element that comes from data: %s", p.path, element)
			}
		}
		checkInert(t, p)
	})
	t.Logf("%d pages, %d words", pages, len(words))
}

// crawlShop opens what links lead to as far as the reach goes, and one word of
// each stride in every field: in the page of its dead letter, and asked for.
func crawlShop(t *testing.T, words []string, reach reach, stride int, visit func(sitePage)) {
	t.Helper()
	url := openShop(t, words)
	var more, some []string
	for i, word := range words {
		if i%stride == 0 {
			more, some = append(more, "/jobs/"+hostileID("dead", i)), append(some, word)
		}
	}
	routes := pageRoutes(t)
	more = append(more, asked(routes, some)...)
	for _, route := range routes { // mistakes that harmless words do not make
		if !strings.Contains(route, ":") {
			more = append(more, route+"?q=nothing:here", route+"?q=ab", route+"?state=wrong", route+"?from=wrong&type=x", route+"?type=x&from=2026-01-01")
		}
	}
	walk(t, url, reach, more, visit)
}

// checkInert fails for whatever acts by itself on a page.
func checkInert(t *testing.T, p sitePage) {
	t.Helper()
	for n := range p.root.Descendants() {
		switch {
		case n.Type == html.TextNode && (n.Parent == nil || n.Parent.Data != "script"):
			if r := hidden(n.Data); r != 0 {
				t.Errorf("%s: the text %q holds the hidden character %U", p.path, n.Data, r)
			}
		case n.Type == html.ElementNode:
			checkElement(t, p.path, n)
		}
	}
}

func checkElement(t *testing.T, path string, n *html.Node) {
	t.Helper()
	if slices.Contains([]string{"style", "base", "iframe", "object", "embed", "frame", "portal", "animate", "set", "foreignobject", "math"}, n.Data) {
		t.Errorf("%s: there is a <%s>", path, n.Data)
	}
	if n.Data == "script" && (n.FirstChild != nil || !slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "src" })) {
		t.Errorf("%s: a script is inline: %v", path, n.Attr)
	}
	for _, a := range n.Attr {
		switch {
		case a.Key == "style" || a.Key == "srcdoc" || a.Key == "ping" || a.Key == "http-equiv" || strings.HasPrefix(a.Key, "on"):
			t.Errorf("%s: <%s> has the attribute %s", path, n.Data, a.Key)
		case slices.Contains([]string{"href", "src", "action", "formaction", "srcset", "poster", "data", "background", "cite"}, a.Key):
			if !local(a.Val) {
				t.Errorf("%s: <%s %s> leads to %q", path, n.Data, a.Key, a.Val)
			}
		}
	}
}

// local reports whether a link stays on this host.
func local(link string) bool {
	u, err := url.Parse(link)
	return err == nil && u.Scheme == "" && u.Host == "" && u.User == nil && !strings.HasPrefix(link, "//") &&
		!strings.Contains(link, `\`) && (link == "" || strings.ContainsRune("/#?", rune(link[0])))
}

// hidden is the first character that a reader could not see, or 0.
func hidden(s string) rune {
	for _, r := range s {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return r
		}
	}
	return 0
}

// No cell of an export is read as a formula, whatever the data begins with.
func TestExport_NoCellIsAFormula(t *testing.T) {
	words := hostile(t)
	response, err := http.Get(openShop(t, words) + "/export.csv?state=dead_letter")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	rows, err := csv.NewReader(response.Body).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if least := len(words) / 2; len(rows) < least {
		t.Fatalf("%d rows, want more than %d", len(rows), least)
	}
	guarded := 0
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				t.Errorf("a cell begins as a formula: %q", cell)
			}
			if strings.HasPrefix(cell, "'=") {
				guarded++
			}
		}
	}
	if guarded == 0 {
		t.Error("none of the hostile cells is there")
	}
}
