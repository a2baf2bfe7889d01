package store

import (
	"database/sql"
	"fmt"
	"strings"
	"time"

	"redrive/internal/failures"
	"redrive/internal/fingerprint"
	"redrive/internal/job"
)

// group is what the writer keeps in memory of an error group: what a failure
// has to be held against.
type group struct {
	id       int64
	state    failures.State
	patience failures.Patience
	failures int64
	hour     int64 // the newest one that was counted, since 1970
	inHour   int64
}

// groupDelta is what one transaction counts for a group.
type groupDelta struct {
	failures, dead, retrying, replayed, recovered, relapsed int64
	seen, sampleSeq, sampleExecution                        int64 // of the newest failure
	opened                                                  failures.Reopening
	openedAt                                                int64
}

type groupHour struct{ group, hour int64 }

type hourDelta struct{ failures, final int64 }

type groupQueue struct {
	group int64
	queue string
}

// groupDeltas is the part of a delta that counts error groups.
type groupDeltas struct {
	groups      map[int64]*groupDelta
	groupHours  map[groupHour]hourDelta
	groupQueues map[groupQueue]int64
}

func newGroupDeltas() groupDeltas {
	return groupDeltas{map[int64]*groupDelta{}, map[groupHour]hourDelta{}, map[groupQueue]int64{}}
}

// group returns the sums of a group, for which there may be none yet.
func (d groupDeltas) group(id int64) *groupDelta {
	g := d.groups[id]
	if g == nil {
		g = new(groupDelta)
		d.groups[id] = g
	}
	return g
}

// stand counts n jobs as j under the group of its newest failure: as dead, or as
// one that is not over yet.
func (d groupDeltas) stand(j job.Job, n int64) {
	switch {
	case j.Group == 0:
	case j.Letter == job.LetterStored || j.Letter == job.LetterRefused:
		d.group(j.Group).dead += n
	case j.Cancellable():
		d.group(j.Group).retrying += n
	}
}

const microsPerHour = 60 * microsPerMinute

// failed counts a failure, and returns the number of the group to which it
// belongs. execution is 0 for a job that never ran; final: no retry follows.
func (t *tx) failed(c fingerprint.Cause, j job.Job, execution int, at int64, final bool) (int64, error) {
	g, err := t.groupOf(c, j.Type, at)
	if err != nil {
		return 0, fmt.Errorf("count a failure in group %s: %w", c.Fingerprint, err)
	}
	hour := at / microsPerHour
	g.failures++
	if hour > g.hour {
		g.hour, g.inHour = hour, 0
	}
	if hour == g.hour {
		g.inHour++
	}
	d := t.delta.group(g.id)
	d.failures++
	if at >= d.seen {
		d.seen, d.sampleSeq, d.sampleExecution = at, j.Seq, int64(execution)
	}
	if why := g.opens(fromMicros(at)); why != "" {
		g.state, d.opened, d.openedAt = failures.Open, why, at
	}
	k := groupHour{g.id, hour}
	sums := t.delta.groupHours[k]
	sums.failures++
	if final {
		sums.final++
	}
	t.delta.groupHours[k] = sums
	t.delta.groupQueues[groupQueue{g.id, j.Queue}]++
	return g.id, nil
}

// opens says why a failure now opens the group by itself.
func (g *group) opens(now time.Time) failures.Reopening {
	switch g.state {
	case failures.Resolved:
		return failures.ByFailure
	case failures.Ignored:
		return g.patience.Over(now, g.failures, g.inHour)
	}
	return ""
}

