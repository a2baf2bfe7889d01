package counters

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retry"
	"redrive/internal/store/db"
)

// Tallies returns the counters by queue and type. Past the first thousand
// queues or types the rest is counted under "other".
func (b *Book) Tallies(ctx context.Context) ([]queues.Tally, error) { return tallies(b.reader.In(ctx)) }

func tallies(src db.Source) ([]queues.Tally, error) {
	const query = `SELECT queue, type, ` + totalColumns + ` FROM counters ORDER BY queue, type`
	return db.All(src, query, func(t *queues.Tally) []any { return totalFields(&t.Totals, &t.Queue, &t.Type) })
}

// Held tells, by queue and type, how many jobs wait for a handler.
func (b *Book) Held(ctx context.Context) ([]queues.Held, error) {
	const query = `SELECT queue, type, n FROM held WHERE n > 0 ORDER BY queue, type`
	return db.All(b.reader.In(ctx), query, func(h *queues.Held) []any { return []any{&h.Queue, &h.Type, &h.Count} })
}

// lastHour is the number of minutes that pages draw.
const lastHour = 60

// LastHour returns the counters of the sixty minutes that end with the one of
// now, the oldest first, over all queues.
func (b *Book) LastHour(ctx context.Context, now time.Time) ([]job.Totals, error) {
	all := make([]job.Totals, lastHour)
	err := eachMinute(b.reader.In(ctx), now, func(_ string, i int, t job.Totals) { all[i] = all[i].Add(t) })
	return all, err
}

// eachMinute calls each with the counters of a queue in the i-th of the sixty
// minutes up to now.
func eachMinute(src db.Source, now time.Time, each func(queue string, i int, t job.Totals)) error {
	const query = `SELECT minute, queue, ` + totalColumns + ` FROM minutes WHERE minute BETWEEN $1 AND $2`
	last := db.Micros(now) / db.MicrosPerMinute
	first := last - lastHour + 1
	return src.Query(query, func(rows *sql.Rows) error {
		var minute int64
		var queue string
		var t job.Totals
		if err := rows.Scan(totalFields(&t, &minute, &queue)...); err != nil {
			return err
		}
		each(queue, int(minute-first), t)
		return nil
	}, first, last)
}

// Series returns the counters of a queue and a type over a span of time that
// ends now, the oldest first. An empty name means all of them; a type can be a
// prefix such as "email.*". Past the first thousand types the rest has no series
// of its own. It gives up, with context.DeadlineExceeded, when that takes too
// long.
func (b *Book) Series(ctx context.Context, now time.Time, queue, typ string, scale queues.Scale) ([]job.Totals, error) {
	first, step := db.Micros(scale.First(now))/db.MicrosPerMinute, int64(scale.Step/time.Minute)
	var where db.Where
	where.Add("minute BETWEEN %s AND %s", first, db.Micros(now)/db.MicrosPerMinute)
	where.Equal("queue", queue)
	where.Pattern("type", typ)
	query := fmt.Sprintf(`SELECT (minute - CAST($1 AS BIGINT)) / %d AS step, sum(succeeded), sum(failed), sum(requeued),
			sum(failed_permanently), sum(dlq_failed), sum(replayed) FROM minutes`, step) + where.String() + ` GROUP BY step`
	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()
	all := make([]job.Totals, scale.Steps)
	err := b.reader.In(ctx).Query(query, func(rows *sql.Rows) error {
		var i int
		var t job.Totals
		err := rows.Scan(totalFields(&t, &i)...)
		all[i] = t
		return err
	}, where.Args...)
	return all, db.TimedOut(ctx, err)
}

// Queues describes every queue that ever had a job or was paused, by name, as
// of one commit.
func (b *Book) Queues(ctx context.Context, now time.Time) ([]queues.Info, error) {
	var all []queues.Info
	err := b.reader.Consistently(ctx, func(src db.Source) (err error) {
		if all, err = queueInfos(src, now); err != nil {
			return err
		}
		byName := map[string]*queues.Info{}
		for i := range all {
			byName[all[i].Name] = &all[i]
		}
		return addCounts(src, now, byName)
	})
	return all, err
}

// queueInfos lists the queues, each with its pause and the time since when its
// next job could run: of the available ones the next that a claim takes,
// otherwise one that has come due.
func queueInfos(src db.Source, now time.Time) ([]queues.Info, error) {
	const due = `(SELECT min(run_at) FROM jobs
			WHERE queue = name AND list_state IN ('scheduled', 'retryable') AND run_at <= $1 AND list_state = `
	const query = `SELECT name, coalesce(q.paused_at, 0), coalesce(q.paused_by, ''), coalesce(
			(SELECT run_at FROM jobs WHERE queue = name AND state = 'available' AND held = 0 ORDER BY priority DESC, run_at, seq LIMIT 1),
			` + due + `'scheduled'), ` + due + `'retryable'), 0)
		FROM (SELECT queue AS name FROM depths UNION SELECT name FROM queues) AS known LEFT JOIN queues AS q USING (name)
		ORDER BY name`
	return db.All(src, query, func(q *queues.Info) []any {
		q.Depths, q.LastHour = job.Depths{}, make([]job.Totals, lastHour)
		return []any{&q.Name, db.Time(&q.PausedAt), &q.PausedBy, db.Time(&q.Oldest)}
	}, db.Micros(now))
}

