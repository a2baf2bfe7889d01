package source

import (
	"time"
)

// Kind is what a user asks a source to do.
type Kind string

// The kinds of acts.
const (
	Replay  Kind = "replay"
	Discard Kind = "discard"
)

// Request is what a user asks of a source, as far as one source does it and another does
// not.
type Request struct {
	Kind   Kind
	Mode   Mode // of a replay
	Later  bool // it shall run at a time to come
	Edited bool // it shall have another payload

	Payload []byte // the other payload
}

// Request is what an act asks of its source.
func (a *Act) Request() Request {
	return Request{Kind: a.Kind, Mode: a.Mode, Later: !a.Due.IsZero(), Edited: a.Payload != nil, Payload: a.Payload}
}

// Mode is how a replay counts attempts, and as what the job runs.
type Mode string

// The modes of a replay.
const (
	Once  Mode = "once"  // as the source's own button does: most grant one more attempt
	Fresh Mode = "fresh" // attempts count from zero
	New   Mode = "new"   // as a new message: with an id of its own, and attempts count from zero
)

// State is how far an act has come.
type State string

// The states of an act. Asked and begun are under way; the others are how it ended.
const (
	Asked    State = "asked"    // written down, and nothing has happened at the source
	Begun    State = "begun"    // the source may have been told
	Done     State = "done"     // the source did it
	Gone     State = "gone"     // the record was no longer there
	Changed  State = "changed"  // the record is not the one that the person saw: it has died again
	Replaced State = "replaced" // the source has another job that excludes this one
	Refused  State = "refused"  // the source said no, or the rights do not allow it
	Unknown  State = "unknown"  // it cannot be told whether it happened
	NotTold  State = "untold"   // of a discard: the source was not attached, so it was not told
)

// Open reports whether the act is under way.
func (s State) Open() bool { return s == Asked || s == Begun }

// Act is a row of the ledger: one act on one record.
type Act struct {
	ID      int64
	Kind    Kind
	Mode    Mode
	State   State
	Due     time.Time // before which the replayed job shall not run; zero: at once
	Payload []byte    // that it shall have; nil: as it is
	Record            // without what only pages show
	JobID   string
	Run     int // that the act began; of a discard: the one that it ends
	AskedAt time.Time
	EndedAt time.Time
	By      string
	Bulk    int64  // the operation, 0: a person asked
	Why     string // what the source answered, when it did not do it
}

// End is how an act of a kind can end.
type End struct {
	Kind  Kind
	State State
}

// Result is how an act ended.
type Result struct {
	ID    int64
	State State
	Why   string
}

// Mirrored is what is known of the record of a job.
type Mirrored struct {
	Record            // without what its job says
	Present bool      // at its source, as far as it is known
	SeenAt  time.Time // when it was read first in this run
	Acts    []Act     // the newest first
}

// NotAttempted are the results of acts of which a source was told nothing.
func NotAttempted(acts []Act) (all []Result) {
	for _, a := range acts {
		all = append(all, Result{ID: a.ID, State: Asked})
	}
	return all
}
