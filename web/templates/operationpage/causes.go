package operationpage

import (
	"cmp"
	"fmt"

	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// causeWords are the class and the type of a cause, either of which may be unknown.
func causeWords(c operation.Cause) (class, typ string) {
	switch {
	case c.Group != "" && c.Class == "":
		return "no class", format.Visible(c.Type)
	case c.Class == "" && c.Type == "":
		return "a job that was removed", ""
	case c.Class == "":
		return format.Visible(c.Type), "no error group"
	}

	return format.Visible(c.Class), format.Visible(c.Type)
}

// canaryTakes says which jobs go first, whatever the size of the canary is; empty where there
// is no choice.
func canaryTakes(o operation.Operation) string {
	if o.Causes < 2 {
		return ""
	}

	all := format.Counted(o.Causes, "job", "jobs")

	return fmt.Sprintf("One job of each cause goes first, the most frequent cause first: %s cover all.", all)
}

// causeVerdict is how the jobs of a cause fared that were in the canary.
func causeVerdict(c operation.CauseCanary) templates.Style {
	say := func(class, icon, word string, n int64) templates.Style {
		return templates.Style{Class: class + " auto", Icon: icon, Word: fmt.Sprintf("%s %d of %d", word, n, c.Done)}
	}
	switch {
	case c.Relapsed > 0:
		return say("is-failed", "failed", "failed", c.Relapsed)
	case c.Passed():
		return say("is-succeeded", "succeeded", "succeeded", c.Succeeded)
	case c.Unsettled() > 0:
		return say("is-active", "active", "pending", c.Unsettled())
	case c.Unknown > 0:
		return say("is-warn", "unknown", "unknown", c.Unknown)
	}

	return say("is-skipped", "cancelled", "stopped", c.Dropped)
}

// unhandledWords says what becomes of the jobs for which no handler is configured; empty where
// there are none.
func (v View) unhandledWords() string {
	jobs, types := v.Breakdown.Unhandled()
	if jobs == 0 || v.Operation.Kind != operation.Replay {
		return ""
	}

	whose := "their "
	if types == 1 {
		whose = "its "
	}

	become := map[retry.Unknown]string{
		retry.UnknownFail:       "will fail at once",
		retry.UnknownDeadLetter: "will become dead letters again at once",
		retry.UnknownDelete:     "will be discarded at once",
	}

	return format.Counted(types, "type has", "types have") + " no handler here: " + whose + format.Counted(jobs, "job", "jobs") + " " +
		cmp.Or(become[v.UnknownType], "will wait until one is configured") + "."
}

// guardSees says what the guard counts now.
func guardSees(v View) string {
	if v.Operation.Guarded {
		return fmt.Sprintf("By now, %d of the last %d.", v.Progress.Same, v.Progress.Ended)
	}
	return fmt.Sprintf("Currently %d of %d.", v.Progress.Same, v.Progress.Ended)
}
