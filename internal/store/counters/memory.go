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

// Pages read counts through two small interfaces, ListCounts and QueueCounts. The counts are as
// of the last commit. With a single writer, they come from memory. A database to which several
// processes write would have to be queried instead, which takes time and can fail: hence the
// contexts and the errors.

// ListCounts are the counts that are shown beside a list of jobs. See memory for what each
// method returns.
type ListCounts interface {
	Reasons(ctx context.Context) ([]filter.ReasonCount, error)
	Facets(ctx context.Context, f filter.Filter) (filter.Facets, error)
	States(ctx context.Context, f filter.Filter) (stats.Depths, error)
	NoDeadLetters(ctx context.Context, f filter.Filter) (bool, error)
}

// QueueCounts are the counts of queues. See memory for what each method returns.
type QueueCounts interface {
	LastHour(ctx context.Context, now time.Time) ([]stats.Totals, error)
	Fullest(ctx context.Context, n int, orders ...[]job.Status) ([]string, error)
	DepthsByLabel(ctx context.Context) (map[string]stats.Depths, error)

	// DeadLetters counts the open dead letters. Recent are those of jobs that failed in the hour
	// since or later; the hour is in hours since 1970.
	DeadLetters(ctx context.Context, since int64) (OpenDeadLetters, error)
}

// OpenDeadLetters counts open dead letters.
type OpenDeadLetters struct {
	Own       int64 // those that do not belong to a source
	AtSources int64 // those of sources
	Recent    int64 // those of Own whose jobs failed in the last hours
}

// memory has the counts of a database to which only this process writes. The writer updates
// them after each commit, and pages read them at the same time.
type memory struct {
	label func(queue string) string // returns the label of a queue in metrics

	mu          sync.RWMutex
	depths      map[depthKey]int64
	deadLetters map[deadLetterKey]int64
	opened      map[int64]int64        // our own open dead letters, by the hour (since 1970) in which their jobs failed
	recent      map[int64]stats.Totals // the totals of each minute (since 1970) in the last hour
}

func newMemory(label func(string) string) *memory {
	return &memory{
		label: label, depths: map[depthKey]int64{}, deadLetters: map[deadLetterKey]int64{},
		opened: map[int64]int64{}, recent: map[int64]stats.Totals{},
	}
}

// LastHour returns the totals over all queues of each of the last sixty minutes, the oldest
// first. The last one is the minute of now.
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

// maxFacets is how many queues are counted for a list of jobs.
const maxFacets = 1000

// Facets counts the values to which a list can be narrowed. For a list of open dead letters,
// these are its reasons, queues and types. For other lists, these are the queues: at most
// maxFacets of them, those with the most jobs, but always the queue of the filter.
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
		// Each facet counts what matches the rest of the filter, apart from its own part: so it
		// shows what a user would get by choosing another of its values.
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

// States counts by status the jobs of the queues that a filter selects. The rest of the filter is
// ignored.
func (m *memory) States(_ context.Context, f filter.Filter) (stats.Depths, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()

	all := stats.Depths{}
	for k, n := range m.depths {
		if f.MatchesQueue(k.queue) {
			all[k.status] += n
		}
	}

	return all, nil
}

// NoDeadLetters reports whether it is certain that no open dead letter has the queue, the type
// and the reason of a filter. It is not certain if names are counted together as "other".
func (m *memory) NoDeadLetters(_ context.Context, f filter.Filter) (bool, error) {
	none := true
	m.eachDeadLetter(func(k deadLetterKey, _ int64) {
		// A dead letter that is counted as "other" can have any name, including that of the filter.
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
	for k, n := range m.depths {
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

// sourceDeadLetters returns how many open dead letters belong to sources. The caller holds the
// mutex, or is the writer.
func (m *memory) sourceDeadLetters() (n int64) {
	for k, d := range m.depths {
		if k.status == job.StatusDeadLetter && job.SourceOf(k.queue) != "" {
			n += d
		}
	}

	return n
}

// eachDeadLetter calls a function for each count of open dead letters. None of them is zero.
func (m *memory) eachDeadLetter(each func(deadLetterKey, int64)) {
	m.mu.RLock()
	defer m.mu.RUnlock()

	for k, n := range m.deadLetters {
		each(k, n)
	}
}

// eachQueue calls a function with the number of jobs of each queue that have a status, or with
// the number of all its jobs for "". In the latter case it calls it once for each state.
func (m *memory) eachQueue(status job.Status, each func(queue string, n int64)) {
	m.mu.RLock()
	defer m.mu.RUnlock()

	for k, n := range m.depths {
		// To count all jobs, add up the states. Other statuses, such as held, are part of a state,
		// and count its jobs a second time.
		if n > 0 && (k.status == status || status == "" && slices.Contains(job.States(), job.State(k.status))) {
			each(k.queue, n)
		}
	}
}

// Fullest returns the names of the n queues with the most jobs, the fullest first. Queues are
// compared by how many jobs have one of the statuses in orders[0], those with equally many by
// orders[1], and so on. Queues without any such job are left out.
func (m *memory) Fullest(_ context.Context, n int, orders ...[]job.Status) ([]string, error) {
	// For each queue, how many jobs it has by each of the orders.
	counts := map[string][]int64{}

	m.mu.RLock()

	for k, count := range m.depths {
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

// DepthsByLabel counts the jobs by status for each label of a queue in metrics. The queues that
// have no label of their own are added up as "other".
func (m *memory) DepthsByLabel(context.Context) (map[string]stats.Depths, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()

	all := map[string]stats.Depths{}
	for k, n := range m.depths {
		label := m.label(k.queue)
		if all[label] == nil {
			all[label] = stats.Depths{}
		}

		all[label][k.status] += n
	}

	return all, nil
}
