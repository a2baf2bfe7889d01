// Package sourcepage draws the sources: what is attached and how it fares, and of one
// source what can be seen and done there, what to beware of, and what was done.
package sourcepage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// List is the page of all sources.
type List struct {
	templates.Frame
	Sources    []Source
	Unattached []source.Unattached
}

// waits reports whether something was asked of a source before it was taken out.
func (v List) waits() bool {
	return slices.ContainsFunc(v.Unattached, func(u source.Unattached) bool { return u.Waiting > 0 })
}

// Source is an attached source with its dead letters, by its queues.
type Source struct {
	source.Health
	Queues []filter.NameCount // of dead letters, the most first

	Returning int64 // jobs that were replayed, of which the source has still to be told
	Returned  int64 // jobs that it has back and that have not come back
}

// View is the page of one source.
type View struct {
	templates.Frame
	Source
	Acts []source.Act // unknown ones first, then the newest
}

// dead is how many dead letters are at the source.
func (s Source) dead() (n int64) {
	for _, q := range s.Queues {
		n += q.Count
	}
	return n
}

// state is how a source fares, as a badge.
type state struct{ word, class, icon string }

func (s Source) state(now time.Time) state {
	switch s.Standing(now) {
	case source.Down:
		return state{"no answer", "is-failed", "failed"}
	case source.Moved:
		return state{"moved", "is-failed", "failed"}
	case source.Blocked:
		return state{"not kept", "is-failed", "failed"}
	case source.Starting:
		return state{"reading", "is-active", "active"}
	case source.Late:
		return state{"late", "is-scheduled", "scheduled"}
	}

	return state{"current", "is-completed", "completed"}
}

// maxListed is how many records in quarantine are listed.
const maxListed = 50

// listed are the newest records in quarantine.
func (s Source) listed() []source.Quarantined {
	return s.Quarantined[:min(len(s.Quarantined), maxListed)]
}

// rights says what may be done at a source.
func (s Source) rights() string {
	if len(s.Allow) == 0 {
		return "read only"
	}

	words := make([]string, len(s.Allow))
	for i, k := range s.Allow {
		words[i] = string(k)
	}

	slices.SortFunc(words, func(a, b string) int { return cmp.Compare(b, a) }) // replay first

	return strings.Join(words, " and ")
}

// filterOf selects the dead letters of a source.
func filterOf(name string) filter.Filter {
	return filter.Filter{Status: job.StatusDeadLetter, Source: name}
}

// outcome is how an act ended, in words, with the class of its badge.
func outcome(a source.Act) (word, class string) {
	switch a.State {
	case source.Asked:
		return "waiting", "is-scheduled"
	case source.Begun:
		return "in progress", "is-active"
	case source.Done:
		return map[source.Kind]string{source.Replay: "replayed", source.Discard: "deleted"}[a.Kind], "is-completed"
	case source.Gone:
		return "was gone", "is-cancelled"
	case source.Changed:
		return "failed again", "is-discarded"
	case source.Replaced:
		return "replaced", "is-discarded"
	case source.Unknown:
		return "unknown", "is-failed"
	case source.NotTold:
		return "not told", "is-cancelled"
	}

	return "refused", "is-failed"
}

// ability is a row of the table of what can be seen and done.
type ability struct {
	what, how string
	can       bool
}

func (v View) abilities() []ability {
	all := []ability{{"List dead jobs", "Every " + format.Duration(v.Every) + ", newest first; all of them in turns.", true}}
	once, fresh := v.Profile.Modes[source.Once], v.Profile.Modes[source.Fresh]
	if once == fresh {
		all = append(all, ability{"Replay", once, v.Allows(source.Replay)})
	} else {
		all = append(all, ability{"Replay once", once, v.Allows(source.Replay)},
			ability{"Replay with fresh attempts", fresh, v.Allows(source.Replay)})
	}

	return append(all, ability{"Discard", "Deletes the job at the source. It cannot be restored.", v.Allows(source.Discard)})
}

// trouble is what is said of a source of which nothing new is shown.
type trouble struct{ what, so string }

// trouble says on which side the fault is.
func (s Source) trouble(now time.Time) trouble {
	what := templates.WhatIsWrong(s.Health) + "."
	if s.Moved {
		return trouble{what, "Other jobs could have the " +
			"same keys there, so Redrive reads nothing and carries out no request."}
	}

	if s.Own {
		return trouble{what, "The source answers, and the fault is on this side. " +
			"Its rows say what was known before. Redrive tries again automatically."}
	}

	return trouble{what, s.since(now) + " Redrive tries again automatically."}
}

// since says since when a source does not answer.
func (s Source) since(now time.Time) string {
	if s.Polled.IsZero() {
		return "It has not answered since the start of Redrive."
	}
	return fmt.Sprintf("It last answered %s. Its rows say what was known then.", format.Relative(s.Polled, now))
}

// nothing says that no job is dead, as far as that is known.
func (s Source) nothing() string {
	if s.Ready {
		return "Nothing lies dead there."
	}
	return "Nothing was read there yet."
}

// inQueue selects the dead letters of one of the source's queues.
func (s Source) inQueue(queue string) filter.Filter {
	return filter.Filter{Status: job.StatusDeadLetter, Queue: queue}
}

// in selects the source's jobs in a state.
func (s Source) in(state job.State) filter.Filter {
	return filter.Filter{Status: job.Status(state), Source: s.Name}
}
