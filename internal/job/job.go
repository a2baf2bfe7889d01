// Package job holds the nouns that every other package speaks of: the job, its
// attempts, its dead letters, the settlement that ends an execution, and the
// counters.
//
// A job is enqueued once and keeps its id for ever. It lives in runs: run 1
// starts at enqueue, each replay starts the next one, and no history is lost.
// Within a run it is executed until it succeeds or its policy gives up.
//
//	scheduled ─┐                    ┌─ completed
//	available ─┼─ claim ─▶ active ──┼─ retryable ─ claim ─▶ active …
//	retryable ─┘                    ├─ discarded (with or without a dead letter)
//	                                └─ available (released by a graceful stop)
//
//	a person cancels:  any state that is not over ─▶ cancelled
//	a person discards: waiting, or a dead letter  ─▶ discarded, in the trash
//	a person restores: in the trash ─▶ where it was
//	a person replays:  discarded, cancelled, retryable ─▶ available, next run
//
// Two counters must not be confused. Attempts counts the cycles that were
// completed in this run, whatever their outcome: 0 at enqueue, one more each
// time an execution that counts is settled. Execution rises at each claim and
// never goes back. (ID, Run, Execution) is the fencing token: every write that
// ends or extends an execution names it, so a worker that lost its lease can
// never settle somebody else's work.
//
// The package does no input or output. [Job.Settle] turns the end of an
// execution, as its worker or the reaper saw it, into what is written down.
package job

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/retry"
)

// State is where a job stands, in the words of the Open Job Spec.
type State string

const (
	Scheduled State = "scheduled" // waits for its first time to run
	Available State = "available" // may be claimed now
	Pending   State = "pending"   // waits for an outside signal
	Active    State = "active"    // a worker holds its lease
	Retryable State = "retryable" // failed, waits for its next attempt
	Completed State = "completed" // succeeded
	Discarded State = "discarded" // failed for good; see Letter
	Cancelled State = "cancelled" // a person took it back before it ended
)

// States lists all states in the order in which pages show them.
func States() []State {
	return []State{Scheduled, Pending, Available, Active, Retryable, Completed, Discarded, Cancelled}
}

// Letter says what became of the dead letter of a discarded job.
type Letter string

const (
	NoLetter      Letter = ""        // none was asked for
	LetterStored  Letter = "stored"  // it lies in the dead-letter queue
	LetterRefused Letter = "refused" // it was asked for and not accepted: the job is kept for a person
	LetterTrashed Letter = "trashed" // a person discarded the job; it can be restored until it is purged
)

// Status is a State, or one of four views that pages and filters name beside
// the states. It is what a badge says.
type Status string

const (
	StatusDeadLetter Status = "dead_letter" // discarded, its letter stored
	StatusDLQFailed  Status = "dlq_failed"  // discarded, its letter refused
	StatusHeld       Status = "held"        // available, but no handler knows its type
	StatusTrashed    Status = "trashed"     // discarded by a person, and still there to be restored
)

// Token names one execution of one job.
type Token struct {
	ID        string // UUIDv7, lower case
	Run       int    // 1 at enqueue, one more at each replay
	Execution int    // 0 before the first claim, one more at each claim
}

// Job is one background job as the store keeps it. Times are UTC and zero when
// not known.
type Job struct {
	Token
	Seq        int64 // the store's own number, rising in the order of enqueueing
	Queue      string
	Type       string
	State      State
	Letter     Letter
	Held       bool // available, but no handler knows its type
	Attempts   int  // completed cycles in this run
	Priority   int  // higher first
	Payload    []byte
	Meta       json.RawMessage // a JSON object, or nil
	Policy     retry.Policy    // effective: merged at enqueue
	Origins    Origins         // who said what of the policy and the ttr
	Timeout    time.Duration   // ttr: the longest that an execution may take
	RunAt      time.Time       // not before
	ExpiresAt  time.Time       // the first attempt begins before that; zero: no bound
	EnqueuedAt time.Time
	StartedAt  time.Time // of the newest execution
	FinishedAt time.Time // when the run ended
	ChangedAt  time.Time // when the job entered its state
	Worker     string    // who holds it, while active
	LeaseUntil time.Time // while active
	LastSeen   time.Time // last sign of life of the worker, while active
	Reason     retry.Reason
	Error      ErrorInfo // of the newest failed attempt in this run
	Group      int64     // the store's number of the error group of that attempt, 0 when none failed
	Key        string    // idempotency key, or empty
	TraceID    string    // that the producer gave, or empty
	MessageID  string    // of the envelope: meta.id, or empty
	Note       string    // what a person should know of its enqueueing: a rule that failed and was skipped
	Envelope   []byte    // the BabelQueue envelope exactly as it came; nil for other jobs, and in lists
}

