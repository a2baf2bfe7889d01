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

// pruner removes jobs after their time. What it removes was announced before: in the
// forecast, which pages and metrics show, and, if it is a dead letter, in the log.
type pruner struct {
	store   keeper
	limits  func() retention.Limits // as the configuration says at the moment
	log     *slog.Logger
	warned  map[string]time.Time // when a warning was last given, by its words
	noticed bool                 // it was said that the defaults will apply
}

// restShare is how much longer than a sweep the pause after it lasts at least: a
// database so large that a sweep takes minutes is not swept all the time.
const restShare = 20

// run announces what will be removed and removes it a minute later, again and again,
// until the end of ctx. What fails is tried again the next time.
func (p *pruner) run(ctx context.Context) {
	p.failed(ctx, uncounted, p.announce(ctx), time.Minute)
	for pause := time.Minute; ctx.Err() == nil; {
		sleep(ctx, pause)
		pause = p.sweep(ctx)
	}
}

// sweep removes what is due, announces what comes next, and returns the pause after it.
func (p *pruner) sweep(ctx context.Context) time.Duration {
	began := time.Now()
	done, pruning := p.store.Prune(ctx, began, p.limits())
	p.tell(done)
	counting := p.announce(ctx)
	pause := max(time.Minute, restShare*time.Since(began))
	p.failed(ctx, unremoved, pruning, pause)
	p.failed(ctx, uncounted, counting, pause)
	return pause
}

// What can fail.
const (
	unremoved = "Retention could not remove jobs. Redrive will try again."
	uncounted = "Retention could not count the jobs that it will remove. Redrive will try again."
)

// failed logs what failed, if anything did, and when it is tried again.
func (p *pruner) failed(ctx context.Context, what string, err error, pause time.Duration) {
	if err != nil && ctx.Err() == nil {
		p.log.Warn(what, "error", err, "again_in", pause.Round(time.Second))
	}
}

// announce counts what will be removed, and warns if there are dead letters among it.
func (p *pruner) announce(ctx context.Context) error {
	now, limits := time.Now(), p.limits()
	usage, err := p.store.LetterUsage(ctx, now)
	if err != nil {
		return err
	}
	f, err := p.store.Forecast(ctx, now, limits) // from here on the sweep removes what it counted, so nothing may keep the warning back
	if err != nil {
		return err
	}
	if !f.Since.IsZero() && !p.noticed {
		p.noticed = true
		p.log.Warn("Retention is new to this database: finished jobs will be removed after the default times. "+
			"To keep them longer, set retention in the configuration file first.", "from", f.Since,
			"completed_after", limits.Ages[retention.Completed], "completed", f.Of(retention.Completed).Soon,
			"cancelled", f.Of(retention.Cancelled).Soon, "discarded", f.Of(retention.Discarded).Soon)
	}
	if o := f.Of(retention.DeadLetters); o.Soon > 0 {
		p.daily(now, "Dead letters will be removed within 24 hours, because they will be older than retention.dead_letters. "+
			"Replay or discard them, or raise retention.dead_letters in the configuration file.", "jobs", o.Soon, "oldest", o.Oldest)
	}
	p.crowd(now, limits, usage, f.Of(retention.Excess).Soon)
	return nil
}

// howToKeep says what saves dead letters from being too many.
const howToKeep = "Replay or discard dead letters, or raise retention.max_dead_letters in the configuration file."

// crowd warns of dead letters that are too many or will be. What the next sweep
// removes is said each time, everything else once a day.
func (p *pruner) crowd(now time.Time, limits retention.Limits, usage retention.Usage, excess int64) {
	fill := []any{"dead_letters", usage.Open, "max_dead_letters", limits.Count}
	full, fills := usage.Reaches(limits, 1, now)
	switch {
	case excess > 0:
		p.log.Warn("The next sweep will remove the oldest dead letters, because there are more than retention.max_dead_letters. "+howToKeep,
			append([]any{"jobs", excess}, fill...)...)
	case fills && !full.After(now):
		p.daily(now, "The dead-letter queue is full: each new dead letter removes the oldest. "+howToKeep, fill...)
	case fills && full.Before(now.Add(retention.Soon)):
		p.daily(now, "The dead-letter queue will be full within 24 hours. From then on, each new dead letter removes the oldest. "+howToKeep,
			append(fill, "full_at", full)...)
	case usage.Share(limits) >= retention.WarnShare:
		p.daily(now, "The dead-letter queue is at least 80 percent full. Once it is full, each new dead letter removes the oldest. "+howToKeep,
			fill...)
	}
}

// daily logs a warning, unless the same was logged within a day.
func (p *pruner) daily(now time.Time, words string, args ...any) {
	if last, ok := p.warned[words]; ok && now.Sub(last) < retention.Soon {
		return
	}
	if p.warned == nil {
		p.warned = map[string]time.Time{}
	}
	p.warned[words] = now
	p.log.Warn(words, args...)
}

// tell logs what was removed for good.
func (p *pruner) tell(done retention.Pruned) {
	for _, kind := range retention.Kinds() {
		if n := done.Of(kind); kind == retention.Excess && n > 0 {
			p.log.Warn("Retention removed the oldest dead letters, because there were more than retention.max_dead_letters.",
				"jobs", n, "queues", done.Queues(kind))
		} else if n > 0 {
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