// groupOf returns the group of a cause as this transaction sees it, a new one
// for a cause that was never seen. Past the bound, that is the group "other".
func (t *tx) groupOf(c fingerprint.Cause, typ string, at int64) (*group, error) {
	if g := t.group(c.Fingerprint); g != nil {
		return g, nil
	}
	if t.countGroups() >= failures.MaxGroups {
		c = fingerprint.Cause{Fingerprint: failures.OtherGroup, Class: failures.OtherGroup, Message: "whatever was new after the first 10,000 error groups"}
		if typ = ""; t.group(c.Fingerprint) != nil {
			return t.group(c.Fingerprint), nil
		}
	}
	const insert = `INSERT INTO groups (id, fingerprint, type, class, message, frames, state, first_seen, last_seen,
			sample_seq, sample_execution, failures, dead, retrying, replayed, recovered, relapsed)
		VALUES ($1, $2, $3, $4, $5, $6, 'open', $7, $7, 0, 0, 0, 0, 0, 0, 0, 0)`
	g := &group{id: t.newestGroup + 1, state: failures.Open}
	_, err := t.exec(insert, g.id, c.Fingerprint, typ, c.Class, c.Message, strings.Join(c.Frames, "\n"), at)
	if err != nil {
		return nil, err
	}
	t.newestGroup = g.id
	t.groups[c.Fingerprint] = g
	return g, nil
}

// countGroups counts the groups as this transaction sees them.
func (t *tx) countGroups() int {
	n := len(t.rollup.groups)
	for fingerprint, g := range t.groups {
		switch known := t.rollup.groups[fingerprint] != nil; {
		case g != nil && !known:
			n++
		case g == nil && known:
			n--
		}
	}
	return n
}

// group returns a known group for this transaction to change, or nil.
func (t *tx) group(fingerprint string) *group {
	if g, changed := t.groups[fingerprint]; changed {
		return g
	}
	known := t.rollup.groups[fingerprint]
	if known == nil {
		return nil
	}
	g := *known
	t.groups[fingerprint] = &g
	return &g
}

// prove counts, for the groups from which replayed runs came, how they ended.
// runs is a JSON array as flushRuns makes it.
func (t *tx) prove(runs string) error {
	const query = `SELECT r.group_id, sum(e.value ->> 3 = 'succeeded'), sum(e.value ->> 3 = 'relapsed')
		FROM json_each($1) AS e JOIN replays AS r ON r.job_seq = e.value ->> 0 AND r.run = (e.value ->> 1) - 1
		WHERE r.group_id IN (SELECT id FROM groups) GROUP BY r.group_id`
	return t.query(query, func(rows *sql.Rows) error {
		var id, recovered, relapsed int64
		err := rows.Scan(&id, &recovered, &relapsed)
		d := t.delta.group(id)
		d.recovered += recovered
		d.relapsed += relapsed
		return err
	}, runs)
}

