package store

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/retention"
	"redrive/internal/store/db"
)

// Forecast counts what is kept of each kind, and what of it retention will remove
// soon. Retention returns the newest forecast without counting again. Dead letters
// that are too many are removed only after a forecast has announced them: see Prune.
// One forecast is made at a time.
func (s *Store) Forecast(ctx context.Context, now time.Time, limits retention.Limits) (retention.Forecast, error) {
	f := retention.Forecast{At: now}

	since, err := s.retentionSince(ctx)
	if err != nil {
		return f, err
	}

	if now.Before(since) {
		f.Since = since
	}

	s.excess.begin()

	excess, last, err := s.countExcess(ctx, limits)
	if err != nil {
		return f, fmt.Errorf("count the jobs that will be removed (%s): %w", retention.OverCount, err)
	}

	for _, kind := range retention.Kinds() {
		o := excess
		if kind != retention.OverCount {
			if o, err = s.outlook(ctx, now, limits, kind, last); err != nil {
				return f, fmt.Errorf("count the jobs that will be removed (%s): %w", kind, err)
			}
		}

		f.Kinds = append(f.Kinds, o)
	}

	s.excess.counted(last)
	s.news.forecast.Store(&f)

	return f, nil
}

// Retention is the newest forecast, from memory, with the clock that retention goes by.
func (s *Store) Retention() (f retention.Forecast) {
	if newest := s.news.forecast.Load(); newest != nil {
		f = *newest
	}

	if clock := s.news.clock.Load(); clock != nil {
		f.Clock = *clock
	}

	return f
}

// Clock is the time that retention went by when it was written down last. In a database that
// never had one, it is the newest time of what happened here.
func (s *Store) Clock(ctx context.Context) (c retention.Clock, err error) {
	const query = `SELECT trusted_at, hold FROM retention_clock`
	const newest = `SELECT max(
		coalesce((SELECT at FROM audit ORDER BY seq DESC LIMIT 1), 0),
		coalesce((SELECT changed_at FROM jobs WHERE ` + ownLetter + ` ORDER BY changed_at DESC, seq DESC LIMIT 1), 0),
		coalesce((SELECT max(minute) FROM minutes), 0) * CAST($1 AS BIGINT),
		coalesce((SELECT enqueued_at FROM jobs ORDER BY seq DESC LIMIT 1), 0))`

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
func (s *Store) SetClock(ctx context.Context, c retention.Clock) error {
	const update = `UPDATE retention_clock SET trusted_at = $1, hold = $2`
	const written = `SELECT trusted_at, hold FROM retention_clock`

	s.news.clock.Store(&c)

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

// countExcess counts the dead letters that are more than there may be, and finds the
// last of those that a sweep can remove: the oldest go first. Without any, the last
// is before all others.
func (s *Store) countExcess(ctx context.Context, limits retention.Limits) (o retention.Outlook, last place, err error) {
	const query = `SELECT n, min_at, changed_at, seq FROM (SELECT changed_at, seq, row_number() OVER (ORDER BY changed_at, seq) AS n,
			first_value(changed_at) OVER (ORDER BY changed_at, seq) AS min_at
		FROM jobs WHERE ` + ownLetter + ` AND ` + notHeld + ` AND ` + notNewest + `
		ORDER BY changed_at, seq LIMIT $1 + 0) AS some ORDER BY n DESC LIMIT 1`

	o.Kind, o.Jobs = retention.OverCount, limits.Jobs(retention.OverCount, s.Snapshot().Depths, s.Counters.SourceDeadLetters())
	if o.Jobs == 0 {
		return o, last, nil
	}

	most := min(o.Jobs, retention.MaxSoon)
	_, err = db.Row(s.reader.In(ctx), query, []any{&o.Soon, db.Time(&o.Oldest), &last.at, &last.seq}, most)
	o.More = o.Soon == most && most < o.Jobs

	return o, last, err
}

// outlook counts the jobs of one kind. Dead letters up to the last that are too many
// do not count as removed for their age.
func (s *Store) outlook(ctx context.Context, now time.Time, limits retention.Limits, kind retention.Kind, last place) (
	retention.Outlook, error,
) {
	o := retention.Outlook{Kind: kind, Jobs: limits.Jobs(kind, s.Snapshot().Depths, s.Counters.SourceDeadLetters())}
	if o.Jobs == 0 {
		return o, nil
	}

	if kind == retention.Trash {
		return o, s.trashOutlook(ctx, now, limits, &o)
	}

	where, at := ended(kind)
	oldest := where + ` ORDER BY changed_at, seq`
	if kind == retention.Completed { // the first that was enqueued
		oldest = where + ` AND seq > 0 ORDER BY seq`
	}

	src := s.reader.In(ctx)
	if _, err := db.Row(src, `SELECT `+at+` FROM jobs WHERE `+oldest+` LIMIT 1`, []any{db.Time(&o.Oldest)}); err != nil {
		return o, err
	}

	for _, age := range limits.Different(kind) {
		if err := s.soon(ctx, now.Add(retention.Soon-age), limits, age, last, &o); err != nil {
			return o, err
		}
	}

	return o, nil
}

// soon counts the jobs that ended before a time and are kept for an age.
func (s *Store) soon(
	ctx context.Context, before time.Time, limits retention.Limits, age time.Duration, after place, o *retention.Outlook,
) error {
	where, at := ended(o.Kind)

	where += ` AND ` + notAtSource
	args := []any{db.Micros(before), retention.MaxSoon + 1 - o.Soon}
	switch o.Kind {
	case retention.Completed:
		last, err := s.enqueuedBefore(ctx, before)
		if err != nil {
			return err
		}

		where, args = where+` AND seq <= $3`, append(args, last)
	case retention.DeadLetters:
		where, args = where+` AND (changed_at, seq) > ($3, $4)`, append(args, after.at, after.seq)
	}

	query := `SELECT queue, type, count(*) FROM (SELECT queue, type FROM jobs WHERE ` + where + ` AND ` + at + ` < $1 LIMIT $2 + 0) AS some
		GROUP BY queue, type`

	type row struct {
		queue, typ string
		n          int64
	}
	all, err := db.All(s.reader.In(ctx), query, func(r *row) []any { return []any{&r.queue, &r.typ, &r.n} }, args...)
	for _, r := range all {
		if limits.Age(o.Kind, r.queue, r.typ) == age {
			o.Soon += r.n
		}
	}

	if o.Soon > retention.MaxSoon {
		o.Soon, o.More = retention.MaxSoon, true
	}

	return err
}

func (s *Store) trashOutlook(ctx context.Context, now time.Time, limits retention.Limits, o *retention.Outlook) error {
	const oldest = `SELECT coalesce(min(at), 0) FROM trash`
	const soon = `SELECT count(*) FROM trash JOIN jobs ON jobs.seq = trash.job_seq WHERE trash.at < $1 AND ` + notAtSource

	src := s.reader.In(ctx)
	if _, err := db.Row(src, oldest, []any{db.Time(&o.Oldest)}); err != nil || limits.Trash <= 0 {
		return err
	}

	_, err := db.Row(src, soon, []any{&o.Soon}, db.Micros(now.Add(retention.Soon-limits.Trash)))

	return err
}
