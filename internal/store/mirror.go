package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"redrive/internal/fingerprint"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/source"
	"redrive/internal/stats"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
	"redrive/internal/store/rows"
	"redrive/internal/store/sources"
)

// mirrorRows is what the record of a source writes, roughly.
const mirrorRows = 6

// mirrored is a record with the job that shows it, as far as that is known before the
// transaction.
type mirrored struct {
	*source.Record
	job    job.Job
	policy rows.PolicyText
	cause  fingerprint.Cause
}

// Mirror takes over the dead letters of a source:
//
//   - A new record becomes a job in the dead-letter queue, at the time when it died.
//   - A record that has died again, or that is back after it had left, is another run of
//     its job, which has failed.
//   - A record that is still there as it was, although an act took its job out of the dead
//     letters, brings the job back: the source did not do it, or was never told.
//   - A record on which an act is under way is left alone until the act has ended.
//
// Two records with one key are one record. Mirror returns how many jobs came or changed.
func (s *Store) Mirror(ctx context.Context, now time.Time, name string, records []source.Record) (int, error) {
	all := make([]mirrored, len(records))
	jobs := make([]job.Job, len(records))
	for i := range records {
		all[i] = s.mirrored(now, name, &records[i])
		jobs[i] = all[i].job
	}

	for i, text := range s.policies.Texts(jobs) {
		all[i].policy = text
	}

	size := sizeOf(jobs)
	size.Rows *= mirrorRows
	size.Account = name

	return db.WriteLarge(ctx, s.writer, size, func(t *db.Tx) (n int, err error) {
		s.place(t, name, all)

		byKey, byThread, err := sources.Lookup(t, name, records)
		if err != nil {
			return 0, err
		}

		var fresh []*mirrored

		met := make(map[string]bool, len(all))
		deaths := newDeaths(now, name)
		for i := range all {
			r := &all[i]
			known, ok := recognised(r, byKey, byThread)

			key := db.Clean(r.Key)
			twice := met[key]
			met[key] = true

			// A record under another key is another death, even if nothing else tells the two apart.
			same := ok && known.Key == key && known.Version == r.Version()
			switch {
			case twice || ok && (known.UnderWay || known.Present && same):
				continue
			case ok && same && known.Doubt != 0:
				err = s.foundAgain(t, now, known)
			case ok:
				err = s.diedAgain(t, deaths, known.Seq, r)
			default:
				fresh = append(fresh, r)
			}

			if err != nil {
				return 0, fmt.Errorf("mirror %s of source %s: %w", r.Key, name, err)
			}

			n++
		}

		return n, db.Steps(t, func(t *db.Tx) error { return s.appear(t, deaths, fresh) }, deaths.flush)
	})
}

// recognised returns what the mirror knows of a record, by its key or else by its thread. A
// record whose thread belongs to another record that is at the source, too, is another job.
func recognised(r *mirrored, byKey, byThread map[string]sources.Known) (known sources.Known, ok bool) {
	known, ok = byKey[db.Clean(r.Key)]
	if ok {
		return known, true
	}

	known, ok = byThread[db.Clean(r.Lineage)]
	if !ok || known.UnderWay {
		return known, ok
	}

	_, beside := byKey[known.Key]

	return known, !known.Present && !beside
}

// deaths gathers what is written of many jobs that died at a source.
type deaths struct {
	now                  time.Time
	name                 string // of the source
	jobs, letters, notes db.Batch
}

func newDeaths(now time.Time, name string) *deaths {
	return &deaths{
		now: now, name: name, letters: db.NewBatch(14, insertLetters, ""), notes: sources.NewNotes(),
		jobs: db.NewBatch(10, `UPDATE jobs SET run = d.column2, attempts = d.column3, execution = d.column4, state = 'discarded',
				list_state = 'discarded', letter = 'stored', changed_at = d.column5, reason = d.column6,
				error_type = d.column7, error_message = d.column8, group_id = d.column9, unbegun = 0,
				finished_at = d.column10
			FROM (VALUES `, `) AS d WHERE seq = d.column1`),
	}
}

