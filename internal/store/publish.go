package store

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"redrive/internal/job"
	"redrive/internal/stats"
	"redrive/internal/store/db"
)

// updates are what is told after a commit.
type updates struct {
	onCommit func([]job.Change)
	revision int64                           // of the database: it rises with each commit that changed something
	paused   atomic.Pointer[map[string]bool] // the queues that are

	mu       sync.RWMutex
	snapshot stats.Snapshot
}

// switched tells which way queues were switched in a transaction.
type switched struct {
	paused  bool // one was paused
	resumed bool // one was resumed
}

// publisher is the last participant of every transaction: it counts the revision
// and tells what has become true once all others know it.
type publisher struct{ s *Store }

// Flush counts the revision, when something changed that pages show.
func (p *publisher) Flush(t *db.Tx) error {
	if !p.changed(t) {
		return nil
	}

	const update = `UPDATE revision SET n = n + 1, newest = $1`

	newest, err := p.s.numbers.Newest(t)
	if err != nil {
		return err
	}

	t.Wrote()

	return db.Wrap(t.Run(update, newest), "count the revision")
}

func (p *publisher) changed(t *db.Tx) bool {
	switched := p.s.switched.In(t)
	return len(p.s.core.Changes(t)) > 0 || switched.paused || switched.resumed || t.Touched()
}

// Committed calls OnCommit: with the jobs that moved; and without any when a
// queue was resumed, because then jobs can run that did not move, or when a count
// changed otherwise.
func (p *publisher) Committed(t *db.Tx) {
	if !p.changed(t) {
		p.s.dispatch.answer(t)
		return
	}

	p.s.updates.revision++
	p.s.publish()

	switched := p.s.switched.In(t)
	if switched.paused || switched.resumed {
		p.s.publishPauses()
	}

	p.s.dispatch.answer(t)

	tell := p.s.updates.onCommit
	if tell == nil {
		return
	}

	changes := p.s.core.Changes(t)
	if len(changes) > 0 {
		tell(slices.Clone(changes)) // they may keep them
	}

	if switched.resumed || t.Touched() {
		tell(nil)
	}
}

// publish makes the counts as of the last commit visible to readers.
func (s *Store) publish() {
	s.updates.mu.Lock()
	defer s.updates.mu.Unlock()

	now := &s.updates.snapshot
	now.Seq, now.Totals = s.updates.revision, s.Counters.Totals()
	now.Operations, now.OpenGroups = s.Operations.UnderWay(), s.Groups.Open()
	s.Counters.CopyDepths(now.Depths)
}

// publishPauses makes known which queues are paused.
func (s *Store) publishPauses() {
	paused := s.local.pausedQueues()
	s.updates.paused.Store(&paused)
}

// QueuePaused reports whether claims keep away from a queue, as of the last commit,
// from memory.
func (s *Store) QueuePaused(queue string) bool { return (*s.updates.paused.Load())[queue] }

// Snapshot returns the totals and depths as of the last commit, from memory.
func (s *Store) Snapshot() stats.Snapshot {
	s.updates.mu.RLock()
	defer s.updates.mu.RUnlock()

	snapshot := s.updates.snapshot
	snapshot.Depths = maps.Clone(snapshot.Depths)

	return snapshot
}

func (s *Store) loadRevision(src db.Source) (err error) {
	s.updates.revision, err = db.Value[int64](src, `SELECT n FROM revision`)
	return db.Wrap(err, "read the revision")
}
