package counters

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/stats"
)

// What pages ask, as of the last commit, stands behind two small interfaces. A database with a
// single writer is known from memory; one that several processes write to has to be asked, which
// takes time and can fail.

// ListCounts tells of what there is more to list.
type ListCounts interface {
	Reasons(ctx context.Context) ([]filter.ReasonCount, error)
	Facets(ctx context.Context, f filter.Filter) (filter.Facets, error)
	States(ctx context.Context, f filter.Filter) (stats.Depths, error)
	NoDeadLetters(ctx context.Context, f filter.Filter) (bool, error)
}

// QueueCounts tells how queues fare.
type QueueCounts interface {
	LastHour(ctx context.Context, now time.Time) ([]stats.Totals, error)
	Fullest(ctx context.Context, n int, orders ...[]job.Status) ([]string, error)
	DepthsByLabel(ctx context.Context) (map[string]stats.Depths, error)

	// DeadLetters counts the open ones; recent are those whose jobs failed in an hour (since
	// 1970) or later.
	DeadLetters(ctx context.Context, since int64) (OpenDeadLetters, error)
}

// OpenDeadLetters counts open dead letters.
type OpenDeadLetters struct {
	Own       int64 // that are at no source
	AtSources int64
	Recent    int64 // of our own: those whose jobs failed lately
}

// memory keeps the counts of one process, which is the only one that writes. The writer adds
// to them after each commit, and pages read them beside it.
type memory struct {
	label func(queue string) string // under which metrics count a queue

	mu          sync.RWMutex
	queued      map[depthKey]int64
	deadLetters map[deadLetterKey]int64
	opened      map[int64]int64        // our own open dead letters by the hour in which their jobs failed
	recent      map[int64]stats.Totals // of the last hour, by the minute
}

func newMemory(label func(string) string) *memory {
	return &memory{
		label: label, queued: map[depthKey]int64{}, deadLetters: map[deadLetterKey]int64{},
		opened: map[int64]int64{}, recent: map[int64]stats.Totals{},
	}
}

// LastHour returns the counters of the sixty minutes that end with the one of
// now, the oldest first, over all queues.
func (m *memory) LastHour(_ context.Context, now time.Time) ([]stats.Totals, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()

	all, first := make([]stats.Totals, lastHour), firstMinute(now)
	for i := range all {
		all[i] = m.recent[first+int64(i)]
	}

	return all, nil
}

// Reasons counts the open dead letters by reason, the most frequent first.
func (m *memory) Reasons(context.Context) ([]filter.ReasonCount, error) {
	counts := map[retry.Reason]int64{}
	m.eachDeadLetter(func(k deadLetterKey, n int64) { counts[k.reason] += n })
	return filter.ReasonCounts(counts), nil
}

// maxFacets is how many queues are counted for a list.
const maxFacets = 1000

// Facets counts what a list can be narrowed to: open dead letters
// by reason, queue and type, jobs of another state by queue. Of the queues it
// counts the thousand with the most, and the one of the filter.
func (m *memory) Facets(_ context.Context, f filter.Filter) (filter.Facets, error) {
	queues := map[string]int64{}
	if f.Status != job.StatusDeadLetter {
		m.eachQueue(f.Status, func(queue string, n int64) {
			if f.Source == "" || f.Source == job.SourceOf(queue) {
				queues[queue] += n
			}
		})

		// The queue of the filter takes the last place when others fill the list.
		all := filter.NameCounts(queues)
		top := all[:min(len(all), maxFacets)]
		if n := queues[f.Queue]; n > 0 && !slices.ContainsFunc(top, func(c filter.NameCount) bool { return c.Name == f.Queue }) {
			top = append(top[:len(top)-1], filter.NameCount{Name: f.Queue, Count: n})
		}

		return filter.Facets{Queues: top}, nil
	}

	reasons, types := map[retry.Reason]int64{}, map[string]int64{}
	m.eachDeadLetter(func(k deadLetterKey, n int64) {
		// Each facet is counted under what the filter says of the other two, so that its own
		// part of the filter can be changed for another value.
		queue, typ := f.MatchesQueue(k.queue), f.MatchesType(k.typ)
		reason := f.Reason == "" || f.Reason == k.reason
		if queue && typ {
			reasons[k.reason] += n
		}

		if typ && reason && (f.Source == "" || f.Source == job.SourceOf(k.queue)) {
			queues[k.queue] += n
		}

		if queue && reason {
			types[k.typ] += n
		}
	})

	return filter.Facets{Reasons: filter.ReasonCounts(reasons), Queues: filter.NameCounts(queues), Types: filter.NameCounts(types)}, nil
}

