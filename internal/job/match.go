package job

import (
	"strings"
	"unicode"

	"redrive/internal/retry"
)

// Document is what can be searched of a job that failed, as it was at its newest
// failure and after redaction. The zero Document is that of a job that never
// failed: no text is found in it.
type Document struct{ ID, Type, Error, Payload, Meta string }

// MaxSearched is how many bytes of each text can be searched.
const MaxSearched = 32 << 10

// Document is what can be searched of the job, whose error is its newest one.
func (j Job) Document() Document {
	failure := (&Failure{ErrorInfo: j.Error}).Error()
	return Document{searchable(j.ID), searchable(j.Type), searchable(failure), searchable(string(j.Payload)), searchable(string(j.Meta))}
}

// searchable is the part of a text that can be searched: its beginning, as
// characters. A NUL would end it for the index.
func searchable(s string) string {
	s = s[:min(len(s), MaxSearched)]
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Finds reports whether the text of the filter stands in a group, as it is shown.
func (f GroupFilter) Finds(g Group) bool { return contains(f.Text, g.Class, g.Message, g.Note) }

// Facts are what a filter asks of a job beside the job itself.
type Facts struct {
	Document   Document
	Group      string  // the fingerprint of the newest failure in this run
	Operations []int64 // that replayed, discarded or restored it
}

// Match reports whether the filter selects the job. It says in memory what a
// store answers from its indexes.
func (f Filter) Match(j Job, facts Facts) bool {
	d := facts.Document
	return f.matchesState(j) && f.matchesTime(j) && f.MatchesType(j.Type) &&
		(f.Queue == "" || f.Queue == j.Queue) &&
		(f.Reason == "" || f.Reason == j.Reason) &&
		(f.Class == "" || retry.Matches(f.Class, j.Error.Type)) &&
		(f.Group == "" || f.Group == facts.Group) &&
		strings.HasPrefix(j.ID, f.ID) && f.Attempts.Holds(j.Attempts) && f.Run.Holds(j.Run) &&
		(f.Operation == 0 || holdsOperation(facts.Operations, f.Operation)) &&
		contains(f.Error, d.Error) && contains(f.Payload, d.Payload) && contains(f.Meta, d.Meta) &&
		contains(f.Text, d.ID, d.Type, d.Error, d.Payload, d.Meta)
}

// matchesState takes a view (dead_letter, dlq_failed, held, trashed) for a part
// of its state.
func (f Filter) matchesState(j Job) bool {
	return f.Status == "" || f.Status == Status(j.State) || f.Status == j.Status()
}

func (f Filter) matchesTime(j Job) bool {
	return (f.From.IsZero() || !j.ChangedAt.Before(f.From)) && (f.To.IsZero() || j.ChangedAt.Before(f.To))
}

func holdsOperation(all []int64, n int64) bool {
	for _, o := range all {
		if o == n {
			return true
		}
	}
	return false
}

// contains reports whether one of the texts contains what is looked for, case
// ignored.
func contains(wanted string, texts ...string) bool {
	if wanted == "" {
		return true
	}
	wanted = folded(wanted)
	for _, s := range texts {
		if strings.Contains(folded(s), wanted) {
			return true
		}
	}
	return false
}

// folded is a text in which letters that differ by case alone are the same.
func folded(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, s)
}
