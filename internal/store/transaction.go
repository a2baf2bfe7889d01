package store

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retention"
	"redrive/internal/store/counters"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
	"redrive/internal/store/rows"
)

// gathered is what one transaction of the core gathers on its way.
type gathered struct {
	projections *projection.Projections
	changes     []job.Change
	arrivals    *arrivals           // new jobs
	runs        map[runKey]endedRun // replayed runs that ended
	paused      bool                // a queue was paused
	resumed     bool                // a queue was resumed

	completed, failed, attempts db.Batch
}

// newGathered makes the batches. completed ends executions that succeeded, and failed
// those that failed, many at once. Nothing changes a completed job any more, so its row is the record of its
// last attempt too (see the view executions): one row less to write for each job
// that does its work.
func newGathered() gathered {
	return gathered{
		arrivals: newArrivals(),
		completed: db.NewBatch(6, `UPDATE jobs SET state = 'completed', finished_at = s.column4, attempts = s.column5, started_at = s.column6,
			unbegun = 0, reason = '', error_type = '', error_message = '' FROM (VALUES `,
			`) AS s WHERE jobs.seq = s.column1 AND jobs.run = s.column2 AND jobs.execution = s.column3 AND jobs.state = 'active'`),
		failed: db.NewBatch(13, `UPDATE jobs SET changed_at = s.column4, state = s.column5,
			list_state = CASE s.column5 WHEN 'available' THEN '' ELSE s.column5 END, attempts = s.column6,
			finished_at = s.column7, run_at = s.column8, reason = s.column9, letter = s.column10, error_type = s.column11,
			error_message = s.column12, group_id = s.column13, unbegun = 0 FROM (VALUES `,
			`) AS s WHERE jobs.seq = s.column1 AND jobs.run = s.column2 AND jobs.execution = s.column3 AND jobs.state = 'active'`),
		attempts: rows.Recording(),
	}
}

// Begin starts a transaction.
func (g *gathered) Begin() {
	g.arrivals.begin()
	clear(g.changes)

	g.changes, g.runs = g.changes[:0], map[runKey]endedRun{}
	g.paused, g.resumed = false, false
	for _, b := range []*db.Batch{&g.completed, &g.failed, &g.attempts} {
		b.Reset()
	}
}

// Flush writes the jobs and the attempts that wait, and tells the projections how
// replayed runs ended.
func (g *gathered) Flush(t *db.Tx) error {
	if err := db.Steps(t, g.arrivals.flush, g.attempts.Flush); err != nil || len(g.runs) == 0 {
		return err
	}

	ended, err := g.endedRuns(t)
	if err != nil {
		return fmt.Errorf("read from where the ended runs were replayed: %w", err)
	}

	return g.projections.RunsEnded(t, ended)
}

// endedRuns are the replayed runs that ended, in the order of their jobs:
// neighbours share pages.
func (g *gathered) endedRuns(t *db.Tx) ([]projection.EndedRun, error) {
	const query = `SELECT r.job_seq, r.run + 1, r.group_id, r.operation_id FROM json_each($1) AS e
		JOIN replays AS r ON r.job_seq = e.value ->> 0 AND r.run = e.value ->> 1`

	replays := make([][2]int64, 0, len(g.runs))
	for k := range g.runs {
		replays = append(replays, [2]int64{k.seq, int64(k.run - 1)})
	}

	slices.SortFunc(replays, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })

	fields := func(r *projection.EndedRun) []any { return []any{&r.Seq, &r.Run, &r.Origin, &r.Operation} }
	all, err := db.All(t, query, fields, db.Rows(replays))
	for i := range all {
		r := &all[i]
		end := g.runs[runKey{r.Seq, r.Run}]
		r.At, r.Outcome, r.Group = end.at, end.outcome, end.group
	}

	return all, err
}

// Committed has nothing to make known (see news). It forgets the new jobs, whose
// texts are large.
func (g *gathered) Committed(*db.Tx) { g.arrivals.forget() }

// moved tells the projections that a job went from one status to another, and notes it
// for the listeners. A new job comes from nil.
func (s *Store) moved(from, to *job.Job, totals job.Totals) {
	s.projections.Moved(projection.Move{From: from, To: to, Totals: totals})
	change := to.Changed()
	change.Failed = totals.Failed > 0
	s.tx.changes = append(s.tx.changes, change)
}

