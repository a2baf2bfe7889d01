package app

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"redrive/internal/pause"
	"redrive/internal/retention"
)

// keeper is what the pruner needs of the store.
type keeper interface {
	Forecast(context.Context, time.Time, retention.Limits) (retention.Forecast, error)
	DeadLetterUsage(context.Context, time.Time) (retention.Usage, error)
	Prune(context.Context, time.Time, retention.Limits) (retention.Pruned, error)
	Clock(context.Context) (retention.Clock, error)
	SetClock(context.Context, retention.Clock) error
}

// pruner removes jobs after their time. What it removes was forecast before: in the
// forecast, which pages and metrics show, and, if it is a dead letter, in the log. While the
// clock of the machine is ahead of the time that has passed, it removes nothing.
type pruner struct {
	store  keeper
	limits func() retention.Limits // as the configuration says at the moment
	log    *slog.Logger
	wall   func() time.Time     // the clock of the machine, which can be set
	passed func() time.Duration // since the start, by a clock that cannot be set

	// What retention goes by.
	begun  bool // the clock was compared with the database
	clock  retention.Clock
	looked time.Duration // when the clock was looked at last, as passed says it

	// What was said.
	foreseen *retention.Limits        // the limits of the newest forecast
	warned   map[string]time.Duration // when a warning was last given, by its words
	noticed  bool                     // it was said that the defaults will apply
}

// newPruner is a pruner that goes by the clock of the machine.
func newPruner(store keeper, limits func() retention.Limits, log *slog.Logger) *pruner {
	start := time.Now()

	return &pruner{
		store: store, limits: limits, log: log, warned: map[string]time.Duration{},
		wall: time.Now, passed: func() time.Duration { return time.Since(start) },
	}
}

// restShare is how much longer than a sweep the rest after it lasts at least: a
// database so large that a sweep takes minutes is not swept all the time.
const restShare = 20

// run forecasts what will be removed and removes it a minute later, again and again,
// until the end of ctx. What fails is tried again the next time.
func (p *pruner) run(ctx context.Context) {
	p.failed(ctx, untimed, p.lookAtClock(ctx), time.Minute)
	p.failed(ctx, uncounted, p.forecast(ctx), time.Minute)

	rest := time.Minute
	for ctx.Err() == nil {
		pause.For(ctx, rest)
		rest = p.sweep(ctx)
	}
}

// sweep removes what is due, forecasts what comes next, and returns the rest after it.
func (p *pruner) sweep(ctx context.Context) time.Duration {
	began := time.Now()
	timing := p.lookAtClock(ctx)

	var pruning error
	if p.begun && !p.clock.Held() {
		var done retention.Pruned
		done, pruning = p.store.Prune(ctx, p.clock.Trusted, p.sweepLimits())
		p.tell(done)
	}

	counting := p.forecast(ctx)

	rest := max(time.Minute, restShare*time.Since(began))
	p.failed(ctx, untimed, timing, rest)
	p.failed(ctx, unremoved, pruning, rest)
	p.failed(ctx, uncounted, counting, rest)

	return rest
}

// sweepLimits are the limits that a sweep goes by. Ages that are new since the last
// forecast are in none yet, so that they remove nothing before the next one. What is
// removed for its number was noted by the store at its forecast.
func (p *pruner) sweepLimits() retention.Limits {
	limits := p.limits()
	if p.foreseen != nil && reflect.DeepEqual(*p.foreseen, limits) {
		return limits
	}

	return retention.Limits{Count: limits.Count}
}

// lookAtClock compares the clock of the machine with the time that has passed since the last
// look; at first, with the newest time in the database.
func (p *pruner) lookAtClock(ctx context.Context) error {
	before := p.clock
	if !p.begun {
		var err error

		before, err = p.store.Clock(ctx)
		if err != nil {
			return err
		}
	}

	now, passed := p.wall(), p.passed()
	next := before.Begin(now)
	if p.begun {
		next = before.Next(now, passed-p.looked)
	}

	p.tellClock(before, next)
	p.begun = true
	p.clock = next
	p.looked = passed

	return p.store.SetClock(ctx, next)
}

