package mirror

import (
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/stats"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
	"redrive/internal/store/sources"
)

// deaths gathers what is written of many jobs that died at a source.
type deaths struct {
	now    time.Time
	source string

	jobs  db.Batch
	notes db.Batch
}

func newDeaths(now time.Time, name string) *deaths {
	return &deaths{
		now: now, source: name, notes: sources.NewNotes(),
		jobs: db.NewBatch(10, `UPDATE jobs SET run = d.column2, attempts = d.column3, execution = d.column4, state = 'discarded',
				list_state = 'discarded', letter = 'stored', changed_at = d.column5, reason = d.column6,
				error_type = d.column7, error_message = d.column8, group_id = d.column9, unbegun = 0,
				finished_at = d.column10
			FROM (VALUES `, `) AS d WHERE seq = d.column1`),
	}
}

func (d *deaths) flush(t *db.Tx) error { return db.Steps(t, d.jobs.Flush, d.notes.Flush) }

// appear makes the jobs of new records, in the order in which they failed: lists in the order
// of arrival have them in that order, too. It inserts all jobs first, because statements in
// between would split the batch.
func (m *Mirror) appear(t *db.Tx, d *deaths, fresh []*mirrored) error {
	for _, r := range fresh {
		policy, err := m.policies.ID(t, r.policy)
		if err != nil {
			return err
		}

		r.job.Execution, r.job.Group = 0, 0 // die has set them, if this is a repeat after a rollback

		err = m.core.Append(t, &r.job, policy)
		if err != nil {
			return err
		}
	}

	for _, r := range fresh {
		err := m.die(t, d, nil, &r.job, r)
		if err != nil {
			return fmt.Errorf("mirror %s of source %s: %w", r.Key, d.source, err)
		}
	}

	return nil
}

// die writes down that a job died at its source, from nil when it is new.
func (m *Mirror) die(t *db.Tx, d *deaths, from, to *job.Job, r *mirrored) error {
	err := m.addFailures(t, d.now, to, r)
	if err != nil {
		return err
	}

	err = m.core.Fail(t, projection.Failure{Cause: r.cause, Job: to, Execution: to.Execution, Final: true})
	if err != nil {
		return err
	}

	err = d.jobs.Add(t, to.Seq, to.Run, to.Attempts, to.Execution, db.Micros(to.ChangedAt), string(to.Reason),
		to.Error.Type, to.Error.Message, to.Group, db.Micros(to.FinishedAt))
	if err != nil {
		return err
	}

	err = m.core.AddDeadLetter(t, to.Seq, deadLetterOf(to, ""))
	if err != nil {
		return err
	}

	m.core.End(t, to, operation.RunRelapsed, to.ChangedAt)
	m.core.Move(t, from, to, stats.Totals{})

	return sources.Note(t, &d.notes, d.source, to.Seq, d.now, r.Record)
}

// deadLetterOf is the dead letter of a job as its failure left it, with what the source
// says about an act on it.
func deadLetterOf(j *job.Job, problem string) job.DeadLetter {
	return job.DeadLetter{
		Run: j.Run, Reason: j.Reason, Error: j.Error.Message, Exception: j.Error.Type, FailedAt: j.FinishedAt,
		Queue: j.Queue, Attempts: j.Attempts, Problem: problem,
	}
}

// addFailures writes down the failures that a source knows of: those before the last
// one when the job is new here, and the last one. Sources say when an attempt failed, and
// not when it began. A source that does not count its attempts has one, without a number.
func (m *Mirror) addFailures(t *db.Tx, now time.Time, to *job.Job, r *mirrored) error {
	failed := job.Attempt{Run: to.Run, Outcome: job.Failed, DecidedBy: "source"}
	if to.Execution == 0 {
		for _, f := range r.History {
			to.Execution++
			a := failed

			a.Execution, a.Number, a.FinishedAt = to.Execution, f.Number, plausible(now, f.At)
			a.Error, a.Trace = f.Error, f.Trace

			err := m.core.AddAttempt(t, to.Seq, a)
			if err != nil {
				return err
			}
		}
	}

	to.Execution++
	a := failed
	a.Execution, a.Number, a.FinishedAt = to.Execution, to.Attempts, to.FinishedAt
	a.Error, a.Trace, a.Action = to.Error, r.Trace, retry.DeadLetter

	return m.core.AddAttempt(t, to.Seq, a)
}
