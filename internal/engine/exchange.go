package engine

import (
	"context"
	"time"

	"redrive/internal/engine/outcome"
	"redrive/internal/engine/prefetch"
	"redrive/internal/engine/when"
	"redrive/internal/fault"
	"redrive/internal/job"
)

// lookAgain is the pause after the store could not tell when the next job is due.
const lookAgain = time.Second

// The pauses before something is tried again that the database refused for its own fault.
const (
	minAside = time.Second
	maxAside = time.Minute
)

// aside is what the database refused for its own fault, and what has to wait for that.
type aside struct {
	pause time.Duration // after the last try; zero: that was not refused
	again time.Time     // the end of that pause
}

// put begins the next pause, which is longer than the one before.
func (a *aside) put(now time.Time) {
	a.pause = min(max(2*a.pause, minAside), maxAside)
	a.again = now.Add(a.pause)
}

// queue is what the dispatcher knows of a queue.
type queue struct {
	ready  bool // it may hold jobs that can be claimed
	urgent int  // jobs that came and should start before some that are prefetched
	prefetch.Pace
	aside // its last claim, when that was refused
}

// exchange writes what is pending, and claims as much as can start at once, or
// while the next call lasts.
func (d *dispatcher) exchange() {
	claim := d.claim(time.Now())
	if len(d.pending)+len(claim.Free)+len(claim.Prefetch)+len(claim.Began) == 0 {
		d.probe()
		return
	}

	settled := d.pending

	claimed, stale, err := d.call(claim)
	if err != nil {
		if fault.InInput(err) {
			d.separate(claim, err)
		} else {
			d.fail(err)
		}

		d.workers.Release(claim)

		return
	}

	d.pending = nil
	if len(claim.Began) > 0 { // a call after a failed one carries none
		d.begun = nil
		d.begunAside = aside{}
	}

	d.recovered()

	// Start first what waits for nothing else.
	d.startClaimed(claim, claimed)
	d.workers.Release(claim)
	d.fillWorkers()

	// Then what the commit has told.
	d.noteWritten(settled, stale)
	d.noteEmpty(claim, claimed)

	if d.askDue && len(claim.Free)+len(claim.Prefetch) > 0 {
		d.learnDue(claim.Now)
	}

	if d.life.reached(stopping) {
		d.notify() // this may have been the last of it
	}
}

// probe looks whether the database is well again when the last call failed and there is nothing
// left to ask for: otherwise the outage would go on until there is.
func (d *dispatcher) probe() {
	if d.backoff == 0 {
		return
	}

	err := d.o.Store.Ping(context.Background())
	if err != nil {
		d.fail(err)
		return
	}

	d.recovered()
}

// call is one call of the store, which is measured.
func (d *dispatcher) call(claim job.Claim) (claimed []job.Job, stale []job.Token, err error) {
	begin := time.Now()
	d.batch = outcome.AppendSettlements(d.batch[:0], d.pending)
	claimed, stale, err = d.o.Store.Exchange(context.Background(), d.batch, claim)
	clear(d.batch) // their texts can be large
	d.commit = prefetch.Smooth(d.commit, time.Since(begin))

	return claimed, stale, err
}

// claim asks for jobs of the queues that may have some: for the workers that are
// free, which are reserved for them, and for those that will be. While calls fail it
// asks for none until all outcomes are written.
func (d *dispatcher) claim(now time.Time) job.Claim {
	c := d.newClaim(now)
	c.Prefetch = map[string]int{}

	// That an execution has begun needs no writing once it has ended.
	d.begun = d.executions.StillRunning(d.begun)
	if d.backoff == 0 && !d.begunAside.again.After(now) {
		c.Began = d.begun
	}

	d.full = false
	if d.life.reached(stopping) || d.paused.Load() || d.backoff > 0 && len(d.pending) > 0 {
		return c
	}

	// Each queue may have as many as it has workers, all together as many as may run.
	room := d.breaker.Room(d.workers.Taken())
	for name, q := range d.queues {
		if !q.ready || q.again.After(now) {
			continue
		}

		free, more := d.workers.Reserve(name, room)
		d.full = d.full || more

		if free > 0 {
			c.Free[name] = free
			room -= free
		}

		if room <= 0 { // the next place is for the queue that comes first
			continue
		}

		ahead := d.ahead(name, q)
		if ahead > 0 {
			c.Prefetch[name] = ahead
		}
	}

	return c
}

