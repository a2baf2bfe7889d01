package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"redrive/internal/job"
	"redrive/internal/queues"
)

// rollup is what the writer knows in memory, as of the last commit: the rollup
// tables, and which executions are under way, so that most settlements need no
// look at the table before they write. Only the writer touches it; others read
// what publish made of it, and some of its maps under writer.counts.
type rollup struct {
	seq                     int64
	totals                  job.Totals
	depths                  job.Depths          // over all queues
	queued                  map[depthKey]int64  // by queue, under writer.counts
	letters                 map[letterKey]int64 // open dead letters, under writer.counts
	opened                  map[int64]int64     // of these, by the hour in which their jobs failed, under writer.counts
	minute                  int64               // the newest one that was counted
	queues                  map[string]bool     // every queue that had a job or was paused
	grown                   bool                // queues has a new name since it was published
	paused                  map[string]bool
	audit                   auditHead
	bulk                    int64 // operations that are under way
	labels                  labels
	groups                  map[string]*group // error groups by fingerprint; failures.MaxGroups bounds them; under writer.counts
	fingerprints            map[int64]string  // of the groups, by their numbers, under writer.counts
	openGroups, newestGroup int64
	newest                  int64               // the number of the newest job
	active                  map[string]*job.Job // by id, without what their workers alone need
}

// labels bounds the names by which counters are told apart: each is a time
// series for whoever collects the metrics, and producers choose the names.
type labels struct{ queues, types map[string]bool }

const (
	maxLabels  = 1000
	otherLabel = "other"
)

// bound returns the counters with every name past the first thousand replaced.
func (l labels) bound(counters map[label]job.Totals) map[label]job.Totals {
	queues, types := bounded{known: l.queues}, bounded{known: l.types}
	out := make(map[label]job.Totals, len(counters))
	for k, n := range counters {
		k = label{queues.name(k.queue), types.name(k.typ)}
		out[k] = out[k].Add(n)
	}
	return out
}

// boundMinutes does so for the counters by the minute, with types only: each
// queue's last hour is shown with the queue.
func (l labels) boundMinutes(minutes map[minuteKey]job.Totals) map[minuteKey]job.Totals {
	types := bounded{known: l.types}
	out := make(map[minuteKey]job.Totals, len(minutes))
	for k, n := range minutes {
		k.typ = types.name(k.typ)
		out[k] = out[k].Add(n)
	}
	return out
}

// boundLetters does so with the counts of open dead letters. A name that is known
// stays known, so that a letter is counted out where it was counted in.
func (l labels) boundLetters(letters map[letterKey]int64) map[letterKey]int64 {
	queues, types := bounded{known: l.queues}, bounded{known: l.types}
	out := make(map[letterKey]int64, len(letters))
	for k, n := range letters {
		out[letterKey{label{queues.name(k.queue), types.name(k.typ)}, k.reason}] += n
	}
	return out
}

// bounded gives out names within the bound, counting those that are not yet
// known because their transaction may still fail.
type bounded struct{ known, fresh map[string]bool }

func (b *bounded) name(s string) string {
	if b.known[s] || b.fresh[s] {
		return s
	}
	if len(b.known)+len(b.fresh) >= maxLabels {
		return otherLabel
	}
	if b.fresh == nil {
		b.fresh = map[string]bool{}
	}
	b.fresh[s] = true
	return s
}

func (l labels) learn(queue, typ string) {
	l.queues[queue], l.types[typ] = true, true
}

// apply takes over what a transaction counted, after its commit; moved says that
// a count changed that is not of jobs.
func (r *rollup) apply(d delta, paused []string, underWay int64, moved bool) {
	if len(d.depths)+len(paused) > 0 || moved {
		r.seq++
	}
	r.bulk += underWay
	for k, n := range d.depths {
		r.depths[k.status] += n
		r.queued[k] += n
		r.learn(k.queue)
	}
	for k, n := range d.reasons {
		if r.letters[k] += n; r.letters[k] == 0 {
			delete(r.letters, k)
		}
		r.labels.learn(k.queue, k.typ)
	}
	for hour, n := range d.opened {
		if r.opened[hour] += n; r.opened[hour] == 0 {
			delete(r.opened, hour)
		}
	}
	for _, name := range paused {
		r.learn(name)
	}
	for k, n := range d.counters {
		r.totals = r.totals.Add(n)
		r.labels.learn(k.queue, k.typ)
	}
	for k := range d.minutes {
		r.minute = max(r.minute, k.minute)
	}
}

