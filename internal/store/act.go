package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/source"
	"redrive/internal/stats"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
	"redrive/internal/store/rows"
	"redrive/internal/wire"
)

// act is what a person does to one job. do gets the job as it is in the
// transaction, refuses or acts, and returns the job as it is then. The audit log
// says where the job was before and after; do can add to that in its entry.
func (s *Store) act(
	ctx context.Context, e audit.Entry, do func(t *db.Tx, from job.Job, e *audit.Entry) (job.Job, error),
) (job.Job, error) {
	return db.Write(ctx, s.writer, 1, func(t *db.Tx) (job.Job, error) {
		from, err := s.policies.ByID(t, e.Subject)
		if err != nil {
			return job.Job{}, err
		}

		e := e // of this run

		to, err := do(t, from, &e)
		if err != nil {
			return job.Job{}, err
		}

		e.Before, e.After = describe(from)+e.Before, describe(to)+e.After

		return to, s.Accounts.Log(t, e)
	})
}

// about is the beginning of the entry of the audit log about one job.
func about(id, action string, now time.Time, by audit.Actor) audit.Entry {
	return audit.Entry{At: now, Actor: by, Action: action, Subject: id, Count: 1}
}

// describe says in a few words what state a job is in, and which source it belongs to.
func describe(j job.Job) string {
	text := fmt.Sprintf("%s, run %d", j.Status(), j.Run)
	if source := j.Source; source != "" {
		text += ", source " + source
	}

	return text
}

// change runs a statement that changes the job and returns it as it is then.
func (s *Store) change(t *db.Tx, j job.Job, update string, args ...any) (job.Job, error) {
	if err := t.ExecExactly(1, update, args...); err != nil {
		return job.Job{}, fmt.Errorf("change job %s: %w", j.ID, err)
	}
	return s.policies.ByID(t, j.ID)
}

// refuse is the *job.Conflict of a job that an act does not fit.
func refuse(j job.Job, problem string, args ...any) (job.Job, error) {
	return job.Job{}, &job.Conflict{Job: j, Problem: fmt.Sprintf(problem, args...)}
}

// missed says why the run that a caller looked at cannot be replayed, or is no
// longer the job's current run.
func (s *Store) missed(t *db.Tx, j job.Job, run int) error {
	c := &job.Conflict{Job: j}
	const query = `SELECT at, by FROM replays WHERE job_seq = $1 AND run = $2`
	if _, err := db.Row(t, query, []any{db.Time(&c.ReplayedAt), &c.ReplayedBy}, j.Seq, run); err != nil {
		return err
	}

	switch {
	case !c.ReplayedAt.IsZero():
		c.Problem = fmt.Sprintf("run %d was replayed by %s at %s; the job is %s in run %d",
			run, audit.Name(c.ReplayedBy), c.ReplayedAt.Format("2006-01-02 15:04:05 UTC"), j.State, j.Run)
	case run != j.Run:
		c.Problem = fmt.Sprintf("the job has no run %d; it is %s in run %d", run, j.State, j.Run)
	default:
		c.Problem = fmt.Sprintf("run %d is %s; only a dead letter, a job that was cancelled or discarded, "+
			"or one that waits for a retry can be replayed", run, j.State)
	}

	return c
}

