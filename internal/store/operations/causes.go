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

// cause is why jobs of a scope had failed: an error group or, for jobs without one, their type.
type cause struct {
	group int64  // the number of the error group; 0: none
	typ   string // the type, if there is no group
}

// typeOfCause returns an SQL expression for the typ of a cause, in a query with the jobs as j.
// group is the expression for its group.
func typeOfCause(group string) string {
	return "CASE WHEN " + group + " <> 0 THEN '' ELSE coalesce(j.type, '') END"
}

// causes are the causes of some items of a scope.
type causes map[cause]causeSum

// causeSum is how many jobs have a cause, and the number of the first of their items.
type causeSum struct{ n, first int64 }

// add counts the job of the item with a number.
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

// write adds the causes to those of the operation. Items come in the order of their numbers, so
// a cause that is stored already keeps its first item.
func (c causes) write(t *db.Tx, id int64) error {
	rows := db.NewBatch(5, `INSERT INTO operation_causes (operation_id, cause, type, n, first) VALUES `,
		` ON CONFLICT (operation_id, cause, type) DO UPDATE SET n = operation_causes.n + excluded.n`)
	err := db.AddSums(t, rows, c, func(why cause, jobs causeSum) []any { return []any{id, why.group, why.typ, jobs.n, jobs.first} })
	return db.Wrap(err, "write the causes of operation %d", id)
}

// causeColumns describe a cause by its error group, g. causeFields returns the fields into which
// they are scanned.
const causeColumns = `g.fingerprint, g.class, g.type`

func causeFields(c *operation.Cause) []any { return []any{&c.Group, &c.Class, &c.Type} }

// causesOf returns the largest causes of a scope, the largest first.
func causesOf(src db.Source, id int64) ([]operation.CausePart, error) {
	const query = `SELECT coalesce(g.fingerprint, ''), coalesce(g.class, ''), coalesce(g.type, c.type), c.n
		FROM operation_causes AS c LEFT JOIN groups AS g ON g.id = c.cause
		WHERE c.operation_id = $1 ORDER BY c.n DESC, c.first LIMIT $2 + 0`
	all, err := db.All(src, query, func(p *operation.CausePart) []any { return append(causeFields(&p.Cause), &p.Count) },
		id, operation.ListedCauses)

	return all, db.Wrap(err, "read the causes of operation %d", id)
}

// sampled is how many items are searched for a sample of a cause, from its first item on.
const sampled = 1000

// bringForward chooses the canary of an operation: one job of each cause, the most frequent cause
// first, as far as the canary has room. A canary tells something only about the causes that are
// in it. A job that was replayed or discarded since the preview is not chosen.
//
// The chosen items change places with those that would have been first. All others keep their
// numbers.
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

	// Find an item of each cause, and as many items at the front.
	chosen, err := db.All(t, samples, number, o.ID, o.Pace.Canary, sampled)
	if err != nil {
		return fmt.Errorf("choose the canary of operation %d: %w", o.ID, err)
	}

	places, err := db.All(t, front, number, o.ID, len(chosen))
	if err != nil {
		return fmt.Errorf("make room for the canary of operation %d: %w", o.ID, err)
	}

	// Items that are chosen and at the front already stay where they are. Each of the others
	// changes places with an item at the front that is not chosen.
	coming := without(chosen, places)
	leaving := without(places, chosen)
	moves := make([][2]int64, 0, 2*len(coming))
	for i := range coming {
		moves = append(moves, [2]int64{coming[i], leaving[i]}, [2]int64{leaving[i], coming[i]})
	}

	return db.Wrap(move(t, o.ID, moves), "put the canary of operation %d first", o.ID)
}

// without returns the numbers that are not among the excluded ones, in ascending order.
func without(numbers, excluded []int64) []int64 {
	isExcluded := make(map[int64]bool, len(excluded))
	for _, n := range excluded {
		isExcluded[n] = true
	}

	rest := slices.DeleteFunc(slices.Clone(numbers), func(n int64) bool { return isExcluded[n] })
	slices.Sort(rest)

	return rest
}

// move renumbers items: each pair is an old and a new number. No two items may have the same
// number at any moment, so the new numbers are negative until all old ones are free.
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

// canaryItems is the FROM clause for the items of the canary of the operation $1, which has $2
// items: as canary, with their jobs as j and the error groups of their causes as g. Jobs and
// groups may have been removed.
const canaryItems = `(SELECT job_seq, cause, outcome FROM operation_items
	WHERE operation_id = $1 AND state = 'done' ORDER BY n LIMIT $2 + 0) AS canary
	LEFT JOIN jobs AS j ON j.seq = canary.job_seq LEFT JOIN groups AS g ON g.id = canary.cause`

// CanaryCauses returns, by cause, how the replayed runs of a canary ended. The cause with the most
// relapses comes first. It returns nothing until all jobs of the canary are enqueued.
func (p *Projection) CanaryCauses(ctx context.Context, o operation.Operation) ([]operation.CauseCanary, error) {
	if o.Kind != operation.Replay || o.CanaryAt.IsZero() {
		return nil, nil
	}
	return canaryCauses(p.reader.In(ctx), o)
}

// canaryCauses is CanaryCauses for an operation that has a canary.
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
