// Package operation holds the types of operations on many jobs: to replay, discard
// or restore everything that a filter selects. The scope of an operation is frozen
// before it starts, it works at a pace, and it can pause after the first few jobs.
package operation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"redrive/internal/clip"
	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/wire"
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

// Planned is the pace of an operation; of a preview, the one at which it goes when
// it is started as it is. A negative canary is not known yet.
func (o Operation) Planned() Pace {
	if o.State == Preview {
		return o.Pace.Settle(o.Kind, o.Pending, o.Causes)
	}
	return o.Pace
}

// Left estimates how long the rest takes at its rate; ok is false when it goes
// as fast as it can, or does not go.
func (o Operation) Left() (left time.Duration, ok bool) {
	rate := cmp.Or(o.Pace.Rate, o.Pace.Over(o.Pending))
	if rate <= 0 || !o.Open() {
		return 0, false
	}

	return time.Duration(min(float64(o.Pending)/rate, float64(math.MaxInt32)) * float64(time.Second)), true
}

// Subject is how the audit log names the operation with this number.
func Subject(id int64) string { return fmt.Sprintf("operation %d", id) }

// Pace is how fast and how carefully an operation works.
type Pace struct {
	Rate   float64       // jobs a second; 0: as fast as possible
	Spread time.Duration // instead of a rate: all of it over so long
	Canary int64         // pause after so many; 0: never; negative: what suits the size
	Guard  bool          // pause automatically when replays keep failing as before
}

// What bounds a pace, and what is usual.
const (
	MaxRate      = 10_000
	MaxSpread    = 30 * 24 * time.Hour
	UsualCanary  = 5    // jobs, or one of each cause
	LargeCanary  = 20   // jobs: the most that a canary has unless a person wants more
	CanaryAbove  = 100  // jobs in the scope
	ConfirmAbove = 1000 // jobs: a person types the number
	MaxNamed     = 5000 // jobs that a request can name one by one
	GuardWindow  = 50   // replays that ended last
	GuardLeast   = 10   // of them, before the guard says anything
	PreviewFor   = time.Hour
	MaxStep      = 5000 // items of one transaction
)

// String says the pace in a few words, as the audit log has it: "canary 5, auto-pause
// on, 20/s".
func (p Pace) String() string {
	var parts []string
	if p.Canary > 0 {
		parts = append(parts, fmt.Sprintf("canary %d", p.Canary))
	}

	if p.Guard {
		parts = append(parts, "auto-pause on")
	}

	switch {
	case p.Spread > 0:
		parts = append(parts, fmt.Sprintf("%.3g/s over %s", p.Rate, wire.FormatDuration(p.Spread)))
	case p.Rate > 0:
		parts = append(parts, fmt.Sprintf("%.3g/s", p.Rate))
	default:
		parts = append(parts, "no limit")
	}

	return strings.Join(parts, ", ")
}

// Over is the rate at which n jobs go, jobs a second; 0: as fast as possible.
func (p Pace) Over(n int64) float64 {
	if p.Spread > 0 {
		return float64(n) / p.Spread.Seconds()
	}
	return p.Rate
}

// Check returns a *invalid.Error for a pace that cannot be kept.
func (p Pace) Check() error {
	switch {
	case math.IsNaN(p.Rate) || p.Rate < 0 || p.Rate > MaxRate:
		return invalid.Errorf("rate", "must be from 0 to %d jobs a second; 0 means no limit", MaxRate)
	case p.Rate > 0 && p.Rate < 1.0/3600:
		return invalid.Errorf("rate", "is less than one job an hour")
	case p.Spread < 0 || p.Spread > MaxSpread:
		return invalid.Errorf("spread", "must be a duration of at most 30 days")
	case p.Spread > 0 && p.Rate > 0:
		return invalid.Errorf("spread", "cannot be used together with a rate; send one of them")
	case p.Canary > job.MaxBatch:
		return invalid.Errorf("canary", "must be from 0 to %d jobs", job.MaxBatch)
	}

	return nil
}

