package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/store/book"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
	"redrive/internal/wire"
)

// ReplayWith is Replay with changes: the next run has what edit says, and the
// run before keeps what it had. A time to come makes the job scheduled until
// then. The change must be valid: nothing is checked here but the run.
func (s *Store) ReplayWith(ctx context.Context, now time.Time, id string, run int, edit job.Edit, by audit.Actor) (job.Job, error) {
	return db.Write(ctx, s.writer, 1, func(t *db.Tx) (job.Job, error) {
		from, err := s.byID(t, id)
		if err != nil {
			return job.Job{}, err
		}
		if from.Run != run || !from.Replayable() {
			return job.Job{}, s.missed(t, from, run)
		}
		change := edit.Effective(from)
		changed, err := s.rework(t, from, change)
		if err != nil {
			return job.Job{}, err
		}
		to, err := s.replay(t, changed, now, by)
		if err == nil {
			to, err = s.postpone(t, to, now, edit.RunAt)
		}
		if err != nil {
			return job.Job{}, err
		}
		entry := about(from, to, "job.replay", now, by)
		entry.Before, entry.After = edited(entry.Before, from, change, nil), edited(entry.After, to, change, edit.Paths)
		return to, s.Accounts.Log(t, entry)
	})
}

// rework changes a job that is over, before it is replayed: from here on it
// counts for the queue that it goes to.
func (s *Store) rework(t *db.Tx, from job.Job, edit job.Edit) (job.Job, error) {
	if edit.Empty() {
		return from, nil
	}
	if err := s.keepEarlier(t, from, edit); err != nil {
		return job.Job{}, fmt.Errorf("keep what run %d of job %s had: %w", from.Run, from.ID, err)
	}
	want := edit.Apply(from)
	text, err := rows.TextOf(want)
	if err != nil {
		return job.Job{}, err
	}
	policy, err := s.policies.ID(t, text)
	if err != nil {
		return job.Job{}, err
	}
	const (
		body   = `UPDATE bodies SET trace_id = $2, message_id = $3, meta = $4, payload = $5, envelope = $6 WHERE job_seq = $1`
		update = `UPDATE jobs SET queue = $2, type = $3, priority = $4, policy_id = $5, ttr = $6 WHERE seq = $1`
	)
	if b := edit.Body; b != nil {
		err := t.ExecExactly(1, body, from.Seq, b.TraceID, b.MessageID, []byte(b.Meta), b.Payload, b.Envelope)
		if err != nil {
			return job.Job{}, err
		}
	}
	to, err := s.change(t, from, update, from.Seq, want.Queue, want.Type, want.Priority, policy, want.Timeout.Microseconds())
	if err != nil {
		return job.Job{}, fmt.Errorf("change job %s: %w", from.ID, err)
	}
	s.books.Moved(book.Move{From: &from, To: &to}) // it lies in the other queue until it is replayed
	return to, nil
}

// keepEarlier writes down what the run has that is about to be changed.
func (s *Store) keepEarlier(t *db.Tx, j job.Job, edit job.Edit) error {
	const insert = `INSERT INTO earlier_runs (job_seq, run, queue, type, priority, policy_id, ttr, trace_id, message_id, meta, payload, envelope)
		SELECT seq, run, queue, type, priority, policy_id, ttr,
			CASE WHEN $2 = 1 THEN trace_id END, CASE WHEN $2 = 1 THEN message_id END, CASE WHEN $2 = 1 THEN meta END,
			CASE WHEN $2 = 1 THEN payload END, CASE WHEN $2 = 1 THEN envelope END
		FROM jobs JOIN bodies ON job_seq = seq WHERE seq = $1`
	return t.ExecExactly(1, insert, j.Seq, edit.Body != nil)
}

// postpone lets a job that was just replayed wait for a time to come.
func (s *Store) postpone(t *db.Tx, from job.Job, now, until time.Time) (job.Job, error) {
	const update = `UPDATE jobs SET state = 'scheduled', shelf = 'scheduled', run_at = $2 WHERE seq = $1`
	if !until.After(now) {
		return from, nil
	}
	to, err := s.change(t, from, update, from.Seq, db.Micros(until))
	if err != nil {
		return job.Job{}, fmt.Errorf("postpone job %s: %w", from.ID, err)
	}
	s.moved(&from, &to, job.Totals{})
	return to, nil
}

// edited adds to where a job is what of it a replay changed. Payloads are never
// in the log: the paths that differ are.
func edited(standing string, j job.Job, change job.Edit, paths []string) string {
	words := []string{standing}
	if change.Queue != "" {
		words = append(words, "queue "+j.Queue)
	}
	if change.Priority != nil {
		words = append(words, fmt.Sprintf("priority %d", j.Priority))
	}
	if change.Policy != nil {
		words = append(words, "policy "+string(wire.EncodePolicy(j.Policy)))
	}
	if change.Body != nil && change.Body.Type != j.Type {
		words = append(words, "type "+j.Type)
	}
	if j.State == job.Scheduled {
		words = append(words, "not before "+wire.FormatTime(j.RunAt))
	}
	if len(paths) > 0 {
		words = append(words, "payload changed at "+clip.Text(strings.Join(paths, ", "), job.MaxNote))
	}
	return strings.Join(words, "; ")
}

// addEarlier gives replays what their runs had that the next ones have
// otherwise.
func addEarlier(src db.Source, policies *rows.Policies, seq int64, replays []history.Replay) error {
	const query = `SELECT run, queue, type, priority, policy_id, ttr, trace_id, message_id, meta, payload, envelope
		FROM earlier_runs WHERE job_seq = $1 ORDER BY run`
	var ids []int64
	var changed []*history.Earlier
	err := src.Query(query, func(rows *sql.Rows) error {
		run, id, ttr, e := 0, int64(0), int64(0), &history.Earlier{}
		var trace, message sql.NullString
		var meta, payload, envelope []byte
		err := rows.Scan(&run, &e.Queue, &e.Type, &e.Priority, &id, &ttr, &trace, &message, &meta, &payload, &envelope)
		e.Timeout = time.Duration(ttr) * time.Microsecond
		if trace.Valid {
			e.Body = &job.Body{
				Type: e.Type, TraceID: trace.String, MessageID: message.String, Meta: json.RawMessage(meta), Payload: payload, Envelope: envelope,
			}
		}
		if i := slices.IndexFunc(replays, func(r history.Replay) bool { return r.Run == run }); i >= 0 {
			replays[i].Earlier = e
		}
		ids, changed = append(ids, id), append(changed, e)
		return err
	}, seq)
	for i, e := range changed {
		if err == nil {
			e.Policy, e.Origins, err = policies.Get(src, ids[i])
		}
	}
	return err
}
