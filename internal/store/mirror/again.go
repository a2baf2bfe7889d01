package mirror

import (
	"bytes"
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
	"redrive/internal/store/sources"
)

// diedAgain ends the run of a job whose record died again: the run that a replay began,
// or one that was begun elsewhere.
func (m *Mirror) diedAgain(t *db.Tx, d *deaths, seq int64, r *mirrored) error {
	const query = rows.Whole + ` WHERE seq = $1`

	from, err := rows.One(m.policies.Whole(t, query, seq))
	if err != nil {
		return err
	}

	from, err = m.renew(t, from, r)
	if err != nil {
		return fmt.Errorf("take over what has changed of job %s: %w", from.ID, err)
	}

	to := from
	to.State, to.DeadLetter = job.Discarded, job.DeadLetterStored
	to.Attempts, to.Error = r.job.Attempts, r.job.Error
	to.Unbegun, to.Worker = false, ""

	to.Reason = r.job.Reason
	to.FinishedAt, to.ChangedAt = r.job.FinishedAt, r.job.ChangedAt
	if !to.ChangedAt.After(from.ChangedAt) { // by two clocks
		to.ChangedAt = from.ChangedAt.Add(time.Microsecond)
	}

	switch {
	case !underWay(from):
		to.Run++
		err = m.replayedElsewhere(t, from, d.source, to.ChangedAt)
	case from.Unbegun:
		err = sources.Happened(t, from.Seq, from.Run, "The job has run and failed again since.")
	}

	if err != nil {
		return err
	}

	if err := sources.Forget(t, d.source, to.Seq, r.Key); err != nil {
		return err
	}

	return m.die(t, d, &from, &to, r)
}

// underWay reports whether a replay has begun the run of a job that its source has, or is to
// get.
func underWay(j job.Job) bool { return j.State == job.Returning || j.State == job.Returned }

// renew gives a job the queue, the type and the payload that its record has by now, if they
// differ: a person has changed the record, or the source has given its key to another job. A
// replay runs what the source has, so that is what the job shows. The previous run keeps what
// it had.
func (m *Mirror) renew(t *db.Tx, from job.Job, r *mirrored) (job.Job, error) {
	var change job.Edit
	if r.job.Queue != from.Queue {
		change.Queue = r.job.Queue
	}

	if r.job.Type != from.Type || !bytes.Equal(r.job.Payload, from.Payload) {
		body := from.Body()
		body.Type, body.Meta, body.Payload = r.job.Type, r.job.Meta, r.job.Payload
		change.Body = &body
	}

	if change.Empty() {
		return from, nil
	}

	if !underWay(from) {
		return m.core.Edit(t, from, change)
	}

	// A replay has begun the next run already. If it changed the payload, the run before has
	// its own.
	earlier, err := db.Value[bool](t, `SELECT EXISTS (SELECT 1 FROM earlier_runs WHERE job_seq = $1 AND run = $2)`, from.Seq, from.Run-1)
	if err == nil && !earlier {
		err = m.core.KeepEarlier(t, from, from.Run-1, change)
	}

	if err != nil {
		return from, err
	}

	return m.core.Apply(t, from, change)
}

// foundAgain puts a job back whose record is still at the source as it was, although an act
// took the job out of the dead letters. Either the fate of the act is unknown, and a copy of
// the job may be in its queue, or the source was never told. No run has failed, so nothing
// is counted.
func (m *Mirror) foundAgain(t *db.Tx, now time.Time, known sources.Known) error {
	act, seq, err := sources.ByID(t, known.Doubt)
	if err != nil {
		return err
	}

	from, err := rows.One(m.policies.Whole(t, rows.Whole+` WHERE seq = $1`, seq))
	if err != nil {
		return err
	}

	if err := sources.Present(t, seq); err != nil {
		return err
	}

	t.Touch()

	if act.Kind == source.Discard {
		return m.core.Restore(t, []job.Job{from})
	}

	return m.comesBack(t, now, from, act)
}

// replayedElsewhere writes down that a run was followed by another one that began at the
// source, and takes the job out of the trash if it is there.
func (m *Mirror) replayedElsewhere(t *db.Tx, from job.Job, name string, at time.Time) error {
	const record = `INSERT INTO replays (job_seq, run, state, reason, attempts, at, by, group_id, operation_id)
		SELECT seq, run, state, reason, attempts, $2, $3, group_id, 0 FROM jobs WHERE seq = $1`

	err := t.ExecExactly(1, record, from.Seq, db.Micros(at), elsewhere(name))
	if err != nil {
		return err
	}

	return m.core.LeaveTrash(t, []job.Job{from})
}

// elsewhere names who began a run that was not begun here.
func elsewhere(name string) string { return "the source " + name }
