package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/internal/operation"
)

// runKey names a run of a job.
type runKey struct {
	seq int64
	run int
}

// endedRun is how a replayed run ended in this transaction.
type endedRun struct {
	at      int64
	outcome operation.RunOutcome
	group   int64 // of the failure that ended it
}

// endedBy notes that a settlement ended a replayed run.
func (t *tx) endedBy(s *job.Settlement, to job.Job) {
	switch to.State {
	case job.Completed:
		t.ended(to, operation.RunSucceeded, s.Attempt.FinishedAt)
	case job.Discarded:
		t.ended(to, operation.RunRelapsed, s.Attempt.FinishedAt)
	}
}

// ended notes that a run is over, the first time that somebody says so. First
// runs belong to no operation, and of a run that was over in an earlier
// transaction the item knows already.
func (t *tx) ended(j job.Job, outcome operation.RunOutcome, now time.Time) {
	k := runKey{j.Seq, j.Run}
	if _, known := t.runs[k]; j.Run > 1 && !known {
		t.runs[k] = endedRun{micros(now), outcome, j.Group}
	}
}

// undropQuery finds the items of replayed runs by their jobs.
const undropQuery = `UPDATE operation_items SET outcome = '', ended_at = 0
	FROM (SELECT value ->> 0 AS seq, value ->> 1 AS run FROM json_each($1)) AS e
	JOIN replays AS r ON r.job_seq = e.seq AND r.run = e.run - 1 AND r.operation_id <> 0
	WHERE operation_items.job_seq = e.seq AND operation_items.run = r.run AND operation_items.operation_id = r.operation_id
		AND operation_items.outcome = 'dropped'
	RETURNING operation_id`

// notDropped takes back that the runs of these jobs were dropped, which they are
// in: they go on, and may still succeed or fail.
func (t *tx) notDropped(jobs []job.Job) error {
	var rows [][2]int64
	for _, j := range jobs {
		if j.Run == 1 {
			continue
		}
		rows = append(rows, [2]int64{j.Seq, int64(j.Run)})
		if k := (runKey{j.Seq, j.Run}); t.runs[k].outcome == operation.RunDropped {
			delete(t.runs, k)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	text, err := encodeRows(rows)
	if err != nil {
		return err
	}
	meters := map[int64]map[operation.RunOutcome]int64{}
	err = t.query(undropQuery, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		count(meters, id, operation.RunDropped, -1)
		return err
	}, text)
	if err != nil {
		return fmt.Errorf("take outcomes of replayed runs back: %w", err)
	}
	return t.flushMeters(meters)
}

func count(meters map[int64]map[operation.RunOutcome]int64, id int64, outcome operation.RunOutcome, n int64) {
	if meters[id] == nil {
		meters[id] = map[operation.RunOutcome]int64{}
	}
	meters[id][outcome] += n
}

// outcomeQuery finds the items of replayed runs by their jobs.
const outcomeQuery = `UPDATE operation_items SET outcome = e.outcome, ended_at = e.at,
		same = e.outcome = 'relapsed' AND r.group_id = e.group_id
	FROM (SELECT value ->> 0 AS seq, value ->> 1 AS run, value ->> 2 AS at, value ->> 3 AS outcome, value ->> 4 AS group_id
		FROM json_each($1)) AS e
	JOIN replays AS r ON r.job_seq = e.seq AND r.run = e.run - 1 AND r.operation_id <> 0
	WHERE operation_items.job_seq = e.seq AND operation_items.run = r.run AND operation_items.operation_id = r.operation_id
		AND operation_items.state = 'done' AND operation_items.outcome = ''
	RETURNING operation_id, outcome`

// flushRuns writes the outcomes of replayed runs to the items of the operations
// that replayed them, and to their meters.
func (t *tx) flushRuns() error {
	if len(t.runs) == 0 {
		return nil
	}
	rows := make([][5]any, 0, len(t.runs))
	for k, r := range t.runs {
		rows = append(rows, [5]any{k.seq, k.run, r.at, r.outcome, r.group})
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	if err := t.prove(string(text)); err != nil {
		return fmt.Errorf("count the outcomes of replayed runs: %w", err)
	}
	meters := map[int64]map[operation.RunOutcome]int64{}
	err = t.query(outcomeQuery, func(rows *sql.Rows) error {
		var id int64
		var outcome operation.RunOutcome
		err := rows.Scan(&id, &outcome)
		count(meters, id, outcome, 1)
		return err
	}, string(text))
	if err != nil {
		return fmt.Errorf("write the outcomes of replayed runs: %w", err)
	}
	return t.flushMeters(meters)
}

func (t *tx) flushMeters(meters map[int64]map[operation.RunOutcome]int64) error {
	const update = `UPDATE operations SET succeeded = succeeded + $2, relapsed = relapsed + $3, dropped = dropped + $4 WHERE id = $1`
	for id, n := range meters {
		changed, err := t.exec(update, id, n[operation.RunSucceeded], n[operation.RunRelapsed], n[operation.RunDropped])
		if err := expect(1, changed, err); err != nil {
			return fmt.Errorf("count the outcomes of operation %d: %w", id, err)
		}
	}
	return nil
}
