package main

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
		a := &app{parts: parts{log: slog.New(slog.DiscardHandler)}, failed: make(chan error, 1)}
		a.onStop("slow part", func(context.Context) error {
			time.Sleep(10 * time.Second)
			stopped = true
			return nil
		})
		a.fail(errStartOver)
		if err := a.attend(nil); !errors.Is(err, errStartOver) || !stopped {
			t.Errorf("attend returned %v; stopped %v", err, stopped)
		}
	})
}

func TestAttend_AFailureDoesNotWaitForWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, broken := time.Now(), errors.New("broken")
		a := &app{parts: parts{log: slog.New(slog.DiscardHandler)}, failed: make(chan error, 1)}
		a.onStop("part that hangs", func(context.Context) error {
			time.Sleep(time.Hour)
			return nil
		})
		a.fail(broken)
		if err := a.attend(nil); !errors.Is(err, broken) || time.Since(began) != 2*failureGrace {
			t.Errorf("attend returned %v after %v", err, time.Since(began))
		}
		time.Sleep(2 * time.Hour) // the bubble waits for its goroutines
	})
}