// moveAll is moved of many jobs, each changed alike and in its place: they are large.
func (s *Store) moveAll(jobs []job.Job, totals job.Totals, change func(*job.Job)) {
	var from job.Job
	for i := range jobs {
		from = jobs[i]
		change(&jobs[i])
		s.moved(&from, &jobs[i], totals)
	}
}

// runKey names a run of a job.
type runKey struct {
	seq int64
	run int
}

// endedRun is how a replayed run ended in this transaction.
type endedRun struct {
	at      int64
	outcome operation.RunOutcome
	group   int64 // of the failure that ended it
}

// ended notes that a run is over, the first time that it is called for the run. First
// runs belong to no operation, and the projections already know of a run that was over in
// an earlier transaction.
func (g *gathered) ended(j *job.Job, outcome operation.RunOutcome, now time.Time) {
	k := runKey{j.Seq, j.Run}
	if _, known := g.runs[k]; j.Run > 1 && !known {
		g.runs[k] = endedRun{db.Micros(now), outcome, j.Group}
	}
}

// runsResumed takes back that the runs of these jobs were dropped, which they are in.
func (s *Store) runsResumed(t *db.Tx, jobs []job.Job) error {
	var runs [][2]int64
	for _, j := range jobs {
		if j.Run == 1 {
			continue
		}

		runs = append(runs, [2]int64{j.Seq, int64(j.Run)})
		if k := (runKey{j.Seq, j.Run}); s.tx.runs[k].outcome == operation.RunDropped {
			delete(s.tx.runs, k)
		}
	}

	if len(runs) == 0 {
		return nil
	}

	return s.projections.RunsResumed(t, db.Rows(runs))
}

// news is what is told after a commit.
type news struct {
	onCommit func([]job.Change)
	revision int64                           // of the database: it rises with each commit that changed something
	paused   atomic.Pointer[map[string]bool] // the queues that are
	forecast atomic.Pointer[retention.Forecast]
	clock    atomic.Pointer[retention.Clock]

	mu       sync.RWMutex
	snapshot job.Snapshot
}

// publisher is the last participant of every transaction: it counts the revision
// and tells what has become true once all others know it.
type publisher struct{ s *Store }

// Begin has nothing to prepare.
func (p *publisher) Begin() {}

// Flush counts the revision, when something changed that pages show.
func (p *publisher) Flush(t *db.Tx) error {
	if !p.changed(t) {
		return nil
	}
	const update = `UPDATE revision SET n = n + 1, newest = $1`

	t.Wrote()

	return db.Wrap(t.Run(update, p.s.known.newest()), "count the revision")
}

func (p *publisher) changed(t *db.Tx) bool {
	tx := &p.s.tx
	return len(tx.changes) > 0 || tx.paused || tx.resumed || t.Touched()
}

// Committed calls OnCommit: with the jobs that moved; and without any when a
// queue was resumed, because then jobs can run that did not move, or when a count
// changed otherwise.
func (p *publisher) Committed(t *db.Tx) {
	if !p.changed(t) {
		p.s.offer.answer()
		return
	}

	p.s.news.revision++
	p.s.publish()

	tx, tell := &p.s.tx, p.s.news.onCommit
	if tx.paused || tx.resumed {
		p.s.publishPauses()
	}

	p.s.offer.answer()

	if tell == nil {
		return
	}

	if len(tx.changes) > 0 {
		tell(slices.Clone(tx.changes)) // they may keep them
	}

	if tx.resumed || t.Touched() {
		tell(nil)
	}
}

// publish makes the counts as of the last commit visible to readers.
func (s *Store) publish() {
	s.news.mu.Lock()
	defer s.news.mu.Unlock()

	now := &s.news.snapshot
	now.Seq, now.Totals = s.news.revision, s.Counters.Totals()
	now.Operations, now.OpenGroups = s.Operations.UnderWay(), s.Groups.Open()
	s.Counters.CopyDepths(now.Depths)
}

// publishPauses makes known which queues are paused.
func (s *Store) publishPauses() {
	paused := s.known.pausedQueues()
	s.news.paused.Store(&paused)
}

// QueuePaused reports whether claims keep away from a queue, as of the last commit,
// from memory.
func (s *Store) QueuePaused(queue string) bool { return (*s.news.paused.Load())[queue] }

// Snapshot returns the totals and depths as of the last commit, from memory.
func (s *Store) Snapshot() job.Snapshot {
	s.news.mu.RLock()
	defer s.news.mu.RUnlock()

	snapshot := s.news.snapshot
	snapshot.Depths = maps.Clone(snapshot.Depths)

	return snapshot
}