// Origins says, for each field of a policy by the name that people write and
// for "ttr", whose word it is, as a stable code: "job", "type:email.*",
// "queue:orders", "default" (the file's), "built_in", "rule:NAME"; followed by
// "/preset:NAME" or "/policy:NAME" where that place named one. It is never
// changed once it is made.
type Origins map[string]string

// Status is the state, told apart where a person needs it.
func (j Job) Status() Status {
	switch {
	case j.State == Discarded && j.Letter == LetterStored:
		return StatusDeadLetter
	case j.State == Discarded && j.Letter == LetterRefused:
		return StatusDLQFailed
	case j.State == Discarded && j.Letter == LetterTrashed:
		return StatusTrashed
	case j.State == Available && j.Held:
		return StatusHeld
	}
	return Status(j.State)
}

// Replayable reports whether the current run can be followed by another one.
func (j Job) Replayable() bool {
	return j.State == Discarded || j.State == Cancelled || j.State == Retryable
}

// Expired reports whether the job's time to live is over, which bounds the wait
// for its first attempt only: what has failed follows its policy, and who
// replays a job wants it still.
func (j Job) Expired(now time.Time) bool {
	return j.Run == 1 && j.Attempts == 0 && !j.ExpiresAt.IsZero() && !j.ExpiresAt.After(now)
}

// Cancellable reports whether the job can still be taken back.
func (j Job) Cancellable() bool {
	switch j.State {
	case Completed, Discarded, Cancelled:
		return false
	}
	return true
}

// Discardable reports whether a person can give the job up: it waits, or it
// lies in the dead-letter queue.
func (j Job) Discardable() bool {
	switch j.State {
	case Scheduled, Available, Pending, Retryable:
		return true
	}
	return j.State == Discarded && (j.Letter == LetterStored || j.Letter == LetterRefused)
}

// Restorable reports whether a person discarded the job and can take that back.
func (j Job) Restorable() bool { return j.State == Discarded && j.Letter == LetterTrashed }

// ErrorInfo is what failed, without its trace.
type ErrorInfo struct{ Type, Message string }

// Outcome is how an execution ended.
type Outcome string

const (
	Succeeded   Outcome = "succeeded"
	Failed      Outcome = "failed"
	Panicked    Outcome = "panicked"
	TimedOut    Outcome = "timed_out"        // it took longer than its ttr
	Lost        Outcome = "lost"             // its lease ran out without a sign of life
	Interrupted Outcome = "interrupted"      // released by a graceful stop: does not count
	CancelledBy Outcome = Outcome(Cancelled) // a person cancelled it while it ran: does not count
)

// Counted reports whether the execution was a completed cycle.
func (o Outcome) Counted() bool { return o != Interrupted && o != CancelledBy }

// Attempt is the record of one execution, written once when it ended.
type Attempt struct {
	Run        int
	Number     int // the cycle that it completed; 0 when it did not count
	Execution  int
	Worker     string
	StartedAt  time.Time
	FinishedAt time.Time
	Outcome    Outcome
	Error      ErrorInfo
	Trace      string
	Action     retry.Action // what became of the job; empty when it did not count
	DecidedBy  string       // stable code, see [retry.Decision]
	Delay      *retry.Delay // when the action is retry
	Note       string       // what else a person should know: a rule that failed and was skipped
}

// DeadLetter is the record of a run that ended in the dead-letter queue, or
// should have. Rows are history: one for each (job, run), completed by what
// became of the letter.
type DeadLetter struct {
	JobID       string
	Run         int
	Reason      retry.Reason
	Error       string
	Exception   string // the error's type
	FailedAt    time.Time
	Queue       string // where the job came from
	Attempts    int
	Cause       Outcome // timed_out or lost when the last attempt ended so, otherwise empty
	Refused     bool    // asked for, not accepted
	Problem     string  // why it was not accepted
	ForwardedTo string  // where a copy was sent and accepted, or empty
	ForwardedAt time.Time
	ReplayedAt  time.Time
	ReplayedBy  string
	DiscardedAt time.Time
	DiscardedBy string
}

// Replay is the record of one replay: how the run before ended, and who
// started the next one.
type Replay struct {
	Run      int // the run that was replayed; the next one is Run+1
	State    State
	Reason   retry.Reason
	Attempts int
	At       time.Time
	By       string
	Earlier  *Earlier // what the run had that the next one has otherwise; nil when that is nothing
}

// Failure is the error of a handler that has more to say than its text: a
// type, a trace, an answer to the policy. Any other error counts as one of
// type "error".
type Failure struct {
	ErrorInfo
	Trace  string
	Answer retry.Answer
}

func (f *Failure) Error() string {
	if f.Message == "" {
		return f.Type
	}
	return f.Type + ": " + f.Message
}

// NewID returns a fresh job id.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// ParseID returns the canonical form of a job id, or a *invalid.Error.
func ParseID(s string) (string, error) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 {
		return "", &invalid.Error{Field: "id", Problem: fmt.Sprintf("%q is not a UUID", clip.Text(s, 64))}
	}
	return id.String(), nil
}
