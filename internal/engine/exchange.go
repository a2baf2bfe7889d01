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

// lookAgain is the pause after an error in reading when the next job is due.
const lookAgain = time.Second

// The pause before a call is repeated that was put aside is doubled each time, between these bounds.
const (
	minAside = time.Second
	maxAside = time.Minute
)

// aside is the state of a kind of call that is put aside for a while, because the database refused
// it for what it contains.
type aside struct {
	pause time.Duration // the pause after the last call; zero: that was not refused
	again time.Time     // when the pause ends
}

// put puts the call aside, for twice as long as the last time.
func (a *aside) put(now time.Time) {
	a.pause = min(max(2*a.pause, minAside), maxAside)
	a.again = now.Add(a.pause)
}

// queue is what the dispatcher knows of a queue.
type queue struct {
	ready  bool // it may hold jobs that can be claimed
	urgent int  // how many jobs have come that should start before a prefetched one
	prefetch.Pace
	aside // of claims from the queue
}

// exchange makes one call of the store: it settles the pending outcomes, claims as many jobs as can
// start at once, and prefetches those that can start during the next call. It starts what it has
// claimed.
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

	// Start the jobs first.
	d.startClaimed(claim, claimed)
	d.workers.Release(claim)
	d.fillWorkers()

	// Then record what was written, and which queues are empty.
	d.noteWritten(settled, stale)
	d.noteEmpty(claim, claimed)

	if d.askDue && len(claim.Free)+len(claim.Prefetch) > 0 {
		d.learnDue(claim.Now)
	}

	if d.life.reached(stopping) {
		d.notify() // this may have been the last of it
	}
}

// probe is called if there is nothing to ask of the store. If the last call failed, it checks whether
// the database accepts writes again. Otherwise the outage would last until there is another call.
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

// call calls Exchange with the pending outcomes and a claim, and measures how long that takes.
func (d *dispatcher) call(claim job.Claim) (claimed []job.Job, stale []job.Token, err error) {
	begin := time.Now()
	d.batch = outcome.AppendSettlements(d.batch[:0], d.pending)
	claimed, stale, err = d.o.Store.Exchange(context.Background(), d.batch, claim)
	clear(d.batch) // their texts can be large
	d.commit = prefetch.Smooth(d.commit, time.Since(begin))

	return claimed, stale, err
}

// claim returns a claim of jobs from the queues that may have some: as many as workers are free,
// which it reserves, and as many as will become free during the call. While calls fail, it claims
// nothing until all outcomes are written. It also has the executions in it that have begun and of
// which the store does not know that yet.
func (d *dispatcher) claim(now time.Time) job.Claim {
	c := d.newClaim(now)
	c.Prefetch = map[string]int{}

	// The store need not be told that an execution has begun if it has ended since.
	d.begun = d.executions.StillRunning(d.begun)
	if d.backoff == 0 && !d.begunAside.again.After(now) {
		c.Began = d.begun
	}

	d.full = false
	if d.life.reached(stopping) || d.paused.Load() || d.backoff > 0 && len(d.pending) > 0 {
		return c
	}

	// Each queue gets at most as many jobs as it has free workers, and all queues together as many as
	// may run.
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

		if room <= 0 { // do not prefetch: the next place is for any of the queues
			continue
		}

		ahead := d.ahead(name, q)
		if ahead > 0 {
			c.Prefetch[name] = ahead
		}
	}

	return c
}

// ahead returns how many more jobs of a queue to prefetch: as many as its workers will end during a
// call, without those that are prefetched already, and those that should start before these.
func (d *dispatcher) ahead(name string, q *queue) int {
	if !d.mayBegin(name) {
		return 0
	}

	n := q.urgent
	q.urgent = 0

	// If no execution has ended since the last claim, its workers are slower now than measured.
	if q.Ended {
		q.Ended = false
		perCall := q.During(d.commit, d.workers.Limit(name))
		left := max(0, d.prefetch.Count(name)-perCall) // of those prefetched, when this call returns
		n += max(0, perCall-left)
	}

	return n
}

// noteEmpty records which queues gave fewer jobs than were asked for. They are not ready until it is
// known that they have jobs again.
func (d *dispatcher) noteEmpty(claim job.Claim, claimed []job.Job) {
	got := make(map[string]int, len(claim.Free))
	for i := range claimed { // the jobs have begun, so copying one here would be a data race
		got[claimed[i].Queue]++
	}

	for name, q := range d.queues {
		asked := claim.Free[name] + claim.Prefetch[name]
		if asked == 0 {
			continue
		}

		q.ready = got[name] == asked
		if d.full && got[name] < claim.Free[name] {
			d.notify() // other queues can have the places that it did not use
		}
	}
}

// learnDue reads from the store when the next job may run, after the time of the last claim. A job
// that was due then was claimed, or its queue has no free worker and is still ready.
func (d *dispatcher) learnDue(claimed time.Time) {
	due, err := d.o.Store.NextDue(context.Background(), claimed)
	if err != nil {
		d.o.Log.Error("The time of the next job could not be read. Redrive will try again.", "error", err)

		due = claimed.Add(lookAgain)
	}

	d.due = due
	d.askDue = false
}

// separate handles a call that the database refused for what it contains, by making smaller calls: it
// writes the settlements without claiming. If there were none, it claims from each queue on its own.
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

	// The database may have refused to record that executions have begun. Put that aside, so that the
	// next call can claim.
	if len(claim.Began) > 0 {
		d.putBegunAside(len(claim.Began), refusal)
	}

	d.recovered()
	d.notify() // nothing was claimed
}

// claimApart claims from each queue on its own. A queue whose claim the database refuses is put
// aside, so that others are not held up. If no claim is refused, the database must have refused to
// record which executions have begun, and that is put aside.
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
	d.notify() // due may have to be read
}

// putBegunAside puts aside the recording of which executions have begun.
func (d *dispatcher) putBegunAside(jobs int, refusal error) {
	d.begunAside.put(time.Now())
	d.limit = when.Earlier(d.limit, d.begunAside.again)
	d.o.Log.Error("The database refused a call that was to record which jobs have begun. Redrive will try again.",
		"jobs", jobs, "error", refusal, "again_in", d.begunAside.pause)
}

// putAside puts claims from a queue aside.
func (d *dispatcher) putAside(name string, refusal error) {
	q := d.queues[name]
	q.put(time.Now())
	d.limit = when.Earlier(d.limit, q.again)

	d.o.Log.Error("The database refused to claim from a queue. Other queues continue, and Redrive will try this one again.",
		"queue", name, "error", refusal, "again_in", q.pause)
}
