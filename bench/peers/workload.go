package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Workload is one row of the table.
type Workload struct {
	Name  string
	Unit  string
	Batch bool // enqueues many jobs with one call
	Run   func(context.Context, Queue, Size) (rate float64, err error)
}

// Size bounds a measurement.
type Size struct {
	Backlog  int           // jobs that wait when a work-off starts
	Failing  int           // jobs that fail twice first
	Enqueued int           // jobs that are enqueued, at most
	Batch    int           // jobs that are enqueued with one call; 1 for a queue that takes no more
	WorkOff  time.Duration // the limit of a work-off; what is done by then counts
	Enqueue  time.Duration // the same for enqueueing
}

// FullSize is what the figures in the document are measured with. A slow queue
// meets the limit, a fast one the end of the backlog.
var FullSize = Size{Backlog: 10_000, Failing: 2_000, Enqueued: 1_000_000, Batch: 1000, WorkOff: 4 * time.Second, Enqueue: time.Second}

// Workloads are the rows of the table.
var Workloads = []Workload{
	{Name: "work off, 50 workers", Unit: "jobs/s", Run: func(ctx context.Context, q Queue, s Size) (float64, error) {
		return workOff(ctx, q, s, 50)
	}},
	{Name: "work off, 1,000 workers", Unit: "jobs/s", Run: func(ctx context.Context, q Queue, s Size) (float64, error) {
		return workOff(ctx, q, s, 1000)
	}},
	{Name: "enqueue, one caller", Unit: "jobs/s", Run: func(ctx context.Context, q Queue, s Size) (float64, error) {
		return enqueue(ctx, q, s, 1, 1)
	}},
	{Name: "enqueue, 50 callers", Unit: "jobs/s", Run: func(ctx context.Context, q Queue, s Size) (float64, error) {
		return enqueue(ctx, q, s, 50, 1)
	}},
	{Name: "enqueue, 1,000 at once", Unit: "jobs/s", Batch: true, Run: func(ctx context.Context, q Queue, s Size) (float64, error) {
		return enqueue(ctx, q, s, 1, s.Batch)
	}},
	{Name: "each job fails twice first, 50 workers", Unit: "executions/s", Run: failing},
}

// enqueue returns the jobs stored per second by so many callers, each of which
// stores a batch with each call. The first call of each, which may open its
// connection, is not measured.
func enqueue(ctx context.Context, q Queue, s Size, callers, batch int) (float64, error) {
	c := &calls{q: q, batch: batch, most: s.Enqueued}

	// The first call of each is not measured.
	_, err := c.run(ctx, callers, 0)
	if err != nil {
		return 0, err
	}

	warm := c.stored.Load()
	runtime.GC()

	took, err := c.run(ctx, callers, s.Enqueue)
	if err != nil {
		return 0, err
	}

	// The rate is that of jobs that are really there.
	stored := c.stored.Load()
	left, err := q.Left(ctx)
	if err == nil && int64(left) != stored {
		err = fmt.Errorf("%d jobs were enqueued and %d are there", stored, left)
	}

	return float64(stored-warm) / took.Seconds(), err
}

// calls are the calls that enqueue jobs, up to a number of jobs.
type calls struct {
	q             Queue
	batch, most   int
	taken, stored atomic.Int64
}

// run lets so many callers each make a call, and then more until the limit.
func (c *calls) run(ctx context.Context, callers int, limit time.Duration) (took time.Duration, err error) {
	start := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for range callers {
		g.Go(func() error {
			for again := true; again; again = time.Since(start) < limit {
				first := int(c.taken.Add(int64(c.batch))) - c.batch
				if first+c.batch > c.most {
					return nil
				}

				if err := c.q.Enqueue(ctx, newJobs(first, c.batch)); err != nil {
					return err
				}

				c.stored.Add(int64(c.batch))
			}

			return nil
		})
	}

	err = g.Wait()

	return time.Since(start), err
}

