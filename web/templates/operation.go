package templates

import (
	"redrive/internal/operation"
	"redrive/web/templates/format"
)

// lookOfOperation draws where an operation stands.
func lookOfOperation(s operation.State) Look {
	switch s {
	case operation.Collecting:
		return Look{"is-pending", "search", "collecting"}
	case operation.Preview:
		return Look{"is-scheduled", "info", "preview"}
	case operation.Running:
		return Look{"is-active", "active", "running"}
	case operation.Paused:
		return Look{"is-warn", "pause", "paused"}
	case operation.Finished:
		return Look{"is-completed", "completed", "finished"}
	case operation.Aborted:
		return Look{"is-cancelled", "cancelled", "aborted"}
	}
	return Look{"is-pending", "unknown", format.Visible(string(s))}
}

// kindWord is what an operation does, at the beginning of a sentence.
func kindWord(k operation.Kind) string {
	switch k {
	case operation.Replay:
		return "Replay"
	case operation.Discard:
		return "Discard"
	case operation.Restore:
		return "Restore"
	}
	return format.Visible(string(k))
}

// doneWord is what was done to a job.
func doneWord(k operation.Kind) string {
	switch k {
	case operation.Replay:
		return "enqueued"
	case operation.Discard:
		return "discarded"
	case operation.Restore:
		return "restored"
	}
	return "done"
}

// operationTitle names an operation: "Replay 2,412 jobs".
func operationTitle(o operation.Operation) string {
	n := o.Total
	if o.State == operation.Preview {
		n = o.Pending
	}
	return kindWord(o.Kind) + " " + format.Counted(n, "job", "jobs")
}

// part is a piece of a meter, and its line in the legend.
type part struct {
	name, class, word string
	n                 int64
}

// placed is a part as it is drawn.
type placed struct {
	part
	x, width string
	seam     bool
}

func enqueuedParts(o operation.Operation) []part {
	return []part{
		{"done", "is-accent", doneWord(o.Kind), o.Done},
		{"skipped", "is-skipped", "skipped", o.Skipped},
		{"failed", "is-failed", "failed", o.Failed},
		{"pending", "", "to go", o.Pending},
	}
}

// draw puts the parts beside one another; those without a class are the rest.
func draw(parts []part, total int64) (all []placed) {
	x := 0.0
	for _, p := range parts {
		if p.class == "" {
			continue
		}
		width := 0.0
		if total > 0 {
			width = 100 * float64(p.n) / float64(total)
		}
		all = append(all, placed{p, format.Percent(x), format.Percent(width), x > 0 && width > 0})
		x += width
	}
	return all
}

// meterWords is a meter in words.
func meterWords(parts []part, total int64) string {
	s := "Of " + format.Number(total) + ":"
	for i, p := range parts {
		if i > 0 {
			s += ","
		}
		s += " " + format.Number(p.n) + " " + p.word
	}
	return s
}