// ahead is how many more jobs of a queue to prefetch: what its workers end while a call
// lasts, and what goes before those that are prefetched already.
func (d *dispatcher) ahead(name string, q *queue) int {
	if !d.mayBegin(name) {
		return 0
	}

	n := q.urgent
	q.urgent = 0

	// While no execution ends, its workers are not as quick as they were.
	if q.Ended {
		q.Ended = false
		most := q.During(d.commit, d.workers.Limit(name))
		left := max(0, d.prefetch.Count(name)-most) // when this call returns
		n += max(0, most-left)
	}

	return n
}

// noteEmpty remembers the queues that gave less than was asked for: they count as
// empty until it is known that they have jobs again.
func (d *dispatcher) noteEmpty(claim job.Claim, claimed []job.Job) {
	got := make(map[string]int, len(claim.Free))
	for i := range claimed { // a copy of a job would race with its beginning
		got[claimed[i].Queue]++
	}

	for name, q := range d.queues {
		asked := claim.Free[name] + claim.Prefetch[name]
		if asked == 0 {
			continue
		}

		q.ready = got[name] == asked
		if d.full && got[name] < claim.Free[name] {
			d.notify() // another queue can have its place
		}
	}
}

// learnDue learns when the next job may run. What was due at the claim is either
// claimed or waits for a worker of its queue, which is asked for more then.
func (d *dispatcher) learnDue(claimed time.Time) {
	due, err := d.o.Store.NextDue(context.Background(), claimed)
	if err != nil {
		d.o.Log.Error("The time of the next job could not be read. Redrive will try again.", "error", err)

		due = claimed.Add(lookAgain)
	}

	d.due = due
	d.askDue = false
}

// separate does one by one what the database refused as a whole: first the
// settlements, and when there are none, the claims of each queue on its own.
func (d *dispatcher) separate(claim job.Claim, refusal error) {
	if err := d.o.Store.Ping(context.Background()); err != nil {
		d.fail(err)
		return
	}

	if len(d.pending) == 0 {
		d.claimApart(claim, refusal)
		return
	}

	left, err := d.write(context.Background(), d.pending)
	d.pending = left
	if err != nil {
		d.fail(err)
		return
	}

	// The outcomes may have been what the database refused, or that executions have begun: the
	// latter waits, so that the next call can claim.
	if len(claim.Began) > 0 {
		d.putBegunAside(len(claim.Began), refusal)
	}

	d.recovered()
	d.notify() // nothing was claimed
}

// claimApart asks each queue on its own, so that one from which nothing can be
// claimed holds up no other. That one is asked again after a pause. When no queue was refused,
// the database refused to record which executions have begun, and that waits likewise.
func (d *dispatcher) claimApart(claim job.Claim, refusal error) {
	refused := false
	for name := range d.queues {
		if claim.Free[name]+claim.Prefetch[name] == 0 {
			continue
		}

		one := claim
		one.Began = nil
		one.Free = map[string]int{name: claim.Free[name]}
		one.Prefetch = map[string]int{name: claim.Prefetch[name]}

		claimed, _, err := d.o.Store.Exchange(context.Background(), nil, one)
		switch {
		case err == nil:
			d.queues[name].aside = aside{}
			d.startClaimed(one, claimed)
			d.noteEmpty(one, claimed)
		case fault.InInput(err):
			d.putAside(name, err)

			refused = true
		default:
			d.fail(err)
			return
		}
	}

	if len(claim.Began) > 0 && !refused {
		d.putBegunAside(len(claim.Began), refusal)
	}

	d.recovered()
	d.notify() // the next time is not known
}

// putBegunAside lets wait that executions have begun.
func (d *dispatcher) putBegunAside(jobs int, refusal error) {
	d.begunAside.put(time.Now())
	d.limit = when.Earlier(d.limit, d.begunAside.again)
	d.o.Log.Error("The database refused a call that was to record which jobs have begun. Redrive will try again.",
		"jobs", jobs, "error", refusal, "again_in", d.begunAside.pause)
}

// putAside lets a queue wait.
func (d *dispatcher) putAside(name string, refusal error) {
	q := d.queues[name]
	q.put(time.Now())
	d.limit = when.Earlier(d.limit, q.again)

	d.o.Log.Error("The database refused to claim from a queue. Other queues continue, and Redrive will try this one again.",
		"queue", name, "error", refusal, "again_in", q.pause)
}
