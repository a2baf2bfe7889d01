package operation

import "time"

// Progress is how an operation went so far, beyond its meters.
type Progress struct {
	Canary Canary
	Ended  int64 // of the last GuardWindow replays that ended since it was started or resumed
	Same   int64 // of those: they failed in the same group as before
	Rate   Rate
	Pruned bool // its items were removed, as the retention says
}

// Canary is what became of the first items, after which an operation paused.
type Canary struct {
	Done      int64
	Succeeded int64
	Relapsed  int64
	Dropped   int64
	EndedAt   time.Time // of the last run; zero while one has not ended
}

// Unsettled is how many of the replayed runs have not ended.
func (c Canary) Unsettled() int64 { return c.Done - c.Succeeded - c.Relapsed - c.Dropped }

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
