package app

import (
	"context"
	"log/slog"
	"time"

	"redrive/internal/job"
	"redrive/internal/pause"
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
func (a *App) reopenGroups(ctx context.Context) {
	if _, err := a.store.Groups.ReopenDue(ctx, time.Now()); err != nil && ctx.Err() == nil {
		a.Log.Warn("Ignored error groups that are due to reopen could not be reopened. Redrive will try again.",
			"error", err, "again_in", time.Minute)
	}
}

// watchNotices has the open pages redrawn when what they say about the whole program has
// changed, until the end of ctx. Nothing else tells them of such a change: while the
// database cannot be written, no count moves.
func (a *App) watchNotices(ctx context.Context) {
	ticker := time.NewTicker(noticePeriod)
	defer ticker.Stop()

	said := a.server.Notices()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}

		if now := a.server.Notices(); now != said {
			said = now

			a.hub.Redraw()
		}
	}
}

const noticePeriod = 500 * time.Millisecond

// How soon failures become searchable.
const (
	searchPause  = 200 * time.Millisecond // after a commit: failures often come many at once
	searchPeriod = time.Second            // between two sweeps, while so much fails that these take long
	searchShare  = 10                     // a sweep may take one part in so many of a shorter period
	searchIdle   = time.Second            // without a failure, after which the index is put in order
	searchAgain  = 10 * time.Second       // after the index could not be written
)

// searcher makes failures searchable, soon after the commit of each.
type searcher struct {
	sweep  func(context.Context) (int, error)
	merge  func(context.Context) error
	failed chan struct{} // one slot: a job failed
	log    *slog.Logger
}

// newSearcher returns a searcher that calls sweep to make searchable what is not
// yet, and merge to make searches quicker when nothing fails.
func newSearcher(sweep func(context.Context) (int, error), merge func(context.Context) error, log *slog.Logger) searcher {
	return searcher{sweep, merge, make(chan struct{}, 1), log}
}

// changed is told what a commit did; nothing when jobs were removed, among others. It
// never waits.
func (s searcher) changed(changes []job.Change) {
	if len(changes) == 0 {
		s.notify()
	}

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
	for ctx.Err() == nil {
		begin := time.Now()

		if _, err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("New failures could not be added to the search index. Redrive will try again.", "error", err, "again_in", searchAgain)
			pause.For(ctx, searchAgain)
			continue
		}

		// The index may be busy for a share of the time only, and is never older than a period.
		next := begin.Add(min(searchShare*time.Since(begin), searchPeriod))

		s.wait(ctx)
		s.gather(ctx, next)
	}
}

// gather lets failures come together, for as long as they keep coming and the time
// of the next sweep has not come.
func (s searcher) gather(ctx context.Context, next time.Time) {
	more := true
	for more && ctx.Err() == nil {
		pause.For(ctx, searchPause)

		select {
		case <-s.failed:
			more = time.Now().Before(next)
		default:
			more = false
		}
	}
}

// wait returns once a job failed. When none does for a while, the index is put in
// order.
func (s searcher) wait(ctx context.Context) {
	idle := time.After(searchIdle)

	for {
		select {
		case <-ctx.Done():
			return
		case <-s.failed:
			return
		case <-idle:
			idle = nil // once is enough, until a job fails

			if err := s.merge(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("The search index could not be optimized. Redrive will try again.", "error", err, "again_in", searchAgain)
				idle = time.After(searchAgain)
			}
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