// knowGroups fills in the groups of jobs that wait for a claim. Only those that
// failed before have one.
func (t *tx) knowGroups(jobs []job.Job) error {
	const query = `SELECT seq, group_id FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`
	var failed []job.Job
	for _, j := range jobs {
		if j.Attempts > 0 {
			failed = append(failed, j)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	bySeq := make(map[int64]int64, len(failed))
	err := t.query(query, func(rows *sql.Rows) error {
		var seq, id int64
		err := rows.Scan(&seq, &id)
		bySeq[seq] = id
		return err
	}, seqs(failed))
	for i := range jobs {
		jobs[i].Group = bySeq[jobs[i].Seq]
	}
	return err
}

// movingGroups adds to the sums of groups. An act on many jobs touches hundreds.
func movingGroups() batch {
	return batch{
		head: `UPDATE groups SET failures = failures + d.column2, dead = dead + d.column3, retrying = retrying + d.column4,
			replayed = replayed + d.column5, recovered = recovered + d.column6, relapsed = relapsed + d.column7 FROM (VALUES `,
		row: `(?, ?, ?, ?, ?, ?, ?)`, columns: 7,
		tail: `) AS d WHERE groups.id = d.column1`,
	}
}

func (t *tx) flushGroups() error {
	const open = `UPDATE groups SET state = 'open', reopened_at = $2, reopened_by = $3 WHERE id = $1`
	sums := movingGroups()
	for id, d := range t.delta.groups {
		if err := sums.add(t, id, d.failures, d.dead, d.retrying, d.replayed, d.recovered, d.relapsed); err != nil {
			return err
		}
		if d.opened != "" {
			if _, err := t.exec(open, id, d.openedAt, string(d.opened)); err != nil {
				return err
			}
		}
	}
	if err := sums.flush(t, 1); err != nil {
		return err
	}
	if err := t.flushGroupParts(); err != nil {
		return err
	}
	return t.flushNewest()
}

// flushNewest writes what is known of the newest failure of each group, when its
// hours are written.
func (t *tx) flushNewest() error {
	const newest = `UPDATE groups SET last_seen = max(last_seen, $2),
			sample_seq = iif(last_seen <= $2, $3, sample_seq), sample_execution = iif(last_seen <= $2, $4, sample_execution),
			day = (SELECT sum(failures) FROM group_hours WHERE group_id = $1 AND hour > max(last_seen, $2) / $5 - $6)
		WHERE id = $1`
	for id, d := range t.delta.groups {
		if d.seen == 0 {
			continue
		}
		if _, err := t.exec(newest, id, d.seen, d.sampleSeq, d.sampleExecution, microsPerHour, lastDay); err != nil {
			return err
		}
	}
	return nil
}

// keptHours is how much of a group's history is kept: a month.
const keptHours = 31 * 24

func (t *tx) flushGroupParts() error {
	const (
		hours = `INSERT INTO group_hours (group_id, hour, failures, final) VALUES ($1, $2, $3, $4)
			ON CONFLICT (group_id, hour) DO UPDATE SET failures = failures + excluded.failures, final = final + excluded.final`
		forget = `DELETE FROM group_hours WHERE group_id = $1 AND hour < $2`
		queues = `INSERT INTO group_queues (group_id, queue, failures) VALUES ($1, $2, $3)
			ON CONFLICT (group_id, queue) DO UPDATE SET failures = failures + excluded.failures`
	)
	for k, d := range t.delta.groupHours {
		if _, err := t.exec(hours, k.group, k.hour, d.failures, d.final); err != nil {
			return err
		}
		if _, err := t.exec(forget, k.group, k.hour-keptHours); err != nil {
			return err
		}
	}
	for k, n := range t.delta.groupQueues {
		if _, err := t.exec(queues, k.group, k.queue, n); err != nil {
			return err
		}
	}
	return nil
}

// learnGroups takes over the groups that a transaction changed, or removed, after
// its commit.
func (r *rollup) learnGroups(changed map[string]*group) {
	for fingerprint, g := range changed {
		if before := r.groups[fingerprint]; before != nil {
			if before.state == failures.Open {
				r.openGroups--
			}
			delete(r.groups, fingerprint)
			delete(r.fingerprints, before.id)
		}
		if g == nil {
			continue
		}
		if g.state == failures.Open {
			r.openGroups++
		}
		r.newestGroup = max(r.newestGroup, g.id)
		r.groups[fingerprint], r.fingerprints[g.id] = g, fingerprint
	}
}

func (r *rollup) loadGroups(src source) error {
	const query = `SELECT fingerprint, id, state, until, until_count, until_rate, failures,
			coalesce((SELECT hour FROM group_hours WHERE group_id = id ORDER BY hour DESC LIMIT 1), 0),
			coalesce((SELECT failures FROM group_hours WHERE group_id = id ORDER BY hour DESC LIMIT 1), 0)
		FROM groups`
	loaded := map[string]*group{}
	err := src.query(query, func(rows *sql.Rows) error {
		var fingerprint string
		var until int64
		g := new(group)
		err := rows.Scan(&fingerprint, &g.id, &g.state, &until, &g.patience.Count, &g.patience.Rate, &g.failures, &g.hour, &g.inHour)
		g.patience.Until = fromMicros(until)
		loaded[fingerprint] = g
		return err
	})
	r.groups, r.fingerprints = map[string]*group{}, map[int64]string{}
	r.learnGroups(loaded)
	return err
}
