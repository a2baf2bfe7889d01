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
	"redrive/internal/job"
	"redrive/internal/wire"
)

// ReplayWith is Replay with changes: the next run has what redo says, and the
// run before keeps what it had. A time to come makes the job scheduled until
// then. The change must be valid: nothing is checked here but the run.
func (s *Store) ReplayWith(ctx context.Context, now time.Time, id string, run int, redo job.Edit, by audit.Actor) (job.Job, error) {
	return write(ctx, s.writer, 1, func(t *tx) (job.Job, error) {
		from, err := t.byID(id)
		if err != nil {
			return job.Job{}, err
		}
		if from.Run != run || !from.Replayable() {
			return job.Job{}, t.missed(from, run)
		}
		change := redo.Before(from)
		changed, err := t.rework(from, change)
		if err != nil {
			return job.Job{}, err
		}
		to, err := t.replay(changed, now, by)
		if err == nil {
			to, err = t.postpone(to, now, redo.RunAt)
		}
		if err != nil {
			return job.Job{}, err
		}
		entry := about(from, to, "job.replay", now, by)
		entry.Before, entry.After = redone(entry.Before, from, change, nil), redone(entry.After, to, change, redo.Paths)
		return to, t.audit(entry)
	})
}

// rework changes a job that is over, before it is replayed: from here on it
// counts for the queue that it goes to.
func (t *tx) rework(from job.Job, redo job.Edit) (job.Job, error) {
	if redo.Empty() {
		return from, nil
	}
	if err := t.keepEarlier(from, redo); err != nil {
		return job.Job{}, fmt.Errorf("keep what run %d of job %s had: %w", from.Run, from.ID, err)
	}
	want := redo.Apply(from)
	text, err := effective{want.Policy, want.Origins}.text()
	if err != nil {
		return job.Job{}, fmt.Errorf("write the policy of job %s: %w", from.ID, err)
	}
	policy, err := t.policyID(text)
	if err != nil {
		return job.Job{}, err
	}
	const (
		body   = `UPDATE bodies SET trace_id = $2, message_id = $3, meta = $4, payload = $5, envelope = $6 WHERE job_seq = $1`
		update = `UPDATE jobs SET queue = $2, type = $3, priority = $4, policy_id = $5, ttr = $6 WHERE seq = $1`
	)
	if b := redo.Body; b != nil {
		n, err := t.exec(body, from.Seq, b.TraceID, b.MessageID, []byte(b.Meta), b.Payload, b.Envelope)
		if err := expect(1, n, err); err != nil {
			return job.Job{}, err
		}
	}
	to, err := t.change(from, update, from.Seq, want.Queue, want.Type, want.Priority, policy, want.Timeout.Microseconds())
	if err != nil {
		return job.Job{}, fmt.Errorf("change job %s: %w", from.ID, err)
	}
	t.resolved(from) // it lies in the other queue until it is replayed
	if to.Letter == job.LetterStored {
		t.opened(to)
	}
	t.delta.depth(from, -1)
	t.delta.depth(to, 1)
	return to, nil
}

// keepEarlier writes down what the run has that is about to be changed.
func (t *tx) keepEarlier(j job.Job, redo job.Edit) error {
	const insert = `INSERT INTO earlier_runs (job_seq, run, queue, type, priority, policy_id, ttr, trace_id, message_id, meta, payload, envelope)
		SELECT seq, run, queue, type, priority, policy_id, ttr,
			iif($2, trace_id, NULL), iif($2, message_id, NULL), iif($2, meta, NULL), iif($2, payload, NULL), iif($2, envelope, NULL)
		FROM jobs JOIN bodies ON job_seq = seq WHERE seq = $1`
	n, err := t.exec(insert, j.Seq, redo.Body != nil)
	return expect(1, n, err)
}

// postpone lets a job that was just replayed wait for a time to come.
func (t *tx) postpone(from job.Job, now, until time.Time) (job.Job, error) {
	const update = `UPDATE jobs SET state = 'scheduled', shelf = 'scheduled', run_at = $2 WHERE seq = $1`
	if !until.After(now) {
		return from, nil
	}
	to, err := t.change(from, update, from.Seq, micros(until))
	if err != nil {
		return job.Job{}, fmt.Errorf("postpone job %s: %w", from.ID, err)
	}
	t.moved(from, to)
	return to, nil
}

// redone adds to where a job is what of it a replay changed. Payloads are never
// in the log: the paths that differ are.
func redone(standing string, j job.Job, change job.Edit, paths []string) string {
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
func (p *policies) addEarlier(src source, seq int64, replays []job.Replay) error {
	const query = `SELECT run, queue, type, priority, policy_id, ttr, trace_id, message_id, meta, payload, envelope
		FROM earlier_runs WHERE job_seq = $1 ORDER BY run`
	var ids []int64
	var changed []*job.Earlier
	err := src.query(query, func(rows *sql.Rows) error {
		run, id, ttr, e := 0, int64(0), int64(0), &job.Earlier{}
		var trace, message sql.NullString
		var meta, payload, envelope []byte
		err := rows.Scan(&run, &e.Queue, &e.Type, &e.Priority, &id, &ttr, &trace, &message, &meta, &payload, &envelope)
		e.Timeout = time.Duration(ttr) * time.Microsecond
		if trace.Valid {
			e.Body = &job.Body{
				Type: e.Type, TraceID: trace.String, MessageID: message.String, Meta: json.RawMessage(meta), Payload: payload, Envelope: envelope,
			}
		}
		if i := slices.IndexFunc(replays, func(r job.Replay) bool { return r.Run == run }); i >= 0 {
			replays[i].Earlier = e
		}
		ids, changed = append(ids, id), append(changed, e)
		return err
	}, seq)
	for i, e := range changed {
		policy, policyErr := p.get(src, ids[i])
		if policyErr != nil {
			return policyErr
		}
		e.Policy, e.Origins = policy.Policy, policy.Origins
	}
	return err
}