// Cancel takes a job back before it has ended, in the run that the caller looked
// at; another run, or one that has ended, is a *job.Conflict. An execution that is
// under way loses its lease: whatever it still reports is stale, and its attempt
// is recorded as cancelled.
func (s *Store) Cancel(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	const update = `UPDATE jobs SET state = 'cancelled', list_state = 'cancelled', letter = '', held = 0, unbegun = 0, reason = $2,
		changed_at = $3, finished_at = $3 WHERE seq = $1`

	return s.act(ctx, about(id, "job.cancel", now, by), func(t *db.Tx, from job.Job, _ *audit.Entry) (job.Job, error) {
		if from.Run != run {
			return job.Job{}, s.missed(t, from, run)
		}

		if !from.Cancellable() {
			return refuse(from, "the job is %s; it can no longer be cancelled", from.State)
		}

		if from.State == job.Active {
			err := rows.AddAttempt(t, &s.in(t).attempts, from.Seq, job.Attempt{
				Run: from.Run, Execution: from.Execution, Worker: from.Worker, StartedAt: from.StartedAt,
				FinishedAt: now, Outcome: job.CancelledBy, DecidedBy: "manual:" + audit.Name(by.Name),
			})
			if err != nil {
				return job.Job{}, err
			}
		}

		to, err := s.change(t, from, update, from.Seq, string(retry.Manual), db.Micros(now))
		if err == nil {
			s.in(t).ended(&from, operation.RunDropped, now)
			s.moved(t, &from, &to, stats.Totals{})
		}

		return to, err
	})
}

// Reschedule moves a job that waits for its time to another one, in the run that the
// caller looked at; a time that is not to come lets it run now. Nothing else changes:
// no attempt is charged, the job stays in its state since it came there, and the delay
// that its policy chose stays with the attempt that failed. A job in another run or
// state is a *job.Conflict; so is one that would expire before it runs.
func (s *Store) Reschedule(ctx context.Context, now time.Time, id string, run int, at time.Time, by audit.Actor) (job.Job, error) {
	const update = `UPDATE jobs SET run_at = $2 WHERE seq = $1`

	if at.Before(now) {
		at = now
	}

	return s.act(ctx, about(id, "job.reschedule", now, by), func(t *db.Tx, from job.Job, e *audit.Entry) (job.Job, error) {
		if from.Run != run {
			return job.Job{}, s.missed(t, from, run)
		}

		if from.State != job.Scheduled && from.State != job.Retryable {
			return refuse(from, "the job is %s; only a job that is scheduled or waits for a retry can be rescheduled", from.State)
		}

		if from.Expired(at) {
			return refuse(from, "the job expires at %s; at %s it could no longer run", wire.FormatTime(from.ExpiresAt), wire.FormatTime(at))
		}

		to, err := s.change(t, from, update, from.Seq, db.Micros(at))
		if err == nil {
			s.moved(t, &from, &to, stats.Totals{})
		}

		e.Before, e.After = notBefore(from), notBefore(to)

		return to, err
	})
}

// notBefore tells, for the audit log, from when on a job may run.
func notBefore(j job.Job) string { return "; not before " + wire.FormatTime(j.RunAt) }

// Forwarded writes down what became of a refused dead letter that was sent once
// more: it is stored as any other letter, or its problem is a newer one. A run
// whose letter is not refused (any more) is a *job.Conflict.
func (s *Store) Forwarded(ctx context.Context, now time.Time, id string, run int, d job.Delivery, by audit.Actor) (job.Job, error) {
	return s.act(ctx, about(id, "job.forward", now, by), func(t *db.Tx, from job.Job, _ *audit.Entry) (job.Job, error) {
		if from.Run != run || from.DeadLetter != job.DeadLetterRefused {
			return refuse(from, "the dead letter of run %d is not refused; the job is %s in run %d", run, from.Status(), from.Run)
		}

		if d.Problem == "" {
			return s.accepted(t, from, d)
		}

		const still = `UPDATE dead_letters SET problem = $3 WHERE job_seq = $1 AND run = $2`

		t.Touch()

		return from, t.ExecExactly(1, still, from.Seq, run, clip.Text(d.Problem, job.MaxNote))
	})
}

// accepted moves a refused letter into the dead-letter queue. Its job failed when
// it failed: the list of letters and the scope of an operation both go by that.
func (s *Store) accepted(t *db.Tx, from job.Job, d job.Delivery) (job.Job, error) {
	const letter = `UPDATE dead_letters SET refused = 0, problem = '', forwarded_to = $3, forwarded_at = $4
		WHERE job_seq = $1 AND run = $2 AND refused = 1`
	const update = `UPDATE jobs SET letter = 'stored' WHERE seq = $1`

	if err := t.ExecExactly(1, letter, from.Seq, from.Run, d.ForwardedTo, db.Micros(d.ForwardedAt)); err != nil {
		return job.Job{}, err
	}

	to, err := s.change(t, from, update, from.Seq)
	if err == nil {
		s.moved(t, &from, &to, stats.Totals{})
	}

	return to, err
}

