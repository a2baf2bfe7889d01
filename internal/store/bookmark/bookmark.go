// Package bookmark remembers how far claims have come in the lists of jobs that wait, and where
// the oldest job that runs stands among those that run.
//
// A database that keeps several versions of a row leaves the entries of claimed jobs in its
// indexes until they are cleaned up, which takes as long as any transaction is open that could
// still see them. A claim that began at the front of its list would walk over the entries of
// all jobs that were claimed before it. So a claim begins where the one before it found the
// first job: no job waits before that place, unless one came there since, which moves the
// bookmark back.
//
// Available jobs of each priority are a list of their own, because new jobs of a high priority
// come before the place that was reached in a lower one. A list in which no job waits any more
// has no bookmark until a job comes.
package bookmark

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"

	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// Place is where a job stands in a list: by time, then by number.
type Place struct {
	RunAt int64 // in microseconds
	Seq   int64
}

// PlaceOf is the place of a job that waits.
func PlaceOf(j *job.Job) Place { return Place{RunAt: db.Micros(j.RunAt), Seq: j.Seq} }

// front is before all jobs, and end is behind all of them.
var (
	front = Place{RunAt: math.MinInt64}
	end   = Place{RunAt: math.MaxInt64, Seq: math.MaxInt64}
)

func (p Place) isBefore(other Place) bool {
	return cmp.Or(cmp.Compare(p.RunAt, other.RunAt), cmp.Compare(p.Seq, other.Seq)) < 0
}

// due is a list of jobs that wait for their time: those of a queue in one state.
type due struct {
	queue string
	state job.State
}

// Lane is the list of the available jobs of a queue that have one priority.
type Lane struct {
	Priority int
	From     Place // no job of the lane waits before it
}

// changes are what a transaction changes of the bookmarks.
type changes struct {
	due   map[due]Place
	lanes map[string][]Lane // all lanes of a queue; nil: they are no longer known
}

// Bookmarks are those of all lists. It is a projection, which is told of each job that moves.
type Bookmarks struct {
	on      bool
	changes *db.Slot[changes]

	// These are as of the last commit.
	mu    sync.RWMutex
	due   map[due]Place
	lanes map[string][]Lane // by queue, the highest priority first; a queue is missing until its lanes are learned
}

// New returns bookmarks. Those that are off are never set.
func New(on bool) *Bookmarks {
	return &Bookmarks{
		on: on, due: map[due]Place{}, lanes: map[string][]Lane{},
		changes: db.NewSlot(func() *changes { return &changes{due: map[due]Place{}, lanes: map[string][]Lane{}} }),
	}
}

// On reports whether claims begin at bookmarks.
func (b *Bookmarks) On() bool { return b.on }

// At returns the place at which a claim of jobs begins that wait for their time. ok is false where
// it has to begin at the front.
func (b *Bookmarks) At(t *db.Tx, queue string, state job.State) (p Place, ok bool) {
	if !b.on {
		return Place{}, false
	}

	of := due{queue, state}

	p, ok = b.changes.In(t).due[of]
	if !ok {
		p, ok = b.committedPlace(of)
	}

	return p, ok
}

// committedPlace is the place of a list as of the last commit.
func (b *Bookmarks) committedPlace(of due) (p Place, ok bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()

	p, ok = b.due[of]

	return p, ok
}

// Set notes the first job that a claim found of those that wait for their time, in the state in
// which it still is.
func (b *Bookmarks) Set(t *db.Tx, first *job.Job) {
	if b.on {
		b.changes.In(t).due[due{first.Queue, first.State}] = PlaceOf(first)
	}
}

// Lanes are the lanes of a queue in which jobs may wait, the highest priority first. No job is
// available in another one. ok is false until they were learned. They must not be changed.
func (b *Bookmarks) Lanes(t *db.Tx, queue string) (lanes []Lane, ok bool) {
	if !b.on {
		return nil, false
	}

	lanes, changed := b.changes.In(t).lanes[queue]
	if !changed {
		lanes = b.committedLanes(queue)
	}

	return lanes, lanes != nil
}

