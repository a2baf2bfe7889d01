// Package counters is the projection that counts: how many jobs have each status, how attempts
// ended, and how many dead letters are open. So no list and no total has to count rows.
//
// The moves of one transaction are added up first (see sums), so that a thousand jobs cost a
// handful of updates. Before the commit, the sums are added to the tables depths, held,
// counters, minutes and reasons, in the order of their keys. After the commit, the same sums
// are added to the counts in memory, from which pages are served.
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
	waiting  Fronts
	gathered *db.Slot[gathered]

	// Only code that the writer runs uses these.
	totals  stats.Totals // since the database was made, over all queues and types
	depths  stats.Depths // the jobs of all queues, by status
	limits  Limits
	queues  map[string]bool // the known queues: true for one that had a job, false for one that was only paused
	foreign int             // how many of queues belong to sources
	changed bool            // queues has changed since names was made
	minute  int64           // the newest minute in which something was counted, since 1970

	// The names under which counters are kept (see names.go).
	queueLabels labels
	typeLabels  labels
	sourceTypes map[string]*labels // the types of each source

	// The counts that pages read. Both interfaces are memory.
	ListCounts
	QueueCounts
	memory *memory

	names atomic.Pointer[[]string] // the names of all known queues, sorted
}

// Fronts knows where lists of jobs that wait begin: no job of the list is before that place.
type Fronts interface {
	// Due is the front of the jobs of a queue that wait for their time in a state.
	Due(queue string, state job.State) Front

	// Available are the fronts of the available jobs of a queue, one for each priority that any of
	// them has, the highest first. ok is false where they are not known.
	Available(queue string) (fronts []Front, ok bool)
}

// Front is where a list of jobs begins.
type Front struct {
	Priority int   // of available jobs
	RunAt    int64 // in microseconds
	Seq      int64
}

// New returns a projection without counts, which Load reads from the database.
func New(reader *db.Reader, waiting Fronts, limits Limits) *Projection {
	limits.Queues, limits.Types = cmp.Or(limits.Queues, defaultQueues), cmp.Or(limits.Types, defaultTypes)

	p := &Projection{
		reader: reader, waiting: waiting, gathered: db.NewReusedSlot(newGathered, (*gathered).clear),
		limits: limits, depths: stats.Depths{}, queues: map[string]bool{},
		queueLabels: newLabels("queue", "", maxQueueLabels), typeLabels: newLabels("type", "", limits.Types), sourceTypes: map[string]*labels{},
	}
	p.memory = newMemory(p.shownLabel)

	p.ListCounts, p.QueueCounts = p.memory, p.memory
	p.queueLabels.exempt = isForeign
	for _, status := range job.Statuses() {
		p.depths[status] = 0
	}

	return p
}

// gathered is what one transaction counts, and which queues and labels it adds and removes.
type gathered struct {
	sums

	admitted map[string]bool // new queues of our own
	claimed  map[string]bool // new queues of sources
	removed  map[string]bool // queues that it removes

	labels map[*labels]*labelChanges
}

// labelChanges are the labels that a transaction adds and removes.
type labelChanges struct {
	kept map[string]bool // added
	gone map[string]bool // removed
}

func newGathered() *gathered {
	return &gathered{
		sums:     newSums(),
		admitted: map[string]bool{}, claimed: map[string]bool{}, removed: map[string]bool{},
		labels: map[*labels]*labelChanges{},
	}
}

// clear empties g, so that another transaction can use its memory.
func (g *gathered) clear() {
	g.sums.clear()
	clear(g.admitted)
	clear(g.claimed)
	clear(g.removed)
	clear(g.labels)
}

// changesOf returns the changes of l in this transaction, none if it has made none yet.
func (g *gathered) changesOf(l *labels) *labelChanges {
	changes := g.labels[l]
	if changes == nil {
		changes = &labelChanges{kept: map[string]bool{}, gone: map[string]bool{}}
		g.labels[l] = changes
	}

	return changes
}

// Moved subtracts a job where it was and adds it where it is now. The totals of the move are
// added for the queue and the type that the job has now.
func (p *Projection) Moved(t *db.Tx, m projection.Move) {
	g := p.gathered.In(t)
	if m.From != nil {
		p.countJob(g, m.From, -1)
	}

	if m.To != nil {
		p.countJob(g, m.To, 1)
		p.addTotals(g, m.To, m.Totals)
	}
}

