package jobpage

import (
	"cmp"
	"strings"

	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/web/templates"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// sourceActs are what can be done to the dead letter of a source, the primary act last:
// it is discarded there, or replayed, with fresh attempts or as the source's own button
// does. A source that is not attached does nothing, and its dead letters can be given up
// here alone.
func sourceActs(v View) (all []templates.Act) {
	if !v.Job.Replayable() {
		return nil
	}

	// A source that is not attached is never asked, so only Redrive's own record of the dead
	// letter can be given up.
	allowed := func(kind source.Kind) bool {
		if v.Origin == nil {
			return kind == source.Discard
		}
		return v.Origin.Allows(kind)
	}

	// JobAct may have denied the act already, because of the role of the person: that reason
	// stays.
	add := func(kind source.Kind, class, word string) *templates.Act {
		a := templates.JobAct(v.Frame, v.Job, string(kind), class, link.Job(v.Job.ID))
		a.Word = cmp.Or(word, a.Word)
		all = append(all, a)
		templates.Deny(&all[len(all)-1], allowed(kind), whyNotAllowed(v.Job, v.Origin, kind))

		return &all[len(all)-1]
	}
	if v.Origin == nil {
		add(source.Discard, "danger", "Discard in Redrive only")
	} else {
		add(source.Discard, "danger", "")
	}

	// A replay with fresh attempts has a button of its own only where it differs from what the
	// source's own button does.
	modes := v.modes()
	if modes[source.Fresh] != modes[source.Once] {
		a := add(source.Replay, "", "Replay with fresh attempts")
		*a = a.Sending("mode", string(source.Fresh))
	}

	if modes[source.New] != "" {
		a := add(source.Replay, "", "Replay as a new message")
		*a = a.Sending("mode", string(source.New))
	}

	add(source.Replay, "primary", "Replay to "+v.Job.Source)

	return all
}

// whyNotAllowed says why an act cannot be done at the source.
func whyNotAllowed(j job.Job, origin *source.Health, kind source.Kind) string {
	if origin == nil {
		return "the source " + j.Source + " is not attached"
	}
	return "the source " + j.Source + " is read only; allow " + string(kind) + " in the configuration file"
}

// modes say what a replay does, by its mode.
func (v View) modes() map[source.Mode]string {
	if v.Origin == nil {
		return nil
	}
	return v.Origin.Profile.Modes
}

// modeWords name the modes of a replay at a source.
var modeWords = map[source.Mode]string{
	source.Once: "as the source's own retry", source.Fresh: "with fresh attempts", source.New: "as a new message",
}

// modesOf are the modes of a source that differ.
func modesOf(origin *source.Health) []source.Mode {
	if origin == nil {
		return nil
	}

	all, modes := []source.Mode{source.Once}, origin.Profile.Modes
	if modes[source.Fresh] != modes[source.Once] {
		all = append(all, source.Fresh)
	}

	if modes[source.New] != "" {
		all = append(all, source.New)
	}

	return all
}

// sourceName is the source with its system, as "shop (Laravel)".
func sourceName(v View) string {
	if v.Origin == nil {
		return v.Job.Source + ", which is not attached"
	}
	return v.Job.Source + " (" + systemName(v) + ")"
}

// refusedReplay is what the source said when it did not carry out the replay that began
// this run; empty when it did.
func refusedReplay(v View) string {
	if l := v.deadLetter(); l != nil && l.Run == v.Job.Run {
		return strings.TrimRight(l.Problem, ".")
	}
	return ""
}

// doubt is the replay that began this run, if it is unknown whether the source took it.
func doubt(v View) *source.Act {
	a := newestAct(v)
	if a == nil || a.Kind != source.Replay || a.State != source.Unknown || a.Run != v.Job.Run {
		return nil
	}

	return a
}

// whyInDoubt says in a sentence what is known of a replay whose fate is unknown.
func whyInDoubt(a *source.Act) string {
	return format.UpperFirst(strings.TrimRight(format.Visible(a.Why), ".")) + "."
}

// nextReport says when Redrive will know more of a job that its source has.
func nextReport(v View) string {
	if v.Origin != nil && v.Origin.Report.Tells {
		return "Redrive hears of the job again when it fails there, or when " + v.Job.Source + " records that it succeeded."
	}
	return systemName(v) + " reports only failures, so Redrive hears of the job again only if it fails there."
}

// untilReturned says until when Redrive waits for a report on a job that its source has.
func untilReturned(v View) string {
	if v.Origin != nil && v.Origin.Report.Tells {
		return systemName(v) + " reports failures and successes: if neither is known by %v, the job counts as returned."
	}
	return systemName(v) + " reports only failures: if the job is not back by %v, it counts as returned."
}

// systemName is the system of the job's source, as "Laravel", or else the source.
func systemName(v View) string {
	if v.Origin == nil {
		return v.Job.Source
	}

	name, _, _ := strings.Cut(v.Origin.Profile.Title, " (")

	return name
}

// diedAt says when a dead letter of a source died, and after how many attempts, as far as
// the source tells.
func diedAt(j job.Job) string {
	text := "It failed permanently at " + j.Source
	if j.Attempts > 0 {
		text += " after " + format.Counted(j.Attempts, "attempt", "attempts")
	}

	if !j.FinishedAt.IsZero() {
		text += " %v"
	}

	return text
}

// newestAct is what was asked of the source last; nil when nothing was.
func newestAct(v View) *source.Act {
	if v.Mirrored == nil || len(v.Mirrored.Acts) == 0 {
		return nil
	}
	return &v.Mirrored.Acts[0]
}

// noAttempt says why nothing is told of a run of a source's job.
func noAttempt(v View, r jobRun) string {
	name := v.Job.Source
	switch a := actOf(v, r.number); {
	case a != nil && a.State.Open():
		return "The replay that begins this run is on its way to " + name + "."
	case a != nil && a.State == source.Unknown:
		return "It is unknown whether " + name + " took the replay that began this run. No attempt of it is known."
	case a != nil && !a.State.Open() && a.State != source.Done && a.State != source.Changed:
		return name + " did not take the replay that began this run, so no attempt of it was made."
	case r.over:
		return "No attempt of this run is known."
	}

	return name + " has not said anything of this run yet."
}

// actOf is the replay that began a run of a source's job; nil when none is known.
func actOf(v View, run int) *source.Act {
	if v.Mirrored == nil {
		return nil
	}

	for i := range v.Mirrored.Acts {
		if a := &v.Mirrored.Acts[i]; a.Kind == source.Replay && a.Run == run {
			return a
		}
	}

	return nil
}

// endOfAct says how an act on a source ended that it did not carry out; empty for others.
func endOfAct(name string, a source.Act) string {
	switch a.State {
	case source.Unknown:
		return "it is unknown whether " + name + " carried out the " + string(a.Kind)
	case source.Refused, source.Replaced:
		return name + " did not carry out the " + string(a.Kind)
	}

	return ""
}

// styleOfRun draws the status of a run; the current one of a source's job can be there.
func styleOfRun(v View, r jobRun) templates.Style {
	if r.current && v.Job.State == job.Returned {
		return templates.StyleOfJob(v.Job, v.Now)
	}
	return templates.StyleOf(r.status)
}
