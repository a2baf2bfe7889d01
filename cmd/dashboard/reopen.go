package main

import (
	"context"
	"log/slog"
	"time"
)

// everyMinute does something now and every minute, until the end of ctx.
func everyMinute(ctx context.Context, do func(context.Context)) {
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	for {
		do(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// reopener opens error groups that were ignored until a time that has come.
type reopener struct {
	reopen func(context.Context, time.Time) (int, error)
	log    *slog.Logger
}

// run looks for such groups every minute, until the end of ctx. What fails is
// tried again the next time.
func (r reopener) run(ctx context.Context) {
	everyMinute(ctx, func(ctx context.Context) {
		if _, err := r.reopen(ctx, time.Now()); err != nil && ctx.Err() == nil {
			r.log.Warn("Error groups whose time of being ignored is over could not be opened. It is tried again.",
				"error", err, "again_in", time.Minute)
		}
	})
}