// Replay starts the next run of a job: same id, same payload, no attempts yet,
// available now. run is the run that the caller looked at, and only the first
// call for it has an effect; later ones get a *job.Conflict that names the actor
// who was first. A job that cannot be replayed is a *job.Conflict too. One that is
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

		change := edit.Effective(from)
		ask := projection.Ask{Kind: source.Replay, Mode: source.Mode(cmp.Or(edit.Mode, string(source.Once))), At: now, By: by}
		if why := s.refusesEdit(from, change, &ask); why != "" {
			return refuse(from, "%s", why)
		}

		if change.Queue != "" {
			if err := s.Counters.Admit(t, slices.Values([]string{change.Queue})); err != nil {
				return job.Job{}, err
			}
		}

		changed, err := s.rework(t, from, change)
		if err != nil {
			return job.Job{}, err
		}

		if err := s.replayAll(t, []job.Job{changed}, ask); err != nil {
			return job.Job{}, fmt.Errorf("replay job %s: %w", id, err)
		}

		to, err := s.policies.ByID(t, id)
		if err == nil && edit.RunAt.After(now) && from.Source == "" {
			to, err = s.postpone(t, to, edit.RunAt)
		}

		e.Before, e.After = edited(from, change, nil), edited(to, change, edit.Paths)

		return to, err
	})
}

// refusesEdit says why a job cannot be replayed with a change, and completes what its
// source is asked for: there, only the time and the payload can be others.
func (s *Store) refusesEdit(from job.Job, change job.Edit, ask *projection.Ask) string {
	if from.Source == "" {
		return ""
	}

	if change.RunAt.After(ask.At) {
		ask.Due = change.RunAt
	}

	if change.Body != nil {
		ask.Payload = append([]byte{}, change.Body.Payload...)
		change.Body = nil
	}

	if !change.Empty() {
		return fmt.Sprintf("a job of the source %s keeps its queue, its priority and its policy", from.Source)
	}

	return s.refusesWish(from, source.Request{
		Kind: source.Replay, Mode: ask.Mode, Later: !ask.Due.IsZero(), Edited: ask.Payload != nil, Payload: ask.Payload,
	})
}

// ReplayAll starts the next run of jobs that can be replayed, each as it is in
// this transaction. A job of a source is returning then, and its source is asked to run
// it. bulk is the operation whose items they are, or 0. OR FAIL
// spares SQLite a journal for each statement: after an error the whole
// transaction is rolled back anyway.
func (s *Store) ReplayAll(t *db.Tx, from []job.Job, now time.Time, by audit.Actor, bulk int64) error {
	return s.replayAll(t, from, projection.Ask{Kind: source.Replay, Mode: source.Once, At: now, By: by, Operation: bulk})
}