// Settle gives the pace its final figures for n jobs of so many causes: what suits the
// size becomes a number, and a spread becomes a rate. The usual canary has room for a job of
// each cause.
func (p Pace) Settle(kind Kind, n, causes int64) Pace {
	if p.Canary < 0 && n > CanaryAbove {
		p.Canary = min(max(UsualCanary, causes), LargeCanary)
	}

	if p.Canary < 0 || kind != Replay || p.Canary >= n {
		p.Canary = 0
	}

	p.Rate = p.Over(n)
	p.Guard = p.Guard && kind == Replay

	return p
}

// Named is a run of a job that a person named.
type Named struct {
	ID  string
	Run int
}

// Request asks for an operation. Its scope is one of the three: a filter,
// jobs by name, or what failed again after another operation replayed it.
type Request struct {
	Kind     Kind
	Filter   filter.Filter
	Named    []Named
	Relapsed int64 // the other operation
	Pace     Pace
	Start    bool   // without waiting for a person who has seen the preview
	Key      string // idempotency key, or empty
	Caller   string // whose key it is
	Content  string // hash of what was asked for; empty: not known
}

// scope lists the statuses of the jobs to which an operation of this kind can do
// something, first the one that it means by default; nil for an unknown kind.
func (k Kind) scope() []job.Status {
	switch k {
	case Replay:
		return []job.Status{
			job.StatusDeadLetter, job.StatusDLQFailed, job.Status(job.Discarded), job.Status(job.Cancelled), job.Status(job.Retryable),
		}
	case Discard:
		return []job.Status{
			job.StatusDeadLetter, job.StatusDLQFailed, job.Status(job.Discarded), job.Status(job.Retryable),
			job.Status(job.Scheduled), job.Status(job.Returning), job.Status(job.Returned), job.Status(job.Available), job.StatusHeld,
		}
	case Restore:
		return []job.Status{job.StatusTrashed}
	}

	return nil
}

// Check returns a *invalid.Error for what cannot be done to jobs.
func (k Kind) Check() error {
	if k.scope() == nil {
		return invalid.Errorf("kind", "%q is unknown; use replay, discard or restore", clip.Text(string(k), 64))
	}
	return nil
}

// Scope completes the filter of an operation: without a state it means the
// dead letters, or the trash. It returns a *invalid.Error for a state to
// whose jobs this kind of operation can do nothing.
func (k Kind) Scope(f filter.Filter) (filter.Filter, error) {
	if err := k.Check(); err != nil {
		return f, err
	}

	fit := k.scope()
	f.Status = cmp.Or(f.Status, fit[0])
	if !slices.Contains(fit, f.Status) {
		return f, invalid.Errorf("state", "no job that is %s can take part in a %s; use one of %s", f.Status, k, fit)
	}

	return f, nil
}

// Skip is why a job does not take part, as a stable code.
type Skip string

// The reasons to skip a job. A state that does not fit is named by its status.
const (
	SkipGone     Skip = "gone"     // the job was removed, or never was
	SkipReplayed Skip = "replayed" // another replay was first: the job is in a later run
	SkipNoRun    Skip = "no_run"   // the job never had this run
	SkipRefused  Skip = "refused"  // the source where the job is does not allow it
	SkipCause    Skip = "cause"    // a person resumed the operation without the cause of the job
)

// Unfit says why an operation of this kind can do nothing to the run of the
// job; empty when it can.
func (k Kind) Unfit(j job.Job, run int) Skip {
	switch {
	case j.Run > run:
		return SkipReplayed
	case j.Run < run:
		return SkipNoRun
	case k == Restore && j.Restorable(),
		k == Replay && j.Replayable() && j.DeadLetter != job.DeadLetterTrashed,
		k == Discard && j.Discardable() && j.DeadLetter != job.DeadLetterTrashed:
		return ""
	}

	return Skip(j.Status())
}

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

// Breakdown is what an operation's scope is made of.
type Breakdown struct {
	Scope   []ScopePart  // what could run when it was collected, the largest first
	Causes  []CausePart  // the same, the largest first, at most [ListedCauses]
	Sources []SourcePart // of the scope, the largest first
	Types   []TypePart   // of the scope, without the jobs of sources, the largest first
	Skips   []SkipCount  // the most frequent first
	Skipped []Item       // the first 25 of them
}

// ScopePart is the jobs of one queue and type in a scope.
type ScopePart struct {
	Queue, Type string
	Count       int64
}

// ListedCauses is how many causes a breakdown lists.
const ListedCauses = 50

