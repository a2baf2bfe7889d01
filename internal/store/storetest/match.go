package storetest

import (
	"strings"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store/db"
)

// selects reports whether the filter selects the job whose texts are those of
// the document. It says in memory what a store answers from its indexes. None of the
// jobs belongs to an error group or an operation that a filter could name.
func selects(f filter.Filter, j job.Job, d db.Document) bool {
	return f.Group == "" && f.Operation == 0 && matchesState(f, j) && matchesTime(f, j) && f.MatchesType(j.Type) &&
		(f.Queue == "" || f.Queue == j.Queue) &&
		(f.Reason == "" || f.Reason == j.Reason) &&
		(f.Class == "" || retry.Matches(f.Class, j.Error.Type)) &&
		strings.HasPrefix(j.ID, f.ID) && within(f.Attempts, j.Attempts) && (f.Attempts == filter.Span{} || j.Attempts > 0 || j.Source == "") && within(f.Run, j.Run) &&
		filter.Contains(db.Unescape(f.Error), d.Error) && filter.Contains(db.Unescape(f.Payload), d.Payload) && filter.Contains(db.Unescape(f.Meta), d.Meta) &&
		filter.Contains(db.Unescape(f.Text), d.ID, d.Type, d.Error, d.Payload, d.Meta)
}

// matchesState takes a view (dead_letter, dlq_failed, held, trashed) for a part
// of its state.
func matchesState(f filter.Filter, j job.Job) bool {
	return f.Status == "" || f.Status == job.Status(j.State) || f.Status == j.Status()
}

func matchesTime(f filter.Filter, j job.Job) bool {
	return (f.From.IsZero() || !j.ChangedAt.Before(f.From)) && (f.To.IsZero() || j.ChangedAt.Before(f.To))
}

func within(s filter.Span, n int) bool { return n >= s.Min && (s.Max == 0 || n <= s.Max) }
