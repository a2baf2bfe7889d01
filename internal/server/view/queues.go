package view

import (
	"context"
	"errors"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retention"
	"redrive/internal/stats"
)

// Nothing of what these methods return came with a job, so they hide nothing.

// Snapshot is the newest totals, without a look at the database.
func (v *View) Snapshot() stats.Snapshot { return v.store.Snapshot() }

// QueueNames lists the queues that are known, sorted. They must not be changed.
func (v *View) QueueNames() []string { return v.store.Counters.QueueNames() }

// CountedTypes is how many types of jobs are told apart where they are counted.
func (v *View) CountedTypes() int { return v.store.Counters.CountedTypes() }

// GroupCount is how many error groups there are.
func (v *View) GroupCount() int { return v.store.Groups.Size() }

// HasQueue reports whether a queue is known.
func (v *View) HasQueue(name string) bool { return v.store.Counters.HasQueue(name) }

// Queues describes some of the queues that are known.
func (v *View) Queues(ctx context.Context, now time.Time, names []string) ([]queues.Info, error) {
	return v.store.Counters.Queues(ctx, now, names)
}

// PausedQueues names the queues that were paused last.
func (v *View) PausedQueues(ctx context.Context, limit int) ([]string, error) {
	return v.store.Counters.PausedQueues(ctx, limit)
}

// Fullest names the queues with the most jobs of some statuses.
func (v *View) Fullest(ctx context.Context, n int, orders ...[]job.Status) ([]string, error) {
	return v.store.Counters.Fullest(ctx, n, orders...)
}

// DepthsByLabel counts the jobs by what metrics call their queues.
func (v *View) DepthsByLabel(ctx context.Context) (map[string]stats.Depths, error) {
	return v.store.Counters.DepthsByLabel(ctx)
}

// Label is what metrics call a queue.
func (v *View) Label(queue string) string { return v.store.Counters.Label(queue) }

// Held counts the jobs that wait for a handler, by queue and type.
func (v *View) Held(ctx context.Context, queue string, limit int) ([]queues.Held, error) {
	return v.store.Counters.Held(ctx, queue, limit)
}

// RemoveQueue removes an empty queue with its finished jobs.
func (v *View) RemoveQueue(ctx context.Context, now time.Time, queue string, by audit.Actor) (jobs int64, err error) {
	return v.store.RemoveQueue(ctx, now, queue, by)
}

// Tallies is the counters by queue and type.
func (v *View) Tallies(ctx context.Context) ([]queues.Tally, error) {
	return v.store.Counters.Tallies(ctx)
}

// LastHour is the totals of the last hour by the minute.
func (v *View) LastHour(ctx context.Context, now time.Time) ([]stats.Totals, error) {
	return v.store.Counters.LastHour(ctx, now)
}

// Series is the totals of a queue, a type or both over a time.
func (v *View) Series(ctx context.Context, now time.Time, queue, typ string, scale queues.Scale) ([]stats.Totals, error) {
	return v.store.Counters.Series(ctx, now, queue, typ, scale)
}

// Reasons counts the open dead letters by reason.
func (v *View) Reasons(ctx context.Context) ([]filter.ReasonCount, error) {
	return v.store.Counters.Reasons(ctx)
}

// Usage is how full the dead-letter queue is.
func (v *View) Usage(ctx context.Context, now time.Time) (retention.Usage, error) {
	return v.store.Sweep.DeadLetterUsage(ctx, now)
}

// Retention is the newest forecast of what retention will remove.
func (v *View) Retention() retention.Forecast { return v.store.Sweep.Retention() }

// Removals is what retention removed since the beginning.
func (v *View) Removals(ctx context.Context) ([]retention.Removal, error) {
	return v.store.Sweep.Removals(ctx)
}

// Paused says since when a queue is paused, and by whom.
func (v *View) Paused(ctx context.Context, queue string) (at time.Time, by string, err error) {
	return v.store.Paused(ctx, queue)
}

// Pause stops a queue.
func (v *View) Pause(ctx context.Context, now time.Time, queue string, by audit.Actor) error {
	return v.store.Pause(ctx, now, queue, by)
}

// Resume lets a queue run. One that is only configured runs already.
func (v *View) Resume(ctx context.Context, now time.Time, queue string, by audit.Actor) error {
	if err := v.store.Resume(ctx, now, queue, by); !errors.Is(err, job.ErrNotFound) {
		return err
	}
	return nil
}
