// Package counters is the projection of numbers: how many jobs have which status, what
// became of executions, and how many dead letters are open.
//
// Lists and totals never count rows. Every move of a job is added up in memory
// first (see sums), so that a thousand jobs cost a handful of updates, and the
// sums go to the tables depths, held, counters, minutes and reasons in the
// transaction of the moves, in the order of their keys. After the commit the same
// sums move the counts in memory, from which pages are served without touching
// the database.
package counters

import (
	"cmp"
	"maps"
	"sync/atomic"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/stats"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// Projection keeps the counters.
type Projection struct {
	reader   *db.Reader
	gathered *db.Slot[gathered]

	// The writer alone uses these.
	totals  stats.Totals
	depths  stats.Depths // over all queues
	limits  Limits
	queues  map[string]bool // those that are known: true when it had a job, false when it was only paused
	foreign int             // how many of these belong to sources
	changed bool            // queues has other names than names
	minute  int64           // the newest one that was counted

	// The names that are told apart.
	queueLabels labels
	typeLabels  labels
	sourceTypes map[string]*labels // the types of each source

	// What pages ask.
	ListCounts
	QueueCounts
	memory *memory

	names atomic.Pointer[[]string] // of queues, sorted
}

// New returns a projection without counts; Load reads them.
func New(reader *db.Reader, limits Limits) *Projection {
	limits.Queues, limits.Types = cmp.Or(limits.Queues, defaultQueues), cmp.Or(limits.Types, defaultTypes)

	p := &Projection{
		reader: reader, gathered: db.NewReusedSlot(newGathered, (*gathered).clear),
		limits: limits, depths: stats.Depths{}, queues: map[string]bool{},
		queueLabels: newLabels("queue", "", maxQueueLabels), typeLabels: newLabels("type", "", limits.Types), sourceTypes: map[string]*labels{},
	}
	p.memory = newMemory(p.shownLabel)

	p.ListCounts, p.QueueCounts = p.memory, p.memory
	p.queueLabels.free = isForeign
	for _, status := range job.Statuses() {
		p.depths[status] = 0
	}

	return p
}

// gathered is what one transaction counts, and what it changes of the names.
type gathered struct {
	sums

	admitted map[string]bool // new queues of our own
	claimed  map[string]bool // new queues of sources
	removed  map[string]bool // queues that it removes

	labels map[*labels]*labelChanges
}

// labelChanges are names under which is counted from now on, and names that are given back.
type labelChanges struct {
	kept map[string]bool
	gone map[string]bool
}

func newGathered() *gathered {
	return &gathered{
		sums:     newSums(),
		admitted: map[string]bool{}, claimed: map[string]bool{}, removed: map[string]bool{},
		labels: map[*labels]*labelChanges{},
	}
}

func (g *gathered) clear() {
	g.sums.clear()
	clear(g.admitted)
	clear(g.claimed)
	clear(g.removed)
	clear(g.labels)
}

// of returns what changes of the names of one kind.
func (g *gathered) of(l *labels) *labelChanges {
	changes := g.labels[l]
	if changes == nil {
		changes = &labelChanges{kept: map[string]bool{}, gone: map[string]bool{}}
		g.labels[l] = changes
	}

	return changes
}

// Moved counts a job out of where it was and in where it is.
func (p *Projection) Moved(t *db.Tx, m projection.Move) {
	g := p.gathered.In(t)
	if m.From != nil {
		p.job(g, m.From, -1)
	}

	if m.To != nil {
		p.job(g, m.To, 1)
		p.count(g, m.To, m.Totals)
	}
}

// Depth is the number of jobs with a status in a queue, as the transaction sees
// it.
func (p *Projection) Depth(t *db.Tx, queue string, status job.Status) int64 {
	k := depthKey{queue, status}
	return p.memory.queued[k] + p.gathered.In(t).depths[k]
}

// OwnDeadLetters is the number of open dead letters that are at no source, as the
// transaction sees it.
func (p *Projection) OwnDeadLetters(t *db.Tx) int64 {
	n := p.depths[job.StatusDeadLetter] - p.memory.sourceDeadLetters()
	for k, d := range p.gathered.In(t).depths {
		if k.status == job.StatusDeadLetter && job.SourceOf(k.queue) == "" {
			n += d
		}
	}

	return n
}

// Committed takes the sums of the transaction over.
func (p *Projection) Committed(t *db.Tx) {
	g := p.gathered.In(t)

	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()

	p.forget(g)

	// Depths, by status and by queue.
	for k, n := range g.depths {
		p.depths[k.status] += n
		p.memory.queued[k] += n
		p.counted(k.queue)
	}

	// Open dead letters, by reason and by the hour in which their jobs failed.
	for k, n := range g.deadLetters {
		addUp(p.memory.deadLetters, k, n)
	}

	for hour, n := range g.opened {
		addUp(p.memory.opened, hour, n)
	}

	// Counters, in all and of the last hour.
	for _, n := range g.counters {
		p.totals = p.totals.Add(n)
	}

	for k, n := range g.minutes {
		p.memory.recent[k.minute] = p.memory.recent[k.minute].Add(n)
		p.minute = max(p.minute, k.minute)
	}

	maps.DeleteFunc(p.memory.recent, func(minute int64, _ stats.Totals) bool { return minute <= p.minute-lastHour })

	for l, changes := range g.labels {
		l.committed(changes)
	}

	p.publishNames()
}

// addUp keeps no count that is zero.
func addUp[K comparable](counts map[K]int64, k K, n int64) {
	counts[k] += n
	if counts[k] == 0 {
		delete(counts, k)
	}
}

// Totals are the counters over all queues and types as of the last commit. Only
// code that the writer runs may call it.
func (p *Projection) Totals() stats.Totals { return p.totals }

// CopyDepths counts the jobs of all queues by status as of the last commit. Only
// code that the writer runs may call it.
func (p *Projection) CopyDepths(to stats.Depths) { maps.Copy(to, p.depths) }

// sums adds up what one transaction counts, so that each row is written once,
// and not at all when its sum is zero.
type sums struct {
	depths      map[depthKey]int64
	held        map[label]int64
	counters    map[label]stats.Totals
	minutes     map[minuteKey]stats.Totals
	deadLetters map[deadLetterKey]int64
	opened      map[int64]int64 // our own open dead letters by the hour in which their jobs failed, since 1970
}

type depthKey struct {
	queue  string
	status job.Status
}

// label is the pair by which counters are told apart.
type label struct{ queue, typ string }

type minuteKey struct {
	minute int64 // since 1970
	label
}

// deadLetterKey is by what open dead letters are counted.
type deadLetterKey struct {
	label
	reason retry.Reason
}

func newSums() sums {
	return sums{
		map[depthKey]int64{}, map[label]int64{}, map[label]stats.Totals{}, map[minuteKey]stats.Totals{},
		map[deadLetterKey]int64{}, map[int64]int64{},
	}
}

func (s *sums) clear() {
	clear(s.depths)
	clear(s.held)
	clear(s.counters)
	clear(s.minutes)
	clear(s.deadLetters)
	clear(s.opened)
}

// job counts n jobs as j under its state, under the view beside it, and with its
// dead letter when that is open. A dead letter is counted by when its job failed,
// which is when the job last changed.
func (p *Projection) job(g *gathered, j *job.Job, n int64) {
	s, queue := &g.sums, p.queueLabel(g, j.Queue)

	s.depths[depthKey{j.Queue, job.Status(j.State)}] += n
	view := j.Status()
	if view == job.Status(j.State) {
		return
	}

	s.depths[depthKey{j.Queue, view}] += n
	switch view {
	case job.StatusHeld:
		s.held[label{j.Queue, j.Type}] += n
	case job.StatusDeadLetter:
		s.deadLetters[deadLetterKey{label{queue, p.typeLabel(g, j)}, j.Reason}] += n
		if j.Source == "" {
			s.opened[db.Micros(j.ChangedAt)/db.MicrosPerHour] += n
		}
	}
}

// count raises the counters of a job's queue and type, in the minute of its
// move. The counters by the minute keep their queues: each queue's last hour is
// shown with the queue.
func (p *Projection) count(g *gathered, j *job.Job, t stats.Totals) {
	if t == (stats.Totals{}) {
		return
	}

	s, l := &g.sums, label{p.queueLabel(g, j.Queue), p.typeLabel(g, j)}
	m := minuteKey{db.Micros(j.ChangedAt) / db.MicrosPerMinute, label{j.Queue, l.typ}}
	s.counters[l] = s.counters[l].Add(t)
	s.minutes[m] = s.minutes[m].Add(t)
}
