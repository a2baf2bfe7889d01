package counters

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retry"
	"redrive/internal/stats"
	"redrive/internal/store/clause"
	"redrive/internal/store/db"
)

// lastHour is the number of minutes that pages draw.
const lastHour = 60

// LastHour returns the counters of the sixty minutes that end with the one of
// now, the oldest first, over all queues, from memory.
func (p *Projection) LastHour(_ context.Context, now time.Time) ([]stats.Totals, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()

	all, first := make([]stats.Totals, lastHour), firstMinute(now)
	for i := range all {
		all[i] = p.recent[first+int64(i)]
	}

	return all, nil
}

// firstMinute is the oldest of the minutes that are shown.
func firstMinute(now time.Time) int64 { return db.Micros(now)/db.MicrosPerMinute - lastHour + 1 }

// Series returns the counters of a queue and a type over a span of time that
// ends now, the oldest first. An empty name means all of them; a type can be a
// prefix such as "email.*". Past the first thousand types the rest has no series
// of its own. It gives up, with context.DeadlineExceeded, when that takes too
// long.
func (p *Projection) Series(ctx context.Context, now time.Time, queue, typ string, scale queues.Scale) ([]stats.Totals, error) {
	first, step := db.Micros(scale.First(now))/db.MicrosPerMinute, int64(scale.Step/time.Minute)
	var where clause.Where
	where.Add("minute BETWEEN %s AND %s", first, db.Micros(now)/db.MicrosPerMinute)
	where.Equal("queue", queue)
	where.Pattern("type", typ)
	query := fmt.Sprintf(`SELECT (minute - CAST($1 AS BIGINT)) / %d AS step, sum(succeeded), sum(failed), sum(requeued),
			sum(failed_permanently), sum(dlq_failed), sum(replayed) FROM minutes`, step) + where.String() + ` GROUP BY step`

	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()

	all := make([]stats.Totals, scale.Steps)
	err := p.reader.In(ctx).Query(query, func(rows *sql.Rows) error {
		var i int
		var t stats.Totals
		err := rows.Scan(totalFields(&t, &i)...)
		all[i] = t

		return err
	}, where.Args...)

	return all, db.TimedOut(ctx, err)
}

// Reasons counts the open dead letters by reason, the most frequent first, from
// memory.
func (p *Projection) Reasons(context.Context) ([]filter.ReasonCount, error) {
	counts := map[retry.Reason]int64{}
	p.eachDeadLetter(func(k deadLetterKey, n int64) { counts[k.reason] += n })
	return filter.ReasonCounts(counts), nil
}

// maxFacets is how many queues are counted for a list.
const maxFacets = 1000

// Facets counts what a list can be narrowed to, from memory: open dead letters
// by reason, queue and type, jobs of another state by queue. Of the queues it
// counts the thousand with the most, and the one of the filter.
func (p *Projection) Facets(_ context.Context, f filter.Filter) (filter.Facets, error) {
	queues := map[string]int64{}
	if f.Status != job.StatusDeadLetter {
		p.eachQueue(f.Status, func(queue string, n int64) {
			if f.Source == "" || f.Source == job.SourceOf(queue) {
				queues[queue] += n
			}
		})

		all := filter.NameCounts(queues)
		top := all[:min(len(all), maxFacets)]
		if n := queues[f.Queue]; n > 0 && !slices.ContainsFunc(top, func(c filter.NameCount) bool { return c.Name == f.Queue }) {
			top = append(top[:len(top)-1], filter.NameCount{Name: f.Queue, Count: n})
		}

		return filter.Facets{Queues: top}, nil
	}

	reasons, types := map[retry.Reason]int64{}, map[string]int64{}
	p.eachDeadLetter(func(k deadLetterKey, n int64) {
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

// Known is the tally of a filter as far as it can be told from memory. complete
// reports whether it has a total; it has states when the filter says nothing beside
// its status and a queue.
func (p *Projection) Known(ctx context.Context, f filter.Filter) (t filter.Tally, complete bool, err error) {
	if t.Facets, err = p.Facets(ctx, f); err != nil {
		return t, false, err
	}

	f.Sort = ""
	switch f {
	case filter.Filter{Status: f.Status, Queue: f.Queue, Source: f.Source}:
		t.Whole, t.States = true, p.states(f)
		t.Total = t.States[f.Status]
		if f.Status == "" {
			t.Total = stats.Depths(t.States).Jobs()
		}

		return t, true, nil
	case filter.Filter{Status: job.StatusDeadLetter, Queue: f.Queue, Source: f.Source, Type: f.Type, Reason: f.Reason}:
		t.Whole = true
		for _, r := range t.Facets.Reasons {
			if f.Reason == "" || f.Reason == r.Reason {
				t.Total += r.Count
			}
		}

		return t, true, nil
	}

	return t, false, nil
}

// states counts the jobs of a filter's queues by status.
func (p *Projection) states(f filter.Filter) stats.Depths {
	p.mu.RLock()
	defer p.mu.RUnlock()

	all := stats.Depths{}
	for k, n := range p.queued {
		if f.MatchesQueue(k.queue) {
			all[k.status] += n
		}
	}

	return all
}

// NoDeadLetters reports whether no open dead letter has the filter's queue, type and
// reason, as far as the counts tell names apart.
func (p *Projection) NoDeadLetters(f filter.Filter) bool {
	none := true
	p.eachDeadLetter(func(k deadLetterKey, _ int64) {
		queue := f.MatchesQueue(k.queue) || k.queue == otherLabel
		typ := f.MatchesType(k.typ) || k.typ == otherLabel
		if queue && typ && (f.Reason == "" || f.Reason == k.reason) {
			none = false
		}
	})

	return none
}

// OpenedSince counts our own open dead letters whose jobs failed in an hour (since 1970)
// or later.
func (p *Projection) OpenedSince(first int64) (n int64) {
	p.mu.RLock()
	defer p.mu.RUnlock()

	for hour, opened := range p.opened {
		if hour >= first {
			n += opened
		}
	}

	return n
}

// eachDeadLetter calls each with every count of open dead letters that is not zero.
func (p *Projection) eachDeadLetter(each func(deadLetterKey, int64)) {
	p.mu.RLock()
	defer p.mu.RUnlock()

	for k, n := range p.deadLetters {
		each(k, n)
	}
}

// eachQueue counts the jobs of each queue that have a status, or all of them.
func (p *Projection) eachQueue(status job.Status, each func(queue string, n int64)) {
	p.mu.RLock()
	defer p.mu.RUnlock()

	for k, n := range p.queued {
		if n > 0 && (k.status == status || status == "" && slices.Contains(job.States(), job.State(k.status))) {
			each(k.queue, n)
		}
	}
}
