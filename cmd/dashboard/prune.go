package main

import (
	"context"
	"log/slog"
	"time"

	"redrive/internal/retention"
)

// keeper is what the pruner needs of the store.
type keeper interface {
	Forecast(context.Context, time.Time, retention.Limits) (retention.Forecast, error)
	LetterUsage(context.Context, time.Time) (retention.Usage, error)
	Prune(context.Context, time.Time, retention.Limits) (retention.Pruned, error)
}

// pruner removes jobs after their time, says before which dead letters will be
// removed, and logs afterwards what was.
type pruner struct {
	store   keeper
	limits  func() retention.Limits // as the configuration says at the moment
	log     *slog.Logger
	warned  time.Time // when it was last said that dead letters will be removed
	noticed bool      // it was said that the defaults will apply
}

// restShare is how much longer than a sweep the pause after it lasts at least: a
// database so large that a sweep takes minutes is not swept all the time.
const restShare = 20

// run sweeps now and every minute, until the end of ctx. What fails is tried again
// the next time.
func (p *pruner) run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		p.once(ctx)
		sleep(ctx, max(time.Minute, restShare*time.Since(began)))
	}
}

// once says what will be removed, removes what is due, and counts what is left.
func (p *pruner) once(ctx context.Context) {
	if err := p.sweep(ctx); err != nil && ctx.Err() == nil {
		p.log.Warn("Retention could not remove jobs. Redrive will try again.", "error", err, "again_in", time.Minute)
	}
}

func (p *pruner) sweep(ctx context.Context) error {
	if err := p.warn(ctx); err != nil {
		return err
	}
	done, err := p.store.Prune(ctx, time.Now(), p.limits())
	p.tell(done)
	if err != nil || done.Total() == 0 {
		return err
	}
	_, err = p.store.Forecast(ctx, time.Now(), p.limits())
	return err
}

// warn says which dead letters will be removed soon, once a day.
func (p *pruner) warn(ctx context.Context) error {
	now := time.Now()
	f, err := p.store.Forecast(ctx, now, p.limits())
	if err != nil {
		return err
	}
	if !f.Since.IsZero() && !p.noticed {
		p.noticed = true
		p.log.Warn("Retention is new to this database: finished jobs will be removed after the default times. "+
			"To keep them longer, set retention in the configuration file first.", "from", f.Since,
			"completed_after", p.limits().Ages[retention.Completed], "completed", f.Of(retention.Completed).Soon,
			"cancelled", f.Of(retention.Cancelled).Soon, "discarded", f.Of(retention.Discarded).Soon)
	}
	usage, err := p.store.LetterUsage(ctx, now)
	if err != nil || now.Sub(p.warned) < retention.Soon {
		return err
	}
	if o := f.Of(retention.DeadLetters); o.Soon > 0 {
		p.warned = now
		p.log.Warn("Dead letters will be removed within 24 hours, because they will be older than retention.dead_letters. "+
			"Replay or discard them, or raise retention.dead_letters in the configuration file.", "jobs", o.Soon, "oldest", o.Oldest)
	}
	if at, ok := usage.Reaches(p.limits(), 1, now); ok && at.Before(now.Add(retention.Soon)) {
		p.warned = now
		p.log.Warn("The dead-letter queue will be full within 24 hours. From then on, each new dead letter removes the oldest. "+
			"Replay or discard dead letters, or raise retention.max_dead_letters in the configuration file.",
			"dead_letters", usage.Open, "max_dead_letters", p.limits().Count, "full_at", at)
	}
	return nil
}

// tell logs what was removed for good.
func (p *pruner) tell(done retention.Pruned) {
	for _, kind := range retention.Kinds() {
		if n := done.Of(kind); n > 0 {
			p.log.Info("Retention removed jobs.", "kind", string(kind), "jobs", n, "queues", done.Queues(kind))
		}
	}
	if done.Items > 0 {
		p.log.Info("Retention removed the items of operations that ended long ago. Their counts stay.", "items", done.Items)
	}
	if done.Groups > 0 {
		p.log.Info("Retention removed error groups without jobs.", "groups", done.Groups)
	}
}
