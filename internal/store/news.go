package store

import (
	"database/sql"
	"fmt"
	"maps"
	"sync/atomic"

	"redrive/internal/job"
	"redrive/internal/store/db"
)

// news is what is told after a commit.
type news struct {
	onCommit func([]job.Change)
	revision int64 // of the database: it rises with each commit that changed something
	snapshot atomic.Pointer[job.Snapshot]
}

// publisher is the last participant of every transaction: it counts the revision
// and tells what has become true once all others know it.
type publisher struct{ s *Store }

// Begin has nothing to prepare.
func (p *publisher) Begin() {}

// Flush counts the revision, when something changed that pages show.
func (p *publisher) Flush(t *db.Tx) error {
	if !p.changed(t) {
		return nil
	}
	const update = `UPDATE revision SET n = n + 1, newest = $1`
	if _, err := t.Exec(update, p.s.known.newest()); err != nil {
		return fmt.Errorf("count the revision: %w", err)
	}
	t.Wrote()
	return nil
}

func (p *publisher) changed(t *db.Tx) bool {
	tx := &p.s.tx
	return len(tx.changes) > 0 || tx.paused || tx.resumed || t.Touched()
}

// Committed calls OnCommit: with the jobs that moved; and without any when a
// queue was resumed, because then jobs can run that did not move, or when a count
// changed otherwise.
func (p *publisher) Committed(t *db.Tx) {
	if !p.changed(t) {
		return
	}
	p.s.news.revision++
	p.s.publish()
	tx, tell := &p.s.tx, p.s.news.onCommit
	if tell == nil {
		return
	}
	if len(tx.changes) > 0 {
		tell(tx.changes)
	}
	if tx.resumed || t.Touched() {
		tell(nil)
	}
}

// publish makes the counts as of the last commit visible to readers.
func (s *Store) publish() {
	s.news.snapshot.Store(&job.Snapshot{
		Seq: s.news.revision, Totals: s.Counters.Totals(), Depths: s.Counters.Depths(),
		Operations: s.Operations.UnderWay(), OpenGroups: s.Groups.Open(),
	})
}

// Snapshot returns the totals and depths as of the last commit, from memory.
func (s *Store) Snapshot() job.Snapshot {
	snapshot := *s.news.snapshot.Load()
	snapshot.Depths = maps.Clone(snapshot.Depths)
	return snapshot
}

func (s *Store) loadRevision(src db.Source) error {
	const query = `SELECT n FROM revision`
	err := src.Query(query, func(rows *sql.Rows) error { return rows.Scan(&s.news.revision) })
	if err != nil {
		return fmt.Errorf("read the revision: %w", err)
	}
	return nil
}
