package app

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// What comes after a reset deletes the database below the app.
func TestAttend_StartingOverWaitsForTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := false
		a := &App{Parts: Parts{Log: slog.New(slog.DiscardHandler)}, failed: make(chan error, 1)}
		a.onStop("slow part", func(context.Context) error {
			time.Sleep(10 * time.Second)
			stopped = true
			return nil
		})
		a.fail(ErrStartOver)
		if err := a.Attend(nil); !errors.Is(err, ErrStartOver) || !stopped {
			t.Errorf("attend returned %v; stopped %v", err, stopped)
		}
	})
}

func TestAttend_AFailureDoesNotWaitForWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, broken := time.Now(), errors.New("broken")
		a := &App{Parts: Parts{Log: slog.New(slog.DiscardHandler)}, failed: make(chan error, 1)}
		a.onStop("part that hangs", func(context.Context) error {
			time.Sleep(time.Hour)
			return nil
		})
		a.fail(broken)
		if err := a.Attend(nil); !errors.Is(err, broken) || time.Since(began) != 2*failureGrace {
			t.Errorf("attend returned %v after %v", err, time.Since(began))
		}
		time.Sleep(2 * time.Hour) // the bubble waits for its goroutines
	})
}
