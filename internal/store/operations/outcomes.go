package operations

import (
	"fmt"
	"maps"
	"slices"

	"redrive/internal/operation"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// undropQuery takes the outcome "dropped" from the items of replayed runs, which $1 has as pairs of
// a job's number and a run. It returns a row for each such item.
const undropQuery = `UPDATE operation_items SET outcome = '', ended_at = 0
	FROM (SELECT CAST(value ->> 0 AS BIGINT) AS seq, CAST(value ->> 1 AS BIGINT) AS run FROM json_each($1)) AS e
	JOIN replays AS r ON r.job_seq = e.seq AND r.run = e.run - 1 AND r.operation_id <> 0
	WHERE operation_items.job_seq = e.seq AND operation_items.run = r.run AND operation_items.operation_id = r.operation_id
		AND operation_items.outcome = 'dropped'
	RETURNING operation_items.operation_id, 'dropped'`

// RunsEnded writes the outcomes of replayed runs to the items of the operations that replayed
// them, and adds them to the counts of these operations.
func (p *Projection) RunsEnded(t *db.Tx, runs []projection.EndedRun) error {
	// Reading the items and then writing them takes half the time of a single UPDATE ... RETURNING
	// with the runs as JSON.
	const unsettled = `SELECT i.operation_id, i.n, i.job_seq, i.run + 1, i.outcome FROM json_each($1) AS e
		JOIN operation_items AS i ON i.job_seq = e.value WHERE i.state = 'done' AND i.outcome IN ('', 'unknown')`
	update := db.NewBatch(5, `UPDATE operation_items SET outcome = e.column3, ended_at = e.column4, same = e.column5 FROM (VALUES `,
		`) AS e WHERE operation_items.operation_id = e.column1 AND operation_items.n = e.column2`)
	type jobRun struct {
		seq int64
		run int
	}

	// Take the runs that an operation started, in the order of their jobs, so that each page of
	// the table is read once.
	ended, seqs := make(map[jobRun]projection.EndedRun, len(runs)), make([]int64, 0, len(runs))
	for _, r := range runs {
		if r.Operation != 0 {
			ended[jobRun{r.Seq, r.Run}] = r
			seqs = append(seqs, r.Seq)
		}
	}

	if len(seqs) == 0 {
		return nil
	}

	slices.Sort(seqs)
	type item struct {
		operation, n int64
		jobRun
		outcome operation.RunOutcome
	}

	items, err := db.All(t, unsettled, func(it *item) []any { return []any{&it.operation, &it.n, &it.seq, &it.run, &it.outcome} },
		db.Numbers(slices.Compact(seqs)))
	if err != nil {
		return fmt.Errorf("read which items have ended: %w", err)
	}

	// Write the outcome of each item, and count it for its operation.
	counts := meters{}
	for _, it := range items {
		r := ended[it.jobRun]
		if it.operation != r.Operation {
			continue
		}

		// A run whose outcome was unknown gets another one only if its source has told how it ended.
		if it.outcome == operation.RunUnknown {
			if r.Outcome != operation.RunSucceeded && r.Outcome != operation.RunRelapsed {
				continue
			}

			counts.add(it.operation, operation.RunUnknown, -1)
		}

		// A run whose outcome is unknown may not have ended. The guard ignores items without a time.
		if r.Outcome == operation.RunUnknown {
			r.At = 0
		}

		// Did it fail with the same error as before?
		same := r.Outcome == operation.RunRelapsed && r.Group == r.Origin
		if err := update.Add(t, it.operation, it.n, string(r.Outcome), r.At, same); err != nil {
			return fmt.Errorf("write the outcomes of replayed runs: %w", err)
		}

		counts.add(it.operation, r.Outcome, 1)
	}

	return db.Steps(t, update.Flush, counts.write)
}

// RunsResumed takes back that runs were dropped: from the items of the operations that replayed
// them, and from the counts of these operations.
func (p *Projection) RunsResumed(t *db.Tx, runs string) error {
	type dropped struct {
		operation int64
		outcome   operation.RunOutcome
	}

	all, err := db.All(t, undropQuery, func(d *dropped) []any { return []any{&d.operation, &d.outcome} }, runs)
	if err != nil {
		return fmt.Errorf("take back the outcomes of dropped runs: %w", err)
	}

	counts := meters{}
	for _, d := range all {
		counts.add(d.operation, d.outcome, -1)
	}

	return counts.write(t)
}

// meters is by how much the counts of operations change: for each operation, how many of its
// replayed runs ended in each way.
type meters map[int64]map[operation.RunOutcome]int64

func (m meters) add(id int64, outcome operation.RunOutcome, n int64) {
	if m[id] == nil {
		m[id] = map[operation.RunOutcome]int64{}
	}

	m[id][outcome] += n
}

// write adds the changes to the rows of the operations.
func (m meters) write(t *db.Tx) error {
	const update = `UPDATE operations SET succeeded = succeeded + $2, relapsed = relapsed + $3, dropped = dropped + $4,
		unknown = unknown + $5 WHERE id = $1`
	for _, id := range slices.Sorted(maps.Keys(m)) {
		err := t.ExecExactly(1, update, id, m[id][operation.RunSucceeded], m[id][operation.RunRelapsed], m[id][operation.RunDropped],
			m[id][operation.RunUnknown])
		if err != nil {
			return fmt.Errorf("count the outcomes of operation %d: %w", id, err)
		}
	}

	return nil
}
