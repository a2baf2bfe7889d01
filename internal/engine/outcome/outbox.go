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
	// senders is how many dead letters are sent at once, beside those that workers deliver
	// themselves.
	senders = 32

	// A dead letter that meets a shortage is sent again after firstPause, and after a pause twice as
	// long each time, up to maxPause.
	firstPause = 2 * time.Second
	maxPause   = 10 * time.Second
)

// errBudget is why a delivery ends whose receiver did not answer in time.
var errBudget = errors.New("there was no time left for its delivery")

// Send sends a dead letter on its way, until the end of the context.
type Send func(context.Context, job.Job, job.DeadLetter) job.Delivery

// Outbox sends the dead letters of settlements that cannot be written before it
// is known what became of them. What is put in comes out by Done, exactly once,
// with the delivery as part of the settlement.
type Outbox struct {
	on Events

	// How dead letters are sent.
	send   Send
	within time.Duration // what send has for one dead letter
	slots  chan struct{} // one for each dead letter that is being sent by senders

	// What goes on beside the callers, and how it is cut short.
	senders   sync.WaitGroup
	ctx       context.Context // of all deliveries
	interrupt context.CancelCauseFunc

	mu     sync.Mutex
	open   map[*Outcome]bool // it is not known yet what became of these
	posted int               // what was posted and has not come out
	closed bool
}

// Events are what an outbox tells its owner.
type Events struct {
	Done     func(Outcome)         // an outcome can be written
	Shortage func(*shortage.Error) // a dead letter met a shortage
	Idle     func()                // nothing that was posted is left
}

// NewOutbox returns an outbox that is empty. within is what send has for one dead letter.
func NewOutbox(send Send, within time.Duration, on Events) *Outbox {
	b := &Outbox{
		on: on, send: send, within: within, slots: make(chan struct{}, senders),
		open: map[*Outcome]bool{},
	}
	b.ctx, b.interrupt = context.WithCancelCause(context.Background())

	return b
}

// Post passes on an outcome without keeping the caller waiting.
func (b *Outbox) Post(o Outcome) {
	if b.accept(&o) {
		b.begin(func() { b.sendInTurn(&o) })
	}
}

// PostLater does the same with an outcome that takes time to decide.
func (b *Outbox) PostLater(settle func() Outcome) {
	b.begin(func() {
		o := settle()
		if b.accept(&o) {
			b.sendInTurn(&o)
		}
	})
}

// Deliver passes on an outcome and returns when it has come out.
func (b *Outbox) Deliver(o Outcome) {
	if b.accept(&o) {
		b.sendNow(&o)
	}
}

// begin does something beside the caller, which counts as posted until it ends.
func (b *Outbox) begin(send func()) {
	b.count(1)
	b.senders.Go(func() {
		send()

		if b.count(-1) == 0 {
			b.on.Idle()
		}
	})
}

func (b *Outbox) count(n int) (posted int) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.posted += n

	return b.posted
}

// accept reports whether an outcome has a dead letter that may be sent. Any
// other comes out at once.
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

// sendInTurn sends a dead letter when fewer than senders are on their way.
func (b *Outbox) sendInTurn(o *Outcome) {
	select {
	case b.slots <- struct{}{}:
		defer func() { <-b.slots }()
	case <-b.ctx.Done():
	}

	b.sendNow(o)
}

// sendNow sends a dead letter, again and again while there is a shortage.
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

// end reports whether it is for the caller to say what became of a dead letter.
func (b *Outbox) end(o *Outcome) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	open := b.open[o]
	delete(b.open, o)

	return open
}

// Empty reports whether everything that was posted has come out.
func (b *Outbox) Empty() bool { return b.count(0) == 0 }

// Interrupt ends the deliveries that are under way, and all later ones.
func (b *Outbox) Interrupt(cause error) { b.interrupt(cause) }

// Wait waits for what goes on beside the callers.
func (b *Outbox) Wait() { b.senders.Wait() }

// Close refuses what was not delivered by now, and from now on everything at
// once.
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

func undelivered() job.Delivery {
	return job.Delivery{Problem: "the engine stopped before it was known whether the dead letter was accepted"}
}
