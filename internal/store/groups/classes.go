package groups

import (
	"context"
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
	const count = `SELECT count(DISTINCT g.class), count(*) FROM groups AS g`
	const sums = `SELECT g.class, count(*), count(DISTINCT g.type), sum(g.dead), sum(g.refused), sum(g.retrying), max(g.last_seen)
		FROM groups AS g`

	where := selected(f)

	_, err = db.Row(src, count+where.String(), []any{&all.Total, &all.Groups}, where.Args...)
	if err != nil {
		return all, err
	}

	last, args := where.Limit(limit)
	query := sums + where.String() + " GROUP BY g.class ORDER BY sum(g.dead) DESC, max(g.last_seen) DESC, g.class" + last
	all.Listed, err = db.All(src, query, func(c *failures.Class) []any {
		return []any{&c.Name, &c.Groups, &c.Types, &c.Dead, &c.Refused, &c.Retrying, db.Time(&c.LastSeen)}
	}, args...)

	return all, err
}

// addSpread adds to each listed class the number of its queues, and the number of its failures
// in the last day.
func addSpread(src db.Source, now time.Time, f failures.Filter, listed []failures.Class) error {
	const queues = `SELECT g.class, count(DISTINCT q.queue) FROM groups AS g JOIN group_queues AS q ON q.group_id = g.id`
	const hours = `SELECT g.class, sum(h.failures) FROM groups AS g JOIN group_hours AS h ON h.group_id = g.id`

	where := selected(f)

	names := make([]string, len(listed))
	for i, c := range listed {
		names[i] = c.Name
	}

	// Both queries look at the groups of the filter that are of a listed class; the second one
	// looks at the last day only.
	where.Add("g.class IN (SELECT value FROM json_each(%s))", db.Texts(names))

	inQueues, err := db.Map[string, int64](src, queues+where.String()+" GROUP BY g.class", where.Args...)
	if err != nil {
		return err
	}

	where.Add("h.hour >= %s", firstHour(now))

	inDay, err := db.Map[string, int64](src, hours+where.String()+" GROUP BY g.class", where.Args...)
	if err != nil {
		return err
	}

	for i := range listed {
		c := &listed[i]
		c.Queues, c.Day = inQueues[c.Name], inDay[c.Name]
	}

	return nil
}
