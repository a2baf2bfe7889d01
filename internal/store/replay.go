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
	"redrive/internal/source"
	"redrive/internal/stats"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
	"redrive/internal/store/rows"
	"redrive/internal/wire"
)

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

		// What the job has anyway is no change.
		change := edit.Effective(from)
		ask := projection.Ask{Kind: source.Replay, Mode: source.Mode(cmp.Or(edit.Mode, string(source.Once))), At: now, By: by}
		if why := s.refusesEdit(from, change, &ask); why != "" {
			return refuse(from, "%s", why)
		}

		// The queue may be a new one, for which there has to be room.
		if change.Queue != "" {
			if err := s.Counters.Admit(t, slices.Values([]string{change.Queue})); err != nil {
				return job.Job{}, err
			}
		}

		// The job changes while it is still in its old run, which keeps a copy of what it had.
		changed, err := s.core.Edit(t, from, change)
		if err != nil {
			return job.Job{}, err
		}

		if err := s.replayAll(t, []job.Job{changed}, ask); err != nil {
			return job.Job{}, fmt.Errorf("replay job %s: %w", id, err)
		}

		// The next run of a job that Redrive runs is available now, and postponed here. A
		// source was asked for the time together with the replay.
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
		// The payload is not nil, even if it is empty: nil means that it was not edited.
		ask.Payload = append([]byte{}, change.Body.Payload...)
		change.Body = nil
	}

	// What is left of the change is what a source cannot be asked for.
	if !change.Empty() {
		return fmt.Sprintf("a job of the source %s keeps its queue, its priority and its policy", from.Source)
	}

	return s.checkRequest(from, source.Request{
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

	// The run of a job that waits for a retry is over only now. The run of any other job was
	// noted as over when it ended.
	for i := range from {
		s.core.End(t, &from[i], operation.RunDropped, ask.At)
	}

	if err := s.core.LeaveTrash(t, from); err != nil {
		return err
	}

	// The jobs in memory become what the statement has made of their rows.
	s.core.MoveAll(t, from, stats.Totals{Replayed: 1}, func(j *job.Job) {
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

// postpone lets a job that was just replayed wait for a time to come.
func (s *Store) postpone(t *db.Tx, from job.Job, until time.Time) (job.Job, error) {
	const update = `UPDATE jobs SET state = 'scheduled', list_state = 'scheduled', run_at = $2 WHERE seq = $1`

	to, err := s.core.Change(t, from, update, from.Seq, db.Micros(until))
	if err == nil {
		s.core.Move(t, &from, &to, stats.Totals{})
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

		// trace_id is NULL when the next run has the same body.
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
