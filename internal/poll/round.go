package poll

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"redrive/internal/pause"
)

// run works in rounds until the end of ctx.
func (a *attached) run(ctx context.Context) {
	defer a.drop()

	wait := time.Duration(0)
	for ctx.Err() == nil {
		began := time.Now()

		a.lookNow()
		err := a.safely(func() error { return a.round(ctx) })

		if ctx.Err() != nil {
			return
		}

		a.ended(began, err)

		if err == nil {
			wait = 0

			a.rest(ctx, a.pause())
			continue
		}

		// The next try has a connection of its own, after a pause that grows.
		a.drop()

		wait = min(max(2*wait, retryLeast), retryMost)
		a.due(wait)
		pause.For(ctx, wait)
	}
}

// pause is how long the source is left alone: not at all before the first whole scan
// has ended.
func (a *attached) pause() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()

	d := max(a.Every, 10*min(a.health.Took, a.before)) // a source that is slow twice is asked less often
	switch {
	case a.soon:
		return min(d, askAgain)
	case !a.health.Ready:
		return 0
	}

	return d
}

// rest waits, and carries out meanwhile what people ask for.
func (a *attached) rest(ctx context.Context, d time.Duration) {
	a.due(d)

	end := time.Now().Add(d)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(end)):
			return
		case <-a.wake:
			err := a.safely(func() error { return a.carryOut(ctx) })
			if err != nil {
				a.ended(time.Now(), err)
				return
			}

			// What is to be learned soon does not become later by what is asked meanwhile.
			again := time.Now().Add(askAgain)
			if a.soon && again.Before(end) {
				end = again

				a.due(askAgain)
			}
		}
	}
}

// drop closes the connection; the next round opens another.
func (a *attached) drop() {
	if a.origin == nil {
		return
	}

	err := a.origin.Close()
	if err != nil {
		a.log.Debug("The connection to a source did not close.", "error", err)
	}

	a.origin = nil
}

// lookNow says that the source is looked at now.
func (a *attached) lookNow() {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.health.Next = time.Time{}
}

// due says when the source is looked at next.
func (a *attached) due(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.health.Next = time.Now().Add(d)
}

// ended remembers how a round ended, and logs when that changes.
func (a *attached) ended(began time.Time, err error) {
	text := ""
	if err != nil {
		text = a.keptText(err.Error(), maxProblem)
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	h := &a.health
	if err == nil {
		if h.Problem != "" {
			a.log.Info(recovered[h.Own], "after", time.Since(h.Since).Round(time.Second))
		}

		h.Problem, h.Since = "", time.Time{}
		h.Own, h.Moved = false, false

		// Two rounds that took long are what makes the pauses longer.
		a.before = h.Took
		h.Polled, h.Took = time.Now(), time.Since(began)

		return
	}

	own := !fromSource(err)
	_, moved := errors.AsType[*movedError](err)

	if h.Problem == "" {
		h.Since = time.Now()
	}

	// The same problem is logged once, however often it comes.
	if h.Problem == "" || h.Own != own || h.Moved != moved {
		what := failed[own]
		if moved {
			what = "The URL of a source names another place than the one that its jobs are from. It is not used."
		}

		a.log.Warn(what, "error", text)
	}

	h.Problem, h.Own, h.Moved = text, own, moved
}

// What the log says of rounds that fail and of those that work again: of the source, and of
// this side.
var (
	failed = map[bool]string{
		false: "A source does not answer. Redrive will try again.",
		true:  "Redrive cannot keep what a source says. It will try again.",
	}
	recovered = map[bool]string{false: "A source answers again.", true: "Redrive keeps what a source says again."}
)

// safely does a part of the work. A panic in it is an error of this source and of no other.
func (a *attached) safely(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("A look at a source ended in a panic. Please report it.", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("a look ended in a panic: %v", p)
		}
	}()

	return do()
}

// round does everything once.
func (a *attached) round(ctx context.Context) error {
	a.soon = false

	steps := []func(context.Context) error{
		a.locate, a.open,
		a.recoverBegun, a.carryOut,
		a.readNewest, a.continueScan,
		a.pollSuccesses,
	}
	for _, step := range steps {
		err := step(ctx)
		if err != nil {
			return err
		}
	}

	return nil
}

// open connects with the source and checks it. It is checked again now and then, because
// rights, versions and limits change while a source is attached.
func (a *attached) open(ctx context.Context) error {
	if a.origin != nil && time.Since(a.checked) < checkEvery {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	// The connection is kept until a round fails; only the check is repeated.
	if a.origin == nil {
		origin, err := a.connect(ctx)
		if err != nil {
			return err
		}

		a.origin = origin
	}

	report, err := a.origin.Check(ctx)
	if err != nil {
		return err
	}

	// What a source says may be long or hold secrets, so it is cut and hidden before it is
	// kept.
	report = a.brief(report)
	a.checked = time.Now()

	a.mu.Lock()
	defer a.mu.Unlock()

	a.health.Report = report

	return nil
}
