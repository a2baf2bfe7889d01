package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"
)

// UnlessInterrupted returns the error of a start, or nil when a signal ended it.
func UnlessInterrupted(ctx context.Context, log *slog.Logger, err error) error {
	if ctx.Err() == nil {
		return err
	}

	log.Info("Stopped before startup finished.", "because", err)

	return nil
}

// Attend waits for the end of the app and stops it. The first signal stops it
// gracefully, the second at once. A failure leaves little time, because only a
// new start can help.
func (a *App) Attend(signals <-chan os.Signal) error {
	ctx, hurry := context.WithCancel(context.Background())
	defer hurry()

	// Wait until it is asked to stop, or cannot go on.
	var failure error
	var impatient, over <-chan time.Time
	select {
	case <-signals:
		a.Log.Info("Stopping; running jobs have 30 seconds. A second signal stops at once.")
	case failure = <-a.failed:
		impatient = time.After(failureGrace)
		if !errors.Is(failure, ErrStartOver) { // who starts over must not leave anything running
			a.Log.Error("Stopping after a failure.", "error", failure)

			over = time.After(2 * failureGrace)
		}
	}

	// Stop it, and hurry when someone asks for it or after a failure.
	stopped := make(chan error, 1)
	go func() { stopped <- a.Stop(ctx) }()

	for {
		select {
		case <-signals:
			hurry()
		case <-impatient:
			hurry()
		case <-over: // whatever hangs ends with the process
			return failure
		case err := <-stopped:
			return errors.Join(failure, err)
		}
	}
}

// failureGrace bounds a graceful stop once something has failed, and then again
// the stop at once that follows.
const failureGrace = 2 * time.Second
