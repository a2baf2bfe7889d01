package operation

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/wire"
)

// Planned is the pace of an operation; of a preview, the one at which it goes when
// it is started as it is. A negative canary is not known yet.
func (o Operation) Planned() Pace {
	if o.State == Preview {
		return o.Pace.Settle(o.Kind, o.Pending, o.Causes)
	}
	return o.Pace
}

// Left estimates how long the rest takes at its rate; ok is false when it goes
// as fast as it can, or does not go.
func (o Operation) Left() (left time.Duration, ok bool) {
	rate := cmp.Or(o.Pace.Rate, o.Pace.Over(o.Pending))
	if rate <= 0 || !o.Open() {
		return 0, false
	}

	return time.Duration(min(float64(o.Pending)/rate, float64(math.MaxInt32)) * float64(time.Second)), true
}

// Pace is how fast and how carefully an operation works.
type Pace struct {
	Rate   float64       // jobs a second; 0: as fast as possible
	Spread time.Duration // instead of a rate: all of it over so long
	Canary int64         // pause after so many; 0: never; negative: what suits the size
	Guard  bool          // pause automatically when replays keep failing as before
}

// What bounds a pace, and what is usual.
const (
	MaxRate      = 10_000
	MaxSpread    = 30 * 24 * time.Hour
	UsualCanary  = 5    // jobs, or one of each cause
	LargeCanary  = 20   // jobs: the most that a canary has unless a person wants more
	CanaryAbove  = 100  // jobs in the scope
	ConfirmAbove = 1000 // jobs: a person types the number
	MaxNamed     = 5000 // jobs that a request can name one by one
	GuardWindow  = 50   // replays that ended last
	GuardLeast   = 10   // of them, before the guard says anything
	PreviewFor   = time.Hour
	MaxStep      = 5000 // items of one transaction
)

// String says the pace in a few words, as the audit log has it: "canary 5, auto-pause
// on, 20/s".
func (p Pace) String() string {
	var parts []string
	if p.Canary > 0 {
		parts = append(parts, fmt.Sprintf("canary %d", p.Canary))
	}

	if p.Guard {
		parts = append(parts, "auto-pause on")
	}

	switch {
	case p.Spread > 0:
		parts = append(parts, fmt.Sprintf("%.3g/s over %s", p.Rate, wire.FormatDuration(p.Spread)))
	case p.Rate > 0:
		parts = append(parts, fmt.Sprintf("%.3g/s", p.Rate))
	default:
		parts = append(parts, "no limit")
	}

	return strings.Join(parts, ", ")
}

// Over is the rate at which n jobs go, jobs a second; 0: as fast as possible.
func (p Pace) Over(n int64) float64 {
	if p.Spread > 0 {
		return float64(n) / p.Spread.Seconds()
	}
	return p.Rate
}

// Check returns a *invalid.Error for a pace that cannot be kept.
func (p Pace) Check() error {
	switch {
	case math.IsNaN(p.Rate) || p.Rate < 0 || p.Rate > MaxRate:
		return invalid.Errorf("rate", "must be from 0 to %d jobs a second; 0 means no limit", MaxRate)
	case p.Rate > 0 && p.Rate < 1.0/3600:
		return invalid.Errorf("rate", "is less than one job an hour")
	case p.Spread < 0 || p.Spread > MaxSpread:
		return invalid.Errorf("spread", "must be a duration of at most 30 days")
	case p.Spread > 0 && p.Rate > 0:
		return invalid.Errorf("spread", "cannot be used together with a rate; send one of them")
	case p.Canary > job.MaxBatch:
		return invalid.Errorf("canary", "must be from 0 to %d jobs", job.MaxBatch)
	}

	return nil
}

// Settle gives the pace its final figures for n jobs of so many causes: what suits the
// size becomes a number, and a spread becomes a rate. The usual canary has room for a job of
// each cause.
func (p Pace) Settle(kind Kind, n, causes int64) Pace {
	if p.Canary < 0 && n > CanaryAbove {
		p.Canary = min(max(UsualCanary, causes), LargeCanary)
	}

	if p.Canary < 0 || kind != Replay || p.Canary >= n {
		p.Canary = 0
	}

	p.Rate = p.Over(n)
	p.Guard = p.Guard && kind == Replay

	return p
}

// Rate is how many items were done in each step of an operation's time.
type Rate struct {
	From time.Time
	Step time.Duration
	Done []int64
}

// rateSteps is how many steps a rate has at most.
const rateSteps = 60

// Pacing is the time of an operation that has been started, in steps, until it
// ended or until now; without steps before that. A step is a second at first, and
// doubles as time goes by: what was counted by earlier, shorter ones adds up to it.
func (o Operation) Pacing(now time.Time) Rate {
	if o.StartedAt.IsZero() {
		return Rate{}
	}

	end := now
	if !o.FinishedAt.IsZero() {
		end = o.FinishedAt
	}

	from := o.StartedAt.Truncate(time.Second)

	span := max(end.Sub(from), 0)
	step := time.Second
	for span/step >= rateSteps {
		step *= 2
	}

	return Rate{From: from, Step: step, Done: make([]int64, span/step+1)}
}

// PerSecond is the rate in one step.
func (r Rate) PerSecond(i int) float64 { return float64(r.Done[i]) / r.Step.Seconds() }
