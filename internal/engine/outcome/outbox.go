package outcome

import (
	"context"
	"errors"
	"sync"
	"time"

	"redrive/internal/job"
	"redrive/internal/pause"
	"redrive/internal/shortage"
)

const (
	// senders is how many dead letters are sent at once, not counting those that workers send.
	senders = 32

	// A dead letter that meets a shortage is sent again after a pause, which is doubled each time,
	// between these bounds.
	firstPause = 2 * time.Second
	maxPause   = 10 * time.Second
)

// errBudget is the cause for which the context of a delivery ends after Outbox.within.
var errBudget = errors.New("there was no time left for its delivery")

// Send sends a dead letter, and returns what became of it. It returns when the context ends.
type Send func(context.Context, job.Job, job.DeadLetter) job.Delivery

// Outbox has the outcomes whose dead letters have to be sent before they can be written. It passes
// each outcome that it accepts to Events.Done exactly once, with what became of the dead letter. An
// outcome without a dead letter to send is passed to Done at once.
type Outbox struct {
	on Events

	// How dead letters are sent.
	send   Send
	within time.Duration // how long send may take for one dead letter
	slots  chan struct{} // has an element for each dead letter that is being sent for Post or PostLater

	// The goroutines of Post and PostLater, and the context of all deliveries.
	senders   sync.WaitGroup
	ctx       context.Context
	interrupt context.CancelCauseFunc // ends ctx

	mu     sync.Mutex
	open   map[*Outcome]bool // the outcomes whose dead letters are not sent yet
	posted int               // how many goroutines of Post and PostLater have not ended
	closed bool
}

// Events are the functions that an outbox calls.
type Events struct {
	Done     func(Outcome)         // with an outcome that can be written
	Shortage func(*shortage.Error) // when a dead letter met a shortage
	Idle     func()                // when everything has ended that was posted
}

// NewOutbox returns an empty outbox. within is how long send may take for one dead letter.
func NewOutbox(send Send, within time.Duration, on Events) *Outbox {
	b := &Outbox{
		on: on, send: send, within: within, slots: make(chan struct{}, senders),
		open: map[*Outcome]bool{},
	}
	b.ctx, b.interrupt = context.WithCancelCause(context.Background())

	return b
}

// Post adds an outcome. It returns at once, and the dead letter is sent in another goroutine.
func (b *Outbox) Post(o Outcome) {
	if b.accept(&o) {
		b.begin(func() { b.sendInTurn(&o) })
	}
}

// PostLater is Post for an outcome that takes time to decide: settle is called in the other goroutine.
func (b *Outbox) PostLater(settle func() Outcome) {
	b.begin(func() {
		o := settle()
		if b.accept(&o) {
			b.sendInTurn(&o)
		}
	})
}

// Deliver adds an outcome, sends its dead letter, and returns when the outcome was passed to Done.
func (b *Outbox) Deliver(o Outcome) {
	if b.accept(&o) {
		b.sendNow(&o)
	}
}

// begin calls send in another goroutine, which counts as posted until it ends.
func (b *Outbox) begin(send func()) {
	b.count(1)
	b.senders.Go(func() {
		send()

		if b.count(-1) == 0 {
			b.on.Idle()
		}
	})
}

// count adds n to the number of posted goroutines, and returns that number.
func (b *Outbox) count(n int) (posted int) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.posted += n

	return b.posted
}

// accept reports whether the dead letter of an outcome should be sent now. If there is none to send,
// or the outbox is closed, it passes the outcome to Done and returns false.
func (b *Outbox) accept(o *Outcome) bool {
	b.mu.Lock()

	accepted := o.Sends && !b.closed
	if accepted {
		b.open[o] = true
	}
	b.mu.Unlock()

	switch {
	case accepted:
	case o.Sends:
		b.on.Done(o.Delivered(undelivered()))
	default:
		b.on.Done(*o)
	}

	return accepted
}

// sendInTurn sends a dead letter when one of the slots is free.
func (b *Outbox) sendInTurn(o *Outcome) {
	select {
	case b.slots <- struct{}{}:
		defer func() { <-b.slots }()
	case <-b.ctx.Done():
	}

	b.sendNow(o)
}

// sendNow sends a dead letter, repeatedly while it meets a shortage, and passes the outcome to Done.
func (b *Outbox) sendNow(o *Outcome) {
	deadLetter, _ := o.Settlement.NewDeadLetter(o.Job.Queue)

	d := b.try(*o.Job, deadLetter)
	wait := firstPause
	for d.Shortage != nil && pause.For(b.ctx, wait) {
		d = b.try(*o.Job, deadLetter)
		wait = min(2*wait, maxPause)
	}

	if b.end(o) {
		b.on.Done(o.Delivered(d))
	}
}

// try sends a dead letter once.
func (b *Outbox) try(j job.Job, deadLetter job.DeadLetter) job.Delivery {
	ctx, cancel := context.WithTimeoutCause(b.ctx, b.within, errBudget)
	defer cancel()

	d := b.send(ctx, j, deadLetter)
	if d.Shortage != nil {
		b.on.Shortage(d.Shortage)
	}

	return d
}

// end removes an outcome, and reports whether the caller has to pass it to Done. If not, Close has done
// so.
func (b *Outbox) end(o *Outcome) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	open := b.open[o]
	delete(b.open, o)

	return open
}

// Empty reports whether everything has ended that was posted.
func (b *Outbox) Empty() bool { return b.count(0) == 0 }

// Interrupt ends the context of all deliveries, including later ones, for a cause.
func (b *Outbox) Interrupt(cause error) { b.interrupt(cause) }

// Wait waits for the goroutines of Post and PostLater.
func (b *Outbox) Wait() { b.senders.Wait() }

// Close passes all outcomes to Done whose dead letters are not sent yet, as undelivered. From now on,
// this happens at once to each outcome that is added.
func (b *Outbox) Close() {
	b.mu.Lock()
	open := b.open
	b.open = nil
	b.closed = true
	b.mu.Unlock()

	for o := range open {
		b.on.Done(o.Delivered(undelivered()))
	}
}

// undelivered returns what becomes of a dead letter that was not sent before the outbox was closed.
func undelivered() job.Delivery {
	return job.Delivery{Problem: "the engine stopped before it was known whether the dead letter was accepted"}
}