// States counts the jobs of a filter's queues by status.
func (m *memory) States(_ context.Context, f filter.Filter) (stats.Depths, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()

	all := stats.Depths{}
	for k, n := range m.queued {
		if f.MatchesQueue(k.queue) {
			all[k.status] += n
		}
	}

	return all, nil
}

// NoDeadLetters reports whether no open dead letter has the filter's queue, type and
// reason, as far as the counts tell names apart.
func (m *memory) NoDeadLetters(_ context.Context, f filter.Filter) (bool, error) {
	none := true
	m.eachDeadLetter(func(k deadLetterKey, _ int64) {
		// What is counted under "other" may have any name, also the one of the filter.
		queue := f.MatchesQueue(k.queue) || k.queue == otherLabel
		typ := f.MatchesType(k.typ) || k.typ == otherLabel
		if queue && typ && (f.Reason == "" || f.Reason == k.reason) {
			none = false
		}
	})

	return none, nil
}

// DeadLetters implements QueueCounts.
func (m *memory) DeadLetters(_ context.Context, since int64) (d OpenDeadLetters, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()

	d.AtSources = m.sourceDeadLetters()
	for k, n := range m.queued {
		if k.status == job.StatusDeadLetter {
			d.Own += n
		}
	}

	d.Own -= d.AtSources

	for hour, n := range m.opened {
		if hour >= since {
			d.Recent += n
		}
	}

	return d, nil
}

// sourceDeadLetters is the number of open dead letters that are at sources.
func (m *memory) sourceDeadLetters() (n int64) {
	for k, d := range m.queued {
		if k.status == job.StatusDeadLetter && job.SourceOf(k.queue) != "" {
			n += d
		}
	}

	return n
}

// eachDeadLetter calls each with every count of open dead letters that is not zero.
func (m *memory) eachDeadLetter(each func(deadLetterKey, int64)) {
	m.mu.RLock()
	defer m.mu.RUnlock()

	for k, n := range m.deadLetters {
		each(k, n)
	}
}

// eachQueue counts the jobs of each queue that have a status, or all of them.
func (m *memory) eachQueue(status job.Status, each func(queue string, n int64)) {
	m.mu.RLock()
	defer m.mu.RUnlock()

	for k, n := range m.queued {
		// All jobs are those of all states: other statuses, such as held, count jobs of a state
		// once more.
		if n > 0 && (k.status == status || status == "" && slices.Contains(job.States(), job.State(k.status))) {
			each(k.queue, n)
		}
	}
}

// Fullest names the n queues with the most jobs: of the first
// statuses, among equals of the next ones. Queues without any are left out.
func (m *memory) Fullest(_ context.Context, n int, orders ...[]job.Status) ([]string, error) {
	// For each queue, the number of jobs by each of the orders: the first one decides unless it
	// is equal.
	counts := map[string][]int64{}

	m.mu.RLock()

	for k, count := range m.queued {
		for i, statuses := range orders {
			if count > 0 && slices.Contains(statuses, k.status) {
				if counts[k.queue] == nil {
					counts[k.queue] = make([]int64, len(orders))
				}

				counts[k.queue][i] += count
			}
		}
	}

	m.mu.RUnlock()

	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(slices.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})

	return names[:min(len(names), n)], nil
}

// DepthsByLabel counts the jobs by what metrics call their queues.
func (m *memory) DepthsByLabel(context.Context) (map[string]stats.Depths, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()

	all := map[string]stats.Depths{}
	for k, n := range m.queued {
		label := m.label(k.queue)
		if all[label] == nil {
			all[label] = stats.Depths{}
		}

		all[label][k.status] += n
	}

	return all, nil
}
