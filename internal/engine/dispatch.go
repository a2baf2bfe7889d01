package engine

import (
	"context"
	"errors"
	"runtime"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

const (
	firstPause = 100 * time.Millisecond // after a failed call of the store
	maxPause   = 5 * time.Second
	lookAgain  = time.Second // after the store could not tell when the next job is due
	// maxSleep makes the dispatcher compare its timer with the clock now and
	// then, because the clock can be set and the machine can sleep.
	maxSleep = time.Minute
)

// dispatcher is the state of the loop; only its goroutine touches it.
type dispatcher struct {
	*Engine
	queues  map[string]*queue
	pending []outcome     // to be written
	due     time.Time     // when the next waiting job may run; zero: never
	asks    bool          // the store knows better when that is
	limit   time.Time     // when the next handler may have to be given up, or was waited for long enough; zero: never
	pause   time.Duration // after the last call, which failed; zero: it did not
	until   time.Time     // the end of the pause
	problem error         // of the last call
	broken  bool          // that call ended the store: there is no further one
	empty   bool          // drained is closed
	timer   *time.Timer
}

// queue is what the dispatcher knows of a queue.
type queue struct {
	workers int
	ready   bool // it may hold jobs that can be claimed
}

func newDispatcher(e *Engine) *dispatcher {
	d := &dispatcher{Engine: e, queues: map[string]*queue{}, timer: time.NewTimer(maxSleep)}
	for _, name := range e.o.Store.QueueNames() {
		d.queue(name)
	}
	d.lookEverywhere()
	return d
}

func (d *dispatcher) queue(name string) *queue {
	q, ok := d.queues[name]
	if !ok {
		q = &queue{workers: d.o.Workers(name)}
		d.queues[name] = q
	}
	return q
}

// lookEverywhere makes the next claim ask for jobs of every queue, and the
// store for the time of the next one.
func (d *dispatcher) lookEverywhere() {
	for _, q := range d.queues {
		q.ready = true
	}
	d.due, d.asks = time.Time{}, true
}

func (d *dispatcher) loop() {
	defer close(d.settled)
	defer d.timer.Stop()
	for !d.over() {
		d.collect()
		if !d.broken && !time.Now().Before(d.until) {
			d.work()
		}
		d.sleep()
	}
}

// over reports whether nothing is left to do. Only the loop starts handlers,
// so only it can tell that none will run any more, nor send a dead letter.
func (d *dispatcher) over() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase >= stopping && len(d.busy) == 0 && d.letters == 0 && !d.empty {
		d.empty = true
		close(d.drained)
	}
	left := len(d.pending) + len(d.box.ended)
	hopeless := d.broken || d.hurried && d.pause > 0
	if d.phase < flushing || left > 0 && !hopeless {
		return false
	}
	d.unwritten(left, d.problem)
	return true
}

// collect empties the mailbox.
func (d *dispatcher) collect() {
	box := d.take()
	now := time.Now()
	if len(d.pending) == 0 {
		d.pending = box.ended
	} else {
		d.pending = append(d.pending, box.ended...)
	}
	for _, o := range box.ended {
		if at := o.settlement.RunAt; !at.IsZero() && !at.After(now) {
			d.queue(o.job.Queue).ready = true // claimed again in the call that settles it
		}
	}
	for name, ready := range box.queues {
		q := d.queue(name)
		q.ready = q.ready || ready
	}
	d.due = earlier(d.due, box.due)
	if box.look || reached(d.due, now) {
		d.lookEverywhere()
	}
	if reached(d.limit, now) {
		d.overdue(now)
		d.limit = d.nextLimit(now)
	}
	d.resume(now)
}

// reached reports whether a moment has come; zero never does.
func reached(t, now time.Time) bool { return !t.IsZero() && !t.After(now) }

// take returns the mail. Before it does, it lets handlers run that are about
// to return, for as long as that brings more: what ends at the same time
// shares one commit.
func (d *dispatcher) take() mailbox {
	for seen := -1; ; {
		d.mu.Lock()
		if n := len(d.box.ended); n == seen || len(d.busy) == 0 {
			break
		} else {
			seen = n
		}
		d.mu.Unlock()
		runtime.Gosched()
	}
	box := d.box
	d.box = newMailbox(cap(box.ended))
	d.mu.Unlock()
	return box
}

// work is one try of what the store is to do next.
func (d *dispatcher) work() {
	if !d.catchUp() {
		return
	}
	d.exchange()
}

// catchUp does what the start could not, and reports whether that is done.
func (d *dispatcher) catchUp() bool {
	d.mu.Lock()
	done := !d.behind || d.phase >= stopping // the next start does it; what has ended since is written
	d.mu.Unlock()
	if done {
		return true
	}
	letters, err := d.takeOver(context.Background())
	if err != nil {
		d.fail(err)
		return false
	}
	d.tookOver(letters)
	d.recovered()
	return true
}

// exchange writes what is pending, and claims as much as can start at once.
func (d *dispatcher) exchange() {
	claim := d.claim(time.Now())
	if len(d.pending) == 0 && len(claim.Free) == 0 {
		return
	}
	batch := d.pending
	claimed, stale, err := d.o.Store.Exchange(context.Background(), settlements(batch), claim)
	if err != nil {
		d.fail(err)
		return
	}
	d.pending = nil
	d.recovered()
	d.start(claimed)
	d.release(batch)
	d.announce(batch, stale)
	d.notice(claim, claimed)
	if d.asks && len(claim.Free) > 0 {
		d.askDue(claim.Now)
	}
	if d.stopping() {
		d.nudge() // this may have been the last of it
	}
}

