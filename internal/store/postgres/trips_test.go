package postgres

import (
	"context"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/db"
	"redrive/internal/store/health"
)

// watched is a server whose connection that writes jobs can be looked at.
type watched struct {
	Server
	writer *conn
}

func (w *watched) Open(ctx context.Context, h *health.Health) (db.Engine, error) {
	e, err := w.Server.Open(ctx, h)
	if err != nil {
		return nil, err
	}

	return &watchedEngine{e, w}, nil
}

type watchedEngine struct {
	db.Engine
	by *watched
}

func (e *watchedEngine) Writer(ctx context.Context) (db.Conn, error) {
	c, err := e.Engine.Writer(ctx)
	if err == nil {
		e.by.writer = c.(*conn)
	}

	return c, err
}

// EmptyForTest gives a test of this package an empty database.
var EmptyForTest func(testing.TB) string

// An exchange of a hundred jobs takes as few trips whatever becomes of them.
func TestExchange_TakesFewTrips(t *testing.T) {
	const batch, most = 100, 4

	for name, ending := range map[string]job.Ending{
		"succeeded":             {Outcome: job.Succeeded},
		"failed, to be retried": {Outcome: job.Failed},
		"failed permanently":    {Outcome: job.Failed, Answer: retry.Answer{Code: retry.CodeDeadLetter}},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now().UTC().Truncate(time.Microsecond)
			w := &watched{Server: Server{DSN: EmptyForTest(t)}}
			s, err := store.Open(t.Context(), store.Options{Database: w})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()

			jobs := make([]job.Job, 3*batch)
			for i := range jobs {
				jobs[i] = job.Job{Queue: "orders", Type: "email.send", Policy: retry.Default(), Timeout: time.Minute, Payload: []byte("1")}
			}
			if _, err := s.Enqueue(t.Context(), now, jobs); err != nil {
				t.Fatal(err)
			}

			claim := job.Claim{Worker: "w", Now: now, Lease: time.Minute, Free: map[string]int{"orders": batch}}
			var settle []job.Settlement
			for round := range 3 {
				before := w.writer.wire.trips

				claimed, stale, err := s.Exchange(t.Context(), settle, claim)
				if err != nil || len(stale) > 0 || len(claimed) != batch {
					t.Fatalf("claimed %d, %d are stale: %v", len(claimed), len(stale), err)
				}

				trips := w.writer.wire.trips - before
				t.Logf("exchange %d: %d trips", round+1, trips)
				if trips > most {
					t.Errorf("exchange %d took %d trips, want at most %d", round+1, trips, most)
				}

				settle = nil
				for _, j := range claimed {
					end := ending
					end.FinishedAt = now.Add(time.Second)
					settle = append(settle, j.Settle(end, func() float64 { return 0.5 }))
				}
			}
		})
	}
}
