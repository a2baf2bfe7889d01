package store

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/store/db"
)

// Forecast counts what is kept of each kind, and what of it retention will remove
// soon. Retention returns the newest forecast without counting again.
func (s *Store) Forecast(ctx context.Context, now time.Time, limits retention.Limits) (retention.Forecast, error) {
	f := retention.Forecast{At: now}
	since, err := s.retentionSince(ctx)
	if err != nil {
		return f, err
	}
	if now.Before(since) {
		f.Since = since
	}
	for _, kind := range append(retention.Aged(), retention.Trash) {
		o, err := s.outlook(ctx, now, limits, kind)
		if err != nil {
			return f, fmt.Errorf("count the jobs that will be removed (%s): %w", kind, err)
		}
		f.Kinds = append(f.Kinds, o)
	}
	s.news.forecast.Store(&f)
	return f, nil
}

// Retention is the newest forecast, from memory.
func (s *Store) Retention() retention.Forecast {
	if f := s.news.forecast.Load(); f != nil {
		return *f
	}
	return retention.Forecast{}
}

// Kept is how many jobs of a kind there are, as of the last commit.
func (s *Store) Kept(k retention.Kind) int64 {
	depths := s.Snapshot().Depths
	switch k {
	case retention.Completed:
		return depths[job.Status(job.Completed)]
	case retention.Cancelled:
		return depths[job.Status(job.Cancelled)]
	case retention.Trash:
		return depths[job.StatusTrashed]
	case retention.Discarded:
		return depths[job.Status(job.Discarded)] - depths[job.StatusDeadLetter] - depths[job.StatusDLQFailed] - depths[job.StatusTrashed]
	}
	return depths[job.StatusDeadLetter]
}

// outlook counts the jobs of one kind.
func (s *Store) outlook(ctx context.Context, now time.Time, limits retention.Limits, kind retention.Kind) (retention.Outlook, error) {
	o := retention.Outlook{Kind: kind, Kept: s.Kept(kind)}
	if o.Kept == 0 {
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
		if err := s.soon(ctx, now.Add(retention.Soon-age), limits, age, &o); err != nil {
			return o, err
		}
	}
	return o, nil
}

// soon counts the jobs that ended before a time and are kept for an age.
func (s *Store) soon(ctx context.Context, before time.Time, limits retention.Limits, age time.Duration, o *retention.Outlook) error {
	where, at := ended(o.Kind)
	args := []any{db.Micros(before), retention.MaxSoon + 1 - o.Soon}
	if o.Kind == retention.Completed {
		last, err := s.enqueuedBefore(ctx, before)
		if err != nil {
			return err
		}
		where, args = where+` AND seq <= $3`, append(args, last)
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
	const soon = `SELECT count(*) FROM trash WHERE at < $1`
	src := s.reader.In(ctx)
	if _, err := db.Row(src, oldest, []any{db.Time(&o.Oldest)}); err != nil || limits.Trash <= 0 {
		return err
	}
	_, err := db.Row(src, soon, []any{&o.Soon}, db.Micros(now.Add(retention.Soon-limits.Trash)))
	return err
}
