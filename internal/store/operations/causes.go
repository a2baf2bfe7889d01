package operations

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/db"
)

// cause is why jobs of a scope had failed, as the database has it: an error group, whatever the
// types of its jobs are, or the type of jobs that have none.
type cause struct {
	group int64  // groups.id, or 0
	typ   string // empty for a group
}

// typeOfCause is the type of the cause of a job, j, whose group is the value of a column.
func typeOfCause(group string) string {
	return "CASE WHEN " + group + " <> 0 THEN '' ELSE coalesce(j.type, '') END"
}

// causes are those of a part of a scope.
type causes map[cause]sum

// sum is the jobs of a cause, and the first of their items.
type sum struct{ n, first int64 }

// add counts the job of an item.
func (c causes) add(j *job.Job, item int64) {
	key := cause{group: j.Group}
	if j.Group == 0 {
		key.typ = j.Type
	}

	jobs, known := c[key]
	if !known {
		jobs.first = item
	}

	jobs.n++
	c[key] = jobs
}

// write adds them to those of the operation. Items are added in their order, so that the first
// one of a cause stays the first.
func (c causes) write(t *db.Tx, id int64) error {
	rows := db.NewBatch(5, `INSERT INTO operation_causes (operation_id, cause, type, n, first) VALUES `,
		` ON CONFLICT (operation_id, cause, type) DO UPDATE SET n = operation_causes.n + excluded.n`)
	err := db.AddSums(t, rows, c, func(why cause, jobs sum) []any { return []any{id, why.group, why.typ, jobs.n, jobs.first} })
	return db.Wrap(err, "write the causes of operation %d", id)
}

// named are the columns of a cause whose group is g, and causeFields where they go.
const named = `g.fingerprint, g.class, g.type`

func causeFields(c *operation.Cause) []any { return []any{&c.Group, &c.Class, &c.Type} }

// causesOf are the causes of a scope, the largest first.
func causesOf(src db.Source, id int64) ([]operation.CausePart, error) {
	const query = `SELECT coalesce(g.fingerprint, ''), coalesce(g.class, ''), coalesce(g.type, c.type), c.n
		FROM operation_causes AS c LEFT JOIN groups AS g ON g.id = c.cause
		WHERE c.operation_id = $1 ORDER BY c.n DESC, c.first LIMIT $2 + 0`
	all, err := db.All(src, query, func(p *operation.CausePart) []any { return append(causeFields(&p.Cause), &p.Count) },
		id, operation.ListedCauses)

	return all, db.Wrap(err, "read the causes of operation %d", id)
}

// sampled is how many items, from the first one of a cause on, are looked at for one whose job
// is still as it was when the scope was collected.
const sampled = 1000

// bringForward lets an operation that starts begin with a job of each cause, the most frequent
// cause first, as far as its canary has room: a canary says something about the causes that
// are in it, and nothing about others. A job that was replayed or discarded since the preview
// is no sample. The items change places with those that would have been first; all others stay
// where they are, the oldest first.
func (p *Projection) bringForward(t *db.Tx, o operation.Operation) error {
	samples := `SELECT coalesce((SELECT i.n FROM operation_items AS i JOIN jobs AS j ON j.seq = i.job_seq
			WHERE i.operation_id = c.operation_id AND i.n >= c.first AND i.n < c.first + $3 AND i.state = 'pending'
				AND i.cause = c.cause AND c.type = ` + typeOfCause("i.cause") + ` AND j.run = i.run AND j.letter <> 'trashed'
			ORDER BY i.n LIMIT 1), c.first)
		FROM operation_causes AS c WHERE c.operation_id = $1 ORDER BY c.n DESC, c.first LIMIT $2 + 0`
	const front = `SELECT n FROM operation_items WHERE operation_id = $1 AND state = 'pending' ORDER BY n LIMIT $2 + 0`

	if o.Pace.Canary <= 0 {
		return nil
	}

	number := func(n *int64) []any { return []any{n} }

	// A job of each cause, and the places that these are to have.
	chosen, err := db.All(t, samples, number, o.ID, o.Pace.Canary, sampled)
	if err != nil {
		return fmt.Errorf("choose the canary of operation %d: %w", o.ID, err)
	}

	places, err := db.All(t, front, number, o.ID, len(chosen))
	if err != nil {
		return fmt.Errorf("make room for the canary of operation %d: %w", o.ID, err)
	}

	// What is chosen and at the front already stays there.
	coming := without(chosen, places)

	leaving := without(places, chosen)
	// Each that comes changes places with one that leaves.
	moves := make([][2]int64, 0, 2*len(coming))
	for i := range coming {
		moves = append(moves, [2]int64{coming[i], leaving[i]}, [2]int64{leaving[i], coming[i]})
	}

	return db.Wrap(move(t, o.ID, moves), "put the canary of operation %d first", o.ID)
}

