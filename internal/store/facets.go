package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// Reasons counts the open dead letters by reason, the most frequent first.
func (s *Store) Reasons(ctx context.Context) ([]job.ReasonCount, error) {
	counts := map[retry.Reason]int64{}
	err := openLetters(s.reading(ctx), func(k letterKey, n int64) { counts[k.reason] += n })
	return reasonCounts(counts), err
}

// Facets counts what a list can be narrowed to, from rollups: open dead letters
// by reason, queue and type, jobs of another state by queue.
func (s *Store) Facets(ctx context.Context, f job.Filter) (job.Facets, error) {
	queues := map[string]int64{}
	if f.Status != job.StatusDeadLetter {
		err := depthsOf(s.reading(ctx), f.Status, func(queue string, n int64) { queues[queue] += n })
		return job.Facets{Queues: nameCounts(queues)}, err
	}
	reasons, types := map[retry.Reason]int64{}, map[string]int64{}
	err := openLetters(s.reading(ctx), func(k letterKey, n int64) {
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
	return job.Facets{Reasons: reasonCounts(reasons), Queues: nameCounts(queues), Types: nameCounts(types)}, err
}

func openLetters(src source, each func(letterKey, int64)) error {
	const query = `SELECT queue, type, reason, n FROM reasons WHERE n > 0`
	return src.query(query, func(rows *sql.Rows) error {
		var k letterKey
		var n int64
		err := rows.Scan(&k.queue, &k.typ, &k.reason, &n)
		each(k, n)
		return err
	})
}

// depthsOf counts the jobs of each queue that have a status, or all of them.
func depthsOf(src source, status job.Status, each func(queue string, n int64)) error {
	const query = `SELECT queue, status, n FROM depths WHERE n > 0`
	return src.query(query, func(rows *sql.Rows) error {
		var queue string
		var s job.Status
		var n int64
		err := rows.Scan(&queue, &s, &n)
		if s == status || status == "" && slices.Contains(job.States(), job.State(s)) {
			each(queue, n)
		}
		return err
	})
}

// loadReasons makes the names known under which open dead letters are counted.
func (r *rollup) loadReasons(src source) error {
	return openLetters(src, func(k letterKey, _ int64) { r.labels.learn(k.queue, k.typ) })
}

func reasonCounts(counts map[retry.Reason]int64) []job.ReasonCount {
	var all []job.ReasonCount
	for reason, n := range counts {
		all = append(all, job.ReasonCount{Reason: reason, Count: n})
	}
	slices.SortFunc(all, func(a, b job.ReasonCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return all
}

func nameCounts(counts map[string]int64) []job.NameCount {
	var all []job.NameCount
	for name, n := range counts {
		all = append(all, job.NameCount{Name: name, Count: n})
	}
	slices.SortFunc(all, func(a, b job.NameCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return all
}
