package store

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"redrive/internal/job"
	"redrive/internal/queues"
)

// Series returns the counters of a queue and a type over a span of time that
// ends now, the oldest first. An empty name means all of them; a type can be a
// prefix as "email.*". Past the first thousand types the rest has no series of
// its own. It gives up, with context.DeadlineExceeded, when that takes too long.
func (s *Store) Series(ctx context.Context, now time.Time, queue, typ string, scale queues.Scale) ([]job.Totals, error) {
	const query = `SELECT (minute - $1) / $2 AS step, sum(succeeded), sum(failed), sum(requeued), sum(failed_permanently),
			sum(dlq_failed), sum(replayed)
		FROM minutes WHERE minute BETWEEN $1 AND $3 AND ($4 = '' OR queue = $4) AND ($5 = '' OR type = $5)
			AND ($6 = '' OR type >= $6 AND type < $7)
		GROUP BY step`
	prefix, beyond := "", ""
	if name, ok := strings.CutSuffix(typ, ".*"); ok {
		typ, prefix, beyond = "", name+".", name+"/" // '/' follows '.'
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all := make([]job.Totals, scale.Steps)
	first, step := micros(scale.First(now))/microsPerMinute, int64(scale.Step/time.Minute)
	err := s.reading(ctx).query(query, func(rows *sql.Rows) error {
		var i int
		var t job.Totals
		err := rows.Scan(append([]any{&i}, totalFields(&t)...)...)
		all[i] = t
		return err
	}, first, step, micros(now)/microsPerMinute, queue, typ, prefix, beyond)
	return all, timedOut(ctx, err)
}

// recentAmong is among how many of the newest jobs those of a type are looked
// for: reading so many rows takes no time that a person notices.
const recentAmong = 10_000

// Recent returns the newest jobs of a type, the newest first: at most limit of
// those that are among the newest ten thousand of all. Of each it says how it
// stands, since when, and when its newest execution was.
func (s *Store) Recent(ctx context.Context, typ string, limit int) ([]job.Job, error) {
	const query = `SELECT seq, id, state, letter, held, started_at, finished_at, changed_at FROM jobs
		WHERE seq > coalesce((SELECT max(seq) FROM jobs), 0) - $2 AND type = $1 ORDER BY seq DESC LIMIT $3 + 0`
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var all []job.Job
	err := s.reading(ctx).query(query, func(rows *sql.Rows) error {
		j := job.Job{Type: typ}
		var state, letter string
		var started, finished, changed int64
		err := rows.Scan(&j.Seq, &j.ID, &state, &letter, &j.Held, &started, &finished, &changed)
		j.State, j.Letter = job.State(state), job.Letter(letter)
		j.StartedAt, j.FinishedAt, j.ChangedAt = fromMicros(started), fromMicros(finished), fromMicros(changed)
		all = append(all, j)
		return err
	}, typ, recentAmong, limit)
	return all, timedOut(ctx, err)
}
