package templates

import (
	"cmp"

	"redrive/internal/operation"
	"redrive/web/templates/format"
)

// StyleOfOperation draws where an operation stands.
func StyleOfOperation(s operation.State) Style {
	return cmp.Or(map[operation.State]Style{
		operation.Collecting: {"is-pending", "search", "collecting"},
		operation.Preview:    {"is-scheduled", "info", "preview"},
		operation.Running:    {"is-active", "active", "running"},
		operation.Paused:     {"is-warn", "pause", "paused"},
		operation.Finished:   {"is-completed", "completed", "finished"},
		operation.Aborted:    {"is-cancelled", "cancelled", "aborted"},
	}[s], Style{"is-pending", "unknown", format.Visible(string(s))})
}

// KindWord is what an operation does, at the beginning of a sentence.
func KindWord(k operation.Kind) string { return format.UpperFirst(format.Visible(string(k))) }

// DoneWord is what was done to a job.
func DoneWord(k operation.Kind) string {
	return cmp.Or(map[operation.Kind]string{
		operation.Replay:  "enqueued",
		operation.Discard: "discarded",
		operation.Restore: "restored",
	}[k], "done")
}

// OpenOperation is an operation that has not ended: how it stands, in a sentence and
// in the few words that fit the navigation, and how its replayed runs ended so far.
type OpenOperation struct {
	operation.Operation
	Verdict Style
	Brief   string
	Outcome string
}

// OperationTitle names an operation: "Replay 2,412 jobs", or by the cause that the
// jobs have in common: "Replay 471 × upstream.unavailable".
func OperationTitle(o operation.Operation) string {
	n := o.Total
	if o.State == operation.Preview {
		n = o.Pending
	}

	if o.Cause != "" {
		return KindWord(o.Kind) + " " + format.Number(n) + " × " + format.Visible(o.Cause)
	}

	return KindWord(o.Kind) + " " + format.Counted(n, "job", "jobs")
}

// MeterPart is a piece of a meter, and its line in the legend.
type MeterPart struct {
	Name, Class, Word string
	N                 int64
}

// placed is a part as it is drawn.
type placed struct {
	MeterPart
	x, width string
	seam     bool
}

// RestWord is what an operation has not done yet, or never will.
func RestWord(o operation.Operation) string {
	if !o.Open() {
		return "not run"
	}
	return "remaining"
}

// EnqueuedParts are what an operation did with the jobs of its scope.
func EnqueuedParts(o operation.Operation) []MeterPart {
	return []MeterPart{
		{"done", "is-accent", DoneWord(o.Kind), o.Done},
		{"skipped", "is-skipped", "skipped", o.Skipped},
		{"failed", "is-failed", "failed", o.Failed},
		{"pending", "", RestWord(o), o.Pending},
	}
}

// draw puts the parts beside one another; those without a class are the rest.
func draw(parts []MeterPart, total int64) (all []placed) {
	x := 0.0
	for _, p := range parts {
		if p.Class == "" {
			continue
		}

		width := 0.0
		if total > 0 {
			width = 100 * float64(p.N) / float64(total)
		}

		all = append(all, placed{p, format.Percent(x), format.Percent(width), x > 0 && width > 0})
		x += width
	}

	return all
}

// meterWords is a meter in words.
func meterWords(parts []MeterPart, total int64) string {
	s := "Of " + format.Number(total) + ":"
	for i, p := range parts {
		if i > 0 {
			s += ","
		}

		s += " " + format.Number(p.N) + " " + p.Word
	}

	return s
}
