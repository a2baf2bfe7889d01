package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/book"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
	"redrive/internal/wire"
)

// Replay starts the next run of a job: same id, same payload, no attempts yet,
// available now. run is the run that the caller looked at, and only the first
// call for it has an effect; later ones get a *job.Conflict that names whoever
// was first. A job that cannot be replayed is a *job.Conflict too. One that lies
// in the trash leaves it.
func (s *Store) Replay(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return s.ReplayWith(ctx, now, id, run, job.Edit{}, by)
}

// ReplayWith is Replay with changes: the next run has what edit says, and the
// run before keeps what it had. A time to come makes the job scheduled until
// then. The change must be valid: nothing is checked here but the run.
func (s *Store) ReplayWith(ctx context.Context, now time.Time, id string, run int, edit job.Edit, by audit.Actor) (job.Job, error) {
	return s.act(ctx, about(id, "job.replay", now, by), func(t *db.Tx, from job.Job, e *audit.Entry) (job.Job, error) {
		if from.Run != run || !from.Replayable() {
			return job.Job{}, s.missed(t, from, run)
		}
		change := edit.Before(from)
		changed, err := s.rework(t, from, change)
		if err != nil {
			return job.Job{}, err
		}
		if err := s.ReplayAll(t, []job.Job{changed}, now, by, 0); err != nil {
			return job.Job{}, fmt.Errorf("replay job %s: %w", id, err)
		}
		to, err := s.policies.ByID(t, id)
		if err == nil && edit.RunAt.After(now) {
			to, err = s.postpone(t, to, edit.RunAt)
		}
		e.Before, e.After = edited(from, change, nil), edited(to, change, edit.Paths)
		return to, err
	})
}

// ReplayAll starts the next run of jobs that can be replayed, each as it is in
// this transaction. bulk is the operation whose items they are, or 0. OR FAIL
// spares SQLite a journal for each statement: after an error the whole
// transaction is rolled back anyway.
func (s *Store) ReplayAll(t *db.Tx, from []job.Job, now time.Time, by audit.Actor, bulk int64) error {
	const record = `INSERT OR FAIL INTO replays (job_seq, run, state, reason, attempts, at, by, group_id, operation_id)
		SELECT seq, run, state, reason, attempts, $2, $3, group_id, $4 FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`
	const letter = `UPDATE OR FAIL dead_letters SET open = 0, replayed_at = $2, replayed_by = $3, discarded_at = 0, discarded_by = ''
		WHERE job_seq IN (SELECT value FROM json_each($1)) AND replayed_at = 0` // those of the runs before were replayed
	const update = `UPDATE OR FAIL jobs SET run = run + 1, attempts = 0, state = 'available', list_state = '', held = 0, letter = '', group_id = 0,
			run_at = $2, changed_at = $2, finished_at = 0, reason = '', error_type = '', error_message = ''
		WHERE seq IN (SELECT value FROM json_each($1))`
	these, at := rows.Seqs(from), db.Micros(now)
	err := db.Steps(t, db.Exactly(len(from), record, these, at, by.Name, bulk), db.Any(letter, these, at, by.Name),
		db.Exactly(len(from), update, these, at))
	if err != nil {
		return fmt.Errorf("start the next run: %w", err)
	}
	for i := range from {
		s.tx.ended(&from[i], operation.RunDropped, now)
	}
	s.moveAll(from, job.Totals{Replayed: 1}, func(j *job.Job) {
		j.Run, j.Attempts, j.State, j.Letter, j.Held = j.Run+1, 0, job.Available, job.NoLetter, false
		j.RunAt, j.ChangedAt, j.FinishedAt = db.FromMicros(at), db.FromMicros(at), time.Time{}
		j.Reason, j.Error, j.Group = "", job.ErrorInfo{}, 0
	})
	return s.leaveTrash(t, from)
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
	policy, err := s.policies.ID(t, rows.TextOf(want))
	if err != nil {
		return job.Job{}, err
	}
	const body = `UPDATE bodies SET trace_id = $2, message_id = $3, meta = $4, payload = $5, envelope = $6 WHERE job_seq = $1`
	const update = `UPDATE jobs SET queue = $2, type = $3, priority = $4, policy_id = $5, ttr = $6 WHERE seq = $1`
	if b := edit.Body; b != nil {
		err := t.ExecExactly(1, body, from.Seq, b.TraceID, b.MessageID, []byte(b.Meta), b.Payload, b.Envelope)
		if err != nil {
			return job.Job{}, err
		}
	}
	to, err := s.change(t, from, update, from.Seq, want.Queue, want.Type, want.Priority, policy, want.Timeout.Microseconds())
	if err != nil {
		return job.Job{}, err
	}
	s.books.Moved(book.Move{From: &from, To: &to}) // it lies in the other queue until it is replayed
	return to, nil
}

// keepEarlier writes down what the run has that is about to be changed.
func (s *Store) keepEarlier(t *db.Tx, j job.Job, edit job.Edit) error {
	const insert = `INSERT INTO earlier_runs
			(job_seq, run, queue, type, priority, policy_id, ttr, trace_id, message_id, meta, payload, envelope)
		SELECT seq, run, queue, type, priority, policy_id, ttr,
			CASE WHEN $2 = 1 THEN trace_id END, CASE WHEN $2 = 1 THEN message_id END, CASE WHEN $2 = 1 THEN meta END,
			CASE WHEN $2 = 1 THEN payload END, CASE WHEN $2 = 1 THEN envelope END
		FROM jobs JOIN bodies ON job_seq = seq WHERE seq = $1`
	return t.ExecExactly(1, insert, j.Seq, edit.Body != nil)
}

// postpone lets a job that was just replayed wait for a time to come.
func (s *Store) postpone(t *db.Tx, from job.Job, until time.Time) (job.Job, error) {
	const update = `UPDATE jobs SET state = 'scheduled', list_state = 'scheduled', run_at = $2 WHERE seq = $1`
	to, err := s.change(t, from, update, from.Seq, db.Micros(until))
	if err == nil {
		s.moved(&from, &to, job.Totals{})
	}
	return to, err
}

// edited tells, for the audit log, what of a job a replay changed. Payloads are
// never in the log: the paths that differ are.
func edited(j job.Job, change job.Edit, paths []string) string {
	words := []string{""}
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
func addEarlier(src db.Source, policies *rows.Policies, seq int64, replays []job.Replay) error {
	const query = `SELECT run, queue, type, priority, policy_id, ttr, trace_id, message_id, meta, payload, envelope
		FROM earlier_runs WHERE job_seq = $1 ORDER BY run`
	type row struct {
		job.Earlier
		run            int
		policy         int64
		body           job.Body
		trace, message sql.NullString
	}
	all, err := db.All(src, query, func(r *row) []any {
		return []any{
			&r.run, &r.Queue, &r.Type, &r.Priority, &r.policy, db.Duration(&r.Timeout),
			&r.trace, &r.message, (*[]byte)(&r.body.Meta), &r.body.Payload, &r.body.Envelope,
		}
	}, seq)
	for i := range all {
		r := &all[i]
		if r.trace.Valid {
			r.body.Type, r.body.TraceID, r.body.MessageID = r.Type, r.trace.String, r.message.String
			r.Body = &r.body
		}
		if i := slices.IndexFunc(replays, func(replay job.Replay) bool { return replay.Run == r.run }); i >= 0 {
			replays[i].Earlier = &r.Earlier
		}
		if err == nil {
			err = policies.Give(src, r.policy, &r.Earlier)
		}
	}
	return err
}
