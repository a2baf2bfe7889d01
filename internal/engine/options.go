package engine

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"redrive/internal/engine/execution"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/shortage"
)

// Store is what the engine needs from a database. Each method is atomic. If ctx ends, a method that
// has not begun returns, and one that has begun still completes.
type Store interface {
	// Exchange settles executions, and then claims jobs, in one transaction. A settlement of an
	// execution that has been ended otherwise changes nothing, and its token is returned as stale.
	// Exchange does not keep the list of settlements, which the caller uses again.
	Exchange(ctx context.Context, settle []job.Settlement, claim job.Claim) (claimed []job.Job, stale []job.Token, err error)
	// Extend makes leases end at until. Those of executions that have been ended otherwise are
	// returned as stale.
	Extend(ctx context.Context, now, until time.Time, tokens []job.Token) (stale []job.Token, err error)
	// Leases returns the active jobs whose leases end at endedBy or earlier; for the zero time, all
	// active jobs.
	Leases(ctx context.Context, endedBy time.Time) ([]job.Job, error)

	// NextDue returns the earliest time later than after at which a scheduled or retryable job may
	// run; zero: there is none.
	NextDue(ctx context.Context, after time.Time) (time.Time, error)

	// DispatchOnCommit makes the store claim jobs in the transactions that make them available, until
	// end is called. In such a transaction, the store calls reserve with the queues of the jobs, and
	// claims what it returns. After the transaction it calls start with the same claim and the jobs;
	// there are none if the transaction failed. Both are called by the goroutine that is writing, and
	// must be quick.
	DispatchOnCommit(reserve func(queues []string) job.Claim, start func(job.Claim, []job.Job)) (end func())

	// Unhold frees the jobs that wait for a handler and whose type knows reports. It returns how many.
	Unhold(ctx context.Context, knows func(typ string) bool) (int, error)

	// Ping returns the error with which a write would fail now.
	Ping(ctx context.Context) error
}

// Queues is what the engine needs to know of the queues of a store, as of the last commit.
type Queues interface {
	// QueueNames lists the queues that have, or had, jobs.
	QueueNames() []string
	// QueuePaused reports whether a queue is paused, so that nothing is claimed from it. It is called
	// for every job, and must be quick.
	QueuePaused(queue string) bool
}

// Handler does the work of one job: see [execution.Handler].
type Handler = execution.Handler

// Options configure an engine. Those without a default are required.
type Options struct {
	Store    Store
	Queues   Queues
	Handlers func(typ string) (Handler, bool) // returns the handler for a type of job, if there is one

	// Workers returns how many jobs of a queue run at once; zero: none do. It is called once for each
	// queue, and again after Reloaded.
	Workers func(queue string) int

	// Hide hides the secrets in a text that a handler returned. Default: texts have no secrets.
	Hide func(text string) string

	// Rules returns what the operator's rules decide about a failure, if anything, and a note on it.
	// Default: there are no rules.
	Rules func(job.Job, job.Ending) (ruling *retry.Ruling, note string)

	// Kept returns what becomes of the dead letters of a queue that does not send them. ok is false
	// for a queue that sends them: then Deliver is called. Default: all queues send their dead
	// letters, or none if Deliver is nil.
	Kept func(queue string) (d job.Delivery, ok bool)

	// Deliver sends a dead letter, and returns what became of it. It has to return when the context
	// ends. It can be nil if no queue sends.
	Deliver       func(context.Context, job.Job, job.DeadLetter) job.Delivery
	DeliverWithin time.Duration // how long Deliver may take for one dead letter; default: 24 s

	// Expired returns what becomes of the jobs of a queue whose time to live ended before they ran:
	// dead_letter (the default) or discard.
	Expired func(queue string) retry.Action

	Random      func() float64 // in [0, 1), for jitter; safe for concurrent use
	Name        string         // the name of this worker, which attempts show
	UnknownType retry.Unknown  // what becomes of jobs without a handler for their type; default: hold
	Timeout     time.Duration  // the ttr of jobs that have none; default: 5 minutes
	Lease       time.Duration  // how long a lease lasts if it is not extended; default: 30 seconds

	// StuckAfter is how long a job waits for the handler of an earlier execution that was given up.
	// After that it runs all the same, as soon as a worker is free. Default: 5 minutes.
	StuckAfter time.Duration

	// MaxRunning is how many jobs run at once in all queues together. Default: as many as the queues
	// have workers.
	MaxRunning int

	// Probe returns an error as long as a resource that had run out is still missing. Default: there
	// is no probe, and the next job finds out.
	Probe func(shortage.Resource) error

	Grace   time.Duration                 // how long running jobs may take to end in a graceful stop; default: no time
	Settled func(job.Job, job.Settlement) // called after each commit, in order; must be quick; can be nil
	Log     *slog.Logger                  // nil: nothing is logged
}

// minLease keeps the interval of the heartbeat, a third of the lease, from being too short.
const minLease = 10 * time.Millisecond

// withDefaults returns the options with defaults in place of zero values.
func (o Options) withDefaults() Options {
	o.UnknownType = cmp.Or(o.UnknownType, retry.UnknownHold)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Minute)
	o.Lease = cmp.Or(o.Lease, 30*time.Second)
	o.StuckAfter = cmp.Or(o.StuckAfter, 5*time.Minute)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.DeliverWithin = cmp.Or(o.DeliverWithin, 24*time.Second)
	o.MaxRunning = cmp.Or(o.MaxRunning, math.MaxInt)

	if o.Probe == nil {
		o.Probe = func(shortage.Resource) error { return nil }
	}

	if o.Expired == nil {
		o.Expired = func(string) retry.Action { return retry.DeadLetter }
	}

	if o.Hide == nil {
		o.Hide = func(text string) string { return text }
	}

	if o.Rules == nil {
		o.Rules = func(job.Job, job.Ending) (*retry.Ruling, string) { return nil, "" }
	}

	// Without Kept, Deliver sends every dead letter. Without Deliver, every dead letter is kept.
	keeps := o.Deliver == nil
	if o.Kept == nil {
		o.Kept = func(string) (job.Delivery, bool) { return job.Delivery{}, keeps }
	}

	if o.Settled == nil {
		o.Settled = func(job.Job, job.Settlement) {}
	}

	return o
}

// validate returns a *invalid.Error for the first option that is missing or wrong.
func (o Options) validate() error {
	missing := func(field string) error { return &invalid.Error{Field: field, Problem: "is required"} }

	switch {
	case o.Store == nil:
		return missing("store")
	case o.Queues == nil:
		return missing("queues")
	case o.Handlers == nil:
		return missing("handlers")
	case o.Workers == nil:
		return missing("workers")
	case o.Random == nil:
		return missing("random")
	case o.Name == "":
		return missing("name")
	case !o.UnknownType.Valid():
		return &invalid.Error{Field: "unknown_type", Problem: fmt.Sprintf("%q is unknown; use hold, fail, dead_letter or delete", o.UnknownType)}
	case o.Lease < minLease:
		return &invalid.Error{Field: "lease", Problem: fmt.Sprintf("%v is shorter than %v", o.Lease, minLease)}
	}

	// Zero is allowed: it has been replaced by a default, or means none.
	for _, length := range []struct {
		field string
		time.Duration
	}{
		{"timeout", o.Timeout}, {"stuck_after", o.StuckAfter}, {"deliver_within", o.DeliverWithin}, {"grace", o.Grace},
	} {
		if length.Duration < 0 {
			return &invalid.Error{Field: length.field, Problem: fmt.Sprintf("%v is negative", length.Duration)}
		}
	}

	return nil
}