// fill stores a backlog as quickly as the queue allows.
func fill(ctx context.Context, q Queue, n, batch int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(1)

	if batch == 1 {
		g.SetLimit(200)
	}

	for first := 0; first < n; first += batch {
		g.Go(func() error { return q.Enqueue(ctx, newJobs(first, min(batch, n-first))) })
	}

	return g.Wait()
}

// runs counts the executions of each job.
type runs struct {
	of    []atomic.Int32
	total atomic.Int64
	all   chan struct{} // closed at the last execution
}

func newRuns(jobs int) *runs {
	return &runs{of: make([]atomic.Int32, jobs), all: make(chan struct{})}
}

// handler fails the first executions of each job.
func (r *runs) handler(failures int) Handler {
	last := int64(len(r.of) * (failures + 1))

	return func(j Job) error {
		n := int(r.of[j.N].Add(1))
		if r.total.Add(1) == last {
			close(r.all)
		}

		if n <= failures {
			return errors.New("the mail server said no")
		}

		return nil
	}
}

// check returns an error unless every job was run so many times.
func (r *runs) check(want int) error {
	for i := range r.of {
		if got := int(r.of[i].Load()); got != want {
			return fmt.Errorf("job %d was run %d times, not %d", i, got, want)
		}
	}

	return nil
}

// workOff returns the jobs per second that the workers finish of a backlog. It
// counts what the database says is finished, not what handlers have returned.
func workOff(ctx context.Context, q Queue, s Size, workers int) (float64, error) {
	done, took, err := load{jobs: s.Backlog, batch: s.Batch, workers: workers, limit: s.WorkOff}.run(ctx, q)
	return float64(done) / took.Seconds(), err
}

// failing returns the executions per second of jobs that fail twice, to the end
// of the last of them.
func failing(ctx context.Context, q Queue, s Size) (float64, error) {
	const failures, tooLong = 2, time.Minute
	done, took, err := load{jobs: s.Failing, batch: s.Batch, failures: failures, workers: 50, limit: tooLong}.run(ctx, q)
	if err == nil && done < s.Failing {
		err = fmt.Errorf("%d of %d jobs have not succeeded after %v", s.Failing-done, s.Failing, tooLong)
	}

	return float64(done*(failures+1)) / took.Seconds(), err
}

// load is jobs that are to be worked off.
type load struct {
	jobs, batch int // batch is how many are enqueued with one call
	failures    int // of each job, before it succeeds
	workers     int
	limit       time.Duration
}

// run works off the jobs until all are finished or the time is over.
func (l load) run(ctx context.Context, q Queue) (done int, took time.Duration, err error) {
	err = fill(ctx, q, l.jobs, l.batch)
	if err != nil {
		return 0, 1, fmt.Errorf("fill: %w", err)
	}

	executed := newRuns(l.jobs)
	runtime.GC()

	start := time.Now()

	stop, err := q.Work(ctx, l.workers, executed.handler(l.failures))
	if err != nil {
		return 0, 1, fmt.Errorf("work: %w", err)
	}

	left, err := finish(ctx, q, executed, time.After(l.limit))
	took = time.Since(start)

	// What was worked off in time was executed as often as it should, and no more often.
	err = errors.Join(err, stop())
	if err == nil && left == 0 {
		err = executed.check(l.failures + 1)
	}

	return l.jobs - left, took, err
}

// finish waits until no job is left, or the time is over, and returns how many
// are left. It asks the queue, which costs it something, only at the end.
func finish(ctx context.Context, q Queue, executed *runs, over <-chan time.Time) (left int, err error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-over:
		return q.Left(ctx)
	case <-executed.all:
	}

	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()

	for {
		left, err = q.Left(ctx)
		if err != nil || left == 0 {
			return left, err
		}

		select {
		case <-over:
			return left, nil
		case <-again.C:
		}
	}
}
