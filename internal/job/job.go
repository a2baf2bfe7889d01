// Package job holds the types that every other package uses: the job, its
// attempts and dead letters, the settlement that ends an execution, and the limits of
// what is kept.
//
// A job is enqueued once and keeps its id forever. It lives in runs: run 1
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
// A job that was mirrored from a source (package source) never waits for a worker of
// Redrive: a replay makes it returning until its source has it, then returned, until it is
// dead at its source again or the source says that it succeeded.
//
// Two counters must not be confused. Attempts counts the cycles that were
// completed in this run, whatever their outcome: 0 at enqueue, one more each
// time an execution that counts is settled. Execution rises at each claim and
// never goes back. (ID, Run, Execution) is the fencing token: every write that
// ends or extends an execution names it, so a worker that lost its lease can
// never settle another worker's execution.
//
// The package does no input or output. [Job.Settle] turns the end of an
// execution, as its worker or the reaper saw it, into what is written down.
package job

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/retry"
)

// State is the state of a job, in the words of the Open Job Spec. Two more states are of jobs
// that were mirrored from a source.
type State string

const (
	Scheduled State = "scheduled" // waits for its first time to run
	Available State = "available" // may be claimed now
	Returning State = "returning" // a replay was asked for, of which its source has still to be told
	Returned  State = "returned"  // its source has it back, or may have it; nothing is known of it since
	Active    State = "active"    // a worker holds its lease
	Retryable State = "retryable" // failed, waits for its next attempt
	Completed State = "completed" // succeeded
	Discarded State = "discarded" // failed permanently; see Letter
	Cancelled State = "cancelled" // a person took it back before it ended
)

// States lists all states in the order in which pages show them.
func States() []State {
	return []State{Scheduled, Returning, Returned, Available, Active, Retryable, Completed, Discarded, Cancelled}
}

// DeadLetterState says what became of the dead letter of a discarded job.
type DeadLetterState string

const (
	NoDeadLetter      DeadLetterState = ""        // none was asked for
	DeadLetterStored  DeadLetterState = "stored"  // it is in the dead-letter queue
	DeadLetterRefused DeadLetterState = "refused" // it was asked for and not accepted: the job is kept for a person
	DeadLetterTrashed DeadLetterState = "trashed" // a person discarded the job; it can be restored until it is purged
)

// Status is a State, or one of four parts of a state that pages and filters name
// like states. It is what a badge shows.
type Status string

const (
	StatusDeadLetter Status = "dead_letter" // discarded, its letter stored
	StatusDLQFailed  Status = "dlq_failed"  // discarded, its letter refused
	StatusHeld       Status = "held"        // available, but no handler knows its type
	StatusTrashed    Status = "trashed"     // discarded by a person, and still there to be restored
)

// Statuses lists every status that a filter can name.
func Statuses() []Status {
	var all []Status
	for _, s := range States() {
		all = append(all, Status(s))
	}

	return append(all, StatusDeadLetter, StatusDLQFailed, StatusHeld, StatusTrashed)
}

// ByEnqueueing reports whether jobs of this status are listed by the order of
// their enqueueing; the others go by the time of their last change. Every job
// becomes available and most are completed, so these two keep no order of their
// own. All jobs together (no status) are listed so as well.
func (s Status) ByEnqueueing() bool {
	return s == "" || s == Status(Available) || s == Status(Completed)
}

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
	Source     string // that the job was mirrored from, as redrive.yaml names it; empty: a job of Redrive's own
	Type       string
	State      State
	DeadLetter DeadLetterState
	Held       bool // available, but no handler knows its type
	Unbegun    bool // active: not known to have begun; available: it was not when its process died; returned: its source may not have it
	Attempts   int  // completed cycles in this run; 0 where a source does not say it
	Priority   int  // higher first
	Payload    []byte
	Meta       json.RawMessage // a JSON object, or nil
	Policy     retry.Policy    // effective: merged at enqueue; of a source's job, no more than the limit that the source says
	Origins    Origins         // of the policy and the ttr
	Timeout    time.Duration   // ttr: the longest that an execution may take; 0 of a source's job
	RunAt      time.Time       // not before
	ExpiresAt  time.Time       // the first attempt begins before that; zero: no bound
	EnqueuedAt time.Time
	StartedAt  time.Time // of the newest execution
	FinishedAt time.Time // when the run ended
	ChangedAt  time.Time // when the job entered its state
	Worker     string    // who holds it, while active; its source, while returned
	LeaseUntil time.Time // while active
	LastSeen   time.Time // last sign of life of the worker, while active
	Reason     retry.Reason
	Error      ErrorInfo // of the newest failed attempt in this run
	Group      int64     // the store's number of the error group of that attempt, 0 when none failed
	Key        string    // idempotency key, or empty
	Caller     string    // of a new job: whose key it is
	Content    string    // of a new job with a key: hash of what was asked for; empty: the queue, type and payload are compared
	TraceID    string    // that the producer gave, or empty
	MessageID  string    // of the envelope: meta.id, or empty
	Note       string    // what a person should know of its enqueueing: a rule that failed and was skipped
	Envelope   []byte    // the BabelQueue envelope exactly as it came; nil for other jobs, and in lists
}

