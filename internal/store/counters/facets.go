package counters

import (
	"cmp"
	"context"
	"slices"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
)

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
