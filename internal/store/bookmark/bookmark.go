// Package bookmark remembers how far claims have come in the lists of jobs that wait, and where
// the oldest job that runs stands among those that run.
//
// A database that keeps several versions of a row leaves the entries of claimed jobs in its
// indexes until they are cleaned up, which takes as long as any transaction is open that could
// still see them. A claim that began at the front of its list would walk over the entries of
// all jobs that were claimed before it. So a claim begins where the one before it found the
// first job: no job waits before that place, unless one came there since, which moves the
// bookmark back.
package bookmark

import (
	"cmp"
	"maps"
	"math"
	"sync"

	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// Place is where a job stands in a list. Available jobs stand there by descending priority,
// then by time, then by number; those that wait for their time by time and number.
type Place struct {
	Priority int
	RunAt    int64 // in microseconds
	Seq      int64
}

// PlaceOf is the place of a job that waits.
func PlaceOf(j *job.Job) Place {
	p := Place{RunAt: db.Micros(j.RunAt), Seq: j.Seq}
	if j.State == job.Available {
		p.Priority = j.Priority
	}

	return p
}

// front is before all jobs, and end is behind all of them.
var (
	front = Place{Priority: math.MaxInt, RunAt: math.MinInt64}
	end   = Place{Priority: math.MinInt, RunAt: math.MaxInt64, Seq: math.MaxInt64}
)

func (p Place) isBefore(other Place) bool {
	return cmp.Or(cmp.Compare(other.Priority, p.Priority), cmp.Compare(p.RunAt, other.RunAt), cmp.Compare(p.Seq, other.Seq)) < 0
}

// list is a list of jobs that wait.
type list struct {
	queue string
	state job.State
}

// Bookmarks are those of all lists. It is a projection, which is told of each job that moves.
type Bookmarks struct {
	on      bool
	changed *db.Slot[map[list]Place]

	mu     sync.RWMutex
	places map[list]Place // as of the last commit
}

// New returns bookmarks. Those that are off are never set.
func New(on bool) *Bookmarks {
	fresh := func() *map[list]Place { return &map[list]Place{} }
	return &Bookmarks{on: on, places: map[list]Place{}, changed: db.NewSlot(fresh)}
}

// At returns the place at which a claim begins. ok is false where it has to begin at the front.
func (b *Bookmarks) At(t *db.Tx, queue string, state job.State) (p Place, ok bool) {
	if !b.on {
		return Place{}, false
	}

	of := list{queue, state}

	p, ok = (*b.changed.In(t))[of]
	if !ok {
		p, ok = b.committed(of)
	}

	return p, ok
}

// committed is the place of a list as of the last commit.
func (b *Bookmarks) committed(of list) (p Place, ok bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()

	p, ok = b.places[of]

	return p, ok
}

// Front returns the place before which no job of a list waited, as of the last commit that was made
// known here. It is before all jobs as long as no claim has looked at the list.
func (b *Bookmarks) Front(queue string, state job.State) (priority int, runAt, seq int64) {
	p, ok := b.committed(list{queue, state})
	if !ok {
		p = front
	}

	return p.Priority, p.RunAt, p.Seq
}

// Set notes the first job that a claim found, in the state in which it still is.
func (b *Bookmarks) Set(t *db.Tx, first *job.Job) {
	if b.on {
		(*b.changed.In(t))[list{first.Queue, first.State}] = PlaceOf(first)
	}
}

// Moved moves a bookmark back to a job that comes before it.
func (b *Bookmarks) Moved(t *db.Tx, m projection.Move) {
	if m.To == nil || m.To.Held {
		return
	}

	before, ok := b.At(t, m.To.Queue, m.To.State)
	if ok && PlaceOf(m.To).isBefore(before) {
		b.Set(t, m.To)
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

	maps.Copy(b.places, *b.changed.In(t))
}
