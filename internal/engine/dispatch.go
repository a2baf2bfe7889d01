package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

const (
	minBackoff = 100 * time.Millisecond // after a failed call of the store
	maxBackoff = 5 * time.Second
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
	cut     bool          // the last claim asked for less than there are workers, since only so many may run
	limit   time.Time     // when to look for handlers to give up, or that were waited for long enough; zero: never
	backoff time.Duration // after the last call, which failed; zero: it did not
	again   time.Time     // the end of the backoff
	problem error         // of the last call
	broken  bool          // that call ended the store: there is no further one
	timer   *time.Timer
}

// queue is what the dispatcher knows of a queue.
type queue struct {
	workers int
	ready   bool // it may hold jobs that can be claimed

	aside time.Duration // the pause after its last claim, which was refused; zero: it was not
	again time.Time     // the end of that pause
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
	defer close(d.life.settled)
	defer d.timer.Stop()
	for !d.over() {
		d.collect()
		if !d.broken && !time.Now().Before(d.again) {
			d.watch(time.Now())
			d.hold.asks(time.Now())
			d.work()
			d.hold.asks(time.Time{})
		}
		d.sleep()
	}
}

// over reports whether nothing is left to do. Only the loop starts handlers,
// so only it can tell that none will run any more, nor send a dead letter.
func (d *dispatcher) over() bool {
	stops, flushes := d.life.reached(stopping), d.life.reached(flushing)
	sent := d.outbox.empty()
	busy, left := d.active.left()
	if stops && sent && busy == 0 && !closed(d.life.drained) {
		close(d.life.drained)
	}
	left += len(d.pending)
	hopeless := d.broken || d.backoff > 0 && closed(d.life.hurry)
	if !flushes || left > 0 && !hopeless {
		return false
	}
	if left > 0 {
		d.life.err = fmt.Errorf("stop the engine: %d outcomes were not written, and their jobs will be settled as lost at the next start: %w",
			left, d.problem)
	}
	return true
}