func (r *rollup) learn(queue string) {
	if !r.queues[queue] {
		r.queues[queue], r.grown = true, true
	}
}

// publish makes the state after a commit visible to readers.
func (s *Store) publish(r *rollup) {
	if old := s.snapshot.Load(); old == nil || old.Seq != r.seq {
		s.snapshot.Store(&job.Snapshot{Seq: r.seq, Totals: r.totals, Depths: maps.Clone(r.depths), Operations: r.bulk, OpenGroups: r.openGroups})
	}
	if r.grown {
		names := slices.Sorted(maps.Keys(r.queues))
		s.names.Store(&names)
		r.grown = false
	}
}

// Snapshot returns the totals and depths as of the last commit, from memory.
func (s *Store) Snapshot() job.Snapshot {
	snapshot := *s.snapshot.Load()
	snapshot.Depths = maps.Clone(snapshot.Depths)
	return snapshot
}

// QueueNames returns the names of all queues that ever had a job or were
// paused, sorted, from memory.
func (s *Store) QueueNames() []string { return slices.Clone(*s.names.Load()) }

// load reads the rollup tables at the start.
func (s *Store) load(ctx context.Context) error {
	r := &s.rollup
	*r = rollup{
		depths: job.Depths{}, queued: map[depthKey]int64{}, letters: map[letterKey]int64{}, opened: map[int64]int64{}, queues: map[string]bool{}, paused: map[string]bool{}, grown: true,
		labels: labels{map[string]bool{}, map[string]bool{}}, active: map[string]*job.Job{},
	}
	for _, status := range job.Statuses() {
		r.depths[status] = 0
	}
	src := s.reading(ctx)
	for _, step := range []func(source) error{
		r.loadRevision, r.loadDepths, r.loadCounters, r.loadLetters, r.loadOpened, r.loadQueues, r.loadAudit, r.loadOperations, r.loadGroups,
	} {
		if err := step(src); err != nil {
			return fmt.Errorf("read the rollups: %w", err)
		}
	}
	active, err := s.Leases(ctx, time.Time{})
	for _, j := range active {
		j.Payload, j.Meta, j.Error = nil, nil, job.ErrorInfo{}
		r.active[j.ID] = &j
	}
	s.publish(r)
	return err
}

func (r *rollup) loadRevision(src source) error {
	const query = `SELECT n, coalesce((SELECT max(minute) FROM minutes), 0), newest FROM revision`
	return src.query(query, func(rows *sql.Rows) error { return rows.Scan(&r.seq, &r.minute, &r.newest) })
}

func (r *rollup) loadDepths(src source) error {
	const query = `SELECT queue, status, n FROM depths`
	return src.query(query, func(rows *sql.Rows) error {
		var queue, status string
		var n int64
		err := rows.Scan(&queue, &status, &n)
		r.depths[job.Status(status)] += n
		r.queued[depthKey{queue, job.Status(status)}] = n
		r.queues[queue] = true
		return err
	})
}

func (r *rollup) loadCounters(src source) error {
	return tallies(src, func(t queues.Tally) {
		r.totals = r.totals.Add(t.Totals)
		r.labels.learn(t.Queue, t.Type)
	})
}

func (r *rollup) loadQueues(src source) error {
	const query = `SELECT name, paused_at FROM queues`
	return src.query(query, func(rows *sql.Rows) error {
		var name string
		var at int64
		err := rows.Scan(&name, &at)
		r.queues[name] = true
		if at != 0 {
			r.paused[name] = true
		}
		return err
	})
}
