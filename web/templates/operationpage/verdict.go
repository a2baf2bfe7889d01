package operationpage

import (
	"fmt"

	"redrive/internal/operation"
	"redrive/internal/source"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// working reports whether an operation changes on its own, even while no job does: its
// time left, and its chart.
func working(o operation.Operation) bool {
	return o.State == operation.Collecting || o.State == operation.Running
}

// canary is how the canary of a paused operation stands.
type canary int

const (
	noCanary canary = iota // the operation does not wait for one
	canaryRuns
	canaryAtSource // its source has some of its jobs, and may still say how they fared
	canaryReturned // its source has said nothing of some, and no more is expected
	canaryUnknown  // it is unknown whether its source took some
	canaryPassed
	canaryFailed
)

// Standing is an operation, and what became of its canary.
type Standing struct {
	operation.Operation
	Canary     operation.Canary
	SourceRuns operation.SourceRuns // of all its replayed runs
	Origin     *source.Health       // that has them; nil: several have, or it is not attached
	Pruned     bool                 // its items were removed, so that no more is known of its runs
}

func (v View) standing() Standing {
	return Standing{v.Operation, v.Progress.Canary, v.Progress.SourceRuns, v.Origin, v.Progress.Pruned}
}

// again is after how many seconds the page is drawn again, because it changes with the time
// alone: the operation works, or a source may still report on its jobs. It is empty
// where nothing does.
func (v View) again() string {
	switch {
	case working(v.Operation):
		return "1"
	case !v.Progress.SourceRuns.Until.IsZero() || !v.Progress.Canary.SourceRuns.Until.IsZero():
		return "10"
	}

	return ""
}

func (s Standing) canary() canary {
	released := s.ResumedAt.After(s.CanaryAt)
	c, h := s.Canary, s.Canary.SourceRuns
	switch {
	case s.State != operation.Paused || s.CanaryAt.IsZero() || released:
		return noCanary
	case c.Unsettled() > h.AtSource:
		return canaryRuns
	case c.Relapsed+c.Dropped > 0:
		return canaryFailed
	case h.AtSource > h.Returned:
		return canaryAtSource
	case c.Unknown > 0:
		return canaryUnknown
	case h.Returned > 0:
		return canaryReturned
	case s.Canary.Succeeded == s.Canary.Done:
		return canaryPassed
	}

	return canaryFailed
}

// Badge is the state of the operation in a word or two. What its runs still do is part of it:
// an operation that has enqueued its last job is not over for those who wait for the jobs.
func (s Standing) Badge() templates.Style {
	switch {
	case s.canary() == canaryRuns:
		return templates.Style{Class: "is-active", Icon: "active", Word: "canary"}
	case s.State == operation.Finished && !s.Pruned && s.Unsettled() > s.SourceRuns.AtSource:
		return templates.Style{Class: "is-active", Icon: "active", Word: "all enqueued"}
	}

	return templates.StyleOfOperation(s.State)
}

// mayResumePassed reports whether the operation can go on with the causes that passed: the
// canary is over, and failed for others.
func (s Standing) mayResumePassed() bool {
	over := s.Canary.Unsettled() <= s.Canary.SourceRuns.Returned
	return s.canary() == canaryFailed && over && s.Causes > 0 && len(s.Canary.Passed()) > 0
}

// resumeClass keeps Resume from being the obvious button while it would repeat a
// failure.
func resumeClass(v View) string {
	if v.Operation.Guarded {
		return "button"
	}

	switch v.standing().canary() {
	case canaryFailed, canaryRuns, canaryAtSource, canaryUnknown:
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

	// A canary comes first: what it waits for is what a person has to decide.
	of := fmt.Sprintf("%d of %d", c.Succeeded, c.Done)
	switch canary := s.canary(); {
	case canary == canaryAtSource, canary == canaryReturned:
		return s.sourceVerdict()
	case canary == canaryUnknown:
		return s.unknownVerdict()
	case canary == canaryFailed && c.SourceRuns.AtSource+c.Unknown > 0: // of which some may have succeeded
		return say("is-dead", "failed", "Canary failed: %d of %d failed again.", c.Relapsed+c.Dropped, c.Done)
	case canary == canaryRuns:
		return say("is-active", "active", "The canary is running: %d of %d jobs finished.", c.Done-c.Unsettled(), c.Done)
	case canary == canaryPassed:
		return say("is-completed", "completed", "Canary passed: %s succeeded.", of)
	case canary == canaryFailed:
		return say("is-dead", "failed", "Canary failed: %s succeeded.", of)
	case o.State == operation.Collecting:
		return say("", "search", "Selecting jobs.")
	case o.State == operation.Preview:
		return say("", "info", "This is a preview.")
	case o.State == operation.Running:
		done := format.UpperFirst(templates.DoneWord(o.Kind))
		return say("is-active", "active", "%s %s of %s.", done, format.NumberOf(o.Done, o.Total), format.Number(o.Total))
	case o.State == operation.Paused && o.Guarded:
		return say("is-dead", "failed", "Paused: %s.", format.Visible(o.Why))
	case o.State == operation.Paused:
		return say("is-warn", "pause", "%s.", format.UpperFirst(format.Visible(o.Why)))
	case o.State == operation.Aborted:
		return say("", "cancelled", "%s.", format.UpperFirst(format.Visible(o.Why)))
	}

	return s.result()
}

// Brief is the verdict in the few words that the navigation has room for.
func (s Standing) Brief() string {
	o, c := s.Operation, s.Canary
	switch canary := s.canary(); {
	case canary == canaryRuns:
		return fmt.Sprintf("canary: %d of %d finished", c.Done-c.Unsettled(), c.Done)
	case canary == canaryAtSource:
		return fmt.Sprintf("canary: %d of %d handed over", c.SourceRuns.AtSource, c.Done)
	case canary == canaryReturned:
		return fmt.Sprintf("canary: %d of %d not back", c.SourceRuns.Returned, c.Done)
	case canary == canaryUnknown:
		return fmt.Sprintf("canary: %d of %d unknown", c.Unknown, c.Done)
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
func (s Standing) result() templates.Style {
	o := s.Operation
	succeeded := format.Counted(o.Succeeded, "job", "jobs") + " succeeded."
	switch {
	case o.Kind != operation.Replay || o.Done == 0:
		return templates.Style{Class: "is-completed", Icon: "completed", Word: fmt.Sprintf("Finished: %s of %s %s.",
			format.Number(o.Done), format.Counted(o.Total, "job", "jobs"), templates.DoneWord(o.Kind))}
	case s.SourceRuns.AtSource+o.Unknown > 0 && o.Unsettled() == s.SourceRuns.AtSource:
		return s.sourceResult()
	case o.Unsettled() > 0:
		return templates.Style{Class: "is-active", Icon: "active", Word: "All jobs are enqueued; " + s.outcomeWords() + "."}
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
	case canary == canaryReturned:
		return "Look at " + sourceWord(s.Canary.SourceRuns) + " whether they ran. Resume to " + string(o.Kind) + " the " + rest + "."
	case canary == canaryUnknown:
		return "Copies may be in its queue: look there first. Resume then replays the " + rest + "."
	case canary == canaryPassed:
		return s.untested() + "Resume to " + string(o.Kind) + " the " + rest + "."
	case s.mayResumePassed():
		return "Fix what failed again, or resume only the causes that passed."
	case canary == canaryFailed:
		return "Fix the cause first. Resume then replays the " + rest + "."
	case o.State == operation.Collecting: // the number that grows stands last, where it moves nothing
		return "Nothing happens to any job before you start the operation. Selected so far: " + format.Number(o.Total) + "."
	case o.State == operation.Preview:
		return "Nothing happens to any job before you start the operation."
	case o.State == operation.Running:
		return s.Outcome()
	case o.State == operation.Paused && o.Sift > 0:
		return "Jobs of causes that did not pass the canary are still to be left out of the " + rest + "."
	case o.State == operation.Paused && o.Guarded:
		return "Fix it first. Resume then replays the " + rest + "."
	case o.State == operation.Paused:
		return "Jobs that were already " + templates.DoneWord(o.Kind) + " are not affected. Resume to continue with the " + rest + "."
	case o.State == operation.Aborted && o.Pending == 1:
		return "1 job was left as it was."
	case o.State == operation.Aborted:
		return format.Number(o.Pending) + " jobs were left as they were."
	}

	return ""
}

// untested says that a canary that passed does not speak for every cause; empty when it does.
func (s Standing) untested() string {
	n := s.Causes - int64(len(s.Canary.Causes))
	if n <= 0 || len(s.Canary.Causes) == 0 {
		return ""
	}

	return format.Number(n) + " of " + format.Counted(s.Causes, "cause", "causes") + " were not in it. "
}

// Outcome is how the replayed runs ended so far; empty where there are none, and
// where the verdict says it.
func (s Standing) Outcome() string {
	if s.Kind != operation.Replay || s.Done == 0 || s.canary() != noCanary {
		return ""
	}
	return format.UpperFirst(s.outcomeWords()) + "."
}

// outcomeWords is how the replayed runs ended so far.
func (s Standing) outcomeWords() string {
	o, h := s.Operation, s.SourceRuns
	settled := o.Succeeded + o.Relapsed + o.Dropped
	switch {
	case h.AtSource > 0 && o.Succeeded == 0:
		return fmt.Sprintf("%s at %s, %s not back; %s failed again", format.Number(h.AtSource), sourceWord(h), format.Number(h.Returned),
			format.Number(o.Relapsed))
	case settled == 0 && o.Unknown > 0:
		return format.Number(o.Unknown) + " unknown"
	case settled == 0:
		return "no replayed run has finished yet"
	}

	return fmt.Sprintf("%s of %s succeeded (%d %%)",
		format.Number(o.Succeeded), format.Counted(settled, "finished run", "finished runs"), 100*o.Succeeded/settled)
}
