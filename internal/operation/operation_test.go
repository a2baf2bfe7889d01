package operation_test

import (
	"testing"
	"time"

	"redrive/internal/operation"
)

// There are never more steps than a chart has room for, the last one is now, and
// each is as long as two of those before.
func TestPacing_StepsDouble(t *testing.T) {
	const most = 60
	begin := time.Date(2026, 3, 14, 9, 0, 0, 500, time.UTC)
	o := operation.Operation{StartedAt: begin}
	last := o.Pacing(begin.Add(-time.Hour))
	if len(last.Done) != 1 || last.Step != time.Second {
		t.Errorf("at first: %d steps of %s", len(last.Done), last.Step)
	}
	for span := time.Second; span < 60*24*time.Hour; span += span/7 + time.Second {
		now := begin.Add(span)
		r := o.Pacing(now)
		ends := r.From.Add(time.Duration(len(r.Done)) * r.Step)
		if len(r.Done) > most || ends.Before(now) || ends.Add(-r.Step).After(now) || r.Step != last.Step && r.Step != 2*last.Step {
			t.Errorf("after %s: %d steps of %s from %s, before they were of %s", span, len(r.Done), r.Step, r.From, last.Step)
		}
		last = r
	}
}

func TestPace_IsSaidInAFewWords(t *testing.T) {
	for want, p := range map[string]operation.Pace{
		"no limit":                      {},
		"auto-pause on, no limit":       {Guard: true},
		"canary 5, auto-pause on, 20/s": {Rate: 20, Canary: 5, Guard: true},
		"canary 5, 0.333/s over PT10M":  {Rate: 1.0 / 3, Spread: 10 * time.Minute, Canary: 5},
	} {
		if got := p.String(); got != want {
			t.Errorf("%+v is %q, want %q", p, got, want)
		}
	}
}
