package templates

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/retention"
	"redrive/web/templates/format"
)

var tag = regexp.MustCompile(`<[^>]*>`)

// spoken is what components say, without the markup.
func spoken(t *testing.T, parts ...templ.Component) string {
	t.Helper()
	var b strings.Builder
	if err := templ.Join(parts...).Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return tag.ReplaceAllString(b.String(), "")
}

func TestDeadLetterUsage_SaysWhenItIsFull(t *testing.T) {
	now := time.Date(2026, 3, 12, 14, 0, 0, 0, time.UTC)
	kept := retention.Limits{Ages: retention.Ages{retention.DeadLetters: 180 * format.Day}, Count: 10_000}
	for _, test := range []struct {
		fill  retention.Usage
		keeps retention.Limits
		want  string
		warns bool
	}{
		{retention.Usage{Open: 4000, LastDay: 2000}, kept, "Full in 3 d at +2,000 a day: warns on 14 Mar 14:00, full on 15 Mar 14:00, then prunes the oldest", false},
		{retention.Usage{Open: 7999, LastDay: 1}, kept, "Not filling up at +1 a day", false},
		{retention.Usage{Open: 8000, LastDay: 2000}, kept, "Full in 24 h at +2,000 a day: full on 13 Mar 14:00, then prunes the oldest", true},
		{retention.Usage{Open: 9000}, kept, "Not filling up: none in the last 24 h", true},
		{retention.Usage{Open: 10_000, LastDay: 9}, kept, "Full: each new one removes the oldest", true},
		{retention.Usage{Open: 9000, LastDay: 9}, retention.Limits{Ages: retention.Ages{retention.DeadLetters: format.Day}}, "", false},
	} {
		r := DeadLetterUsage{Usage: test.fill, Limits: test.keeps}
		if got := spoken(t, whenFull(r, now), whyFull(r, now)); got != test.want || r.warns() != test.warns {
			t.Errorf("%+v of %+v: %q, warns %v; want %q, %v", test.fill, test.keeps, got, r.warns(), test.want, test.warns)
		}
	}
}

// The fill bar is quiet until it warns, and red only when it is full.
func TestDeadLetterUsage_IsColouredByHowFullItIs(t *testing.T) {
	for open, want := range map[int64]string{0: "is-pending", 500: "is-pending", 7999: "is-pending", 8000: "is-warn", 9999: "is-warn", 10_000: "is-dead", 12_000: "is-dead"} {
		r := DeadLetterUsage{Usage: retention.Usage{Open: open}, Limits: retention.Limits{Count: 10_000}}
		if got := r.fillClass(); got != want {
			t.Errorf("%d of 10,000 is drawn %s, want %s", open, got, want)
		}
	}
}

func TestDeadLetterUsage_SaysWhatIsPruned(t *testing.T) {
	now := time.Date(2026, 3, 12, 14, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		keeps        retention.Limits
		age, pruning string
	}{
		{retention.Limits{Ages: retention.Ages{retention.DeadLetters: 180 * format.Day}, Count: 10_000}, "Oldest: 12 d ago. Kept for 180 d.", "Dead letters older than 180 d or beyond 10,000 are removed"},
		{retention.Limits{Ages: retention.Ages{retention.DeadLetters: 180 * format.Day}}, "Oldest: 12 d ago. Kept for 180 d.", "Dead letters older than 180 d are removed"},
		{retention.Limits{Count: 10_000}, "Oldest: 12 d ago.", "Dead letters beyond 10,000 are removed"},
	} {
		r := DeadLetterUsage{Usage: retention.Usage{Open: 9, Oldest: now.Add(-12 * format.Day)}, Limits: test.keeps}
		if age := r.age(now); age != test.age || !strings.HasPrefix(r.pruning(), test.pruning) {
			t.Errorf("%+v: %q, %q; want %q, %q", test.keeps, age, r.pruning(), test.age, test.pruning)
		}
	}
}

func TestDeadLetterUsage_SaysWhatWillBeRemovedForItsAge(t *testing.T) {
	limits := retention.Limits{Ages: retention.Ages{retention.DeadLetters: 180 * format.Day}}
	for _, test := range []struct {
		soon int64
		more bool
		want string
	}{{0, false, ""}, {1, false, "1 dead letter will be removed within 24 h."}, {1_000_000, true, "more than 1,000,000 dead letters will be removed within 24 h."}} {
		r := DeadLetterUsage{Limits: limits, Forecast: retention.Forecast{Kinds: []retention.Outlook{{Kind: retention.DeadLetters, Soon: test.soon, More: test.more}}}}
		if got := spoken(t, LeavingWarning(r)); !strings.HasPrefix(strings.TrimSpace(got), test.want) || (got == "") != (test.want == "") {
			t.Errorf("%d: %q, want %q", test.soon, got, test.want)
		}
	}
}

// What the next sweep removes for its number stands beside how full the queue is.
func TestDeadLetterUsage_SaysWhatWillBeRemovedForItsNumber(t *testing.T) {
	for _, test := range []struct {
		soon int64
		want string
	}{
		{0, "The dead-letter queue is 150 % full. Full: each new one removes the oldest."},
		{5000, "The dead-letter queue is 150 % full. 5,000 dead letters will be removed by the next sweep. Full: each new one removes the oldest."},
	} {
		r := DeadLetterUsage{
			Usage: retention.Usage{Open: 15_000}, Limits: retention.Limits{Count: 10_000},
			Forecast: retention.Forecast{Kinds: []retention.Outlook{{Kind: retention.OverCount, Soon: test.soon}}},
		}
		if got := strings.Join(strings.Fields(spoken(t, UsageWarning(r, Frame{Now: time.Now()}))), " "); !strings.HasPrefix(got, test.want) {
			t.Errorf("%d: %q, want %q", test.soon, got, test.want)
		}
	}
}

func TestDeadLetterUsage_SaysThatDeadLettersOfSourcesAreNotCounted(t *testing.T) {
	for atSources, want := range map[int64]string{
		0: "always stays.", 1: "One dead letter is still in its source. Redrive keeps it as long as it is there, and does not count it for this.",
		1200: "1,200 dead letters are still in their sources. Redrive keeps them as long as they are there, and does not count them for this.",
	} {
		r := DeadLetterUsage{Usage: retention.Usage{AtSources: atSources}, Limits: retention.Limits{Count: 10}}
		if got := r.pruning(); !strings.HasSuffix(got, want) {
			t.Errorf("%d at sources: %q, want %q", atSources, got, want)
		}
	}
}
