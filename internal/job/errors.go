package job

import (
	"errors"
	"fmt"
	"time"
)

// The kinds of error that a store returns, beside *invalid.Error for bad
// input. Callers test them with errors.Is and errors.As.
var (
	ErrNotFound    = errors.New("no such job")
	ErrBusy        = errors.New("the database is kept busy by another process")       // nothing was changed; try again
	ErrStorageFull = errors.New("the disk is full")                                   // nothing was changed
	ErrReadOnly    = errors.New("the database can only be read")                      // nothing was changed
	ErrBroken      = errors.New("the database failed; the outcome of writes is open") // stop and restart
	ErrCorrupt     = fmt.Errorf("the database file is damaged: %w", ErrBroken)        // a restart does not help
)

// Conflict says that a job is not in the state that an action needs, and what
// happened instead. Nothing was changed.
type Conflict struct {
	Problem    string
	Job        Job       // as it is now
	ReplayedAt time.Time // when somebody else was first
	ReplayedBy string
}

func (c *Conflict) Error() string { return c.Problem }
