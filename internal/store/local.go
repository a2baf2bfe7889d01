package store

import (
	"maps"
	"slices"

	"redrive/internal/job"
	"redrive/internal/store/counters"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// What a transaction has to know of other transactions stands behind four small interfaces.
// A database with a single writer is known from memory; one that several processes write to
// has to be asked, which can fail.

// leases tells which executions are under way.
type leases interface {
	// began notes executions that begin with this transaction.
	began(t *db.Tx, jobs []job.Job) error

	// execution returns the active job whose newest execution the token names.
	execution(t *db.Tx, token job.Token) (j *job.Job, ok bool, err error)
}

// pauses tells from which queues claims keep away.
type pauses interface {
	isPaused(t *db.Tx, queue string) (bool, error)
	setPaused(t *db.Tx, queue string, on bool) error
}

// depths bounds how many jobs in a state a queue can have.
type depths interface {
	mayWait(t *db.Tx, queue string, state job.State) (int64, error)
}

// local is what the store knows without reading the database, which is all of it as long as
// no other program writes there.
type local struct {
	counters *counters.Projection
	active   map[string]*job.Job // by id, without what their workers alone need
	paused   map[string]bool
	last     int64 // the number of the newest job

	changes *db.Slot[localChanges]
}

// localChanges are what a transaction changes of it.
type localChanges struct {
	active map[string]*job.Job // executions that began; nil: that ended
	paused map[string]bool     // queues that were paused (true) or resumed
	last   int64
}

func newLocal(c *counters.Projection) *local {
	l := &local{counters: c, active: map[string]*job.Job{}}
	l.changes = db.NewSlot(func() *localChanges {
		return &localChanges{active: map[string]*job.Job{}, paused: map[string]bool{}, last: l.last}
	})

	return l
}

// load begins with the executions that are under way.
func (l *local) load(src db.Source, active []job.Job) error {
	remember(l.active, active)

	const newest = `SELECT newest FROM revision`
	const paused = `SELECT name, true FROM queues WHERE paused_at <> 0`
	var err error

	l.last, err = db.Value[int64](src, newest)
	if err == nil {
		l.paused, err = db.Map[string, bool](src, paused)
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

func (l *local) began(t *db.Tx, jobs []job.Job) error {
	remember(l.changes.In(t).active, jobs)
	return nil
}

// Moved forgets the executions that ended.
func (l *local) Moved(t *db.Tx, move projection.Move) {
	if move.From != nil && move.From.State == job.Active {
		l.changes.In(t).active[move.From.ID] = nil
	}
}

// Flush writes nothing.
func (l *local) Flush(*db.Tx) error { return nil }

// Committed takes over what the transaction changed.
func (l *local) Committed(t *db.Tx) {
	changes := l.changes.In(t)
	for id, j := range changes.active {
		if j == nil {
			delete(l.active, id)
		} else {
			l.active[id] = j
		}
	}

	for name, on := range changes.paused {
		l.counters.LearnQueue(name)
		l.paused[name] = on
	}

	l.last = changes.last
}

func (l *local) execution(t *db.Tx, token job.Token) (j *job.Job, ok bool, err error) {
	j, changed := l.changes.In(t).active[token.ID]
	if !changed {
		j = l.active[token.ID]
	}

	return j, j != nil && j.Token == token, nil
}

func (l *local) isPaused(t *db.Tx, queue string) (bool, error) {
	on, changed := l.changes.In(t).paused[queue]
	if changed {
		return on, nil
	}

	return l.paused[queue], nil
}

func (l *local) setPaused(t *db.Tx, queue string, on bool) error {
	l.changes.In(t).paused[queue] = on
	return nil
}

// pausedQueues are those that are paused as of the last commit.
func (l *local) pausedQueues() map[string]bool { return maps.Clone(l.paused) }

func (l *local) mayWait(t *db.Tx, queue string, state job.State) (int64, error) {
	return l.counters.Depth(t, queue, job.Status(state)), nil
}

// Number implements core.Numbers.
func (l *local) Number(t *db.Tx) (int64, error) {
	changes := l.changes.In(t)
	changes.last++

	return changes.last, nil
}

// Newest implements core.Numbers.
func (l *local) Newest(t *db.Tx) (int64, error) { return l.changes.In(t).last, nil }
