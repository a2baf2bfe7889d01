package templates

import (
	"strings"
	"testing"

	"redrive/internal/retry"
)

// A developer who adds a reason finds here that pages have no words for it.
func TestReasons_AllHaveWords(t *testing.T) {
	for _, r := range retry.Reasons() {
		b := Explain(r)
		if strings.Contains(b.Word+b.Short+b.Means, string(r)) && r != retry.RuleDecided && r != retry.Expired && r != retry.ReasonUnknown {
			t.Errorf("%s is shown by its code: %+v", r, b)
		}
		var icon strings.Builder
		if err := drawing(b.icon).Render(t.Context(), &icon); err != nil || b.icon == "info" || icon.Len() == 0 {
			t.Errorf("%s has the icon %q, which is not its own or empty, %v", r, b.icon, err)
		}
		if b.Word == "" || b.Short == "" || !strings.HasSuffix(b.Means, ".") || !strings.HasSuffix(b.Todo, ".") {
			t.Errorf("%s lacks words: %+v", r, b)
		}
	}
}

// What a page says to do and which button is the obvious one agree.
func TestReasons_SayWhetherAReplayHelps(t *testing.T) {
	for _, r := range retry.Reasons() {
		if says := !strings.Contains(Explain(r).Todo, "Replaying won't help."); says != r.ReplayHelps() {
			t.Errorf("%s: a replay helps: %t, but the page says %q", r, r.ReplayHelps(), Explain(r).Todo)
		}
	}
}

func TestReasons_UnknownOnesAreShownByTheirCode(t *testing.T) {
	if b := Explain("sun<spots\u202e"); b.Word != `sun<spots\u202e` || b.Means == "" {
		t.Errorf("words %+v", b)
	}
}
