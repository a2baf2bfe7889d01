// Package failures holds the types of the failures page: an error group is all
// failures with one fingerprint, and a person resolves it, ignores it for a
// time, or leaves it open.
package failures

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"redrive/internal/clip"
	"redrive/internal/filter"
	"redrive/internal/fingerprint"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/wire"
)

// DefaultGroups is how many error groups there may be unless the configuration says
// otherwise. Whatever is new after that many falls into one more, whose fingerprint
// is [OtherGroup].
const (
	DefaultGroups = 10_000
	OtherGroup    = "other"
)

// State is what a person decided about an error group.
type State string

const (
	Open     State = "open"     // not yet resolved or ignored
	Resolved State = "resolved" // a person says that it is over: the next failure opens it
	Ignored  State = "ignored"  // a person knows of it and does not want to be told, see Patience
)

// States lists all states of a group in the order in which pages show them.
func States() []State { return []State{Open, Resolved, Ignored} }

func (s State) check() error {
	if !slices.Contains(States(), s) {
		return invalid.Errorf("state", "%q is unknown; use open, resolved or ignored", clip.Text(string(s), 64))
	}
	return nil
}

// Reopening says why a group opened automatically.
type Reopening string

const (
	ByFailure Reopening = "failure" // it was resolved and failed again
	ByDate    Reopening = "date"    // the time was over for which it was ignored
	ByCount   Reopening = "count"   // as many failures came as it was ignored for
	ByRate    Reopening = "rate"    // as many came within an hour as it was ignored for
)

// MaxPatience bounds the failures for which a group is ignored.
const MaxPatience = 1_000_000_000

// Patience is how long a group is ignored: until the first of its conditions is
// met. The zero Patience never ends.
type Patience struct {
	Until time.Time
	Count int64 // failures in all, see Group.Failures
	Rate  int64 // failures within one hour by the clock
}

// Group is an error group: the failures with one cause, as far as can be told.
// It is counted in the transaction of what it counts.
type Group struct {
	Number int64 // the store's own
	Type   string
	fingerprint.Cause
	State      State
	StateAt    time.Time // when a person said so; zero: no one did
	StateBy    string
	ReopenedAt time.Time // when it opened automatically, after StateAt
	ReopenedBy Reopening
	Patience   // as it was ignored, also after it opened automatically
	Note       string
	FirstSeen  time.Time
	LastSeen   time.Time
	Failures   int64              // attempts that failed so
	Dead       int64              // jobs that are in the dead-letter queue for it
	Refused    int64              // jobs whose dead letter for it was refused
	Retrying   int64              // jobs that are not over and failed so last
	Replayed   int64              // runs of it that were replayed
	Recovered  int64              // of these, next runs that succeeded
	Relapsed   int64              // and those that failed permanently again
	Queues     []filter.NameCount // with the most failures first
	LastDay    []int64            // failures in the last 24 hours by the clock, oldest first
}

// Jobs is how many jobs the group holds now.
func (g Group) Jobs() int64 { return g.Dead + g.Refused + g.Retrying }

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
	NewestSeen Sort = "seen" // last seen first
)

// Filter selects groups. Empty fields select everything.
type Filter struct {
	State  State
	Queue  string
	Source string // the name of a source: groups with failures of its jobs
	Type   string // exact, or a prefix such as "email.*"
	Class  string // exactly, see [fingerprint.Cause]
	Text   string // in the class, the message or the note, case ignored
	Sort   Sort
}

// Check returns a *invalid.Error for the first field that no group can match.
func (f Filter) Check() error {
	if f.State != "" {
		if err := f.State.check(); err != nil {
			return err
		}
	}

	if f.Sort != MostDead && f.Sort != NewestSeen {
		return invalid.Errorf("sort", "%q is unknown; use seen, or nothing for the most dead jobs first", clip.Text(string(f.Sort), 64))
	}

	if f.Queue != "" {
		if err := filter.CheckQueue(f.Queue); err != nil {
			return err
		}
	}

	return cmp.Or(filter.CheckSource(f.Source), filter.CheckPattern("type", f.Type),
		filter.CheckText("class", f.Class), filter.CheckText("q", f.Text))
}

// String says what the filter selects, for the audit log; empty for everything.
func (f Filter) String() string {
	var parts []string
	for _, part := range [][2]string{
		{"state", string(f.State)}, {"queue", f.Queue}, {"source", f.Source}, {"type", f.Type},
		{"class", f.Class}, {"text", f.Text},
	} {
		if part[1] != "" {
			parts = append(parts, part[0]+":"+part[1])
		}
	}

	return strings.Join(parts, " ")
}

// Finds reports whether the text of the filter is part of what is shown of a group.
func (f Filter) Finds(g Group) bool { return filter.Contains(f.Text, g.Class, g.Message, g.Note) }

// Without is the filter without one of its fields, under its name in an address.
func (f Filter) Without(field string) Filter {
	switch field {
	case "state":
		f.State = ""
	case "queue":
		f.Queue = ""
	case "source":
		f.Source = ""
	case "type":
		f.Type = ""
	case "class":
		f.Class = ""
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

// String is the form of a cursor in a URL; empty for the beginning.
func (c Cursor) String() string {
	if c == (Cursor{}) {
		return ""
	}
	return wire.EncodeCursor("g", c.Dead, c.Seen.UnixMicro(), c.Number)
}

// ParseCursor is the inverse of String. It returns a *invalid.Error for
// anything that String did not make.
func ParseCursor(s string) (Cursor, error) {
	if s == "" {
		return Cursor{}, nil
	}

	n, ok := wire.DecodeCursor("g", s, 3)
	if !ok || n[2] <= 0 {
		return Cursor{}, &invalid.Error{Field: "after", Problem: "is not a cursor that a list of groups returned"}
	}

	return Cursor{n[0], time.UnixMicro(n[1]).UTC(), n[2]}, nil
}

// List is one page of groups.
type List struct {
	Groups []Group
	Next   Cursor // zero on the last page
}

// Class is the groups of one error class. Groups are of one type of jobs each, so that one
// cause that hits many types is as many groups: their class says that they are alike.
type Class struct {
	Name     string
	Groups   int64
	Types    int64
	Queues   int64
	Dead     int64
	Refused  int64
	Retrying int64
	Day      int64 // failures in the last 24 hours by the clock
	LastSeen time.Time
}

// Classes are the classes of the groups that a filter selects, the one with the most dead
// jobs first.
type Classes struct {
	Listed []Class
	Total  int64 // classes
	Groups int64 // of all of them
}

// Tally is the groups in one state.
type Tally struct {
	State                           State
	Groups, Dead, Refused, Retrying int64
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
	if err := s.State.check(); err != nil {
		return err
	}

	switch {
	case !s.Until.IsZero() && !s.Until.After(now):
		return invalid.Errorf("until", "is in the past; choose a time in the future")
	case s.More < 0 || s.More > MaxPatience:
		return invalid.Errorf("count", "must be between 1 and %d", MaxPatience)
	case s.Rate < 0 || s.Rate > MaxPatience:
		return invalid.Errorf("rate", "must be between 1 and %d", MaxPatience)
	}

	return nil
}
