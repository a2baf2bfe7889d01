package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"redrive/internal/job"
	"redrive/internal/shortage"
)

// senders is how many dead letters are sent at once, beside those that workers
// deliver themselves.
const senders = 32

// errBudget is why a delivery ends whose receiver did not answer in time.
var errBudget = errors.New("there was no time left for its delivery")

// sendFunc sends a dead letter on its way, until the end of the context.
type sendFunc func(context.Context, job.Job, job.DeadLetter) job.Delivery

// outbox sends the dead letters of settlements that cannot be written before it
// is known what became of them. What is put in comes out by done, exactly once,
// with the delivery as part of the settlement.
type outbox struct {
	send      sendFunc
	within    time.Duration         // what send has for one letter
	done      func(outcome)         // takes an outcome that can be written
	short     func(*shortage.Error) // told of each shortage that a letter meets
	idle      func()                // called when nothing that was posted is left
	slots     chan struct{}         // one for each letter that is being sent
	senders   sync.WaitGroup
	ctx       context.Context // of all deliveries
	interrupt context.CancelCauseFunc

	mu     sync.Mutex
	open   map[*outcome]bool // it is not known yet what became of these
	posted int               // what was posted and has not come out
	closed bool
}

func newOutbox(send sendFunc, within time.Duration, done func(outcome), idle func()) *outbox {
	b := &outbox{
		send: send, within: within, done: done, idle: idle,
		slots: make(chan struct{}, senders), open: map[*outcome]bool{},
	}
	b.ctx, b.interrupt = context.WithCancelCause(context.Background())

	return b
}

// post passes on an outcome without keeping the caller waiting.
func (b *outbox) post(o outcome) {
	if b.accept(&o) {
		b.begin(func() { b.sendInTurn(&o) })
	}
}

// postLater does the same with an outcome that takes time to decide.
func (b *outbox) postLater(settle func() outcome) {
	b.begin(func() {
		o := settle()
		if b.accept(&o) {
			b.sendInTurn(&o)
		}
	})
}

// deliver passes on an outcome and returns when it has come out.
func (b *outbox) deliver(o outcome) {
	if b.accept(&o) {
		b.sendNow(&o)
	}
}

// begin does something beside the caller, which counts as posted until it ends.
func (b *outbox) begin(send func()) {
	b.count(1)
	b.senders.Go(func() {
		send()

		if b.count(-1) == 0 {
			b.idle()
		}
	})
}

func (b *outbox) count(n int) (posted int) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.posted += n

	return b.posted
}

// accept reports whether an outcome has a dead letter that may be sent. Any
// other comes out at once.
func (b *outbox) accept(o *outcome) bool {
	b.mu.Lock()

	accepted := o.sends && !b.closed
	if accepted {
		b.open[o] = true
	}
	b.mu.Unlock()

	switch {
	case accepted:
	case o.sends:
		b.done(o.delivered(undelivered()))
	default:
		b.done(*o)
	}

	return accepted
}

// sendInTurn sends a dead letter when fewer than senders are on their way.
func (b *outbox) sendInTurn(o *outcome) {
	select {
	case b.slots <- struct{}{}:
		defer func() { <-b.slots }()
	case <-b.ctx.Done():
	}

	b.sendNow(o)
}

// sendNow sends a dead letter, again and again while there is a shortage.
func (b *outbox) sendNow(o *outcome) {
	letter, _ := o.settlement.NewDeadLetter(o.job.Queue)

	d := b.try(*o.job, letter)
	wait := minProbe
	for d.Shortage != nil && pause(b.ctx, wait) {
		d = b.try(*o.job, letter)
		wait = min(2*wait, maxProbe)
	}

	if b.end(o) {
		b.done(o.delivered(d))
	}
}

// try sends a dead letter once.
func (b *outbox) try(j job.Job, letter job.DeadLetter) job.Delivery {
	ctx, cancel := context.WithTimeoutCause(b.ctx, b.within, errBudget)
	defer cancel()

	d := b.send(ctx, j, letter)
	if d.Shortage != nil {
		b.short(d.Shortage)
	}

	return d
}

// end reports whether it is for the caller to say what became of a letter.
func (b *outbox) end(o *outcome) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	open := b.open[o]
	delete(b.open, o)

	return open
}

// empty reports whether everything that was posted has come out.
func (b *outbox) empty() bool { return b.count(0) == 0 }

// close refuses what was not delivered by now, and from now on everything at
// once.
func (b *outbox) close() {
	b.mu.Lock()
	open := b.open
	b.open = nil
	b.closed = true
	b.mu.Unlock()

	for o := range open {
		b.done(o.delivered(undelivered()))
	}
}

func undelivered() job.Delivery {
	return job.Delivery{Problem: "the engine stopped before it was known whether the dead letter was accepted"}
}

// pause waits, and reports whether ctx has not ended by then.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