// tellClock logs that retention removes nothing because of the clock, and when that ends.
func (p *pruner) tellClock(before, next retention.Clock) {
	switch {
	case next.Held() && !p.begun:
		now := p.wall().UTC()
		p.log.Warn("The dashboard was last open more than a day ago by the clock of this machine, so retention removes nothing for now. "+
			"If the clock is right, nothing needs to be done.",
			"clock", now, "last_open", next.Trusted, "until", now.Add(next.Left))
	case next.Held() && !before.Held():
		p.log.Warn("The clock of this machine moved forward, so retention removes nothing for now. Check the clock. "+
			"Retention goes on when the clock is back, or when it has stayed for 24 hours.",
			"clock", p.wall().UTC(), "expected", next.Trusted, "held_for", next.Left)
	case before.Held() && !next.Held():
		p.log.Info("Retention goes on by the clock of this machine.", "clock", next.Trusted)
	}
}

// What can fail.
const (
	unremoved = "Retention could not remove jobs. Redrive will try again."
	uncounted = "Retention could not count the jobs that it will remove. Redrive will try again."
	untimed   = "Retention could not read or write the time that it goes by. Redrive will try again."
)

// failed logs what failed, if anything did, and when it is tried again.
func (p *pruner) failed(ctx context.Context, what string, err error, rest time.Duration) {
	if err != nil && ctx.Err() == nil {
		p.log.Warn(what, "error", err, "again_in", rest.Round(time.Second))
	}
}

// forecast counts what will be removed, and warns if there are dead letters among it.
func (p *pruner) forecast(ctx context.Context) error {
	now := p.wall()
	limits := p.limits()

	usage, err := p.store.DeadLetterUsage(ctx, now)
	if err != nil {
		return err
	}

	f, err := p.store.Forecast(ctx, now, limits) // from here on the sweep removes what it counted, so nothing may keep the warning back
	if err != nil {
		return err
	}

	p.foreseen = &limits
	if !f.Since.IsZero() && !p.noticed {
		p.noticed = true
		p.log.Warn("Retention is new to this database: finished jobs will be removed after the default times. "+
			"To keep them longer, set retention in the configuration file first.", "from", f.Since,
			"completed_after", limits.Ages[retention.Completed], "completed", f.Of(retention.Completed).Soon,
			"cancelled", f.Of(retention.Cancelled).Soon, "discarded", f.Of(retention.Discarded).Soon)
	}

	if o := f.Of(retention.DeadLetters); o.Soon > 0 {
		p.daily("Dead letters will be removed within 24 hours, because they will be older than retention.dead_letters. "+
			"Replay or discard them, or raise retention.dead_letters in the configuration file.", "jobs", o.Soon, "oldest", o.Oldest)
	}

	p.warnWhenFull(now, limits, usage, f.Of(retention.OverCount).Soon)

	return nil
}

// howToKeep says what saves dead letters from being too many.
const howToKeep = "Replay or discard dead letters, or raise retention.max_dead_letters in the configuration file."

// warnWhenFull warns of dead letters that are too many or will be. What the next sweep
// removes is said each time, everything else once a day.
func (p *pruner) warnWhenFull(now time.Time, limits retention.Limits, usage retention.Usage, overCount int64) {
	fill := []any{"dead_letters", usage.Open, "max_dead_letters", limits.Count}
	full, fills := usage.Reaches(limits, 1, now)
	switch {
	case overCount > 0:
		p.log.Warn("The next sweep will remove the oldest dead letters, because there are more than retention.max_dead_letters. "+howToKeep,
			append([]any{"jobs", overCount}, fill...)...)
	case fills && !full.After(now):
		p.daily("The dead-letter queue is full: each new dead letter removes the oldest. "+howToKeep, fill...)
	case fills && full.Before(now.Add(retention.Soon)):
		p.daily("The dead-letter queue will be full within 24 hours. From then on, each new dead letter removes the oldest. "+howToKeep,
			append(fill, "full_at", full)...)
	case usage.Share(limits) >= retention.WarnShare:
		p.daily("The dead-letter queue is at least 80 percent full. Once it is full, each new dead letter removes the oldest. "+howToKeep,
			fill...)
	}
}

// daily logs a warning, unless the same was logged within a day.
func (p *pruner) daily(words string, args ...any) {
	now := p.passed()
	if last, ok := p.warned[words]; ok && now-last < retention.Soon {
		return
	}

	p.warned[words] = now
	p.log.Warn(words, args...)
}

// tell logs what was removed permanently.
func (p *pruner) tell(done retention.Pruned) {
	for _, kind := range retention.Kinds() {
		if n := done.Of(kind); kind == retention.OverCount && n > 0 {
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
