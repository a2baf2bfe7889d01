package sweep

import (
	"context"
	"time"

	"redrive/internal/retention"
	"redrive/internal/store/db"
)

// Clock is the time that retention went by when it was written down last. In a database that
// never had one, it is the newest time of what happened here.
func (s *Sweeper) Clock(ctx context.Context) (c retention.Clock, err error) {
	const query = `SELECT trusted_at, hold FROM retention_clock`
	const newest = `SELECT coalesce(max(at), 0) FROM (
		SELECT max(at) AS at FROM audit WHERE seq = (SELECT max(seq) FROM audit)
		UNION ALL SELECT max(changed_at) FROM jobs WHERE ` + ownDeadLetter + `
		UNION ALL SELECT max(minute) * CAST($1 AS BIGINT) FROM minutes
		UNION ALL SELECT max(enqueued_at) FROM jobs WHERE seq = (SELECT max(seq) FROM jobs)) AS times`

	src := s.reader.In(ctx)
	var trusted, hold int64
	if _, err := db.Row(src, query, []any{&trusted, &hold}); err != nil {
		return c, db.Wrap(err, "read the clock of retention")
	}

	if trusted == 0 {
		trusted, err = db.Value[int64](src, newest, int64(db.MicrosPerMinute))
		if err != nil {
			return c, db.Wrap(err, "find the newest time in the database")
		}
	}

	if trusted > 0 {
		c.Trusted = db.FromMicros(trusted)
	}

	c.Left = time.Duration(hold) * time.Microsecond

	return c, nil
}

// clockEvery is how often the clock of retention is written down while it is believed.
const clockEvery = time.Hour

// SetClock makes known by which time retention goes from now on. It is written down when
// nothing is removed, when that ends, and otherwise every hour: an idle database is hardly
// written to.
func (s *Sweeper) SetClock(ctx context.Context, c retention.Clock) error {
	const update = `UPDATE retention_clock SET trusted_at = $1, hold = $2`
	const written = `SELECT trusted_at, hold FROM retention_clock`

	s.clock.Store(&c)

	var at, hold int64
	if _, err := db.Row(s.reader.In(ctx), written, []any{&at, &hold}); err != nil {
		return db.Wrap(err, "read the clock of retention")
	}

	moved := c.Trusted.Sub(db.FromMicros(at))
	if hold == 0 && !c.Held() && moved >= 0 && moved < clockEvery {
		return nil
	}

	return s.writer.Do(ctx, 1, func(t *db.Tx) error {
		return t.ExecExactly(1, update, db.Micros(c.Trusted), c.Left.Microseconds())
	})
}
