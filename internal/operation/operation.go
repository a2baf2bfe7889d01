// Package operation holds the types of operations on many jobs: to replay, discard
// or restore everything that a filter selects. The scope of an operation is frozen
// before it starts, it works at a pace, and it can pause after the first few jobs.
package operation

import (
	"fmt"
	"time"

	"redrive/internal/job"
)

// Kind is what an operation does to its jobs.
type Kind string

const (
	Replay  Kind = "replay"
	Discard Kind = "discard"
	Restore Kind = "restore"
)

// State is how far an operation has come.
//
//	collecting ─▶ preview ─▶ running ─▶ finished
//	     │           │        ▲  │
//	     │           │        │  ▼
//	     └───────────┴──────▶ paused ─▶ aborted (from any state but finished)
type State string

const (
	Collecting State = "collecting" // its scope is being written down
	Preview    State = "preview"    // it waits for a person to start it
	Running    State = "running"
	Paused     State = "paused"
	Finished   State = "finished"
	Aborted    State = "aborted" // the rest was left as it is
)

// Operation is one act on many jobs. Its scope is frozen as items before it
// starts: what was previewed is what runs. Always: Total = Pending + Done +
// Skipped + Failed.
type Operation struct {
	ID         int64
	Kind       Kind
	State      State
	Why        string    // it paused or ended
	Filter     string    // that made the scope, as [Filter.String] writes it; empty when the jobs were named
	Source     int64     // the operation whose replays that failed again are the scope, or 0
	Until      time.Time // jobs that changed later are not in the scope
	Start      bool      // it runs as soon as its scope is known
	Pace       Pace
	CanaryAt   time.Time // when it paused after the canary
	Guarded    bool      // its guard has paused it, and no person has resumed it
	CreatedAt  time.Time
	CreatedBy  string
	StartedAt  time.Time
	StartedBy  string
	ResumedAt  time.Time // or started
	FinishedAt time.Time // or aborted
	Cause      string    // the error class of the group that is its scope, as far as a reader is told; empty otherwise
	Key        string
	Repeat     bool // of a new one: its idempotency key was seen before, and this is the first one

	Position                              int64 // the item up to which all were worked through
	Total, Pending, Done, Skipped, Failed int64 // items
	Succeeded, Relapsed, Dropped, Unknown int64 // of those done: how the replayed runs ended, see RunOutcome

	Sift   int64 // from this item on, those of causes that a person has left out are still to be skipped; 0: none are
	Causes int64 // of what could run when the scope was collected: error groups, and types of jobs that have none
}

// Open reports whether something may still be done to its jobs.
func (o Operation) Open() bool { return o.State != Finished && o.State != Aborted }

// Unsettled is how many of the replayed runs have not ended.
func (o Operation) Unsettled() int64 {
	if o.Kind != Replay {
		return 0
	}
	return o.Done - o.Succeeded - o.Relapsed - o.Dropped - o.Unknown
}

// Subject is how the audit log names the operation with this number.
func Subject(id int64) string { return fmt.Sprintf("operation %d", id) }

// ItemState is what has become of an item of an operation.
type ItemState string

const (
	ItemPending ItemState = "pending"
	ItemDone    ItemState = "done"
	ItemSkipped ItemState = "skipped"
	ItemFailed  ItemState = "failed"
)

// RunOutcome is how a replayed run ended.
type RunOutcome string

const (
	RunSucceeded RunOutcome = "succeeded"
	RunRelapsed  RunOutcome = "relapsed"  // it failed permanently again
	RunDropped   RunOutcome = "dropped"   // a person ended it, or replayed the job once more
	RunUnknown   RunOutcome = "unknown"   // it is unknown whether the job's source began it; what is learned later takes its place
	RunUnsettled RunOutcome = "unsettled" // in filters: it has not ended yet
)

// Item is one job of an operation.
type Item struct {
	N       int64   // the order of work, from 1
	Job     job.Job // as it is now; without an id when it is gone
	Run     int     // as the person saw it
	State   ItemState
	Code    Skip
	Why     string // it was skipped, or failed
	Other   int64  // the operation that was first, or 0
	At      time.Time
	Outcome RunOutcome
	Same    bool // it failed in the same group as before
	EndedAt time.Time
}

// ItemFilter selects items of an operation. Empty fields select everything.
type ItemFilter struct {
	State   ItemState
	Outcome RunOutcome
}

// ItemList is one page of items in processing order.
type ItemList struct {
	Items []Item
	Next  int64 // the last one's number; 0 on the last page
}

// List is one page of operations, the newest first.
type List struct {
	Operations []Operation
	Next       int64 // 0 on the last page
}

// Step is what one step of an operation did.
type Step struct {
	At        time.Time // when it had its turn
	Operation Operation // as it is then
	Items     int       // that were worked through
}

// Act is what an operation on many jobs did to one of them.
type Act struct {
	Operation int64
	Kind      Kind
	Run       int // that the job was in before
	At        time.Time
	By        string // who started the operation
}

// Progress is how an operation went so far, beyond its meters.
type Progress struct {
	Canary     Canary
	SourceRuns SourceRuns // of all replayed runs
	Ended      int64      // of the last GuardWindow replays that ended since it was started or resumed
	Same       int64      // of those: they failed in the same group as before
	Back       Cause      // the most frequent group of those, with its number; zero when that is not known
	BackN      int64
	Rate       Rate
	Pruned     bool // its items were removed, as the retention says
}

// SourceRuns counts replayed runs that a source has, and of which it has not said how they
// ended. Most sources tell only of failures.
type SourceRuns struct {
	AtSource int64     // runs, those that are returned included
	Returned int64     // of them: nothing was heard of them for so long that no more is expected, see [source.Returned]
	Source   string    // that has them; empty when several have
	Until    time.Time // when the last of the others will be returned; zero when all are
}