func (s *Store) replayAll(t *db.Tx, from []job.Job, ask projection.Ask) error {
	const record = `INSERT OR FAIL INTO replays (job_seq, run, state, reason, attempts, at, by, group_id, operation_id)
		SELECT seq, run, state, reason, attempts, $2, $3, group_id, $4 FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`
	const update = `UPDATE OR FAIL jobs SET run = run + 1, attempts = 0, held = 0, letter = '',
			state = CASE source WHEN '' THEN 'available' ELSE 'returning' END,
			list_state = CASE source WHEN '' THEN '' ELSE 'returning' END,
			worker = CASE source WHEN '' THEN worker ELSE '' END,
			group_id = 0, run_at = $3, changed_at = $2, finished_at = 0, reason = '', error_type = '', error_message = ''
		WHERE seq IN (SELECT value FROM json_each($1))`

	these, at, due := rows.Seqs(from), db.Micros(ask.At), db.Micros(ask.At)
	if !ask.Due.IsZero() { // which only one job of a source has
		due = db.Micros(ask.Due)
	}

	err := db.Steps(t, db.Exactly(len(from), record, these, at, ask.By.Name, ask.Operation), db.Exactly(len(from), update, these, at, due))
	if err != nil {
		return fmt.Errorf("start the next run: %w", err)
	}

	for i := range from {
		s.in(t).ended(&from[i], operation.RunDropped, ask.At)
	}

	if err := s.leaveTrash(t, from); err != nil {
		return err
	}

	s.moveAll(t, from, stats.Totals{Replayed: 1}, func(j *job.Job) {
		j.Run, j.Attempts = j.Run+1, 0
		j.State, j.DeadLetter, j.Held = job.Available, job.NoDeadLetter, false
		if j.Source != "" {
			j.State, j.Worker = job.Returning, ""
		}

		j.RunAt, j.ChangedAt, j.FinishedAt = db.FromMicros(due), db.FromMicros(at), time.Time{}
		j.Reason, j.Error, j.Group = "", job.ErrorInfo{}, 0
	})

	return s.ask(t, ask, from)
}

// rework changes a job that is over, before it is replayed: from here on it
// counts for the queue that it goes to.
func (s *Store) rework(t *db.Tx, from job.Job, edit job.Edit) (job.Job, error) {
	if edit.Empty() {
		return from, nil
	}

	err := s.keepEarlier(t, from, from.Run, edit)
	if err != nil {
		return job.Job{}, fmt.Errorf("keep what run %d of job %s had: %w", from.Run, from.ID, err)
	}

	return s.apply(t, from, edit)
}

// apply writes a change of a job.
func (s *Store) apply(t *db.Tx, from job.Job, edit job.Edit) (job.Job, error) {
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

	s.projections.Moved(t, projection.Move{From: &from, To: &to}) // it counts for the other queue until it is replayed

	return to, nil
}

// keepEarlier writes down what a run has that is about to be changed.
func (s *Store) keepEarlier(t *db.Tx, j job.Job, run int, edit job.Edit) error {
	const insert = `INSERT INTO earlier_runs
			(job_seq, run, queue, type, priority, policy_id, ttr, trace_id, message_id, meta, payload, envelope)
		SELECT seq, $3, queue, type, priority, policy_id, ttr,
			CASE WHEN $2 = 1 THEN trace_id END, CASE WHEN $2 = 1 THEN message_id END, CASE WHEN $2 = 1 THEN meta END,
			CASE WHEN $2 = 1 THEN payload END, CASE WHEN $2 = 1 THEN envelope END
		FROM jobs JOIN bodies ON job_seq = seq WHERE seq = $1`

	return t.ExecExactly(1, insert, j.Seq, edit.Body != nil, run)
}

// postpone lets a job that was just replayed wait for a time to come.
func (s *Store) postpone(t *db.Tx, from job.Job, until time.Time) (job.Job, error) {
	const update = `UPDATE jobs SET state = 'scheduled', list_state = 'scheduled', run_at = $2 WHERE seq = $1`

	to, err := s.change(t, from, update, from.Seq, db.Micros(until))
	if err == nil {
		s.moved(t, &from, &to, stats.Totals{})
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
func addEarlier(src db.Source, policies *rows.Policies, seq int64, replays []history.Replay) error {
	const query = `SELECT run, queue, type, priority, policy_id, ttr, trace_id, message_id, meta, payload, envelope
		FROM earlier_runs WHERE job_seq = $1 ORDER BY run`

	type row struct {
		history.Earlier
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

		if i := slices.IndexFunc(replays, func(replay history.Replay) bool { return replay.Run == r.run }); i >= 0 {
			replays[i].Earlier = &r.Earlier
		}

		if err == nil {
			r.Earlier.Policy, r.Earlier.Origins, err = policies.Get(src, r.policy)
		}
	}

	return err
}
