package main

import (
	"context"
	"log/slog"
	"time"

	"redrive/internal/job"
)

// pruneEvery is how often the dead-letter queue is held against its retention.
const pruneEvery = time.Minute

// pruner keeps the dead-letter queue within its retention.
type pruner struct {
	prune     func(context.Context, time.Time, job.Retention) (byAge, byCount int, err error)
	retention job.Retention
	log       *slog.Logger
}

// run prunes now and every minute, until the end of ctx. What fails is tried
// again the next time.
func (p pruner) run(ctx context.Context) {
	ticker := time.NewTicker(pruneEvery)
	defer ticker.Stop()
	for {
		p.once(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (p pruner) once(ctx context.Context) {
	byAge, byCount, err := p.prune(ctx, time.Now(), p.retention)
	if byAge+byCount > 0 {
		p.log.Info("Dead letters were removed for good, as the retention says.",
			"for_their_age", byAge, "for_their_number", byCount, "age", p.retention.Age, "count", p.retention.Count)
	}
	if err != nil && ctx.Err() == nil {
		p.log.Warn("The dead-letter queue could not be pruned. It is tried again.", "error", err, "again_in", pruneEvery)
	}
}
