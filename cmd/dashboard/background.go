package main

import (
	"context"
	"log/slog"
	"time"

	"redrive/internal/job"
	"redrive/internal/retention"
)

// everyMinute calls a function now and every minute, until the end of ctx. The first
// call is not put off, because much may be due after a long stop.
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

// reopenGroups opens the error groups that were ignored until a time that has
// come. What fails is tried again the next time.
func (a *app) reopenGroups(ctx context.Context) {
	if _, err := a.store.Groups.ReopenDue(ctx, time.Now()); err != nil && ctx.Err() == nil {
		a.log.Warn("Error groups whose time of being ignored is over could not be opened. It is tried again.",
			"error", err, "again_in", time.Minute)
	}
}

// pruner keeps the dead-letter queue within its retention.
type pruner struct {
	prune     func(context.Context, time.Time, retention.Limits) (retention.Pruned, error)
	retention retention.Limits
	log       *slog.Logger
}

// run prunes now and every minute, until the end of ctx. What fails is tried
// again the next time.
func (p pruner) run(ctx context.Context) { everyMinute(ctx, p.once) }

// once prunes, and logs what was removed for good.
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
		p.log.Info("Error groups were removed to which no job belongs: nothing failed in them for long, or there was hardly room for new ones.",
			"groups", done.Groups, "age", p.retention.Age)
	}
	if err != nil && ctx.Err() == nil {
		p.log.Warn("The dead-letter queue and the trash could not be pruned. It is tried again.", "error", err, "again_in", time.Minute)
	}
}

// How soon failures become searchable.
const (
	searchPause = 200 * time.Millisecond // after a commit: failures often come many at once
	searchAgain = 10 * time.Second       // after the index could not be written
)

// searcher makes failures searchable, soon after the commit of each.
type searcher struct {
	index  func(context.Context) (int, error)
	failed chan struct{} // one slot: a job failed
	log    *slog.Logger
}

// newSearcher returns a searcher that calls index to make searchable what is not
// yet.
func newSearcher(index func(context.Context) (int, error), log *slog.Logger) searcher {
	return searcher{index, make(chan struct{}, 1), log}
}

// changed is told what a commit did. It never waits.
func (s searcher) changed(changes []job.Change) {
	for _, c := range changes {
		if c.Failed || c.Status() == job.StatusDeadLetter {
			s.notify()
			return
		}
	}
}

// run catches up with what is left from before, and then with each commit,
// until the end of ctx.
func (s searcher) run(ctx context.Context) {
	for {
		pause := searchPause
		if _, err := s.index(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("New failures cannot be found by a search yet. It is tried again.", "error", err, "again_in", searchAgain)
			pause = searchAgain
			s.notify()
		}
		select {
		case <-ctx.Done():
			return
		case <-s.failed:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// notify makes the next turn come.
func (s searcher) notify() {
	select {
	case s.failed <- struct{}{}:
	default: // it comes anyhow
	}
}
