package counters

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/stats"
	"redrive/internal/store/clause"
	"redrive/internal/store/db"
)

// lastHour is the number of minutes that pages draw.
const lastHour = 60

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

	// $1 is the first argument of where: the minute with which the first step begins.
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

// Known is the tally of a filter as far as it is counted in advance. complete
// reports whether it has a total; it has states when the filter says nothing beside
// its status and a queue.
func (p *Projection) Known(ctx context.Context, f filter.Filter) (t filter.Tally, complete bool, err error) {
	t.Facets, err = p.Facets(ctx, f)
	if err != nil {
		return t, false, err
	}

	// Each case is a copy of the filter with a few of its fields: the two are equal if the
	// filter says nothing else. Its order makes no difference to a count.
	f.Sort = ""
	switch f {
	case filter.Filter{Status: f.Status, Queue: f.Queue, Source: f.Source}:
		states, err := p.States(ctx, f)
		if err != nil {
			return t, false, err
		}

		t.Whole, t.States = true, states
		t.Total = t.States[f.Status]

		// All jobs are those of all states: other statuses count jobs of a state once more.
		if f.Status == "" {
			t.Total = stats.Depths(t.States).Jobs()
		}

		return t, true, nil
	case filter.Filter{Status: job.StatusDeadLetter, Queue: f.Queue, Source: f.Source, Type: f.Type, Reason: f.Reason}:
		t.Whole = true

		// The reasons are counted under the queue and the type of the filter, and not under its
		// reason.
		for _, r := range t.Facets.Reasons {
			if f.Reason == "" || f.Reason == r.Reason {
				t.Total += r.Count
			}
		}

		return t, true, nil
	}

	return t, false, nil
}
