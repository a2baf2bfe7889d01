package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// Reasons counts the open dead letters by reason, the most frequent first, from
// memory.
func (s *Store) Reasons(context.Context) ([]filter.ReasonCount, error) {
	counts := map[retry.Reason]int64{}
	s.openLetters(func(k letterKey, n int64) { counts[k.reason] += n })
	return reasonCounts(counts), nil
}

// Facets counts what a list can be narrowed to, from memory: open dead letters
// by reason, queue and type, jobs of another state by queue.
func (s *Store) Facets(_ context.Context, f filter.Filter) (filter.Facets, error) {
	queues := map[string]int64{}
	if f.Status != job.StatusDeadLetter {
		s.depthsOf(f.Status, func(queue string, n int64) { queues[queue] += n })
		return filter.Facets{Queues: nameCounts(queues)}, nil
	}
	reasons, types := map[retry.Reason]int64{}, map[string]int64{}
	s.openLetters(func(k letterKey, n int64) {
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

// openLetters calls each with every count of open dead letters that is not zero.
func (s *Store) openLetters(each func(letterKey, int64)) {
	s.counts.RLock()
	defer s.counts.RUnlock()
	for k, n := range s.rollup.letters {
		each(k, n)
	}
}

// noLetters reports whether no open dead letter has the filter's queue, type and
// reason, as far as the counts tell names apart.
func (s *Store) noLetters(f filter.Filter) bool {
	none := true
	s.openLetters(func(k letterKey, _ int64) {
		queue := f.Queue == "" || f.Queue == k.queue || k.queue == otherLabel
		typ := f.MatchesType(k.typ) || k.typ == otherLabel
		if queue && typ && (f.Reason == "" || f.Reason == k.reason) {
			none = false
		}
	})
	return none
}

// depthsOf counts the jobs of each queue that have a status, or all of them.
func (s *Store) depthsOf(status job.Status, each func(queue string, n int64)) {
	s.counts.RLock()
	defer s.counts.RUnlock()
	for k, n := range s.rollup.queued {
		if n > 0 && (k.status == status || status == "" && slices.Contains(job.States(), job.State(k.status))) {
			each(k.queue, n)
		}
	}
}

// loadLetters reads the counts of open dead letters, and makes the names known
// under which they are counted.
func (r *rollup) loadLetters(src source) error {
	const query = `SELECT queue, type, reason, n FROM reasons WHERE n > 0`
	return src.query(query, func(rows *sql.Rows) error {
		var k letterKey
		var n int64
		err := rows.Scan(&k.queue, &k.typ, &k.reason, &n)
		r.letters[k] = n
		r.labels.learn(k.queue, k.typ)
		return err
	})
}

// loadOpened counts open dead letters by the hour in which their jobs failed.
func (r *rollup) loadOpened(src source) error {
	const query = `SELECT failed_at / $1 AS hour, count(*) FROM dead_letters WHERE open = 1 GROUP BY hour`
	return src.query(query, func(rows *sql.Rows) error {
		var hour, n int64
		err := rows.Scan(&hour, &n)
		r.opened[hour] = n
		return err
	}, microsPerHour)
}

func reasonCounts(counts map[retry.Reason]int64) []filter.ReasonCount {
	var all []filter.ReasonCount
	for reason, n := range counts {
		all = append(all, filter.ReasonCount{Reason: reason, Count: n})
	}
	slices.SortFunc(all, func(a, b filter.ReasonCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return all
}

func nameCounts(counts map[string]int64) []filter.NameCount {
	var all []filter.NameCount
	for name, n := range counts {
		all = append(all, filter.NameCount{Name: name, Count: n})
	}
	slices.SortFunc(all, func(a, b filter.NameCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return all
}
