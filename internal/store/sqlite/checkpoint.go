package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"redrive/internal/fault"
)

// checkpointer moves committed pages from the log into the file, beside the
// writer. SQLite would do so automatically at the end of a commit, thousands of
// pages at once, while all callers wait. It still does when the log is large all
// the same, because only a commit can start the log again from the beginning;
// there is little left to move then.
type checkpointer struct {
	engine *engine
	db     *sql.DB
	due    chan struct{} // one slot; closed at the end
	ended  sync.WaitGroup
	grown  int // pages since the last checkpoint, roughly; owned by the writer
}

const (
	checkpointPages = 2000 // to move at once
	commitPages     = 8    // that a commit writes beside those of its rows
	tryAgain        = time.Second
)

func startCheckpointer(e *engine) *checkpointer {
	c := &checkpointer{engine: e, db: pool(connector{main: e.locks.main, dsn: checkpointerDSN(e.path)}, 1), due: make(chan struct{}, 1)}
	c.ended.Go(c.loop)
	return c
}

// stop comes after the last commit.
func (c *checkpointer) stop() error {
	close(c.due)
	c.ended.Wait()
	return c.db.Close()
}

func (c *checkpointer) loop() {
	var again <-chan time.Time
	for {
		tried := again != nil
		select {
		case _, open := <-c.due:
			if !open {
				return
			}
		case <-again:
		}

		again = nil
		err := c.move()
		if errors.Is(err, fault.ErrStorageFull) {
			again = time.After(tryAgain)
		}

		if err != nil && !tried {
			c.engine.health.Log().Warn("Committed pages stay in the log of the database for now.", "path", c.engine.path, "error", err)
		}
	}
}

// move moves pages. A file that cannot grow is not yet a problem of the store's:
// the log may have room for a while, and the writer finds out on its own.
func (c *checkpointer) move() error {
	const query = `PRAGMA wal_checkpoint(PASSIVE)`

	_, err := c.db.ExecContext(context.Background(), query)
	err = classify(c.engine.path, err)
	switch {
	case errors.Is(err, fault.ErrBusy): // another connection moves them
		return nil
	case errors.Is(err, fault.ErrStorageFull):
		return err
	}

	return c.engine.health.Report(err)
}

// wrote notes a commit of so many rows.
func (c *checkpointer) wrote(rows int) {
	c.grown += rows + commitPages
	if c.grown < checkpointPages {
		return
	}

	select {
	case c.due <- struct{}{}:
		c.grown = 0
	default: // it is under way, and another one is due
	}
}