// claim asks for jobs of the queues that may have some, for the workers that
// are free. While calls fail it asks for none until all outcomes are written.
func (d *dispatcher) claim(now time.Time) job.Claim {
	c := job.Claim{Worker: d.o.Name, Now: now, Lease: d.o.Lease, Free: map[string]int{}}
	if d.o.UnknownType == retry.UnknownHold {
		c.Knows = d.knows
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase >= stopping || d.quiet || d.pause > 0 && len(d.pending) > 0 {
		return c
	}
	for name, q := range d.queues {
		if free := q.workers - d.busy[name]; q.ready && free > 0 {
			c.Free[name] = free
		}
	}
	return c
}

// notice remembers the queues that gave less than was asked for: they are
// empty until somebody says otherwise.
func (d *dispatcher) notice(claim job.Claim, claimed []job.Job) {
	got := make(map[string]int, len(claim.Free))
	for _, j := range claimed {
		got[j.Queue]++
	}
	for name, free := range claim.Free {
		d.queues[name].ready = got[name] == free
	}
}

// askDue learns when the next job may run. What was due at the claim is either
// claimed or waits for a worker of its queue, which is asked for more then.
func (d *dispatcher) askDue(claimed time.Time) {
	due, err := d.o.Store.NextDue(context.Background(), claimed)
	if err != nil {
		d.o.Log.Error("The time of the next job could not be read. It is tried again.", "error", err)
		due = claimed.Add(lookAgain)
	}
	d.due, d.asks = due, false
}

// start hands claimed jobs to their handlers. One that need not run, or cannot,
// takes the same way: its worker is what bounds how much is under way.
func (d *dispatcher) start(claimed []job.Job) {
	now := time.Now()
	for i := range claimed {
		x := d.newExecution(claimed[i], now)
		w, ok := d.admit(x, now)
		switch {
		case !ok:
			x.drop()
			d.pending = append(d.pending, d.settle(&x.job, x.interrupted()))
		case w != nil:
			x.drop()
			d.limit = earlier(d.limit, w.until)
			d.o.Log.Info("A job waits, because the handler of an earlier execution has not returned.",
				"job", x.job.ID, "type", x.job.Type, "queue", x.job.Queue, "until", w.until)
		default:
			d.limit = earlier(d.limit, x.limit)
			d.hand(x)
		}
	}
	if len(d.pending) > 0 {
		d.nudge()
	}
}

// admit takes a worker for the execution, unless it has to wait for an earlier
// one; ok is false when the engine began to stop while the job was being
// claimed.
func (d *dispatcher) admit(x *execution, now time.Time) (w *wait, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase >= stopping {
		return nil, false
	}
	if w := d.postpone(x, now); w != nil {
		return w, true
	}
	d.held[x.job.Token] = x
	d.busy[x.job.Queue]++
	return nil, true
}

// release forgets the leases of executions that are settled.
func (d *dispatcher) release(batch []outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range batch {
		delete(d.held, o.job.Token)
	}
}

// nextLimit is the first moment at which a handler may have to be given up, or
// has been waited for long enough.
func (d *dispatcher) nextLimit(now time.Time) (limit time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.held {
		if !x.ended && !x.returned {
			limit = earlier(limit, x.limit)
		}
	}
	for _, w := range d.waiting {
		if w.until.After(now) { // otherwise it waits for a worker
			limit = earlier(limit, w.until)
		}
	}
	return limit
}

// fail keeps everything for a later try, or for none when the store broke.
func (d *dispatcher) fail(err error) {
	d.problem = err
	if errors.Is(err, job.ErrBroken) {
		d.broken = true
		d.failed <- err // once: no call comes after it
		d.o.Log.Error("The store broke. No more jobs are claimed.", "error", err, "unwritten", len(d.pending))
		return
	}
	d.pause = min(max(2*d.pause, firstPause), maxPause)
	d.until = time.Now().Add(d.pause)
	d.o.Log.Warn("The store refused. Outcomes are kept and tried again; nothing is claimed meanwhile.",
		"error", err, "unwritten", len(d.pending), "again_in", d.pause)
}

// recovered ends a series of failures. The call that ended it may have claimed
// nothing for caution.
func (d *dispatcher) recovered() {
	if d.pause > 0 {
		d.pause, d.problem = 0, nil
		d.nudge()
	}
}

// sleep waits for mail, or for the next moment at which there is work.
func (d *dispatcher) sleep() {
	now := time.Now()
	next := earlier(d.limit, now.Add(maxSleep))
	if d.until.After(now) {
		next = earlier(next, d.until)
	} else {
		next = earlier(next, d.due)
	}
	d.timer.Reset(next.Sub(now))
	select {
	case <-d.wake:
	case <-d.timer.C:
	}
}

// announce tells of the settlements that were written.
func (e *Engine) announce(batch []outcome, stale []job.Token) {
	fenced := make(map[job.Token]bool, len(stale))
	for _, token := range stale {
		fenced[token] = true
	}
	for _, o := range batch {
		if !fenced[o.job.Token] {
			e.o.Settled(*o.job, o.settlement)
			continue
		}
		e.o.Log.Info("An execution was ended by somebody else before. Its outcome was dropped.",
			"job", o.job.ID, "type", o.job.Type, "outcome", o.settlement.Attempt.Outcome)
	}
}
