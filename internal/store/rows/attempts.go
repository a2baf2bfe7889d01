package rows

import (
	"database/sql"
	"encoding/json"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store/db"
)

// Recording appends attempts that did not succeed. The record of a success is
// the row of its job (see the view executions).
func Recording() db.Batch {
	return db.Batch{
		Head: `INSERT INTO attempts (job_seq, execution, run, number, worker, started_at, finished_at,
			outcome, error_type, error_message, action, decided_by, delay, note, trace) VALUES `,
		Row: `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, Columns: 15,
	}
}

// AddAttempt appends an attempt of a job to a batch made by Recording.
func AddAttempt(t *db.Tx, to *db.Batch, seq int64, a job.Attempt) error {
	delay, err := encodeDelay(a.Delay)
	if err != nil {
		return err
	}
	return to.Add(t, seq, a.Execution, a.Run, a.Number, a.Worker, db.Micros(a.StartedAt), db.Micros(a.FinishedAt),
		string(a.Outcome), a.Error.Type, a.Error.Message, string(a.Action), a.DecidedBy, delay, a.Note, a.Trace)
}

// Attempts are the attempts of a job in the order of execution.
func Attempts(src db.Source, seq int64) ([]job.Attempt, error) {
	const query = `SELECT execution, run, number, worker, started_at, finished_at, outcome, error_type, error_message,
		action, decided_by, delay, note, trace FROM executions WHERE job_seq = $1 ORDER BY execution`
	var all []job.Attempt
	err := src.Query(query, func(rows *sql.Rows) error {
		var a job.Attempt
		var started, finished int64
		var delay string
		err := rows.Scan(&a.Execution, &a.Run, &a.Number, &a.Worker, &started, &finished, &a.Outcome,
			&a.Error.Type, &a.Error.Message, &a.Action, &a.DecidedBy, &delay, &a.Note, &a.Trace)
		if err != nil {
			return err
		}
		a.StartedAt, a.FinishedAt = db.FromMicros(started), db.FromMicros(finished)
		a.Delay, err = decodeDelay(delay)
		all = append(all, a)
		return err
	}, seq)
	return all, err
}

// encodeDelay writes the calculation of a delay down, nothing when there is none.
func encodeDelay(d *retry.Delay) (string, error) {
	if d == nil {
		return "", nil
	}
	text, err := json.Marshal(d)
	return string(text), err
}

func decodeDelay(text string) (*retry.Delay, error) {
	if text == "" {
		return nil, nil
	}
	d := new(retry.Delay)
	return d, json.Unmarshal([]byte(text), d)
}