// Origins says where each field of a job's policy came from, and its ttr. The keys
// are the names that people write; the values are stable codes: "job",
// "type:email.*", "queue:orders", "default" (of the configuration), "built_in",
// "rule:NAME"; followed by "/preset:NAME" or "/policy:NAME" where a whole policy was
// named there. Origins are never changed once they are made.
type Origins map[string]string

// Status is the state, or the part of it that a person needs to see.
func (j Job) Status() Status {
	switch {
	case j.State == Discarded && j.DeadLetter == DeadLetterStored:
		return StatusDeadLetter
	case j.State == Discarded && j.DeadLetter == DeadLetterRefused:
		return StatusDLQFailed
	case j.State == Discarded && j.DeadLetter == DeadLetterTrashed:
		return StatusTrashed
	case j.State == Available && j.Held:
		return StatusHeld
	}

	return Status(j.State)
}

// SourceOf returns the source to which a queue of this name belongs, as the names of such
// queues end with an at sign and the name of their source; empty for a queue of Redrive's own.
// A job says itself from which source it is.
func SourceOf(queue string) string {
	at := strings.IndexByte(queue, '@')
	if at <= 0 {
		return ""
	}

	return queue[at+1:]
}

// atSource reports whether the job was given back to its source, of which nothing is known
// since.
func (j Job) atSource() bool {
	return j.State == Returned && !j.Unbegun
}

// Replayable reports whether the current run can be followed by another one. A job of
// a source can be replayed as long as its dead letter is still there.
func (j Job) Replayable() bool {
	if j.Source != "" {
		return j.State == Discarded && j.DeadLetter == DeadLetterStored
	}
	return j.State == Discarded || j.State == Cancelled || j.State == Retryable
}

// Expired reports whether the job's time to live is over. It bounds the wait for
// the first attempt only: a job that has failed follows its policy, and a job that
// a person replays is still wanted.
func (j Job) Expired(now time.Time) bool {
	return j.Run == 1 && j.Attempts == 0 && !j.ExpiresAt.IsZero() && !j.ExpiresAt.After(now)
}

// MaxAttempts is the number of attempts that the current run may have: those of the
// policy, and those that rules have added so far. The attempt that the job waits for, or
// is in, may be one of them. It is 0 where the source of a job does not say it; Redrive has
// no policy of its own for such a job.
func (j Job) MaxAttempts() int {
	if j.Source != "" {
		return j.Policy.MaxAttempts
	}

	if j.Cancellable() {
		return j.Policy.LimitAt(j.Attempts + 1)
	}

	return j.Policy.LimitAt(j.Attempts)
}

// Cancellable reports whether the job can still be taken back. One that was returned to
// its source cannot.
func (j Job) Cancellable() bool {
	return j.State != Completed && j.State != Discarded && j.State != Cancelled &&
		j.State != Returning && j.State != Returned
}

// Discardable reports whether a person can give the job up: it waits, or it is
// in the dead-letter queue.
func (j Job) Discardable() bool {
	return slices.Contains([]State{Scheduled, Available, Retryable}, j.State) ||
		j.State == Discarded && (j.DeadLetter == DeadLetterStored || j.DeadLetter == DeadLetterRefused)
}

// Restorable reports whether a person discarded the job and can take that back. The
// dead letter of a source was deleted there.
func (j Job) Restorable() bool {
	return j.State == Discarded && j.DeadLetter == DeadLetterTrashed && j.Source == ""
}

