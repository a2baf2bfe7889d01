package operations

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"redrive/internal/operation"
	"redrive/internal/store/db"
)

// undropQuery finds the items of replayed runs by their jobs.
const undropQuery = `UPDATE operation_items SET outcome = '', ended_at = 0
	FROM (SELECT value ->> 0 AS seq, value ->> 1 AS run FROM json_each($1)) AS e
	JOIN replays AS r ON r.job_seq = e.seq AND r.run = e.run - 1 AND r.operation_id <> 0
	WHERE operation_items.job_seq = e.seq AND operation_items.run = r.run AND operation_items.operation_id = r.operation_id
		AND operation_items.outcome = 'dropped'
	RETURNING operation_id`

// RunsResumed takes back that these runs were dropped: they go on, and may still
// succeed or fail.
func (b *Book) RunsResumed(t *db.Tx, runs string) error {
	meters := map[int64]map[operation.RunOutcome]int64{}
	err := t.Query(undropQuery, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		count(meters, id, operation.RunDropped, -1)
		return err
	}, runs)
	if err != nil {
		return fmt.Errorf("take outcomes of replayed runs back: %w", err)
	}
	return b.flushMeters(t, meters)
}

func count(meters map[int64]map[operation.RunOutcome]int64, id int64, outcome operation.RunOutcome, n int64) {
	if meters[id] == nil {
		meters[id] = map[operation.RunOutcome]int64{}
	}
	meters[id][outcome] += n
}

// outcomeQuery finds the items of replayed runs by their jobs.
const outcomeQuery = `UPDATE operation_items SET outcome = e.outcome, ended_at = e.at,
		same = CASE WHEN e.outcome = 'relapsed' AND r.group_id = e.group_id THEN 1 ELSE 0 END
	FROM (SELECT value ->> 0 AS seq, value ->> 1 AS run, value ->> 2 AS at, value ->> 3 AS outcome, value ->> 4 AS group_id
		FROM json_each($1)) AS e
	JOIN replays AS r ON r.job_seq = e.seq AND r.run = e.run - 1 AND r.operation_id <> 0
	WHERE operation_items.job_seq = e.seq AND operation_items.run = r.run AND operation_items.operation_id = r.operation_id
		AND operation_items.state = 'done' AND operation_items.outcome = ''
	RETURNING operation_id, outcome`

// RunsEnded writes the outcomes of replayed runs to the items of the operations
// that replayed them, and to their meters.
func (b *Book) RunsEnded(t *db.Tx, runs string) error {
	meters := map[int64]map[operation.RunOutcome]int64{}
	err := t.Query(outcomeQuery, func(rows *sql.Rows) error {
		var id int64
		var outcome operation.RunOutcome
		err := rows.Scan(&id, &outcome)
		count(meters, id, outcome, 1)
		return err
	}, runs)
	if err != nil {
		return fmt.Errorf("write the outcomes of replayed runs: %w", err)
	}
	return b.flushMeters(t, meters)
}

func (b *Book) flushMeters(t *db.Tx, meters map[int64]map[operation.RunOutcome]int64) error {
	const update = `UPDATE operations SET succeeded = succeeded + $2, relapsed = relapsed + $3, dropped = dropped + $4 WHERE id = $1`
	for _, id := range slices.Sorted(maps.Keys(meters)) {
		n := meters[id]
		err := t.ExecExactly(1, update, id, n[operation.RunSucceeded], n[operation.RunRelapsed], n[operation.RunDropped])
		if err != nil {
			return fmt.Errorf("count the outcomes of operation %d: %w", id, err)
		}
	}
	return nil
}