func (s *Store) loadRevision(src db.Source) (err error) {
	s.news.revision, err = db.Value[int64](src, `SELECT n FROM revision`)
	return db.Wrap(err, "read the revision")
}

// known is what a transaction takes for known without asking the database. A
// database with a single writer is known from memory; one that others write to as
// well would have to be asked.
type known interface {
	db.Participant
	projection.Mover
	// load begins with the executions that are under way.
	load(src db.Source, active []job.Job) error
	// began notes executions that begin with this transaction.
	began(jobs []job.Job)
	// execution is the active job whose newest execution the token names.
	execution(token job.Token) (j *job.Job, ok bool)
	// isPaused reports whether claims keep away from a queue.
	isPaused(queue string) bool
	// setPaused pauses or resumes a queue.
	setPaused(queue string, on bool)
	// pausedQueues are those that are paused as of the last commit.
	pausedQueues() map[string]bool
	// mayWait is how many jobs in a state a queue may have.
	mayWait(queue string, state job.State) int64
	// number is the number of a new job, and newest that of the newest one.
	number() int64
	newest() int64
}

// memory holds what the store knows without reading the database, which is all of it
// as long as no other program writes there.
type memory struct {
	counters *counters.Projection
	active   map[string]*job.Job // by id, without what their workers alone need
	paused   map[string]bool
	last     int64 // the number of the newest job

	// Of the transaction that is under way.
	activeNow map[string]*job.Job // executions that began; nil: that ended
	pausedNow map[string]bool     // queues that were paused (true) or resumed
	lastNow   int64
}

func newMemory(c *counters.Projection) *memory {
	return &memory{counters: c, active: map[string]*job.Job{}}
}

func (m *memory) load(src db.Source, active []job.Job) error {
	remember(m.active, active)
	const newest = `SELECT newest FROM revision`

	const paused = `SELECT name, true FROM queues WHERE paused_at <> 0`
	var err error
	if m.last, err = db.Value[int64](src, newest); err == nil {
		m.paused, err = db.Map[string, bool](src, paused)
	}

	return db.Wrap(err, "read the queues")
}

// remember adds jobs by their ids, without what their workers alone need. The copies
// are one allocation, which is free when the last of these jobs has ended.
func remember(in map[string]*job.Job, jobs []job.Job) {
	copies := slices.Clone(jobs)
	for i := range copies {
		j := &copies[i]
		j.Payload, j.Meta = nil, nil
		j.Envelope, j.Error = nil, job.ErrorInfo{}
		in[j.ID] = j
	}
}

// Begin starts a transaction.
func (m *memory) Begin() {
	m.activeNow, m.pausedNow, m.lastNow = map[string]*job.Job{}, map[string]bool{}, m.last
}

func (m *memory) began(jobs []job.Job) { remember(m.activeNow, jobs) }

// Moved forgets the executions that ended.
func (m *memory) Moved(move projection.Move) {
	if move.From != nil && move.From.State == job.Active {
		m.activeNow[move.From.ID] = nil
	}
}

// Flush writes nothing.
func (m *memory) Flush(*db.Tx) error { return nil }

// Committed takes over what the transaction changed.
func (m *memory) Committed(*db.Tx) {
	for id, j := range m.activeNow {
		if j == nil {
			delete(m.active, id)
		} else {
			m.active[id] = j
		}
	}

	for name, on := range m.pausedNow {
		m.counters.LearnQueue(name)
		m.paused[name] = on
	}

	m.last = m.lastNow
}

func (m *memory) execution(token job.Token) (j *job.Job, ok bool) {
	j, changed := m.activeNow[token.ID]
	if !changed {
		j = m.active[token.ID]
	}

	return j, j != nil && j.Token == token
}

func (m *memory) isPaused(queue string) bool {
	if on, changed := m.pausedNow[queue]; changed {
		return on
	}
	return m.paused[queue]
}

func (m *memory) setPaused(queue string, on bool) { m.pausedNow[queue] = on }

func (m *memory) pausedQueues() map[string]bool { return maps.Clone(m.paused) }

func (m *memory) mayWait(queue string, state job.State) int64 {
	return m.counters.Depth(queue, job.Status(state))
}

func (m *memory) number() int64 {
	m.lastNow++
	return m.lastNow
}

func (m *memory) newest() int64 { return m.lastNow }