// addCounts gives queues their depths and counters.
func addCounts(src db.Source, now time.Time, byName map[string]*queues.Info) error {
	depths, err := depths(src)
	if err != nil {
		return err
	}
	for _, d := range depths {
		if q := byName[d.queue]; q != nil {
			q.Depths[d.status] = d.n
		}
	}
	err = eachMinute(src, now, func(queue string, i int, t job.Totals) {
		if q := byName[queue]; q != nil {
			q.LastHour[i] = q.LastHour[i].Add(t)
		}
	})
	if err != nil {
		return err
	}
	all, err := tallies(src)
	for _, t := range all {
		if q := byName[t.Queue]; q != nil {
			q.Totals = q.Totals.Add(t.Totals)
		}
	}
	return err
}

// Reasons counts the open dead letters by reason, the most frequent first, from
// memory.
func (b *Book) Reasons(context.Context) ([]filter.ReasonCount, error) {
	counts := map[retry.Reason]int64{}
	b.eachLetter(func(k letterKey, n int64) { counts[k.reason] += n })
	return reasonCounts(counts), nil
}

// Facets counts what a list can be narrowed to, from memory: open dead letters
// by reason, queue and type, jobs of another state by queue.
func (b *Book) Facets(_ context.Context, f filter.Filter) (filter.Facets, error) {
	queues := map[string]int64{}
	if f.Status != job.StatusDeadLetter {
		b.eachQueue(f.Status, func(queue string, n int64) { queues[queue] += n })
		return filter.Facets{Queues: nameCounts(queues)}, nil
	}
	reasons, types := map[retry.Reason]int64{}, map[string]int64{}
	b.eachLetter(func(k letterKey, n int64) {
		queue, typ := f.Queue == "" || f.Queue == k.queue, f.MatchesType(k.typ)
		reason := f.Reason == "" || f.Reason == k.reason
		if queue && typ {
			reasons[k.reason] += n
		}
		if typ && reason {
			queues[k.queue] += n
		}
		if queue && reason {
			types[k.typ] += n
		}
	})
	return filter.Facets{Reasons: reasonCounts(reasons), Queues: nameCounts(queues), Types: nameCounts(types)}, nil
}

// NoLetters reports whether no open dead letter has the filter's queue, type and
// reason, as far as the counts tell names apart.
func (b *Book) NoLetters(f filter.Filter) bool {
	none := true
	b.eachLetter(func(k letterKey, _ int64) {
		queue := f.Queue == "" || f.Queue == k.queue || k.queue == otherLabel
		typ := f.MatchesType(k.typ) || k.typ == otherLabel
		if queue && typ && (f.Reason == "" || f.Reason == k.reason) {
			none = false
		}
	})
	return none
}

// OpenedSince counts the open letters whose jobs failed in an hour (since 1970)
// or later.
func (b *Book) OpenedSince(first int64) (n int64) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for hour, opened := range b.opened {
		if hour >= first {
			n += opened
		}
	}
	return n
}

// eachLetter calls each with every count of open dead letters that is not zero.
func (b *Book) eachLetter(each func(letterKey, int64)) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for k, n := range b.letters {
		each(k, n)
	}
}

// eachQueue counts the jobs of each queue that have a status, or all of them.
func (b *Book) eachQueue(status job.Status, each func(queue string, n int64)) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for k, n := range b.queued {
		if n > 0 && (k.status == status || status == "" && slices.Contains(job.States(), job.State(k.status))) {
			each(k.queue, n)
		}
	}
}

func reasonCounts(counts map[retry.Reason]int64) []filter.ReasonCount {
	return mostFirst(counts, func(reason retry.Reason, n int64) filter.ReasonCount {
		return filter.ReasonCount{Reason: reason, Count: n}
	})
}

func nameCounts(counts map[string]int64) []filter.NameCount {
	return mostFirst(counts, func(name string, n int64) filter.NameCount { return filter.NameCount{Name: name, Count: n} })
}

// mostFirst lists counts, the most frequent first.
func mostFirst[K cmp.Ordered, C any](counts map[K]int64, count func(K, int64) C) []C {
	var all []C
	for _, k := range slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	}) {
		all = append(all, count(k, counts[k]))
	}
	return all
}
