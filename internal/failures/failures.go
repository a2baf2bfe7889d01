// Package failures holds the nouns of the failures page: an error group is all
// failures with one fingerprint, and a person resolves it, ignores it for a
// time, or leaves it open.
package failures

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"redrive/internal/clip"
	"redrive/internal/filter"
	"redrive/internal/fingerprint"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/wire"
)

// MaxGroups bounds the error groups. Whatever is new after that many falls into
// one more, whose fingerprint is [OtherGroup].
const (
	MaxGroups  = 10_000
	OtherGroup = "other"
)

// State is what a person thinks of an error group.
type State string

const (
	Open     State = "open"     // nobody has dealt with it
	Resolved State = "resolved" // a person says that it is over: the next failure opens it
	Ignored  State = "ignored"  // a person knows of it and does not want to be told, see Patience
)

// States lists all states of a group in the order in which pages show them.
func States() []State { return []State{Open, Resolved, Ignored} }

// Reopening says why a group opened by itself.
type Reopening string

const (
	ByFailure Reopening = "failure" // it was resolved and failed again
	ByDate    Reopening = "date"    // the time was over for which it was ignored
	ByCount   Reopening = "count"   // as many failures came as it was ignored for
	ByRate    Reopening = "rate"    // as many came within an hour as it was ignored for
)

// MaxPatience bounds the failures for which a group is ignored.
const MaxPatience = 1_000_000_000

// Patience is how long a group is ignored: until the first of what is set comes
// true. The zero Patience is for ever.
type Patience struct {
	Until time.Time
	Count int64 // failures in all, see Group.Failures
	Rate  int64 // failures within one hour by the clock
}

// Over says why the patience is over at a time, with so many failures in all
// and in the hour; empty while it is not.
func (p Patience) Over(now time.Time, failures, hour int64) Reopening {
	switch {
	case !p.Until.IsZero() && !now.Before(p.Until):
		return ByDate
	case p.Count > 0 && failures >= p.Count:
		return ByCount
	case p.Rate > 0 && hour >= p.Rate:
		return ByRate
	}
	return ""
}

// Group is an error group: the failures with one cause, as far as can be told.
// It is counted in the transaction of what it counts.
type Group struct {
	Number int64 // the store's own
	Type   string
	fingerprint.Cause
	State      State
	StateAt    time.Time // when a person said so; zero: nobody did
	StateBy    string
	ReopenedAt time.Time // when it opened by itself, after StateAt
	ReopenedBy Reopening
	Patience   // as it was ignored, also after it opened by itself
	Note       string
	FirstSeen  time.Time
	LastSeen   time.Time
	Failures   int64   // attempts that failed so
	Dead       int64   // jobs that lie in the dead-letter queue, or were refused there, for it
	Retrying   int64   // jobs that are not over and failed so last
	Replayed   int64   // runs of it that were replayed
	Recovered  int64   // of these, next runs that succeeded
	Relapsed   int64   // and those that failed for good again
	Queues     []Share // with the most failures first
	LastDay    []int64 // failures in the last 24 hours by the clock, oldest first
}

// Share is a part of a group's failures.
type Share struct {
	Name  string
	Count int64
}

// Jobs is how many jobs the group holds now.
func (g Group) Jobs() int64 { return g.Dead + g.Retrying }

// Hour is what failed in one hour by the clock.
type Hour struct {
	At       time.Time // its beginning
	Failures int64
	Final    int64 // of these, the last attempt of a run
}

// Detail is everything that is known of a group.
type Detail struct {
	Group
	Hours  []Hour // the last day, oldest first
	Sample Sample
	Jobs   []job.Job // the newest that it holds, with their payloads unless these are large
}

// Sample is the newest failure of a group. The zero Sample: its job was
// removed.
type Sample struct {
	Job     job.Job
	Attempt job.Attempt // zero for a job that never ran
}

// Sort is the order of a list of groups.
type Sort string

const (
	MostDead   Sort = ""     // the most dead jobs first
	NewestSeen Sort = "seen" // what failed last first
)

// Filter selects groups. Empty fields select everything.
type Filter struct {
	State State
	Queue string
	Type  string // exact, or a prefix as "email.*"
	Text  string // in the class, the message or the note, case ignored
	Sort  Sort
}

// Check returns a *invalid.Error for the first field that no group can match.
func (f Filter) Check() error {
	if f.State != "" && !slices.Contains(States(), f.State) {
		return &invalid.Error{Field: "state", Problem: fmt.Sprintf("%q is unknown; use open, resolved or ignored", clip.Text(string(f.State), 64))}
	}
	if f.Sort != MostDead && f.Sort != NewestSeen {
		return &invalid.Error{Field: "sort", Problem: fmt.Sprintf("%q is unknown; use seen, or nothing for the most dead jobs first", clip.Text(string(f.Sort), 64))}
	}
	if f.Queue != "" {
		if err := job.CheckQueue(f.Queue); err != nil {
			return err
		}
	}
	return cmp.Or(filter.CheckPattern("type", f.Type), filter.CheckText("q", f.Text))
}

// Without is the filter without one of its fields, under its name in an address.
func (f Filter) Without(field string) Filter {
	switch field {
	case "state":
		f.State = ""
	case "queue":
		f.Queue = ""
	case "type":
		f.Type = ""
	case "q":
		f.Text = ""
	case "sort":
		f.Sort = MostDead
	}
	return f
}

// Cursor is a place in a list of groups. The zero cursor is the beginning.
type Cursor struct {
	Dead   int64
	Seen   time.Time
	Number int64
}

// List is one page of groups.
type List struct {
	Groups []Group
	Next   Cursor // zero on the last page
}

// Tally is the groups in one state.
type Tally struct {
	State                  State
	Groups, Dead, Retrying int64
}

// Decision is what a person decides about a group.
type Decision struct {
	State State
	Patience
	More int64 // ignored: until so many more failures; Patience.Count follows from it
}

// Words says what a person decided in a few words, for the audit log.
func (s Decision) Words() string {
	words := string(s.State)
	if !s.Until.IsZero() {
		words += " until " + wire.FormatTime(s.Until)
	}
	if s.More > 0 {
		words += fmt.Sprintf(" for %d more failures", s.More)
	}
	if s.Rate > 0 {
		words += fmt.Sprintf(" until %d failures within an hour", s.Rate)
	}
	return words
}

// Check returns a *invalid.Error for the first field that is not right.
func (s Decision) Check(now time.Time) error {
	if !slices.Contains(States(), s.State) {
		return &invalid.Error{Field: "state", Problem: fmt.Sprintf("%q is unknown; use open, resolved or ignored", clip.Text(string(s.State), 64))}
	}
	switch {
	case !s.Until.IsZero() && !s.Until.After(now):
		return &invalid.Error{Field: "until", Problem: "is over; a group is ignored until a time to come"}
	case s.More < 0 || s.More > MaxPatience:
		return &invalid.Error{Field: "count", Problem: fmt.Sprintf("must be between 1 and %d", MaxPatience)}
	case s.Rate < 0 || s.Rate > MaxPatience:
		return &invalid.Error{Field: "rate", Problem: fmt.Sprintf("must be between 1 and %d", MaxPatience)}
	}
	return nil
}

// CauseOf is the cause of a job that came as a dead letter and never ran: its
// reason is what it shares with others.
func CauseOf(j job.Job) fingerprint.Cause {
	return fingerprint.Of(j.Type, string(j.Reason), j.Error.Message, "")
}
