package store

import (
	"redrive/internal/job"
	"redrive/internal/store/book"
	"redrive/internal/store/counters"
	"redrive/internal/store/db"
)

// known is what a transaction takes for known without asking the database. A
// database with a single writer is known from memory; one that others write to as
// well would have to be asked.
type known interface {
	db.Participant
	book.Mover
	// load begins with the executions that are under way.
	load(src db.Source, active []job.Job) error
	// execution is the active job whose newest execution the token names.
	execution(token job.Token) (j *job.Job, ok bool)
	// isPaused reports whether claims keep away from a queue.
	isPaused(queue string) bool
	// setPaused pauses or resumes a queue.
	setPaused(queue string, on bool)
	// mayWait reports whether a queue may have jobs in a state.
	mayWait(queue string, state job.State) bool
	// number is the number of a new job, and newest that of the newest one.
	number() int64
	newest() int64
}

// memory is what is known while nobody else writes: all of it.
type memory struct {
	counters *counters.Book
	active   map[string]*job.Job // by id, without what their workers alone need
	paused   map[string]bool
	last     int64 // the number of the newest job

	// Of the transaction that is under way.
	activeNow map[string]*job.Job // executions that began; nil: that ended
	pausedNow map[string]bool     // queues that were paused (true) or resumed
	lastNow   int64
}

func newMemory(c *counters.Book) *memory {
	return &memory{counters: c, active: map[string]*job.Job{}}
}

func (m *memory) load(src db.Source, active []job.Job) error {
	for i := range active {
		m.active[active[i].ID] = remembered(active[i])
	}
	const newest = `SELECT newest FROM revision`
	const paused = `SELECT name, true FROM queues WHERE paused_at <> 0`
	var err error
	if m.last, err = db.Value[int64](src, newest); err == nil {
		m.paused, err = db.Map[string, bool](src, paused)
	}
	return db.Wrap(err, "read the queues")
}

// remembered is a copy of a job without what its worker alone needs.
func remembered(j job.Job) *job.Job {
	j.Payload, j.Meta, j.Envelope, j.Error = nil, nil, nil, job.ErrorInfo{}
	return &j
}

// Begin starts a transaction.
func (m *memory) Begin() {
	m.activeNow, m.pausedNow, m.lastNow = map[string]*job.Job{}, map[string]bool{}, m.last
}

// Moved keeps the executions that began.
func (m *memory) Moved(move book.Move) {
	switch {
	case move.To != nil && move.To.State == job.Active:
		m.activeNow[move.To.ID] = remembered(*move.To)
	case move.From != nil && move.From.State == job.Active:
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
		if on {
			m.paused[name] = true
		} else {
			delete(m.paused, name)
		}
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

func (m *memory) mayWait(queue string, state job.State) bool {
	return m.counters.Depth(queue, job.Status(state)) != 0
}

func (m *memory) number() int64 {
	m.lastNow++
	return m.lastNow
}

func (m *memory) newest() int64 { return m.lastNow }