// Cause is why a job had failed when it was selected: an error group, or, for a job that has
// none, its type.
type Cause struct {
	Group string // its fingerprint; empty without a group, and when the group was removed
	Class string // of the error; empty where the group is
	Type  string // of the jobs; empty when the job was removed, too
}

// CausePart is the jobs of one cause in a scope.
type CausePart struct {
	Cause
	Count int64
}

// TypePart is the jobs of one type in a scope.
type TypePart struct {
	Type      string
	Count     int64
	Unhandled bool // no handler is configured for them, at the time of the answer
}

// Unhandled counts the jobs and types of a scope that no handler can run, at the time of the
// answer.
func (b Breakdown) Unhandled() (jobs, types int64) {
	for _, p := range b.Types {
		if p.Unhandled {
			jobs += p.Count
			types++
		}
	}

	return jobs, types
}

// SourcePart is the jobs of one source in a scope.
type SourcePart struct {
	Name     string
	Count    int64
	Attached bool // at the time of the answer
}

// Discarded is what a discard does to these jobs, after "3 jobs are". At its source it cannot
// be taken back, and one that is not attached is not told.
func (p SourcePart) Discarded() string {
	if p.Attached {
		return "deleted at the source " + p.Name + " and cannot be restored"
	}

	return "discarded in Redrive only: the source " + p.Name + " is not attached, so it is not told, and what it still has comes back " +
		"when it is attached again"
}

// SkipCount is how many items were skipped for one reason.
type SkipCount struct {
	Code  Skip
	Count int64
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

// Canary is what became of the first items, after which an operation paused.
type Canary struct {
	Done, Succeeded, Relapsed, Dropped, Unknown int64

	Causes []CauseCanary // the same by cause, the one with most failures first

	SourceRuns SourceRuns // of those that are unsettled
	EndedAt    time.Time  // of the last run; zero while one has not ended
}

// CauseCanary is what became of the jobs of one cause in a canary.
type CauseCanary struct {
	Cause
	Done, Succeeded, Relapsed, Dropped, Unknown int64
}

// Passed reports whether all jobs of the cause that were in the canary succeeded.
func (c CauseCanary) Passed() bool { return c.Done > 0 && c.Succeeded == c.Done }

// Passed are the causes whose jobs all succeeded.
func (c Canary) Passed() []CauseCanary {
	return slices.DeleteFunc(slices.Clone(c.Causes), func(cause CauseCanary) bool { return !cause.Passed() })
}

// Unsettled is how many of the replayed runs have not ended.
func (c CauseCanary) Unsettled() int64 {
	return c.Done - c.Succeeded - c.Relapsed - c.Dropped - c.Unknown
}

// Unsettled is how many of the replayed runs have not ended.
func (c Canary) Unsettled() int64 { return c.Done - c.Succeeded - c.Relapsed - c.Dropped - c.Unknown }

// SourceRuns counts replayed runs that a source has, and of which it has not said how they
// ended. Most sources tell only of failures.
type SourceRuns struct {
	AtSource int64     // runs, those that are returned included
	Returned int64     // of them: nothing was heard of them for so long that no more is expected, see [source.Returned]
	Source   string    // that has them; empty when several have
	Until    time.Time // when the last of the others will be returned; zero when all are
}

// Rate is how many items were done in each step of an operation's time.
type Rate struct {
	From time.Time
	Step time.Duration
	Done []int64
}

// rateSteps is how many steps a rate has at most.
const rateSteps = 60

// Pacing is the time of an operation that has been started, in steps, until it
// ended or until now; without steps before that. A step is a second at first, and
// doubles as time goes by: what was counted by earlier, shorter ones adds up to it.
func (o Operation) Pacing(now time.Time) Rate {
	if o.StartedAt.IsZero() {
		return Rate{}
	}

	end := now
	if !o.FinishedAt.IsZero() {
		end = o.FinishedAt
	}

	from := o.StartedAt.Truncate(time.Second)

	span := max(end.Sub(from), 0)
	step := time.Second
	for span/step >= rateSteps {
		step *= 2
	}

	return Rate{From: from, Step: step, Done: make([]int64, span/step+1)}
}

// PerSecond is the rate in one step.
func (r Rate) PerSecond(i int) float64 { return float64(r.Done[i]) / r.Step.Seconds() }
