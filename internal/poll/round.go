package poll

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"redrive/internal/pause"
)

// run is the goroutine of a source: it does one round after another until ctx ends.
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

		// Try again with a new connection, after a pause that is twice as long each time.
		a.drop()

		wait = min(max(2*wait, retryLeast), retryMost)
		a.due(wait)
		pause.For(ctx, wait)
	}
}

// pause returns how long to wait until the next round. Until the first scan has ended, rounds follow
// one another at once, unless the source could not tell something yet.
func (a *attached) pause() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()

	// Two slow rounds make the pause longer. A single one may be an accident.
	d := max(a.Every, 10*min(a.health.Took, a.tookBefore))
	switch {
	case a.soon:
		return min(d, askAgain)
	case !a.health.Ready:
		return 0
	}

	return d
}

// rest waits for d, and carries out the requests that are made meanwhile.
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

			// If the requests made it necessary to ask again soon, end the rest earlier.
			again := time.Now().Add(askAgain)
			if a.soon && again.Before(end) {
				end = again

				a.due(askAgain)
			}
		}
	}
}

// drop closes the connection, if there is one. The next round opens another.
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

// lookNow records in the health of the source that a round is running.
func (a *attached) lookNow() {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.health.Next = time.Time{}
}

// due records in the health of the source that the next round begins after d.
func (a *attached) due(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.health.Next = time.Now().Add(d)
}

// ended records in the health of the source how a round ended, and logs an error or its end: once,
// and not for each round with the same kind of error.
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

		a.tookBefore = h.Took // see pause
		h.Polled, h.Took = time.Now(), time.Since(began)

		return
	}

	own := !fromSource(err)
	_, moved := errors.AsType[*movedError](err)

	if h.Problem == "" {
		h.Since = time.Now()
	}

	// Log the first error, and one of another kind.
	if h.Problem == "" || h.Own != own || h.Moved != moved {
		what := failed[own]
		if moved {
			what = "The URL of a source names another place than the one that its jobs are from. It is not used."
		}

		a.log.Warn(what, "error", text)
	}

	h.Problem, h.Own, h.Moved = text, own, moved
}

// What the log says when rounds begin to fail, and when they work again. The keys say whether the
// error is Redrive's own, or that of the source.
var (
	failed = map[bool]string{
		false: "A source does not answer. Redrive will try again.",
		true:  "Redrive cannot keep what a source says. It will try again.",
	}
	recovered = map[bool]string{false: "A source answers again.", true: "Redrive keeps what a source says again."}
)

// safely calls do, and turns a panic into an error, so that the other sources go on.
func (a *attached) safely(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("A look at a source ended in a panic. Please report it.", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("a look ended in a panic: %v", p)
		}
	}()

	return do()
}

// round does each of the steps that the package comment lists, until one of them fails.
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

// open connects to the source if there is no connection, and checks it if the last check is older
// than checkEvery: the rights and the version of a source can change while it is attached.
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

	// Keep the report without secrets, and not too long.
	report = a.brief(report)
	a.checked = time.Now()

	a.mu.Lock()
	defer a.mu.Unlock()

	a.health.Report = report

	return nil
}
