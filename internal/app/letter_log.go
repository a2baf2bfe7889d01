package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"redrive/internal/job"
)

// How many dead letters are logged one by one: a service that is down makes thousands.
const (
	letterBurst  = 10               // in each period
	letterPeriod = 10 * time.Second // after which the others are counted in one line
)

// letterLog logs the jobs that become dead letters.
type letterLog struct {
	log *slog.Logger

	mu           sync.Mutex
	logged, rest int // in this period
}

// settled logs the job if its execution ended as a dead letter.
func (l *letterLog) settled(j job.Job, s job.Settlement) {
	if s.DeadLetter == job.NoDeadLetter {
		return
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	if l.logged == letterBurst {
		l.rest++
		return
	}

	l.logged++
	l.log.Warn("A job became a dead letter.",
		"job", j.ID, "run", j.Run, "type", j.Type, "queue", j.Queue, "reason", s.Reason, "error", s.Attempt.Error.Type)
}

// run begins a new period again and again, until the end of ctx.
func (l *letterLog) run(ctx context.Context) {
	defer l.count()

	ticker := time.NewTicker(letterPeriod)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			l.count()
		}
	}
}

// count ends a period, and logs how many dead letters were not logged in it.
func (l *letterLog) count() {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.rest > 0 {
		l.log.Warn("More jobs became dead letters.", "jobs", l.rest, "within", letterPeriod)
	}

	l.logged, l.rest = 0, 0
}
