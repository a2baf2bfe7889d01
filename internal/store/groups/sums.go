package groups

import (
	"maps"
	"slices"

	"redrive/internal/failures"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// sums is what one transaction counts for error groups.
type sums struct {
	groups map[int64]*sum
	hours  map[hourKey]hourSum
	queues map[queueKey]int64
}

// sum is what one transaction counts for a group: how many failures it had, how
// many more of its jobs are dead, refused or wait to be tried again, and how many of
// them were replayed and how that went.
type sum struct {
	failures, dead, refused, retrying, replayed, recovered, relapsed int64
	first                                                            int64 // the time of the oldest failure
	seen, sampleSeq, sampleExecution                                 int64 // of the newest failure
}

// hourKey is an hour, since 1970, in which a group had failures.
type hourKey struct{ group, hour int64 }

// hourSum counts the failures of an hour, and those after which no retry came.
type hourSum struct{ failures, final int64 }

// queueKey is a queue in which a group had failures.
type queueKey struct {
	group  int64
	queue  string
	source string // whose queue it is, or empty
}

func newSums() sums { return sums{map[int64]*sum{}, map[hourKey]hourSum{}, map[queueKey]int64{}} }

// of returns the sums of a group, for which there may be none yet.
func (s *sums) of(id int64) *sum {
	g := s.groups[id]
	if g == nil {
		g = new(sum)
		s.groups[id] = g
	}

	return g
}

// job counts n jobs as j under the group of its newest failure: as dead, as
// refused, or as one that is not over yet.
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

// failure counts a failure that belongs to a group.
func (s *sums) failure(id int64, f projection.Failure, at int64) {
	d := s.of(id)
	d.failures++
	if d.first == 0 || at < d.first {
		d.first = at
	}

	// The newest failure stands for all (see sample).
	if at >= d.seen {
		d.seen, d.sampleSeq, d.sampleExecution = at, f.Job.Seq, int64(f.Execution)
	}

	k := hourKey{id, at / db.MicrosPerHour}

	hour := s.hours[k]
	hour.failures++
	if f.Final {
		hour.final++
	}

	s.hours[k] = hour
	s.queues[queueKey{id, f.Job.Queue, f.Job.Source}]++
}

// RunsEnded counts, for the groups from which replayed runs came, how they
// ended.
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

	err := db.Steps(t, p.flushGroups, p.flushHours, p.flushQueues, p.flushFailures, p.learnOpened)

	// What is written is not written again.
	in.sums = newSums()

	return db.Wrap(err, "write the error groups")
}

// flushGroups adds to the sums of groups. An act on many jobs touches hundreds of them. A
// statement that sets dead, refused or retrying rewrites the group's index entry even
// if all stay the same, so groups whose replays are only counted have a statement
// without them.
func (p *Projection) flushGroups(t *db.Tx) error {
	const counts = `failures = failures + d.column2, replayed = replayed + d.column3,
		recovered = recovered + d.column4, relapsed = relapsed + d.column5`
	const update, from, where = `UPDATE groups SET `, ` FROM (VALUES `, `) AS d WHERE groups.id = d.column1`
	some := db.NewBatch(5, update+counts+from, where)
	const jobs = `, dead = dead + d.column6, refused = refused + d.column7, retrying = retrying + d.column8`
	all := db.NewBatch(8, update+counts+jobs+from, where)
	values := func(id int64, d *sum) []any { return []any{id, d.failures, d.replayed, d.recovered, d.relapsed} }

	err := db.AddSums(t, some, p.gathered.In(t).groups, func(id int64, d *sum) []any {
		if d.moved() {
			return nil
		}
		return values(id, d)
	})
	if err != nil {
		return err
	}

	return db.AddSums(t, all, p.gathered.In(t).groups, func(id int64, d *sum) []any {
		if !d.moved() {
			return nil
		}
		return append(values(id, d), d.dead, d.refused, d.retrying)
	})
}

// moved reports whether jobs of the group are dead, refused or waiting that were not
// before, or no longer are.
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

// flushFailures opens each group that had failures if these meet its condition, writes what is
// known of the newest one, and forgets the oldest hours. The condition is tested against what
// is stored of the group, so the sums have to be written before.
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

	hours := map[int64]db.Numbers{} // in which each group failed
	for k := range in.hours {
		hours[k.group] = append(hours[k.group], k.hour)
	}

	// The order is ascending, as that of every writer: none waits for another in a circle.
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

// reopen opens the group $1, whose failures of this transaction came between $2 and $3 and in
// the hours $4, if a person resolved it, or ignores it until a time, a number of failures, or
// a number of them within one hour by the clock that is reached. An hour before that of the
// newest failure so far is over. The conditions are those of [failures.Patience], $6 to $9 are
// what they are called, and $5 is the length of an hour.
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

// learnOpened reads which of the groups about which a person had decided are open now, for
// the number of open groups.
func (p *Projection) learnOpened(t *db.Tx) error {
	const query = `SELECT id FROM groups WHERE id IN (SELECT value FROM json_each($1)) AND state = 'open'`

	in := p.gathered.In(t)

	var asked []int64
	for id, d := range in.groups {
		decided, changed := in.decided[id]
		if !changed {
			decided = p.decided[id]
		}

		if decided && d.seen > 0 {
			asked = append(asked, id)
		}
	}

	if len(asked) == 0 {
		return nil
	}

	opened, err := db.All(t, query, func(id *int64) []any { return []any{id} }, db.Numbers(asked))
	for _, id := range opened {
		in.decided[id] = false
	}

	return err
}
