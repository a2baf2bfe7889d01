package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"redrive/internal/job"
)

// endedRun is a replayed run that ended in this transaction.
type endedRun struct {
	seq     int64
	run     int
	at      int64
	outcome job.RunOutcome
}

// endedBy notes that a settlement ended a replayed run.
func (t *tx) endedBy(s *job.Settlement, to job.Job) {
	switch to.State {
	case job.Completed:
		t.ended(to, job.RunSucceeded, s.Attempt.FinishedAt)
	case job.Discarded:
		t.ended(to, job.RunRelapsed, s.Attempt.FinishedAt)
	}
}

// ended notes that a run is over. First runs belong to no operation, and of a
// run that was over before the item knows already.
func (t *tx) ended(j job.Job, outcome job.RunOutcome, now time.Time) {
	if j.Run > 1 {
		t.runs = append(t.runs, endedRun{j.Seq, j.Run, micros(now), outcome})
	}
}

// outcomeQuery finds the items of replayed runs by their jobs.
const outcomeQuery = `UPDATE operation_items SET outcome = e.outcome, ended_at = e.at,
		same = e.outcome = 'relapsed' AND r.group_id = (SELECT group_id FROM jobs WHERE seq = operation_items.job_seq)
	FROM (SELECT value ->> 0 AS seq, value ->> 1 AS run, value ->> 2 AS at, value ->> 3 AS outcome FROM json_each($1)) AS e
	JOIN replays AS r ON r.job_seq = e.seq AND r.run = e.run - 1 AND r.operation_id <> 0
	WHERE operation_items.job_seq = e.seq AND operation_items.run = r.run AND operation_items.operation_id = r.operation_id
		AND operation_items.state = 'done' AND operation_items.outcome = ''
	RETURNING operation_id, outcome`

// flushRuns writes the outcomes of replayed runs to the items of the operations
// that replayed them, and to their meters. It comes after everything that moves
// jobs, so that each job names the group of its newest failure.
func (t *tx) flushRuns() error {
	if len(t.runs) == 0 {
		return nil
	}
	rows := make([][4]any, len(t.runs))
	for i, r := range t.runs {
		rows[i] = [4]any{r.seq, r.run, r.at, r.outcome}
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	if err := t.prove(string(text)); err != nil {
		return fmt.Errorf("count the outcomes of replayed runs: %w", err)
	}
	meters := map[int64]map[job.RunOutcome]int64{}
	err = t.query(outcomeQuery, func(rows *sql.Rows) error {
		var id int64
		var outcome job.RunOutcome
		err := rows.Scan(&id, &outcome)
		if meters[id] == nil {
			meters[id] = map[job.RunOutcome]int64{}
		}
		meters[id][outcome]++
		return err
	}, string(text))
	if err != nil {
		return fmt.Errorf("write the outcomes of replayed runs: %w", err)
	}
	return t.flushMeters(meters)
}

func (t *tx) flushMeters(meters map[int64]map[job.RunOutcome]int64) error {
	const update = `UPDATE operations SET succeeded = succeeded + $2, relapsed = relapsed + $3, dropped = dropped + $4 WHERE id = $1`
	for id, n := range meters {
		changed, err := t.exec(update, id, n[job.RunSucceeded], n[job.RunRelapsed], n[job.RunDropped])
		if err := expect(1, changed, err); err != nil {
			return fmt.Errorf("count the outcomes of operation %d: %w", id, err)
		}
	}
	return nil
}
