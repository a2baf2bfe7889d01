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

// Store is what the engine needs of a database. Its methods are atomic and
// finish what they began whatever becomes of ctx, which bounds the waiting
// only.
type Store interface {
	// Exchange settles, then claims, in one transaction. Executions that were
	// fenced off change nothing and are reported as stale. It keeps no settlement:
	// the list is filled again for the next call.
	Exchange(ctx context.Context, settle []job.Settlement, claim job.Claim) (claimed []job.Job, stale []job.Token, err error)
	// Extend moves the end of leases; those that were fenced off are stale.
	Extend(ctx context.Context, now, until time.Time, tokens []job.Token) (stale []job.Token, err error)
	// Leases returns the active jobs whose lease ends by then; all for the zero time.
	Leases(ctx context.Context, endedBy time.Time) ([]job.Job, error)
	// NextDue is the earliest time after a moment at which a waiting job may run;
	// zero for none.
	NextDue(ctx context.Context, after time.Time) (time.Time, error)
	// DispatchOnCommit claims jobs in the transactions that make them available, until
	// end. reserve says how many of these queues could start at once; start follows each
	// reserve, with what was claimed. Both are called by the goroutine that is
	// writing at the time, and must be quick.
	DispatchOnCommit(reserve func(queues []string) job.Claim, start func(job.Claim, []job.Job)) (end func())
	// Unhold frees the jobs that were held because they had no handler.
	Unhold(ctx context.Context, knows func(typ string) bool) (int, error)
	// Ping reports whether anything can be written.
	Ping(ctx context.Context) error
}

// Queues is what the engine needs to know of the queues of a store, as of the last commit.
type Queues interface {
	// QueueNames lists the queues that have, or had, jobs.
	QueueNames() []string
	// QueuePaused reports whether claims keep away from a queue. It is asked for every
	// job and must be quick.
	QueuePaused(queue string) bool
}

// Handler does the work of one job: see [execution.Handler].
type Handler = execution.Handler

// Options configure an engine. Those without a default are required.
type Options struct {
	Store    Store
	Queues   Queues
	Handlers func(typ string) (Handler, bool)
	Workers  func(queue string) int // how many jobs of a queue run at once; asked once for each, and again after Reloaded; zero: none

	// Hide takes the secrets out of a text that a handler returned; nil: it has none.
	Hide func(text string) string
	// Rules is what the operator's rules say about a failure; nil: nothing.
	Rules func(job.Job, job.Ending) (ruling *retry.Ruling, note string)
	// Kept is the delivery of every dead letter of a queue that sends none; not
	// ok: ask Deliver. Nil: all queues send.
	Kept func(queue string) (d job.Delivery, ok bool)
	// Deliver sends a dead letter on its way, until the end of the context; nil:
	// no queue sends, all are kept.
	Deliver       func(context.Context, job.Job, job.DeadLetter) job.Delivery
	DeliverWithin time.Duration // what Deliver has for one dead letter; default 24 s
	// Expired is what becomes of a job whose time to live ended before it ran:
	// dead_letter (the default) or discard.
	Expired func(queue string) retry.Action

	Random      func() float64 // in [0, 1), for jitter; safe for concurrent use
	Name        string         // of this worker, as attempts show it
	UnknownType retry.Unknown  // default hold
	Timeout     time.Duration  // ttr of jobs that bring none; default 5 minutes
	Lease       time.Duration  // how long a sign of life counts; default 30 seconds
	// StuckAfter is how long a job waits for an earlier handler of it that has
	// not returned, before it runs all the same as soon as a worker is free;
	// default 5 minutes.
	StuckAfter time.Duration
	// MaxRunning is how many jobs run at once in all queues together; zero: as many
	// as the queues have workers.
	MaxRunning int
	// Probe looks whether there is some of a resource again that had run out; nil:
	// the next job is how that is found out.
	Probe func(shortage.Resource) error

	Grace   time.Duration                 // what running jobs have to end in a graceful stop; default none
	Settled func(job.Job, job.Settlement) // called after each commit, in order; must be quick; may be nil
	Log     *slog.Logger                  // nil: nothing is logged
}

// minLease keeps the heartbeat's ticker from running wild.
const minLease = 10 * time.Millisecond

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

	// Where Kept is not set, every dead letter is kept if there is no Deliver. Otherwise Deliver
	// is asked about each.
	keeps := o.Deliver == nil
	if o.Kept == nil {
		o.Kept = func(string) (job.Delivery, bool) { return job.Delivery{}, keeps }
	}

	if o.Settled == nil {
		o.Settled = func(job.Job, job.Settlement) {}
	}

	return o
}

// validate returns a *invalid.Error for the first field that cannot be.
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

	// Zero has had its default by now, or means none.
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