// committedLanes are the lanes of a queue as of the last commit.
func (b *Bookmarks) committedLanes(queue string) []Lane {
	b.mu.RLock()
	defer b.mu.RUnlock()

	return b.lanes[queue]
}

// Learn notes the priorities that the available jobs of a queue have, the highest one first, and
// returns their lanes.
func (b *Bookmarks) Learn(t *db.Tx, queue string, priorities []int) []Lane {
	lanes := make([]Lane, 0, len(priorities))
	for _, priority := range priorities {
		lanes = append(lanes, Lane{priority, front})
	}

	b.changes.In(t).lanes[queue] = lanes

	return lanes
}

// Forget drops the lanes of a queue, which have to be learned again.
func (b *Bookmarks) Forget(t *db.Tx, queue string) { b.changes.In(t).lanes[queue] = nil }

// Found notes the first jobs of the lanes of a queue, in the order of claims. A lane that a claim has
// passed without finding a job has none.
func (b *Bookmarks) Found(t *db.Tx, queue string, jobs []job.Job) {
	before, ok := b.Lanes(t, queue)
	if !ok || len(jobs) == 0 {
		return
	}

	lowest := jobs[len(jobs)-1].Priority
	firsts := map[int]Place{}
	for i := range jobs {
		if _, found := firsts[jobs[i].Priority]; !found {
			firsts[jobs[i].Priority] = PlaceOf(&jobs[i])
		}
	}

	after := make([]Lane, 0, len(before))
	for _, lane := range before {
		first, found := firsts[lane.Priority]

		switch {
		case found:
			after = append(after, Lane{lane.Priority, first})
		case lane.Priority < lowest:
			after = append(after, lane)
		}
	}

	b.changes.In(t).lanes[queue] = after
}

// Front returns the place before which no job waited for its time in a state, as of the last commit
// that was made known here. It is before all jobs as long as no claim has looked for one.
func (b *Bookmarks) Front(queue string, state job.State) Place {
	p, ok := b.committedPlace(due{queue, state})
	if !ok {
		p = front
	}

	return p
}

// Fronts returns the lanes of a queue in which jobs may have waited, the highest priority first, as of the
// last commit that was made known here. ok is false as long as no claim has learned them.
func (b *Bookmarks) Fronts(queue string) (lanes []Lane, ok bool) {
	lanes = b.committedLanes(queue)
	return lanes, lanes != nil
}

// Moved moves a bookmark back to a job that comes before it.
func (b *Bookmarks) Moved(t *db.Tx, m projection.Move) {
	if m.To == nil || m.To.Held {
		return
	}

	if m.To.State == job.Available {
		b.came(t, m.To)
		return
	}

	before, ok := b.At(t, m.To.Queue, m.To.State)
	if ok && PlaceOf(m.To).isBefore(before) {
		b.Set(t, m.To)
	}
}

// came notes that a job is available.
func (b *Bookmarks) came(t *db.Tx, j *job.Job) {
	lanes, ok := b.Lanes(t, j.Queue)
	if !ok {
		return
	}

	at, found := slices.BinarySearchFunc(lanes, j.Priority, func(l Lane, priority int) int { return cmp.Compare(priority, l.Priority) })
	here := Lane{j.Priority, PlaceOf(j)}

	switch {
	case !found:
		b.changes.In(t).lanes[j.Queue] = slices.Insert(slices.Clone(lanes), at, here)
	case here.From.isBefore(lanes[at].From):
		lanes = slices.Clone(lanes)
		lanes[at] = here
		b.changes.In(t).lanes[j.Queue] = lanes
	}
}

// Flush writes nothing.
func (b *Bookmarks) Flush(*db.Tx) error { return nil }

// Committed takes over what the transaction has set. A transaction that was undone leaves
// the bookmarks where they were.
func (b *Bookmarks) Committed(t *db.Tx) {
	if !b.on {
		return
	}

	b.mu.Lock()
	defer b.mu.Unlock()

	changed := b.changes.In(t)
	maps.Copy(b.due, changed.due)
	maps.Copy(b.lanes, changed.lanes)
}
