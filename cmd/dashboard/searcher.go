package main

import (
	"context"
	"log/slog"
	"time"

	"redrive/internal/job"
)

// The pace at which failures become searchable.
const (
	searchPause = 200 * time.Millisecond // after a commit: failures come in crowds
	searchAgain = 10 * time.Second       // after a failure to do so
)

// searcher makes failures searchable, soon after each commit.
type searcher struct {
	fill func(context.Context) (int, error)
	wake chan struct{} // one slot: a job failed
	log  *slog.Logger
}

func newSearcher(fill func(context.Context) (int, error), log *slog.Logger) searcher {
	return searcher{fill, make(chan struct{}, 1), log}
}

// changed looks at what a commit did. It never waits.
func (s searcher) changed(changes []job.Change) {
	for _, c := range changes {
		if c.Failed || c.Status() == job.StatusDeadLetter {
			select {
			case s.wake <- struct{}{}:
			default:
			}
			return
		}
	}
}

// run catches up with what is left from before, and then with each commit,
// until the end of ctx.
func (s searcher) run(ctx context.Context) {
	for {
		pause := searchPause
		if _, err := s.fill(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("New failures cannot be found by a search yet. It is tried again.", "error", err, "again_in", searchAgain)
			pause = searchAgain
			s.again()
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// again makes the next turn come without another commit.
func (s searcher) again() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
