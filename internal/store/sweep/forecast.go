package sweep

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
// One forecast is made at a time. A database that refuses writes is no reason not to
// count: the forecast is complete then, and announces nothing.
func (s *Sweeper) Forecast(ctx context.Context, now time.Time, limits retention.Limits) (retention.Forecast, error) {
	f := retention.Forecast{At: now}

	since, err := s.retentionSince(ctx)
	if err != nil {
		return f, err
	}

	if now.Before(since) {
		f.Since = since
	}

	// Dead letters that are too many come first: none of them counts for its age, too.
	tooMany := retention.Outlook{Kind: retention.OverCount}

	tooMany.Jobs, err = s.jobsOf(ctx, retention.OverCount, limits)
	if err != nil {
		return f, err
	}

	refused := s.beginNotice(ctx, tooMany.Jobs > 0)

	last, err := s.countOverCount(ctx, &tooMany)
	if err != nil {
		return f, fmt.Errorf("count the jobs that will be removed (%s): %w", retention.OverCount, err)
	}

	for _, kind := range retention.Kinds() {
		if kind == retention.OverCount {
			f.Kinds = append(f.Kinds, tooMany)
			continue
		}

		o, err := s.outlook(ctx, now, limits, kind, last)
		if err != nil {
			return f, fmt.Errorf("count the jobs that will be removed (%s): %w", kind, err)
		}

		f.Kinds = append(f.Kinds, o)
	}

	// Announce last: nothing may be removed of which a forecast failed to tell.
	s.forecast.Store(&f)

	if refused == nil && last != (place{}) {
		refused = s.giveNotice(ctx, now, last)
	}

	return f, refused
}

// Retention is the newest forecast, from memory, with the clock that retention goes by.
func (s *Sweeper) Retention() (f retention.Forecast) {
	newest := s.forecast.Load()
	if newest != nil {
		f = *newest
	}

	clock := s.clock.Load()
	if clock != nil {
		f.Clock = *clock
	}

	return f
}

// jobsOf is how many jobs of a kind there are, as of the last commit.
func (s *Sweeper) jobsOf(ctx context.Context, k retention.Kind, limits retention.Limits) (int64, error) {
	open, err := s.counters.DeadLetters(ctx, 0)
	if err != nil {
		return 0, err
	}

	return limits.Jobs(k, s.depths(), open.AtSources), nil
}

// countOverCount counts those of the dead letters that are too many which a pass can remove:
// the oldest go first. It returns the place of the last of them.
func (s *Sweeper) countOverCount(ctx context.Context, o *retention.Outlook) (last place, err error) {
	// n counts the dead letters from the oldest on. The last of those that are found is read:
	// its n is how many they are, min_at the time of the oldest, and the rest its own place.
	const query = `SELECT n, min_at, changed_at, seq FROM (SELECT changed_at, seq, row_number() OVER (ORDER BY changed_at, seq) AS n,
			first_value(changed_at) OVER (ORDER BY changed_at, seq) AS min_at
		FROM jobs WHERE ` + ownDeadLetter + ` AND ` + notHeld + ` AND ` + notNewest + `
		ORDER BY changed_at, seq LIMIT $1 + 0) AS found ORDER BY n DESC LIMIT 1`

	most := min(o.Jobs, s.maxSoon)
	if most == 0 {
		return last, nil
	}

	_, err = db.Row(s.reader.In(ctx), query, []any{&o.Soon, db.Time(&o.Oldest), &last.at, &last.seq}, most)
	o.More = o.Soon == most && most < o.Jobs

	return last, err
}

// outlook counts the jobs of one kind. Dead letters up to the last that are too many
// do not count as removed for their age.
func (s *Sweeper) outlook(ctx context.Context, now time.Time, limits retention.Limits, kind retention.Kind, last place) (
	retention.Outlook, error,
) {
	o := retention.Outlook{Kind: kind}

	jobs, err := s.jobsOf(ctx, kind, limits)
	if err != nil || jobs == 0 {
		return o, err
	}

	o.Jobs = jobs
	if kind == retention.Trash {
		err := s.trashOutlook(ctx, now, limits, &o)
		return o, err
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
func (s *Sweeper) soon(
	ctx context.Context, before time.Time, limits retention.Limits, age time.Duration, after place, o *retention.Outlook,
) error {
	where, at := ended(o.Kind)

	where += ` AND ` + notAtSource

	// One job more than maxSoon, over all ages, shows that there are more.
	args := []any{db.Micros(before), s.maxSoon + 1 - o.Soon}
	switch o.Kind {
	// Completed jobs have no index by their end. One that ended before a time was enqueued
	// before it, so the search is bounded by its number.
	case retention.Completed:
		last, err := s.enqueuedBefore(ctx, before)
		if err != nil {
			return err
		}

		where, args = where+` AND seq <= $3`, append(args, last)

	// Dead letters up to this place are too many, and counted as such.
	case retention.DeadLetters:
		where, args = where+` AND (changed_at, seq) > ($3, $4)`, append(args, after.at, after.seq)
	}

	// The jobs of another age are counted when it is the turn of that age.
	kept, names := keptFor(limits, o.Kind, age, len(args))
	args = append(args, names...)

	query := `SELECT count(*) FROM (SELECT 1 FROM jobs WHERE ` + where + ` AND ` + at + ` < $1` + kept + ` LIMIT $2 + 0) AS found`

	n, err := db.Value[int64](s.reader.In(ctx), query, args...)

	o.Soon += n
	if o.Soon > s.maxSoon {
		o.Soon, o.More = s.maxSoon, true
	}

	return err
}

func (s *Sweeper) trashOutlook(ctx context.Context, now time.Time, limits retention.Limits, o *retention.Outlook) error {
	const oldest = `SELECT coalesce(min(at), 0) FROM trash`
	const soon = `SELECT count(*) FROM trash JOIN jobs ON jobs.seq = trash.job_seq WHERE trash.at < $1 AND ` + notAtSource

	// Without a limit, the trash has an oldest job and none that is removed soon.
	src := s.reader.In(ctx)
	if _, err := db.Row(src, oldest, []any{db.Time(&o.Oldest)}); err != nil || limits.Trash <= 0 {
		return err
	}

	_, err := db.Row(src, soon, []any{&o.Soon}, db.Micros(now.Add(retention.Soon-limits.Trash)))

	return err
}
