package main

import (
	"context"
	"log/slog"
	"time"
)

// wakeEvery is how often error groups are opened that were ignored until a time
// that has come.
const wakeEvery = time.Minute

// waker opens them.
type waker struct {
	wake func(context.Context, time.Time) (int, error)
	log  *slog.Logger
}

// run wakes now and every minute, until the end of ctx. What fails is tried
// again the next time.
func (w waker) run(ctx context.Context) {
	ticker := time.NewTicker(wakeEvery)
	defer ticker.Stop()
	for {
		if _, err := w.wake(ctx, time.Now()); err != nil && ctx.Err() == nil {
			w.log.Warn("Error groups whose time of being ignored is over could not be opened. It is tried again.",
				"error", err, "again_in", wakeEvery)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// startWaker begins to open error groups in time.
func (a *app) startWaker(context.Context) error {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		waker{a.store.WakeGroups, a.log}.run(ctx)
	}()
	a.onStop("waker", func(context.Context) error {
		cancel()
		<-done
		return nil
	})
	return nil
}
