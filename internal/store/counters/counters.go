// Package counters is the book of numbers: how many jobs stand where, what
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
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store/book"
	"redrive/internal/store/db"
)

// Book keeps the counters.
type Book struct {
	reader *db.Reader
	sums   sums // of the transaction that is under way

	totals job.Totals      // these are the writer's alone
	depths job.Depths      // over all queues
	queues map[string]bool // every queue that had a job or was paused
	grown  bool            // queues has a name that names has not
	labels labels
	minute int64 // the newest one that was counted

	mu      sync.RWMutex // for those who read the counts below
	queued  map[depthKey]int64
	letters map[letterKey]int64
	opened  map[int64]int64 // open letters by the hour in which their jobs failed

	names atomic.Pointer[[]string] // of queues, sorted
}

// New returns a book without counts; Load reads them.
func New(reader *db.Reader) *Book {
	b := &Book{
		reader: reader, depths: job.Depths{}, queues: map[string]bool{}, labels: labels{map[string]bool{}, map[string]bool{}},
		queued: map[depthKey]int64{}, letters: map[letterKey]int64{}, opened: map[int64]int64{},
	}
	for _, status := range job.Statuses() {
		b.depths[status] = 0
	}
	return b
}

// Begin starts a transaction.
func (b *Book) Begin() { b.sums = newSums() }

// Moved counts a job out of where it was and in where it is.
func (b *Book) Moved(m book.Move) {
	if m.From != nil {
		b.sums.job(m.From, -1)
	}
	if m.To != nil {
		b.sums.job(m.To, 1)
		b.sums.count(m.To, m.Totals)
	}
}

// Depth is the number of jobs with a status in a queue, as the transaction sees
// it.
func (b *Book) Depth(queue string, status job.Status) int64 {
	k := depthKey{queue, status}
	return b.queued[k] + b.sums.depths[k]
}

// OpenLetters is the number of open dead letters, as the transaction sees it.
func (b *Book) OpenLetters() int64 {
	n := b.depths[job.StatusDeadLetter]
	for k, d := range b.sums.depths {
		if k.status == job.StatusDeadLetter {
			n += d
		}
	}
	return n
}

// Committed takes the sums of the transaction over.
func (b *Book) Committed(*db.Tx) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, n := range b.sums.depths {
		b.depths[k.status] += n
		b.queued[k] += n
		b.LearnQueue(k.queue)
	}
	for k, n := range b.sums.letters {
		addUp(b.letters, k, n)
		b.labels.learn(k.label)
	}
	for hour, n := range b.sums.opened {
		addUp(b.opened, hour, n)
	}
	for k, n := range b.sums.counters {
		b.totals = b.totals.Add(n)
		b.labels.learn(k)
	}
	for k := range b.sums.minutes {
		b.minute = max(b.minute, k.minute)
	}
	b.publishNames()
}

// LearnQueue makes a queue known that may have no job. The writer's goroutine
// alone may call it.
func (b *Book) LearnQueue(name string) {
	if !b.queues[name] {
		b.queues[name], b.grown = true, true
	}
}

// KnowsQueue reports whether a queue had a job or was paused. The writer's
// goroutine alone may ask.
func (b *Book) KnowsQueue(name string) bool { return b.queues[name] }

func (b *Book) publishNames() {
	if b.grown || b.names.Load() == nil {
		names := slices.Sorted(maps.Keys(b.queues))
		b.names.Store(&names)
		b.grown = false
	}
}

// QueueNames returns the names of all queues that ever had a job or were
// paused, sorted, from memory.
func (b *Book) QueueNames() []string { return slices.Clone(*b.names.Load()) }

// addUp keeps no count that is zero.
func addUp[K comparable](counts map[K]int64, k K, n int64) {
	if counts[k] += n; counts[k] == 0 {
		delete(counts, k)
	}
}

// Totals are the counters over all queues and types as of the last commit. The
// writer's goroutine alone may ask.
func (b *Book) Totals() job.Totals { return b.totals }

// Depths counts the jobs of all queues by status as of the last commit. The
// writer's goroutine alone may ask.
func (b *Book) Depths() job.Depths { return maps.Clone(b.depths) }

// sums adds up what one transaction counts, so that each row is written once,
// and not at all when its sum is zero.
type sums struct {
	depths   map[depthKey]int64
	held     map[label]int64
	counters map[label]job.Totals
	minutes  map[minuteKey]job.Totals
	letters  map[letterKey]int64
	opened   map[int64]int64 // open letters by the hour in which their jobs failed, since 1970
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

// letterKey is by what open dead letters are counted.
type letterKey struct {
	label
	reason retry.Reason
}

func newSums() sums {
	return sums{
		map[depthKey]int64{}, map[label]int64{}, map[label]job.Totals{}, map[minuteKey]job.Totals{},
		map[letterKey]int64{}, map[int64]int64{},
	}
}

// job counts n jobs as j under its state, under the view beside it, and with its
// dead letter when that is open. A letter is counted by when its job failed,
// which is when the job last changed.
func (s *sums) job(j *job.Job, n int64) {
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
		s.letters[letterKey{label{j.Queue, j.Type}, j.Reason}] += n
		s.opened[db.Micros(j.ChangedAt)/db.MicrosPerHour] += n
	}
}

// count raises the counters of a job's queue and type, in the minute of its
// move.
func (s *sums) count(j *job.Job, t job.Totals) {
	if t == (job.Totals{}) {
		return
	}
	l := label{j.Queue, j.Type}
	m := minuteKey{db.Micros(j.ChangedAt) / db.MicrosPerMinute, l}
	s.counters[l] = s.counters[l].Add(t)
	s.minutes[m] = s.minutes[m].Add(t)
}

// labels are the names by which counters are told apart. They are bounded: each
// is a time series for whoever collects the metrics, and producers choose them.
type labels struct{ queues, types map[string]bool }

const (
	maxLabels  = 1000
	otherLabel = "other"
)

func (l labels) learn(k label) { l.queues[k.queue], l.types[k.typ] = true, true }

// bound counts every name past the first thousand under "other". A name that is
// known stays known, so that a letter is counted out where it was counted in. The
// counters by the minute keep their queues: each queue's last hour is shown with
// the queue.
func (s *sums) bound(l labels) {
	queues, types := bounded{known: l.queues}, bounded{known: l.types}
	name := func(k label) label { return label{queues.name(k.queue), types.name(k.typ)} }
	s.counters = renamed(s.counters, name, job.Totals.Add)
	s.minutes = renamed(s.minutes, func(k minuteKey) minuteKey {
		k.typ = types.name(k.typ)
		return k
	}, job.Totals.Add)
	s.letters = renamed(s.letters, func(k letterKey) letterKey {
		k.label = name(k.label)
		return k
	}, func(a, b int64) int64 { return a + b })
}

// renamed are sums under other keys.
func renamed[K comparable, V any](sums map[K]V, name func(K) K, add func(V, V) V) map[K]V {
	out := make(map[K]V, len(sums))
	for k, n := range sums {
		k = name(k)
		out[k] = add(out[k], n)
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
