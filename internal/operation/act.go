package operation

import (
	"time"
)

// Act is what an operation on many jobs did to one of them.
type Act struct {
	Operation int64
	Kind      Kind
	Run       int // that the job was in before
	At        time.Time
	By        string // who started the operation
}
