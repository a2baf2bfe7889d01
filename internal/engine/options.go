package engine

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// Store is what the engine needs of a database. Its methods are atomic and
// finish what they began whatever becomes of ctx, which bounds the waiting
// only.
type Store interface {
	// Exchange settles, then claims, in one transaction. Executions that were
	// fenced off change nothing and are reported as stale.
	Exchange(ctx context.Context, settle []job.Settlement, claim job.Claim) (claimed []job.Job, stale []job.Token, err error)
	// Extend moves the end of leases; those that were fenced off are stale.
	Extend(ctx context.Context, now, until time.Time, tokens []job.Token) (stale []job.Token, err error)
	// Leases returns the active jobs whose lease ends by then; all for the zero time.
	Leases(ctx context.Context, endedBy time.Time) ([]job.Job, error)
	// NextDue is the earliest time after a moment at which a waiting job may run;
	// zero for none.
	NextDue(ctx context.Context, after time.Time) (time.Time, error)
	// Unhold frees the jobs that were held for want of a handler.
	Unhold(ctx context.Context, knows func(typ string) bool) (int, error)
	// QueueNames lists the queues that have, or had, jobs.
	QueueNames() []string
}

// Options configure an engine. Those without a default are required.
type Options struct {
	Store    Store
	Handlers func(typ string) (Handler, bool)
	Workers  func(queue string) int // how many jobs of a queue run at once; asked once for each; zero: none

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
	Grace      time.Duration                 // what running jobs have to end in a graceful stop; default none
	Settled    func(job.Job, job.Settlement) // called after each commit, in order; must be quick; may be nil
	Log        *slog.Logger                  // nil: nothing is logged
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
	if o.Expired == nil {
		o.Expired = func(string) retry.Action { return retry.DeadLetter }
	}
	if o.Rules == nil {
		o.Rules = func(job.Job, job.Ending) (*retry.Ruling, string) { return nil, "" }
	}
	if keeps := o.Deliver == nil; o.Kept == nil {
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
	for field, d := range map[string]time.Duration{
		"timeout": o.Timeout, "grace": o.Grace, "stuck_after": o.StuckAfter, "deliver_within": o.DeliverWithin,
	} {
		if d < 0 {
			return &invalid.Error{Field: field, Problem: fmt.Sprintf("%v is negative", d)}
		}
	}
	return nil
}
