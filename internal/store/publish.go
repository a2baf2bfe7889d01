package store

import (
	"maps"
	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/stats"
	"redrive/internal/store/db"
	"slices"
	"sync"
	"sync/atomic"
)

// news is what is told after a commit.
type news struct {
	onCommit func([]job.Change)
	revision int64                           // of the database: it rises with each commit that changed something
	paused   atomic.Pointer[map[string]bool] // the queues that are
	forecast atomic.Pointer[retention.Forecast]
	clock    atomic.Pointer[retention.Clock]

	mu       sync.RWMutex
	snapshot stats.Snapshot
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

	newest, err := p.s.numbers.newest(t)
	if err != nil {
		return err
	}

	t.Wrote()

	return db.Wrap(t.Run(update, newest), "count the revision")
}

func (p *publisher) changed(t *db.Tx) bool {
	tx := p.s.in(t)
	return len(tx.changes) > 0 || tx.paused || tx.resumed || t.Touched()
}

// Committed calls OnCommit: with the jobs that moved; and without any when a
// queue was resumed, because then jobs can run that did not move, or when a count
// changed otherwise.
func (p *publisher) Committed(t *db.Tx) {
	if !p.changed(t) {
		p.s.offer.answer(t)
		return
	}

	p.s.news.revision++
	p.s.publish()

	tx, tell := p.s.in(t), p.s.news.onCommit
	if tx.paused || tx.resumed {
		p.s.publishPauses()
	}

	p.s.offer.answer(t)

	if tell == nil {
		return
	}

	if len(tx.changes) > 0 {
		tell(slices.Clone(tx.changes)) // they may keep them
	}

	if tx.resumed || t.Touched() {
		tell(nil)
	}
}

// publish makes the counts as of the last commit visible to readers.
func (s *Store) publish() {
	s.news.mu.Lock()
	defer s.news.mu.Unlock()

	now := &s.news.snapshot
	now.Seq, now.Totals = s.news.revision, s.Counters.Totals()
	now.Operations, now.OpenGroups = s.Operations.UnderWay(), s.Groups.Open()
	s.Counters.CopyDepths(now.Depths)
}

// publishPauses makes known which queues are paused.
func (s *Store) publishPauses() {
	paused := s.local.pausedQueues()
	s.news.paused.Store(&paused)
}

// QueuePaused reports whether claims keep away from a queue, as of the last commit,
// from memory.
func (s *Store) QueuePaused(queue string) bool { return (*s.news.paused.Load())[queue] }

// Snapshot returns the totals and depths as of the last commit, from memory.
func (s *Store) Snapshot() stats.Snapshot {
	s.news.mu.RLock()
	defer s.news.mu.RUnlock()

	snapshot := s.news.snapshot
	snapshot.Depths = maps.Clone(snapshot.Depths)

	return snapshot
}

func (s *Store) loadRevision(src db.Source) (err error) {
	s.news.revision, err = db.Value[int64](src, `SELECT n FROM revision`)
	return db.Wrap(err, "read the revision")
}