// collect takes in what ended and what moved since the last round.
func (d *dispatcher) collect() {
	ended, news := d.active.take()
	now := time.Now()
	if len(d.pending) == 0 {
		d.pending = ended
	} else {
		d.pending = append(d.pending, ended...)
	}
	for _, o := range ended {
		if at := o.settlement.RunAt; !at.IsZero() && !at.After(now) {
			d.queue(o.job.Queue).ready = true // claimed again in the call that settles it
		}
	}
	for name, ready := range news.queues {
		q := d.queue(name)
		q.ready = q.ready || ready
	}
	d.due = earlier(d.due, news.due)
	if news.look || reached(d.due, now) {
		d.lookEverywhere()
	}
	if reached(d.limit, now) {
		d.giveUp(now)
		d.limit = d.active.nextLimit(now)
	}
	d.startWaiting(now)
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
	if !d.behind.Load() || d.life.reached(stopping) { // the next start does it; what has ended since is written
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
	switch {
	case job.OwnFault(err):
		d.separate(claim)
		return
	case err != nil:
		d.fail(err)
		return
	}
	d.pending = nil
	d.recovered()
	d.start(claimed)
	d.active.release(batch)
	d.announce(batch, stale)
	d.noteEmpty(claim, claimed)
	if d.asks && len(claim.Free) > 0 {
		d.askDue(claim.Now)
	}
	if d.life.reached(stopping) {
		d.notify() // this may have been the last of it
	}
}

// claim asks for jobs of the queues that may have some, for the workers that
// are free. While calls fail it asks for none until all outcomes are written.
func (d *dispatcher) claim(now time.Time) job.Claim {
	c := job.Claim{Worker: d.o.Name, Now: now, Lease: d.o.Lease, Free: map[string]int{}}
	if d.o.UnknownType == retry.UnknownHold {
		c.Knows = d.knows
	}
	d.cut = false
	if d.life.reached(stopping) || d.paused.Load() || d.backoff > 0 && len(d.pending) > 0 {
		return c
	}
	room := d.hold.room(d.active.allInUse(), d.o.MaxRunning)
	for name, q := range d.queues {
		if !q.ready || q.again.After(now) {
			continue
		}
		free := q.workers - d.active.inUse(name)
		if free > room {
			free, d.cut = room, true
		}
		if free > 0 {
			c.Free[name] = free
			room -= free
		}
	}
	return c
}

// noteEmpty remembers the queues that gave less than was asked for: they are
// empty until somebody says otherwise.
func (d *dispatcher) noteEmpty(claim job.Claim, claimed []job.Job) {
	got := make(map[string]int, len(claim.Free))
	for _, j := range claimed {
		got[j.Queue]++
	}
	for name, free := range claim.Free {
		d.queues[name].ready = got[name] == free
		if d.cut && got[name] < free {
			d.notify() // another queue can have its place
		}
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
		w, ok := d.active.admit(x, now.Add(d.o.StuckAfter))
		switch {
		case !ok:
			x.stopClock()
			d.pending = append(d.pending, d.settle(&x.job, x.interrupted()))
		case w != nil:
			x.stopClock()
			d.limit = earlier(d.limit, w.until)
			d.o.Log.Info("A job waits, because the handler of an earlier execution has not returned.",
				"job", x.job.ID, "type", x.job.Type, "queue", x.job.Queue, "until", w.until)
		default:
			d.limit = earlier(d.limit, x.limit)
			d.handlers.hand(x)
		}
	}
	if len(d.pending) > 0 {
		d.notify()
	}
}

// fail keeps everything for a later try, or for none when the store broke.
func (d *dispatcher) fail(err error) {
	d.problem = err
	first, _ := d.hold.answered(time.Now(), err)
	if errors.Is(err, job.ErrBroken) {
		d.broken = true
		d.failed <- err // once: no call comes after it
		d.o.Log.Error("The store broke. No more jobs are claimed.", "error", err, "unwritten", len(d.pending))
		return
	}
	d.backoff = min(max(2*d.backoff, minBackoff), maxBackoff)
	d.again = time.Now().Add(d.backoff)
	level := slog.LevelDebug
	if first {
		level = slog.LevelWarn
	}
	d.o.Log.Log(context.Background(), level, "The database refused a write. Outcomes are kept and tried again; meanwhile no jobs are claimed.",
		"error", err, "unwritten", len(d.pending), "again_in", d.backoff)
}

// recovered ends a series of failures. The call that ended it may have claimed
// nothing for caution.
func (d *dispatcher) recovered() {
	if d.backoff > 0 {
		d.backoff, d.problem = 0, nil
		_, lasted := d.hold.answered(time.Now(), nil)
		d.o.Log.Info("The database accepts writes again.", "after", lasted.Round(time.Millisecond))
		d.notify()
	}
}

// sleep waits until it is woken, or for the next moment at which there is work.
func (d *dispatcher) sleep() {
	now := time.Now()
	next := earlier(earlier(d.limit, d.hold.wakes()), now.Add(maxSleep))
	if d.again.After(now) {
		next = earlier(next, d.again)
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

// news is what the dispatcher has not yet heard of jobs that moved.
type news struct {
	queues map[string]bool // queues of which there is news; true: with jobs that can be claimed
	due    time.Time       // when the earliest of the waiting jobs that we heard of may run
	look   bool            // something changed that names no job
}

// hear takes in changes, none for those that name no job, and reports whether
// the dispatcher needs to know.
func (s *executions) hear(changes []job.Change) (relevant bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &s.news
	if relevant = len(changes) == 0; relevant {
		n.look = true
	}
	if n.queues == nil {
		n.queues = map[string]bool{}
	}
	for _, c := range changes {
		switch {
		case c.State != job.Available && c.State != job.Scheduled && c.State != job.Retryable:
			continue
		case c.State != job.Available && c.RunAt.After(time.Now()):
			if _, known := n.queues[c.Queue]; !known {
				n.queues[c.Queue] = false
			}
			n.due = earlier(n.due, c.RunAt)
		default: // also when it was held: a claim that had to hold many may have left more
			n.queues[c.Queue] = true
		}
		relevant = true
	}
	return relevant
}

// earlier returns the earlier of two times, where zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// reached reports whether a moment has come; zero never does.
func reached(t, now time.Time) bool { return !t.IsZero() && !t.After(now) }