// without are the numbers that are not among the others, ascending.
func without(all, others []int64) []int64 {
	there := make(map[int64]bool, len(others))
	for _, n := range others {
		there[n] = true
	}

	left := slices.DeleteFunc(slices.Clone(all), func(n int64) bool { return there[n] })
	slices.Sort(left)

	return left
}

// move gives items other numbers. No two items may have the same one at any moment, so that
// the new ones are negative until all old ones are free.
func move(t *db.Tx, id int64, moves [][2]int64) error {
	const away = `UPDATE operation_items SET n = -CAST(e.value ->> 1 AS BIGINT) FROM json_each($2) AS e
		WHERE operation_items.operation_id = $1 AND operation_items.n = CAST(e.value ->> 0 AS BIGINT)`
	const back = `UPDATE operation_items SET n = -n WHERE operation_id = $1 AND n < 0`

	if len(moves) == 0 {
		return nil
	}

	if err := t.ExecExactly(len(moves), away, id, db.Rows(moves)); err != nil {
		return err
	}

	return t.ExecExactly(len(moves), back, id)
}

// canaryItems are the items of a canary, canary, with their jobs, j, and the groups of their
// causes, g, both as far as there still are any.
const canaryItems = `(SELECT job_seq, cause, outcome FROM operation_items
	WHERE operation_id = $1 AND state = 'done' ORDER BY n LIMIT $2 + 0) AS canary
	LEFT JOIN jobs AS j ON j.seq = canary.job_seq LEFT JOIN groups AS g ON g.id = canary.cause`

// CanaryCauses tells by cause what became of the canary of an operation, the causes with most
// failures first. It is empty as long as the canary is not enqueued.
func (p *Projection) CanaryCauses(ctx context.Context, o operation.Operation) ([]operation.CauseCanary, error) {
	if o.Kind != operation.Replay || o.CanaryAt.IsZero() {
		return nil, nil
	}
	return canaryCauses(p.reader.In(ctx), o)
}

// canaryCauses tells by cause what became of a canary, the causes with most failures first.
func canaryCauses(src db.Source, o operation.Operation) ([]operation.CauseCanary, error) {
	const query = `SELECT coalesce(g.fingerprint, ''), coalesce(g.class, ''), coalesce(g.type, j.type, ''), count(*),
			count(*) FILTER (WHERE outcome = 'succeeded'), count(*) FILTER (WHERE outcome = 'relapsed'),
			count(*) FILTER (WHERE outcome = 'dropped'), count(*) FILTER (WHERE outcome = 'unknown')
		FROM ` + canaryItems + ` GROUP BY canary.cause, 1, 2, 3`
	all, err := db.All(src, query, func(c *operation.CauseCanary) []any {
		return append(causeFields(&c.Cause), &c.Done, &c.Succeeded, &c.Relapsed, &c.Dropped, &c.Unknown)
	}, o.ID, o.Pace.Canary)

	slices.SortFunc(all, func(a, b operation.CauseCanary) int {
		return cmp.Or(cmp.Compare(b.Relapsed, a.Relapsed), cmp.Compare(b.Done, a.Done),
			cmp.Compare(a.Class, b.Class), cmp.Compare(a.Type, b.Type))
	})

	return all, db.Wrap(err, "read the causes in the canary of operation %d", o.ID)
}
