package operationpage

import (
	"fmt"

	"redrive/internal/operation"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// working reports whether an operation changes by itself, job or no job: its time
// left, and its chart.
func working(o operation.Operation) bool {
	return o.State == operation.Collecting || o.State == operation.Running
}

// canary is how the canary of a paused operation stands.
type canary int

const (
	noCanary canary = iota // the operation does not wait for one
	canaryRuns
	canaryPassed
	canaryFailed
)

// Standing is an operation, and what became of its canary.
type Standing struct {
	operation.Operation
	Canary operation.Canary
}

func (v View) standing() Standing { return Standing{v.Operation, v.Progress.Canary} }

func (s Standing) canary() canary {
	released := s.ResumedAt.After(s.CanaryAt)
	switch {
	case s.State != operation.Paused || s.CanaryAt.IsZero() || released:
		return noCanary
	case s.Canary.Unsettled() > 0:
		return canaryRuns
	case s.Canary.Succeeded == s.Canary.Done:
		return canaryPassed
	}
	return canaryFailed
}

// resumeClass keeps Resume from being the obvious button while it would repeat a
// failure.
func resumeClass(v View) string {
	if c := v.standing().canary(); c == canaryFailed || c == canaryRuns {
		return "button"
	}
	return "button primary"
}

// Verdict is how the operation stands, in a few words.
func (s Standing) Verdict() templates.Style {
	o, c := s.Operation, s.Canary
	say := func(class, icon, text string, args ...any) templates.Style {
		return templates.Style{Class: class, Icon: icon, Word: fmt.Sprintf(text, args...)}
	}
	of := fmt.Sprintf("%d of %d", c.Succeeded, c.Done)
	switch canary := s.canary(); {
	case canary == canaryRuns:
		return say("is-active", "active", "The canary is running: %d of %d jobs finished.", c.Done-c.Unsettled(), c.Done)
	case canary == canaryPassed:
		return say("is-completed", "completed", "Canary passed: %s succeeded.", of)
	case canary == canaryFailed:
		return say("is-dead", "failed", "Canary failed: %s succeeded.", of)
	case o.State == operation.Collecting:
		return say("", "search", "Selecting jobs: %s so far.", format.Number(o.Total))
	case o.State == operation.Preview:
		return say("", "info", "This is a preview.")
	case o.State == operation.Running:
		done := format.UpperFirst(templates.DoneWord(o.Kind))
		return say("is-active", "active", "%s %s of %s.", done, format.Number(o.Done), format.Number(o.Total))
	case o.State == operation.Paused:
		return say("is-warn", "pause", "%s.", format.UpperFirst(format.Visible(o.Why)))
	case o.State == operation.Aborted:
		return say("", "cancelled", "%s.", format.UpperFirst(format.Visible(o.Why)))
	}
	return result(o)
}

// Brief is the verdict in the few words that the navigation has room for.
func (s Standing) Brief() string {
	o, c := s.Operation, s.Canary
	switch canary := s.canary(); {
	case canary == canaryRuns:
		return fmt.Sprintf("canary: %d of %d finished", c.Done-c.Unsettled(), c.Done)
	case canary != noCanary:
		return fmt.Sprintf("canary: %d of %d passed", c.Succeeded, c.Done)
	case o.State == operation.Collecting:
		return "selecting jobs"
	case o.State == operation.Paused:
		return fmt.Sprintf("paused at %s of %s", format.Number(o.Done), format.Number(o.Total))
	}
	return fmt.Sprintf("%s of %s", format.Number(o.Done), format.Number(o.Total))
}

// result is how an operation ended.
func result(o operation.Operation) templates.Style {
	succeeded := format.Counted(o.Succeeded, "job", "jobs") + " succeeded."
	switch {
	case o.Kind != operation.Replay || o.Done == 0:
		return templates.Style{Class: "is-completed", Icon: "completed", Word: fmt.Sprintf("Finished: %s of %s %s.",
			format.Number(o.Done), format.Counted(o.Total, "job", "jobs"), templates.DoneWord(o.Kind))}
	case o.Unsettled() > 0:
		return templates.Style{Class: "is-active", Icon: "active", Word: "All jobs are enqueued; " + outcomeWords(o) + "."}
	case o.Relapsed > 0:
		again := format.Counted(o.Relapsed, "job", "jobs")
		return templates.Style{Class: "is-failed", Icon: "failed", Word: "Finished: " + again + " failed again, " + succeeded}
	}
	return templates.Style{Class: "is-completed", Icon: "completed", Word: "Finished: " + succeeded}
}

// Advice is what follows from the verdict.
func (s Standing) Advice() string {
	o := s.Operation
	rest := format.Counted(o.Pending, "remaining job", "remaining jobs")
	switch canary := s.canary(); {
	case canary == canaryRuns:
		return "Wait for the others before you resume."
	case canary == canaryPassed:
		return "Resume to " + string(o.Kind) + " the " + rest + "."
	case canary == canaryFailed:
		return "Fix the cause first. Resume then replays the " + rest + "."
	case o.State == operation.Collecting:
		return "Nothing happens to any job before you start the operation."
	case o.State == operation.Preview:
		return "Nothing happens to any job before you start the operation."
	case o.State == operation.Running:
		return s.Outcome()
	case o.State == operation.Paused:
		return "Jobs that were already " + templates.DoneWord(o.Kind) + " are not affected. Resume to continue with the " + rest + "."
	case o.State == operation.Aborted && o.Pending == 1:
		return "1 job was left as it was."
	case o.State == operation.Aborted:
		return format.Number(o.Pending) + " jobs were left as they were."
	}
	return ""
}

// Outcome is how the replayed runs ended so far; empty where there are none, and
// where the verdict says it.
func (s Standing) Outcome() string {
	if s.Kind != operation.Replay || s.Done == 0 || s.canary() != noCanary {
		return ""
	}
	return format.UpperFirst(outcomeWords(s.Operation)) + "."
}

// outcomeWords is how the replayed runs ended so far.
func outcomeWords(o operation.Operation) string {
	settled := o.Succeeded + o.Relapsed + o.Dropped
	if settled == 0 {
		return "no replayed run has finished yet"
	}
	return fmt.Sprintf("%s of %s succeeded (%d %%)",
		format.Number(o.Succeeded), format.Counted(settled, "finished run", "finished runs"), 100*o.Succeeded/settled)
}
