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

// lastHour is how many minutes of a queue are shown.
const lastHour = 60

// firstMinute returns the oldest of the minutes that are shown, in minutes since 1970.
func firstMinute(now time.Time) int64 { return db.Micros(now)/db.MicrosPerMinute - lastHour + 1 }

// Series returns the counters of a queue and a type for each step of a scale that ends now, the
// oldest first. "" stands for all queues or all types, and a type can be a prefix such as
// "email.*". A type without counters of its own has an empty series (see names.go). Series
// gives up with context.DeadlineExceeded after db.Patience.
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

// Known returns what is known about the number of jobs that a filter selects without counting
// rows. complete reports whether that includes the total. It includes the counts by status if
// the filter has no conditions but a status, a queue and a source.
func (p *Projection) Known(ctx context.Context, f filter.Filter) (t filter.Tally, complete bool, err error) {
	t.Facets, err = p.Facets(ctx, f)
	if err != nil {
		return t, false, err
	}

	// Each case has a few fields of the filter. It equals the filter if all the others are empty.
	// The order of a list does not matter here.
	f.Sort = ""
	switch f {
	case filter.Filter{Status: f.Status, Queue: f.Queue, Source: f.Source}:
		states, err := p.States(ctx, f)
		if err != nil {
			return t, false, err
		}

		t.Whole, t.States = true, states
		t.Total = t.States[f.Status]

		// To count all jobs, add up the states. Other statuses count jobs of a state a second time.
		if f.Status == "" {
			t.Total = stats.Depths(t.States).Jobs()
		}

		return t, true, nil
	case filter.Filter{Status: job.StatusDeadLetter, Queue: f.Queue, Source: f.Source, Type: f.Type, Reason: f.Reason}:
		t.Whole = true

		// The facet of reasons counts what matches the queue and the type of the filter. Its reason
		// is still to be chosen.
		for _, r := range t.Facets.Reasons {
			if f.Reason == "" || f.Reason == r.Reason {
				t.Total += r.Count
			}
		}

		return t, true, nil
	}

	return t, false, nil
}
