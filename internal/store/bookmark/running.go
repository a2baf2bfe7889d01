package bookmark

import (
	"sync"

	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// Running remembers where the oldest job that runs stands in the list of those that run, in
// which jobs stand by the time at which they began, then by number. It is a projection, which is
// told of each job that begins.
type Running struct {
	on    bool
	begun *db.Slot[Place] // the first of the jobs that begin with a transaction

	looking sync.Mutex // held during a look

	mu    sync.Mutex
	front Place // no job runs before it
	since Place // the first of the jobs that began since the last look
}

// NewRunning returns a place for the list of jobs that run. One that is off is always at its front.
func NewRunning(on bool) *Running {
	fresh := func() *Place {
		first := end
		return &first
	}

	return &Running{on: on, begun: db.NewSlot(fresh), front: front, since: end}
}

// Find returns the place from which on jobs run. A function looks for the first of them, from the
// place of the last look on, and reports whether there is one.
func (r *Running) Find(look func(from Place) (first Place, ok bool, err error)) (from Place, err error) {
	if !r.on {
		return front, nil
	}

	r.looking.Lock()
	defer r.looking.Unlock()

	// What begins from now on may not be seen.
	r.mu.Lock()
	from, r.since = r.front, end
	r.mu.Unlock()

	first, ok, err := look(from)
	if err != nil {
		return from, err
	}

	if !ok {
		first = end
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	r.front = first
	if r.since.isBefore(first) {
		r.front = r.since
	}

	return r.front, nil
}

// placeOfRunning is the place of a job that runs.
func placeOfRunning(j *job.Job) Place { return Place{RunAt: db.Micros(j.StartedAt), Seq: j.Seq} }

// Moved notes the first job that begins.
func (r *Running) Moved(t *db.Tx, m projection.Move) {
	if !r.on || m.To == nil || m.To.State != job.Active {
		return
	}

	first := r.begun.In(t)
	if at := placeOfRunning(m.To); at.isBefore(*first) {
		*first = at
	}
}

// Flush writes nothing.
func (r *Running) Flush(*db.Tx) error { return nil }

// Committed moves the place back to a job that begins before it.
func (r *Running) Committed(t *db.Tx) {
	if !r.on {
		return
	}

	first := *r.begun.In(t)

	r.mu.Lock()
	defer r.mu.Unlock()

	if first.isBefore(r.since) {
		r.since = first
	}

	if first.isBefore(r.front) {
		r.front = first
	}
}