// Change tells that a job moved, after the commit that moved it. It carries
// states, numbers and times only, never payloads or error texts, so that
// nothing that is hidden from a reader can leak through it.
type Change struct {
	Token
	Queue       string
	Source      string // that the job was mirrored from, or empty
	Type        string
	State       State
	DeadLetter  DeadLetterState
	Held        bool
	Attempts    int
	MaxAttempts int // those of the policy, and those that rules added; 0: it is not known how many were used, or may be
	Priority    int
	RunAt       time.Time
	ChangedAt   time.Time
	AtSource    bool // it was given back to its source, of which nothing is known since
	Failed      bool // the change settled a failed attempt
}

// Status is the status of the job after the change.
func (c Change) Status() Status {
	return Job{State: c.State, DeadLetter: c.DeadLetter, Held: c.Held}.Status()
}

// Changed describes the job as it is now.
func (j Job) Changed() Change {
	limit := j.MaxAttempts()
	if j.Source != "" && j.Attempts == 0 {
		limit = 0
	}

	return Change{
		Token: j.Token, Queue: j.Queue, Source: j.Source, Type: j.Type, State: j.State, DeadLetter: j.DeadLetter, Held: j.Held,
		Attempts: j.Attempts, MaxAttempts: limit, Priority: j.Priority, RunAt: j.RunAt, ChangedAt: j.ChangedAt,
		AtSource: j.atSource(),
	}
}

// Claim asks for jobs to execute.
type Claim struct {
	Worker   string
	Now      time.Time
	Lease    time.Duration
	Free     map[string]int        // queue: how many can start at once
	Prefetch map[string]int        // queue: how many more are taken in hand, to start when workers become free
	Began    []Token               // executions that were taken in hand and have begun since
	Knows    func(typ string) bool // nil: every type. A job of an unknown type is held
}

// Stuck is a handler that goes on although its execution has ended: it took too
// long to notice. It keeps its worker until it returns.
type Stuck struct {
	Job   Job       // as it was claimed
	Since time.Time // when it was given up
}

// Enqueued is what became of one job that a producer sent.
type Enqueued struct {
	Job    Job
	Repeat bool // it was enqueued before; Job is the first one
}

// NewID returns a fresh job id.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// ParseID returns the canonical form of a job id, or a *invalid.Error.
func ParseID(s string) (string, error) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 {
		return "", invalid.Errorf("id", "%q is not a UUID", clip.Text(s, 64))
	}

	return id.String(), nil
}

// The limits of what is accepted and kept, in bytes unless said.
const (
	MaxPayload      = 1 << 20
	MaxMeta         = 64 << 10
	MaxType         = 255
	maxQueue        = 128
	MaxKey          = 255
	MaxPriority     = 1000 // and its negative
	MaxErrorMessage = 64 << 10
	MaxTrace        = 256 << 10
	MaxNote         = 1 << 10 // of what is added to an attempt, a letter or an error group
	MaxTraceID      = 128
	MaxMessageID    = 128
	MaxDepth        = 128 // of nested JSON
	MaxBatch        = 10_000
)

var queueName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)

// CheckQueue returns a *invalid.Error unless s can name a queue.
func CheckQueue(s string) error {
	if len(s) > maxQueue || !queueName.MatchString(s) {
		return invalid.Errorf("queue",
			"%q is not a queue name: use letters, digits, dot, colon, dash and underscore, at most %d", clip.Text(s, 64), maxQueue)
	}

	return nil
}

// CheckType returns a *invalid.Error unless s can name a type of job.
func CheckType(s string) error {
	if s == "" || len(s) > MaxType || !utf8.ValidString(s) {
		return invalid.Errorf("type", "%q is not a job type: use 1 to %d bytes of valid UTF-8", clip.Text(s, 64), MaxType)
	}

	if strings.ContainsAny(s, "\x00*") {
		return invalid.Errorf("type", "%q is not a job type: it contains a NUL character, or a *, which stands for all types "+
			"with a prefix (email.*) in filters and in the configuration; use other characters", clip.Text(s, 64))
	}

	return nil
}

// ErrNotFound says that there is no job of an id, or none any more.
var ErrNotFound = errors.New("no such job")

// Conflict says that a job is not in the state that an action needs, and what
// happened instead. Nothing was changed.
type Conflict struct {
	Problem    string
	Job        Job       // as it is now
	ReplayedAt time.Time // when another replay was first
	ReplayedBy string
}

func (c *Conflict) Error() string { return c.Problem }

// KeyReused says that an idempotency key was used before, by the same caller,
// for something else. Nothing was changed.
type KeyReused struct {
	First string // id of the job, or the number of the operation, that was made then; empty: one of the same request
}

func (k *KeyReused) Error() string { return "the idempotency key was used for a different request" }
