package templates

import (
	"strings"
	"testing"

	"github.com/a-h/templ"

	"redrive/internal/job"
)

func drawing(t *testing.T, c templ.Component) string {
	t.Helper()
	var b strings.Builder
	if err := c.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A part that is drawn once is the part that its component draws.
func TestStill_IsWhatItsComponentDraws(t *testing.T) {
	for _, s := range append(job.Statuses(), "new<state>") {
		if got, want := drawing(t, badge(s)), drawing(t, badgeOf(lookOf(s))); got != want {
			t.Errorf("the badge of %s:\n got %s\nwant %s", s, got, want)
		}
	}
	for _, run := range []struct{ used, limit int }{{0, 0}, {-1, 3}, {0, 1}, {3, 5}, {7, 5}, {12, 12}, {1, 100}, {99, 100}} {
		got := drawing(t, failedPips().of(run.used, run.limit))
		if want := drawing(t, pipsPicture("pips", pipsOf(run.used, run.limit))); got != want {
			t.Errorf("the pips of %d of %d:\n got %s\nwant %s", run.used, run.limit, got, want)
		}
	}
}

// A page has fifty rows, and each has a badge and pips.
func TestStill_CostsNothingToDrawAgain(t *testing.T) {
	var b strings.Builder
	b.Grow(1 << 20)
	if n := testing.AllocsPerRun(100, func() {
		for _, c := range []templ.Component{badge(job.StatusDeadLetter), failedPips().of(3, 5), donePips().of(1, 3)} {
			if err := c.Render(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestFullStop_EndsASentenceOnce(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "done": "Done.", "Done.": "Done.", "ärger": "Ärger.", "\"x\" is no name": "\"x\" is no name.",
	} {
		if got := fullStop(text); got != want {
			t.Errorf("fullStop(%q) = %q, want %q", text, got, want)
		}
	}
}
