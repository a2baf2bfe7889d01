package server

import (
	"log/slog"
	"sync"
	"time"

	"redrive/internal/server/problem"
)

// How many failed requests of a kind are logged one by one: a full disk fails all of them.
const (
	failureBurst  = 10               // in each period
	failurePeriod = 10 * time.Second // after which the others are counted in one line
)

// failureLog logs the requests that failed for a reason of the server. Each kind of
// failure has its own share, so that none is drowned out by another.
type failureLog struct {
	log *slog.Logger

	mu     sync.Mutex
	logged map[problem.Kind]int // in this period
}

// failed logs a request, which begins the period of its kind unless one is under way.
func (l *failureLog) failed(k problem.Kind, about ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.logged == nil {
		l.logged = map[problem.Kind]int{}
	}

	if l.logged[k] == 0 {
		time.AfterFunc(failurePeriod, func() { l.end(k) })
	}

	if l.logged[k]++; l.logged[k] <= failureBurst {
		l.log.Error("request failed", about...)
	}
}

// end ends the period of a kind, and logs how many requests were not logged in it.
func (l *failureLog) end(k problem.Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if rest := l.logged[k] - failureBurst; rest > 0 {
		l.log.Error("more requests failed", "code", k.Code, "requests", rest, "within", failurePeriod)
	}

	delete(l.logged, k)
}