func (d *deaths) flush(t *db.Tx) error {
	return db.Steps(t, d.jobs.Flush, d.letters.Flush, d.notes.Flush)
}

// mirrored is the job that a record makes. What the source does not say stays unknown: a time
// is zero, a number of attempts too, and no policy or time limit of Redrive is made up for a
// job that Redrive never runs. Only ChangedAt must be set: to when the job failed, or to
// now, when Redrive saw it first. A time in the future becomes now.
func (s *Store) mirrored(now time.Time, name string, r *source.Record) mirrored {
	now = now.UTC().Truncate(time.Microsecond)

	failed := plausible(now, r.FailedAt)
	made := plausible(now, r.CreatedAt)
	if !failed.IsZero() && made.After(failed) {
		made = failed
	}

	since := failed
	if since.IsZero() {
		since = now
	}

	j := job.Job{
		Token: job.Token{ID: job.NewID(), Run: 1}, Queue: source.Queue(name, r.Queue), Source: name, Type: r.Type, State: job.Discarded,
		Payload: r.Payload, Meta: r.Meta, RunAt: made, EnqueuedAt: made, ChangedAt: since, FinishedAt: failed,
		DeadLetter: job.DeadLetterStored, Attempts: r.Attempts, Reason: source.ReasonOf(r), Error: r.Error,
	}
	if r.Limit > 0 {
		j.Policy.MaxAttempts, j.Origins = max(r.Limit, r.Attempts), job.Origins{"max_attempts": "source:" + name}
	}

	for _, text := range []*string{&j.Type, &j.Error.Type, &j.Error.Message, &r.Trace} {
		*text = db.Clean(*text)
	}

	if j.Payload == nil {
		j.Payload = []byte{}
	}

	return mirrored{Record: r, job: j, cause: fingerprint.Of(j.Type, j.Error.Type, j.Error.Message, r.Trace)}
}

// place puts the jobs of records into the queues for which their source has places. All
// others share one queue. Where a record belongs stays in its metadata when its job is in a
// queue of another name, and at the source, which is where a replay takes it from.
func (s *Store) place(t *db.Tx, name string, all []mirrored) {
	wanted := make([]string, len(all))
	for i := range all {
		wanted[i] = source.Queue(name, all[i].Record.Queue)
	}

	refused := s.Counters.Claim(t, name, wanted)

	for i := range all {
		r := &all[i]
		r.job.Queue = wanted[i]
		if refused[wanted[i]] {
			r.job.Queue = source.Overflow(name)
		}

		r.job.Meta = source.WithQueue(r.Record.Meta, r.job.Queue, r.Record.Queue)
	}
}

// endOfTime is the first second after the year 9999, since 1970.
const endOfTime = 253402300800

// plausible is a time that a source says. It is zero if the source says none, or one that
// cannot be: not after the first second of 1970, or after the year 9999. The bounds come
// first, since a time that has overflowed is neither before nor after another one.
func plausible(now, t time.Time) time.Time {
	if seconds := t.Unix(); seconds <= 0 || seconds >= endOfTime {
		return time.Time{}
	}

	if t.After(now) {
		return now
	}

	return t.UTC().Truncate(time.Microsecond)
}

// appear makes the jobs of new records. It inserts all jobs first, because statements in
// between would split the batch. What failed first comes first, so that lists
// in the order of arrival have it in that order, too.
func (s *Store) appear(t *db.Tx, d *deaths, fresh []*mirrored) error {
	slices.SortStableFunc(fresh, func(a, b *mirrored) int { return a.job.ChangedAt.Compare(b.job.ChangedAt) })

	for _, r := range fresh {
		policy, err := s.policies.ID(t, r.policy)
		if err != nil {
			return err
		}

		r.job.Seq, err = s.numbers.number(t)
		if err != nil {
			return err
		}

		r.job.Execution, r.job.Group = 0, 0 // die has set them, if this is a repeat after a rollback
		if err := s.in(t).arrivals.add(t, &r.job, policy); err != nil {
			return err
		}
	}

	for _, r := range fresh {
		if err := s.die(t, d, nil, &r.job, r); err != nil {
			return fmt.Errorf("mirror %s of source %s: %w", r.Key, d.name, err)
		}
	}

	return nil
}

