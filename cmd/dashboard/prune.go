package main

import (
	"context"
	"log/slog"
	"time"

	"redrive/internal/retention"
)

// pruner keeps the dead-letter queue within its retention.
type pruner struct {
	prune     func(context.Context, time.Time, retention.Limits) (retention.Pruned, error)
	retention retention.Limits
	log       *slog.Logger
}

// run prunes now and every minute, until the end of ctx. What fails is tried
// again the next time.
func (p pruner) run(ctx context.Context) { everyMinute(ctx, p.once) }

func (p pruner) once(ctx context.Context) {
	done, err := p.prune(ctx, time.Now(), p.retention)
	if done.ByAge+done.ByCount > 0 {
		p.log.Info("Dead letters were removed for good, as the retention says.",
			"for_their_age", done.ByAge, "for_their_number", done.ByCount, "age", p.retention.Age, "count", p.retention.Count)
	}
	if done.Trash > 0 {
		p.log.Info("Discarded jobs were removed from the trash for good.", "jobs", done.Trash, "age", p.retention.Trash)
	}
	if done.Items > 0 {
		p.log.Info("The items of operations that ended long ago were removed. Their counts stay.", "items", done.Items, "age", p.retention.Age)
	}
	if done.Groups > 0 {
		p.log.Info("Error groups were removed in which nothing failed for long and to which no job belongs.", "groups", done.Groups, "age", p.retention.Age)
	}
	if err != nil && ctx.Err() == nil {
		p.log.Warn("The dead-letter queue and the trash could not be pruned. It is tried again.", "error", err, "again_in", time.Minute)
	}
}
