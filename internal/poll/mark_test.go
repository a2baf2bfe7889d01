package poll_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/source/redissource"
	"redrive/internal/source/redissource/redistest"
	"redrive/internal/source/sqlsource"
)

// lossy is a source whose answers to acts are lost on the way.
type lossy struct {
	source.Origin
	lost *atomic.Int64
}

func (l lossy) Act(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	if _, err := l.Origin.Act(ctx, acts); err != nil {
		return nil, err
	}
	l.lost.Add(int64(len(acts)))
	return nil, errors.New("the connection was lost")
}

// TestSources_TheMarkOfAPushTellsInAQueueOfAnyName has queues whose names are not those of
// the queues in which their jobs are shown, and more queues than a source has places for.
func TestSources_TheMarkOfAPushTellsInAQueueOfAnyName(t *testing.T) {
	path, db := laravel(t)
	_, err := db.Exec("DELETE FROM failed_jobs")
	check(t, err)
	names := []string{"mail", "{default}", "high priority", ".hidden"}
	for i := range 100 { // the newest are read first, so that the others share a queue
		names = append(names, fmt.Sprintf("tenant-%d", i))
	}
	names = append(names, "{mail}", "low priority")
	for i, name := range names {
		_, err := db.Exec(`INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at)
			VALUES (?, 'redis', ?, '{"job":"Mail@handle"}', 'E: no', '2026-11-23 10:00:00')`, fmt.Sprintf("u-%d", i), name)
		check(t, err)
	}

	queue := redistest.Start(t)
	lost := new(atomic.Int64)
	p := preset.All()["laravel-redis"]
	b := newBenchOf(t, p, func(ctx context.Context) (source.Origin, error) {
		o, err := sqlsource.Open(ctx, "sqlite://"+path, p, preset.Settings{})
		if err != nil {
			return nil, err
		}
		work, err := redissource.OpenWork(ctx, redistest.URL(queue), p, preset.Settings{})
		if err != nil {
			return nil, errors.Join(err, o.Close())
		}
		o.SendTo(work)
		return lossy{o, lost}, nil
	})
	b.until("all are shown", func() bool { return b.sources.Health()[0].Ready })
	asked, shared := 0, 0
	for _, l := range b.deadLetters() {
		if strings.HasPrefix(l.Job.Queue, "tenant-") {
			continue
		}
		if l.Job.Queue == source.Overflow("shop") {
			shared++
		}
		_, err := b.store.Replay(t.Context(), time.Now(), l.Job.ID, l.Job.Run, ana)
		check(t, err)
		asked++
	}
	if shared == 0 || asked < 6 {
		t.Fatalf("%d are asked for, %d of them from the shared queue", asked, shared)
	}

	b.until("all have ended", func() bool {
		h, ended := b.sources.Health()[0], int64(0)
		for _, n := range h.Acts {
			ended += n
		}
		return ended == int64(asked)
	})
	h := b.sources.Health()[0]
	if done := h.Acts[source.End{Kind: source.Replay, State: source.Done}]; done != int64(asked) || lost.Load() == 0 {
		t.Errorf("%d of %d are done: %v", done, asked, h.Acts)
	}
}