// diedAgain ends the run of a job whose record died again: the run that a replay began,
// or one that was begun elsewhere.
func (s *Store) diedAgain(t *db.Tx, d *deaths, seq int64, r *mirrored) error {
	const query = rows.Whole + ` WHERE seq = $1`

	from, err := rows.One(s.policies.Whole(t, query, seq))
	if err != nil {
		return err
	}

	from, err = s.renew(t, from, r)
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
		err = s.replayedElsewhere(t, from, d.name, to.ChangedAt)
	case from.Unbegun:
		err = sources.Happened(t, from.Seq, from.Run, "The job has run and failed again since.")
	}

	if err != nil {
		return err
	}

	if err := sources.Forget(t, d.name, to.Seq, r.Key); err != nil {
		return err
	}

	if err := s.die(t, d, &from, &to, r); err != nil {
		return err
	}

	return d.flush(t) // the next record can be of the same job
}

// underWay reports whether a replay has begun the run of a job that its source has, or is to
// get.
func underWay(j job.Job) bool { return j.State == job.Returning || j.State == job.Returned }

// renew gives a job the queue, the type and the payload that its record has by now, if they
// differ: a person has changed the record, or the source has given its key to another job. A
// replay runs what the source has, so that is what the job shows. The previous run keeps what
// it had.
func (s *Store) renew(t *db.Tx, from job.Job, r *mirrored) (job.Job, error) {
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
		return s.rework(t, from, change)
	}

	// A replay has begun the next run already. If it changed the payload, the run before has
	// its own.
	earlier, err := db.Value[bool](t, `SELECT EXISTS (SELECT 1 FROM earlier_runs WHERE job_seq = $1 AND run = $2)`, from.Seq, from.Run-1)
	if err == nil && !earlier {
		err = s.keepEarlier(t, from, from.Run-1, change)
	}

	if err != nil {
		return from, err
	}

	return s.apply(t, from, change)
}

// foundAgain puts a job back whose record is still at the source as it was, although an act
// took the job out of the dead letters. Either the fate of the act is unknown, and a copy of
// the job may be in its queue, or the source was never told. No run has failed, so nothing
// is counted.
func (s *Store) foundAgain(t *db.Tx, now time.Time, known sources.Known) error {
	act, seq, err := sources.ByID(t, known.Doubt)
	if err != nil {
		return err
	}

	from, err := rows.One(s.policies.Whole(t, rows.Whole+` WHERE seq = $1`, seq))
	if err != nil {
		return err
	}

	if err := sources.Present(t, seq); err != nil {
		return err
	}

	t.Touch()

	if act.Kind == source.Discard {
		return s.RestoreAll(t, []job.Job{from})
	}

	return s.comesBack(t, now, from, act)
}

// replayedElsewhere writes down that a run was followed by another one that began at the
// source, and takes the job out of the trash if it is there.
func (s *Store) replayedElsewhere(t *db.Tx, from job.Job, name string, at time.Time) error {
	const record = `INSERT INTO replays (job_seq, run, state, reason, attempts, at, by, group_id, operation_id)
		SELECT seq, run, state, reason, attempts, $2, $3, group_id, 0 FROM jobs WHERE seq = $1`

	err := t.ExecExactly(1, record, from.Seq, db.Micros(at), elsewhere(name))
	if err != nil {
		return err
	}

	return s.leaveTrash(t, []job.Job{from})
}

// elsewhere names who began a run that was not begun here.
func elsewhere(name string) string { return "the source " + name }

