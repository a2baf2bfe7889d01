package groups

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/failures"
	"redrive/internal/store/db"
)

// RollUp sums up the groups that a filter selects by error class, and lists at most limit
// classes, those with the most dead jobs first. It ignores the text of the filter. It gives up
// with context.DeadlineExceeded after db.Patience.
func (p *Projection) RollUp(ctx context.Context, now time.Time, f failures.Filter, limit int) (all failures.Classes, err error) {
	if p.hidden(f.Class) {
		return failures.Classes{}, nil
	}

	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()

	err = p.reader.Consistently(ctx, func(src db.Source) (err error) {
		all, err = classes(src, f, limit)
		if err != nil || len(all.Listed) == 0 {
			return err
		}

		return addSpread(src, now, f, all.Listed)
	})

	return all, db.TimedOut(ctx, err)
}

// classes counts all classes that the filter selects, and sums up those with the most dead jobs.
func classes(src db.Source, f failures.Filter, limit int) (all failures.Classes, err error) {
	const types = `SELECT g.class, count(*) AS groups, sum(g.dead) AS dead, sum(g.refused) AS refused, sum(g.retrying) AS retrying,
		max(g.last_seen) AS seen FROM groups AS g`
	const sums = `SELECT class, sum(groups), count(*), sum(dead), sum(refused), sum(retrying), max(seen),
		count(*) OVER (), sum(sum(groups)) OVER () FROM (`

	// The groups are read once, and summed up by class and type first.
	where := selected(f)
	last, args := where.Limit(limit)
	query := sums + types + where.String() + " GROUP BY g.class, g.type) AS types" +
		" GROUP BY class ORDER BY sum(dead) DESC, max(seen) DESC, class" + last
	all.Listed, err = db.All(src, query, func(c *failures.Class) []any {
		return []any{&c.Name, &c.Groups, &c.Types, &c.Dead, &c.Refused, &c.Retrying, db.Time(&c.LastSeen), &all.Total, &all.Groups}
	}, args...)

	return all, err
}

// addSpread adds to each listed class the number of its queues, and the number of its failures
// in the last day.
func addSpread(src db.Source, now time.Time, f failures.Filter, listed []failures.Class) error {
	const queues = `SELECT g.class, count(DISTINCT q.queue) FROM groups AS g JOIN group_queues AS q ON q.group_id = g.id`
	const hours = `SELECT g.class, sum((SELECT coalesce(sum(failures), 0) FROM group_hours WHERE group_id = g.id AND hour >= $%d))
		FROM groups AS g`

	where := selected(f)

	names := make([]string, len(listed))
	for i, c := range listed {
		names[i] = c.Name
	}

	// Both queries look at the groups of the filter that are of a listed class; the second one
	// looks only at those that failed in the last day.
	where.Add("g.class IN (SELECT value FROM json_each(%s))", db.Texts(names))

	inQueues, err := db.Map[string, int64](src, queues+where.String()+" GROUP BY g.class", where.Args...)
	if err != nil {
		return err
	}

	first := firstHour(now)
	where.Add("g.last_seen >= %s", first*db.MicrosPerHour)

	args := append(where.Args, first)
	query := fmt.Sprintf(hours, len(args)) + where.String() + " GROUP BY g.class"

	inDay, err := db.Map[string, int64](src, query, args...)
	if err != nil {
		return err
	}

	for i := range listed {
		c := &listed[i]
		c.Queues, c.Day = inQueues[c.Name], inDay[c.Name]
	}

	return nil
}