// Depth returns how many jobs of a queue have a status, as the transaction sees it.
func (p *Projection) Depth(t *db.Tx, queue string, status job.Status) int64 {
	k := depthKey{queue, status}
	return p.memory.depths[k] + p.gathered.In(t).depths[k]
}

// OwnDeadLetters returns how many open dead letters do not belong to a source, as the
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

// Committed adds the sums of the transaction to the counts in memory.
func (p *Projection) Committed(t *db.Tx) {
	g := p.gathered.In(t)

	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()

	p.forget(g)

	// The jobs of each status and each queue.
	for k, n := range g.depths {
		p.depths[k.status] += n
		p.memory.depths[k] += n
		p.counted(k.queue)
	}

	// Open dead letters, by reason and by the hour in which their jobs failed.
	for k, n := range g.deadLetters {
		addUp(p.memory.deadLetters, k, n)
	}

	for hour, n := range g.opened {
		addUp(p.memory.opened, hour, n)
	}

	// The totals, and those of each minute in the last hour.
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

// addUp adds n to the count of k, and deletes the count if it is zero then.
func addUp[K comparable](counts map[K]int64, k K, n int64) {
	counts[k] += n
	if counts[k] == 0 {
		delete(counts, k)
	}
}

// Totals returns the counters over all queues and types, as of the last commit. Only code that
// the writer runs may call it, because it does not lock.
func (p *Projection) Totals() stats.Totals { return p.totals }

// CopyDepths sets in a map how many jobs of all queues have each status, as of the last commit.
// Only code that the writer runs may call it, because it does not lock.
func (p *Projection) CopyDepths(to stats.Depths) { maps.Copy(to, p.depths) }

// sums is what one transaction counts: by how much each count changes. Each row of a table is
// written once for a transaction, and not at all if its sum is zero.
type sums struct {
	depths      map[depthKey]int64
	held        map[label]int64 // jobs that wait for a handler
	counters    map[label]stats.Totals
	minutes     map[minuteKey]stats.Totals
	deadLetters map[deadLetterKey]int64 // open dead letters
	opened      map[int64]int64         // our own open dead letters, by the hour (since 1970) in which their jobs failed
}

type depthKey struct {
	queue  string
	status job.Status
}

// label is a queue and a type with counters of their own. Either can be "other" (see names.go).
type label struct{ queue, typ string }

type minuteKey struct {
	minute int64 // since 1970
	label
}

// deadLetterKey is what open dead letters have in common that are counted together.
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

// countJob adds n jobs that are like j to the counts of its queue: to its state and, if its
// status says more than its state, to its status as well. A job that waits for a handler, and
// one with an open dead letter, has further counts.
func (p *Projection) countJob(g *gathered, j *job.Job, n int64) {
	s := &g.sums
	queue := p.queueLabel(g, j.Queue)

	s.depths[depthKey{j.Queue, job.Status(j.State)}] += n
	status := j.Status()
	if status == job.Status(j.State) {
		return
	}

	s.depths[depthKey{j.Queue, status}] += n
	switch status {
	case job.StatusHeld:
		s.held[label{j.Queue, j.Type}] += n
	case job.StatusDeadLetter:
		s.deadLetters[deadLetterKey{label{queue, p.typeLabel(g, j)}, j.Reason}] += n
		if j.Source == "" { // such a job failed when it last changed
			s.opened[db.Micros(j.ChangedAt)/db.MicrosPerHour] += n
		}
	}
}

// addTotals adds totals to the counters of the queue and the type of a job, and to those of the
// minute of its move. The counters of a minute always have the name of the queue, and never
// "other", because each queue is shown with its last hour.
func (p *Projection) addTotals(g *gathered, j *job.Job, t stats.Totals) {
	if t == (stats.Totals{}) {
		return
	}

	s := &g.sums
	l := label{p.queueLabel(g, j.Queue), p.typeLabel(g, j)}
	m := minuteKey{db.Micros(j.ChangedAt) / db.MicrosPerMinute, label{j.Queue, l.typ}}
	s.counters[l] = s.counters[l].Add(t)
	s.minutes[m] = s.minutes[m].Add(t)
}