// die writes down that a job died at its source, from nil when it is new.
func (s *Store) die(t *db.Tx, d *deaths, from, to *job.Job, r *mirrored) error {
	if err := s.addFailures(t, d.now, to, r); err != nil {
		return err
	}

	if err := s.projections.Failed(t, projection.Failure{Cause: r.cause, Job: to, Execution: to.Execution, Final: true}); err != nil {
		return err
	}

	err := d.jobs.Add(t, to.Seq, to.Run, to.Attempts, to.Execution, db.Micros(to.ChangedAt), string(to.Reason),
		to.Error.Type, to.Error.Message, to.Group, db.Micros(to.FinishedAt))
	if err != nil {
		return err
	}

	err = d.letters.Add(t, letterRow(to.Seq, job.DeadLetter{
		Run: to.Run, Reason: to.Reason, Error: to.Error.Message, Exception: to.Error.Type, FailedAt: to.FinishedAt,
		Queue: to.Queue, Attempts: to.Attempts,
	})...)
	if err != nil {
		return err
	}

	s.in(t).ended(to, operation.RunRelapsed, to.ChangedAt)
	s.moved(t, from, to, stats.Totals{})

	return sources.Note(t, &d.notes, d.name, to.Seq, d.now, r.Record)
}

// addFailures writes down the failures that a source knows of: those before the last
// one when the job is new here, and the last one. Sources say when an attempt failed, and
// not when it began. A source that does not count its attempts has one, without a number.
func (s *Store) addFailures(t *db.Tx, now time.Time, to *job.Job, r *mirrored) error {
	failed := job.Attempt{Run: to.Run, Outcome: job.Failed, DecidedBy: "source"}
	if to.Execution == 0 {
		for _, f := range r.History {
			to.Execution++
			a := failed

			a.Execution, a.Number, a.FinishedAt = to.Execution, f.Number, plausible(now, f.At)
			a.Error, a.Trace = f.Error, f.Trace
			if err := rows.AddAttempt(t, &s.in(t).attempts, to.Seq, a); err != nil {
				return err
			}
		}
	}

	to.Execution++
	a := failed
	a.Execution, a.Number, a.FinishedAt = to.Execution, to.Attempts, to.FinishedAt
	a.Error, a.Trace, a.Action = to.Error, r.Trace, retry.DeadLetter

	return rows.AddAttempt(t, &s.in(t).attempts, to.Seq, a)
}

// Vanished ends the jobs whose records have left their source: they were replayed or
// discarded there, or the source removed them. It skips jobs on which an act is under way.
// The jobs are kept for as long as other discarded jobs. It returns how many jobs it ended.
func (s *Store) Vanished(ctx context.Context, now time.Time, name string, seqs []int64) (int, error) {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE (letter = 'stored' OR state = 'returned') AND seq IN (
		SELECT job_seq FROM mirrored WHERE source = $1 AND lies = 1 AND job_seq IN (SELECT value FROM json_each($2)))
		AND seq NOT IN (SELECT job_seq FROM source_acts WHERE source = $1 AND state IN ('asked', 'begun'))`

	return db.Write(ctx, s.writer, len(seqs), func(t *db.Tx) (int, error) {
		jobs, err := s.policies.Jobs(t, query, name, db.Numbers(seqs))
		if err != nil || len(jobs) == 0 {
			return 0, err
		}

		return len(jobs), s.vanish(t, now, jobs)
	})
}

// vanish ends jobs whose records are gone.
func (s *Store) vanish(t *db.Tx, now time.Time, jobs []job.Job) error {
	const update = `UPDATE jobs SET state = 'discarded', list_state = 'discarded', letter = '', unbegun = 0, reason = $2,
			changed_at = $3, finished_at = $3
		WHERE seq IN (SELECT value FROM json_each($1))`
	at := db.FromMicros(db.Micros(now))
	if err := t.ExecExactly(len(jobs), update, rows.Seqs(jobs), string(retry.GoneAtSource), db.Micros(now)); err != nil {
		return err
	}

	for i := range jobs {
		s.in(t).ended(&jobs[i], operation.RunDropped, now)
	}

	numbers := rows.Numbers(jobs)
	s.moveAll(t, jobs, stats.Totals{}, func(j *job.Job) {
		j.State, j.DeadLetter = job.Discarded, job.NoDeadLetter
		j.Reason, j.ChangedAt, j.FinishedAt = retry.GoneAtSource, at, at
		j.Unbegun = false
	})

	return sources.Left(t, numbers)
}
