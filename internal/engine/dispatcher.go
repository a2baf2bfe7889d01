package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"redrive/internal/fault"
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
	written []job.Settlement // of the call that is under way

	began  []job.Token   // from the hand, which is not written down yet
	commit time.Duration // that a call takes
	held   time.Time     // when to look after the hand; zero: it is empty
}

// queue is what the dispatcher knows of a queue.
type queue struct {
	workers int
	ready   bool // it may hold jobs that can be claimed
	urgent  int  // jobs that came and should start before some that are in hand
	pace

	aside time.Duration // the pause after its last claim, which was refused; zero: it was not
	again time.Time     // the end of that pause
}

func newDispatcher(e *Engine) *dispatcher {
	d := &dispatcher{Engine: e, queues: map[string]*queue{}, timer: time.NewTimer(maxSleep)}
	for _, name := range e.o.Queues.QueueNames() {
		d.queue(name)
	}
	d.lookEverywhere()
	return d
}

func (d *dispatcher) queue(name string) *queue {
	q, ok := d.queues[name]
	if !ok {
		q = &queue{workers: d.active.workersOf(name)}
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
			d.breaker.attend(time.Now(), d.cut, d.active.allInUse)
			d.outage.ask(time.Now())
			d.work()
			d.outage.answered()
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
	now := time.Now()
	if d.reloaded.Swap(false) {
		d.askAgain()
	}
	d.held = d.active.giveBack(now, d.life.reached(stopping))
	ended, news := d.active.take()
	if len(d.pending) == 0 {
		d.pending = ended
	} else {
		d.pending = append(d.pending, ended...)
	}
	for _, o := range ended {
		q := d.queue(o.job.Queue)
		if at := o.settlement.RunAt; !at.IsZero() && !at.After(now) {
			q.ready = true // claimed again in the call that settles it
		}
		if !o.settlement.GivenBack && !o.settlement.Doubtful {
			q.measured(o.settlement.Attempt.FinishedAt.Sub(o.settlement.Attempt.StartedAt))
		}
	}
	for name, ready := range news.queues {
		q := d.queue(name)
		q.ready = q.ready || ready
	}
	for name, n := range news.urgent {
		q := d.queue(name)
		q.urgent = min(q.urgent+n, q.workers)
	}
	d.began = append(d.began, news.began...)
	d.due = earlier(d.due, news.due)
	if news.look || reached(d.due, now) {
		d.lookEverywhere()
	}
	if reached(d.limit, now) {
		d.giveUp(now)
		d.limit = d.active.nextLimit(now)
	}
	d.startWaiting(now)
	d.fillWorkers()
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

// exchange writes what is pending, and claims as much as can start at once, or
// while the next call lasts.
func (d *dispatcher) exchange() {
	claim := d.claim(time.Now())
	if len(d.pending)+len(claim.Free)+len(claim.Ahead)+len(claim.Began) == 0 {
		return
	}
	batch := d.pending
	begin := time.Now()
	d.written = settlements(d.written[:0], batch)
	claimed, stale, err := d.o.Store.Exchange(context.Background(), d.written, claim)
	clear(d.written) // their texts can be large
	d.commit = smooth(d.commit, time.Since(begin))
	switch {
	case fault.InInput(err):
		d.separate(claim)
		d.active.redeem(claim)
		return
	case err != nil:
		d.active.redeem(claim)
		d.fail(err)
		return
	}
	d.pending, d.began = nil, nil
	d.recovered()
	d.start(claim, claimed)
	d.active.redeem(claim)
	d.fillWorkers()
	d.active.release(batch)
	d.announce(batch, stale)
	d.noteEmpty(claim, claimed)
	if d.asks && len(claim.Free)+len(claim.Ahead) > 0 {
		d.askDue(claim.Now)
	}
	if d.life.reached(stopping) {
		d.notify() // this may have been the last of it
	}
}

// claim asks for jobs of the queues that may have some: for the workers that are
// free, which are promised to them, and for those that will be. While calls fail it
// asks for none until all outcomes are written.
func (d *dispatcher) claim(now time.Time) job.Claim {
	c := d.newClaim(now)
	c.Ahead = map[string]int{}
	if d.began = d.active.stillRunning(d.began); d.backoff == 0 {
		c.Began = d.began
	}
	d.cut = false
	if d.life.reached(stopping) || d.paused.Load() || d.backoff > 0 && len(d.pending) > 0 {
		return c
	}
	room := d.breaker.room(d.active.allInUse())
	for name, q := range d.queues {
		if !q.ready || q.again.After(now) {
			continue
		}
		free, cut := d.active.promise(name, q.workers, room)
		if free > 0 {
			c.Free[name] = free
			room -= free
		}
		if d.cut = d.cut || cut; room <= 0 { // the next place is for whichever queue is first
			continue
		}
		if n := d.ahead(name, q); n > 0 {
			c.Ahead[name] = n
		}
	}
	return c
}

// newClaim is a claim of nothing.
func (e *Engine) newClaim(now time.Time) job.Claim {
	c := job.Claim{Worker: e.o.Name, Now: now, Lease: e.o.Lease, Free: map[string]int{}}
	if e.o.UnknownType == retry.UnknownHold {
		c.Knows = e.knows
	}
	return c
}

// ahead is how many more jobs of a queue to take in hand: what its workers end
// while a call lasts, and whatever goes before what is in hand.
func (d *dispatcher) ahead(name string, q *queue) int {
	if !d.mayBegin(name) {
		return 0
	}
	n := q.urgent
	if q.ended { // otherwise its workers are not as quick as they were
		most := q.during(d.commit, q.workers)
		left := max(0, d.active.inHand(name)-most) // when this call returns
		n += max(0, most-left)
	}
	q.urgent, q.ended = 0, false
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
		asked := claim.Free[name] + claim.Ahead[name]
		if asked == 0 {
			continue
		}
		q.ready = got[name] == asked
		if d.cut && got[name] < claim.Free[name] {
			d.notify() // another queue can have its place
		}
	}
}

// askDue learns when the next job may run. What was due at the claim is either
// claimed or waits for a worker of its queue, which is asked for more then.
func (d *dispatcher) askDue(claimed time.Time) {
	due, err := d.o.Store.NextDue(context.Background(), claimed)
	if err != nil {
		d.o.Log.Error("The time of the next job could not be read. Redrive will try again.", "error", err)
		due = claimed.Add(lookAgain)
	}
	d.due, d.asks = due, false
}

// start hands claimed jobs to their handlers, as many of each queue as workers were
// free, and keeps the others in hand. One that need not run, or cannot, takes the
// same way: its worker is what bounds how much is under way.
func (e *Engine) start(c job.Claim, claimed []job.Job) {
	now, started := time.Now(), make(map[string]int, len(c.Free))
	all := make([]execution, len(claimed))
	for i := range claimed {
		j, x := &claimed[i], &all[i]
		x.job = j
		if started[j.Queue]++; started[j.Queue] > c.Free[j.Queue] {
			e.active.keepInHand(x, now)
			continue
		}
		t := e.newTask(j, now)
		w, ok := e.active.admit(x, t, now.Add(e.o.StuckAfter))
		switch {
		case !ok:
			t.endContext(nil)
			e.add(givenBack(x))
		case w != nil:
			t.endContext(nil)
			e.logWait(w)
		default:
			e.handlers.hand(x)
		}
	}
}

func (e *Engine) logWait(w *wait) {
	j := w.x.job
	e.o.Log.Info("A job waits, because the handler of an earlier execution has not returned.",
		"job", j.ID, "type", j.Type, "queue", j.Queue, "until", w.until)
}

// fail keeps everything for a later try, or for none when the store broke.
func (d *dispatcher) fail(err error) {
	d.problem = err
	first := d.outage.begin(time.Now())
	if errors.Is(err, fault.ErrBroken) {
		d.broken = true
		d.failed <- err // once: no call comes after it
		d.o.Log.Error("The store failed. No more jobs are claimed.", "error", err, "unwritten", len(d.pending))
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
		lasted := d.outage.end(time.Now())
		d.o.Log.Info("The database accepts writes again.", "after", lasted.Round(time.Millisecond))
		d.notify()
	}
}

// sleep waits until it is woken, or for the next moment at which there is work.
func (d *dispatcher) sleep() {
	now := time.Now()
	d.limit = earlier(d.limit, d.active.newLimit())
	next := earlier(earlier(earlier(d.limit, d.held), d.breaker.wakes()), now.Add(maxSleep))
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
		if o.settlement.GivenBack {
			continue
		}
		if !fenced[o.job.Token] {
			e.o.Settled(*o.job, o.settlement)
			continue
		}
		e.o.Log.Info("An execution had already been ended. Its outcome was dropped.",
			"job", o.job.ID, "type", o.job.Type, "outcome", o.settlement.Attempt.Outcome)
	}
}

// news is what the dispatcher has not yet heard of jobs that moved.
type news struct {
	queues map[string]bool // queues of which there is news; true: with jobs that can be claimed
	urgent map[string]int  // jobs that came and go before some that are in hand, by queue
	due    time.Time       // when the earliest of the waiting jobs that we heard of may run
	look   bool            // something changed that names no job
	began  []job.Token     // executions that were in hand and have begun
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
	taken := s.taken
	s.taken = nil
	if n.queues == nil {
		n.queues, n.urgent = map[string]bool{}, map[string]int{}
	}
	for _, c := range changes {
		switch {
		case c.State != job.Available && c.State != job.Scheduled && c.State != job.Retryable || taken[c.Token.ID]:
			continue
		case c.State != job.Available && c.RunAt.After(time.Now()):
			if _, known := n.queues[c.Queue]; !known {
				n.queues[c.Queue] = false
			}
			n.due = earlier(n.due, c.RunAt)
		default: // also when it was held: a claim that had to hold many may have left more
			n.queues[c.Queue] = true
			if s.overtakes(c) {
				n.urgent[c.Queue]++
			}
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
