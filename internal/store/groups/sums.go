package groups

import (
	"maps"
	"slices"
	"strings"

	"redrive/internal/failures"
	"redrive/internal/fingerprint"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// sums is what one transaction counts for error groups.
type sums struct {
	rows   []groupRow // of new groups, in the order of their numbers
	groups map[int64]*sum
	hours  map[hourKey]hourSum
	queues map[queueKey]int64
}

// groupRow is what the row of a new group begins with.
type groupRow struct {
	group
	typ   string // of the job that failed first
	cause fingerprint.Cause
	at    int64 // when it failed, in microseconds
}

// sum is what one transaction counts for a group.
type sum struct {
	failures                      int64 // failures of the transaction
	dead, refused, retrying       int64 // how many more jobs of the group are dead, refused or not over yet; can be negative
	replayed, recovered, relapsed int64 // jobs that were replayed, and replayed runs that succeeded or failed again
	first                         int64 // when the oldest failure of the transaction happened, in microseconds
	seen                          int64 // when the newest one did; 0: there was no failure
	sampleSeq, sampleExecution    int64 // the job of the newest one, and its attempt
}

// hourKey is an hour, since 1970, in which a group had failures.
type hourKey struct{ group, hour int64 }

// hourSum counts the failures of an hour, and those of them after which there is no retry.
type hourSum struct{ failures, final int64 }

// queueKey is a queue in which a group had failures.
type queueKey struct {
	group  int64
	queue  string
	source string // the source that has the queue; "": it is a queue of our own
}

func newSums() sums {
	return sums{groups: map[int64]*sum{}, hours: map[hourKey]hourSum{}, queues: map[queueKey]int64{}}
}

// of returns the sum of a group, a new one if the transaction has counted nothing for it yet.
func (s *sums) of(id int64) *sum {
	g := s.groups[id]
	if g == nil {
		g = new(sum)
		s.groups[id] = g
	}

	return g
}

// job adds n jobs that are like j to the group of j: to the dead ones, the refused ones, or
// those that have not ended. A job without a group, or one that succeeded, counts nowhere.
func (s *sums) job(j *job.Job, n int64) {
	switch {
	case j.Group == 0:
	case j.DeadLetter == job.DeadLetterStored:
		s.of(j.Group).dead += n
	case j.DeadLetter == job.DeadLetterRefused:
		s.of(j.Group).refused += n
	case j.Cancellable() || j.State == job.Returning || j.State == job.Returned:
		s.of(j.Group).retrying += n
	}
}

// failure counts a failure of a group, which happened at a time in microseconds.
func (s *sums) failure(id int64, f projection.Failure, at int64) {
	d := s.of(id)
	d.failures++
	if d.first == 0 || at < d.first {
		d.first = at
	}

	// The newest failure becomes the sample of the group (see Projection.sample).
	if at >= d.seen {
		d.seen, d.sampleSeq, d.sampleExecution = at, f.Job.Seq, int64(f.Execution)
	}

	// Count it for its hour and its queue.
	k := hourKey{id, at / db.MicrosPerHour}

	hour := s.hours[k]
	hour.failures++
	if f.Final {
		hour.final++
	}

	s.hours[k] = hour
	s.queues[queueKey{id, f.Job.Queue, f.Job.Source}]++
}

// RunsEnded counts which replayed runs succeeded and which failed again, each for the group of
// the failure that was replayed.
func (p *Projection) RunsEnded(t *db.Tx, runs []projection.EndedRun) error {
	in := p.gathered.In(t)
	for _, r := range runs {
		if !p.exists(in, r.Origin) {
			continue
		}

		switch r.Outcome {
		case operation.RunSucceeded:
			in.of(r.Origin).recovered++
		case operation.RunRelapsed:
			in.of(r.Origin).relapsed++
		}
	}

	return nil
}

// exists reports whether a group of the last commit was not removed in this transaction.
func (p *Projection) exists(in *gathered, id int64) bool {
	fingerprint, known := p.fingerprints[id]
	return known && !in.removed[fingerprint]
}

// Flush writes the sums, and opens the groups whose failures meet their condition. It can be
// called more than once in a transaction: each call writes what was gathered since the last.
func (p *Projection) Flush(t *db.Tx) error {
	in := p.gathered.In(t)
	if len(in.groups) == 0 {
		return nil
	}

	err := db.Steps(t, p.flushNew, p.flushGroups, p.flushHours, p.flushQueues, p.flushFailures, p.learnOpened)

	in.sums = newSums() // so that the next call does not write the same once more

	return db.Wrap(err, "write the error groups")
}

// flushNew writes the rows of new groups.
func (p *Projection) flushNew(t *db.Tx) error {
	const insert = `INSERT INTO groups (id, fingerprint, type, class, message, frames, state, first_seen, last_seen,
			sample_seq, sample_execution, failures, dead, refused, retrying, replayed, recovered, relapsed, source)
		VALUES ($1, $2, $3, $4, $5, $6, 'open', $7, $7, 0, 0, 0, 0, 0, 0, 0, 0, 0, $8)`

	for _, r := range p.gathered.In(t).rows {
		c := r.cause

		err := t.Run(insert, r.id, c.Fingerprint, r.typ, c.Class, c.Message, strings.Join(c.Frames, "\n"), r.at, r.source)
		if err != nil {
			return err
		}
	}

	return nil
}

// flushGroups adds the sums to the rows of their groups. There are two statements, because one
// that sets dead, refused or retrying rewrites the index entry of a group even if their values
// stay the same, and an act on many jobs can touch hundreds of groups. Groups in which none of
// the three changes get the statement that leaves them alone.
func (p *Projection) flushGroups(t *db.Tx) error {
	const counts = `failures = failures + d.column2, replayed = replayed + d.column3,
		recovered = recovered + d.column4, relapsed = relapsed + d.column5`
	const update, from, where = `UPDATE groups SET `, ` FROM (VALUES `, `) AS d WHERE groups.id = d.column1`
	countsOnly := db.NewBatch(5, update+counts+from, where)
	const jobs = `, dead = dead + d.column6, refused = refused + d.column7, retrying = retrying + d.column8`
	countsAndJobs := db.NewBatch(8, update+counts+jobs+from, where)
	values := func(id int64, d *sum) []any { return []any{id, d.failures, d.replayed, d.recovered, d.relapsed} }

	// AddSums skips a group for which the function returns nil.
	err := db.AddSums(t, countsOnly, p.gathered.In(t).groups, func(id int64, d *sum) []any {
		if d.moved() {
			return nil
		}
		return values(id, d)
	})
	if err != nil {
		return err
	}

	return db.AddSums(t, countsAndJobs, p.gathered.In(t).groups, func(id int64, d *sum) []any {
		if !d.moved() {
			return nil
		}
		return append(values(id, d), d.dead, d.refused, d.retrying)
	})
}

// moved reports whether the group has more or fewer jobs than before that are dead, refused or
// not over yet.
func (d *sum) moved() bool { return d.dead != 0 || d.refused != 0 || d.retrying != 0 }

// flushHours counts failures by the hour.
func (p *Projection) flushHours(t *db.Tx) error {
	rows := db.NewBatch(4, `INSERT INTO group_hours (group_id, hour, failures, final) VALUES `, ` ON CONFLICT (group_id, hour)
		DO UPDATE SET failures = group_hours.failures + excluded.failures, final = group_hours.final + excluded.final`)
	return db.AddSums(t, rows, p.gathered.In(t).hours, func(k hourKey, n hourSum) []any { return []any{k.group, k.hour, n.failures, n.final} })
}

// flushQueues counts failures by the queues of their jobs.
func (p *Projection) flushQueues(t *db.Tx) error {
	rows := db.NewBatch(4, `INSERT INTO group_queues (group_id, queue, source, failures) VALUES `,
		` ON CONFLICT (group_id, queue) DO UPDATE SET failures = group_queues.failures + excluded.failures`)
	return db.AddSums(t, rows, p.gathered.In(t).queues, func(k queueKey, n int64) []any { return []any{k.group, k.queue, k.source, n} })
}

// keptHours is how much of a group's history is kept: a month.
const keptHours = 31 * 24

// flushFailures does three things for each group that had failures: it opens the group if the
// failures meet its condition (see reopen), deletes the hours that are too old, and writes which
// failure is the newest. The condition is tested against the stored row of the group, so the
// sums have to be written before.
func (p *Projection) flushFailures(t *db.Tx) error {
	const forget = `DELETE FROM group_hours WHERE group_id = $1 AND hour < $2`

	// A failure that came late, after a newer one was written, leaves the newest and its time
	// as they are. $5 and $6 are the length of an hour and the hours of a day: the day ends
	// with the hour of the newest failure.
	const newest = `UPDATE groups SET last_seen = CASE WHEN last_seen < $2 THEN $2 ELSE last_seen END,
			sample_seq = CASE WHEN last_seen <= $2 THEN $3 ELSE sample_seq END,
			sample_execution = CASE WHEN last_seen <= $2 THEN $4 ELSE sample_execution END,
			day = (SELECT sum(failures) FROM group_hours WHERE group_id = $1
				AND hour > CASE WHEN last_seen < $2 THEN $2 ELSE last_seen END / $5 - $6)
		WHERE id = $1`

	in := p.gathered.In(t)

	hours := map[int64]db.Numbers{} // the hours in which each group failed
	for k := range in.hours {
		hours[k.group] = append(hours[k.group], k.hour)
	}

	// Every writer locks groups in ascending order, so that no two wait for each other.
	for _, id := range slices.Sorted(maps.Keys(in.groups)) {
		d := in.groups[id]
		if d.seen == 0 { // it had no failure
			continue
		}

		err := db.Steps(t,
			db.Any(reopen, id, d.first, d.seen, hours[id], int64(db.MicrosPerHour),
				string(failures.ByFailure), string(failures.ByDate), string(failures.ByCount), string(failures.ByRate)),
			db.Any(forget, id, d.seen/db.MicrosPerHour-keptHours),
			db.Any(newest, id, d.seen, d.sampleSeq, d.sampleExecution, int64(db.MicrosPerHour), lastDay))
		if err != nil {
			return err
		}
	}

	return nil
}

// reopen opens the group $1 if a person has resolved it, or if a person ignores it until
// something that has happened now: until a time, until a number of failures, or until a number
// of failures within one hour of the clock (see [failures.Patience]). Of the hours, those before
// the hour of the newest stored failure no longer count.
//
// The group had failures in this transaction: the first at $2, the last at $3, in the hours $4.
// $5 is the length of an hour. $6 to $9 are the values of reopened_by: after a failure, at a
// time, at a count, and at a rate.
const reopen = `UPDATE groups SET state = 'open',
		reopened_at = CASE state WHEN 'resolved' THEN $2 ELSE $3 END,
		reopened_by = CASE
			WHEN state = 'resolved' THEN $6
			WHEN until > 0 AND until <= $3 THEN $7
			WHEN until_count > 0 AND failures >= until_count THEN $8
			ELSE $9 END
	WHERE id = $1 AND (state = 'resolved' OR state = 'ignored' AND (
		until > 0 AND until <= $3
		OR until_count > 0 AND failures >= until_count
		OR until_rate > 0 AND EXISTS (SELECT 1 FROM group_hours AS h WHERE h.group_id = $1
			AND h.hour IN (SELECT value FROM json_each($4)) AND h.hour >= last_seen / $5 AND h.failures >= until_rate)))`

// learnOpened asks which groups flushFailures has opened, so that memory counts them as open.
// Only groups that were resolved or ignored and had failures can be among them.
func (p *Projection) learnOpened(t *db.Tx) error {
	const query = `SELECT id FROM groups WHERE id IN (SELECT value FROM json_each($1)) AND state = 'open'`

	in := p.gathered.In(t)

	var candidates []int64
	for id, d := range in.groups {
		decided, changed := in.decided[id]
		if !changed {
			decided = p.decided[id]
		}

		if decided && d.seen > 0 {
			candidates = append(candidates, id)
		}
	}

	if len(candidates) == 0 {
		return nil
	}

	return t.Ask(query, func(id int64) { in.decided[id] = false }, db.Numbers(candidates))
}
