package sweep

import (
	"context"
	"time"

	"redrive/internal/retention"
	"redrive/internal/store/db"
)

// DeadLetterUsage tells how full the dead-letter queue is. It counts Redrive's own dead letters,
// and separately those of sources.
func (s *Sweeper) DeadLetterUsage(ctx context.Context, now time.Time) (retention.Usage, error) {
	const query = `SELECT changed_at FROM jobs WHERE ` + ownDeadLetter + ` ORDER BY changed_at, seq LIMIT 1`
	firstHour := db.Micros(now)/db.MicrosPerHour - 23

	open, err := s.counters.DeadLetters(ctx, firstHour)
	if err != nil {
		return retention.Usage{}, err
	}

	u := retention.Usage{Open: open.Own, LastDay: open.Recent, AtSources: open.AtSources}
	_, err = db.Row(s.reader.In(ctx), query, []any{db.Time(&u.Oldest)})

	return u, err
}
