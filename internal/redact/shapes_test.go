package redact

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"redrive/internal/rawjson"
	"redrive/internal/redact/redacttest"
)

// Whatever a secret looks like, it is hidden in a text, in what is shown of its end
// and in a payload; and what was hidden stays as it is when it is hidden again.
func TestRedactor_HidesEveryShape(t *testing.T) {
	const seeds = 10
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			for _, s := range redacttest.Shapes(seed) {
				hidesShape(t, Default(), s)
			}
		})
	}
}

func hidesShape(t *testing.T, r *Redactor, s redacttest.Shape) {
	t.Helper()
	shown := r.Text(s.Text)
	quoted, err := json.Marshal(map[string]any{"n": 1, "log": s.Text, "in": []string{string(rawjson.Quote(s.Text))}})
	if err != nil {
		t.Fatal(err)
	}
	for place, said := range map[string]string{
		"a text": shown, "the end of a text": r.TextFrom(s.Text, len(s.Text)/2), "a payload": string(r.Payload(quoted)),
		"a payload that is no JSON": string(r.Payload([]byte(s.Text))),
	} {
		if strings.Contains(said, s.Leak) {
			t.Errorf("%s in %s:\n%s\nis shown as\n%s", s.Name, place, s.Text, said)
		}
	}
	if again := r.Text(shown); again != shown {
		t.Errorf("%s is shown as\n%s\nthe second time as\n%s", s.Name, shown, again)
	}
}

// What begins in the middle of a secret shows only its mask.
func TestTextFrom_ShowsNoPartOfASecret(t *testing.T) {
	for _, s := range redacttest.Shapes(1) {
		r := Default()
		shown := r.Text(s.Text)
		for from := range len(s.Text) + 1 {
			end := r.TextFrom(s.Text, from)
			if !strings.HasSuffix(shown, strings.TrimPrefix(strings.TrimPrefix(end, `"`), Hidden)) || strings.Contains(end, s.Leak) {
				t.Fatalf("%s: of %q, shown as %q, %q is shown from %d on", s.Name, s.Text, shown, end, from)
			}
		}
	}
}
