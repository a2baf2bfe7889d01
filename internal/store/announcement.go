package store

import (
	"cmp"
	"math"
	"sync"

	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/operations"
	"redrive/internal/store/projection"
)

// announcement is which dead letters the newest forecast since the start announced as
// too many: those up to a place in the order of their failures. A letter can come to a
// place before that later: when it is restored, accepted by its receiver or written
// down late, and when the operation ends that held it. The announcement ends before
// such a letter.
type announcement struct {
	operations *operations.Projection

	mu    sync.Mutex
	last  place // of the letters that were counted
	until place // before the first that came since the counting began

	came *db.Slot[place] // before the first that came with a transaction
}

func newAnnouncement(o *operations.Projection) *announcement {
	return &announcement{operations: o, came: db.NewSlot(func() *place { return &place{math.MaxInt64, math.MaxInt64} })}
}

// place is that of a job among others, by a time and its number.
type place struct{ at, seq int64 }

// farthest is after every job.
var farthest = place{math.MaxInt64, math.MaxInt64}

// earliest is the first of two places.
func earliest(a, b place) place {
	if cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) < 0 {
		return a
	}
	return b
}

// begin forgets what was announced, because it is counted again. It is called before
// the counting reads anything: what is committed later may not be in the count.
func (a *announcement) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.last, a.until = place{}, farthest
}

// counted announces the letters up to a place.
func (a *announcement) counted(last place) {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.last = last
}

// end is the place up to which letters were announced, before all others if none were.
func (a *announcement) end() place {
	a.mu.Lock()
	defer a.mu.Unlock()
	return earliest(a.last, a.until)
}

// Moved notes the first dead letter of our own that comes.
func (a *announcement) Moved(t *db.Tx, m projection.Move) {
	if m.To != nil && m.To.Source == "" && m.To.DeadLetter == job.DeadLetterStored && (m.From == nil || m.From.DeadLetter != job.DeadLetterStored) {
		came := a.came.In(t)
		*came = earliest(*came, place{db.Micros(m.To.ChangedAt), m.To.Seq - 1})
	}
}

// Flush writes nothing.
func (a *announcement) Flush(*db.Tx) error { return nil }

// Committed ends the announcement before what came. An operation that ended can have
// held any letter.
func (a *announcement) Committed(t *db.Tx) {
	came := *a.came.In(t)
	if a.operations.Ended(t) {
		came = place{}
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	a.until = earliest(a.until, came)
}
