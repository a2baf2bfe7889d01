package job

import "time"

// Change tells that a job moved, after the commit that moved it. It carries
// states, numbers and times only, never payloads or error texts, so that
// nothing that is hidden from a reader can leak through it.
type Change struct {
	Token
	Queue       string
	Type        string
	State       State
	Letter      Letter
	Held        bool
	Attempts    int
	MaxAttempts int
	RunAt       time.Time
	ChangedAt   time.Time
	Failed      bool // the change settled a failed attempt
}

// Status is the status of the job after the change.
func (c Change) Status() Status {
	return Job{State: c.State, Letter: c.Letter, Held: c.Held}.Status()
}

// Changed describes the job as it is now.
func (j Job) Changed() Change {
	return Change{
		Token: j.Token, Queue: j.Queue, Type: j.Type, State: j.State, Letter: j.Letter, Held: j.Held,
		Attempts: j.Attempts, MaxAttempts: j.Policy.Limit(), RunAt: j.RunAt, ChangedAt: j.ChangedAt,
	}
}

// Claim asks for jobs to execute.
type Claim struct {
	Worker string
	Now    time.Time
	Lease  time.Duration
	Free   map[string]int        // queue: how many can start at once
	Knows  func(typ string) bool // nil: every type. A job of an unknown type is held
}

// Stuck is a handler that goes on although its execution has ended: it took too
// long to notice. It keeps its worker until it returns.
type Stuck struct {
	Job   Job       // as it was claimed
	Since time.Time // when it was given up
}

// Enqueued is what became of one job that was handed in.
type Enqueued struct {
	Job    Job
	Repeat bool // its idempotency key was seen before; Job is the first one
}
