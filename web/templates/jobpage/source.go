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
// does.
func sourceActs(v View) (all []templates.Act) {
	if !v.Job.Replayable() {
		return nil
	}
	add := func(kind source.Kind, class, word string) *templates.Act {
		a := templates.JobAct(v.Frame, v.Job, string(kind), class, link.Job(v.Job.ID))
		a.Word = cmp.Or(word, a.Word)
		all = append(all, a)
		templates.Deny(&all[len(all)-1], v.Origin != nil && v.Origin.Allows(kind), whyNotAllowed(v.Job, v.Origin, kind))
		return &all[len(all)-1]
	}
	add(source.Discard, "danger", "")
	modes := v.modes()
	if modes[source.Fresh] != modes[source.Once] {
		a := add(source.Replay, "", "Replay with fresh attempts")
		*a = a.Sending("mode", string(source.Fresh))
	}
	if modes[source.New] != "" {
		a := add(source.Replay, "", "Replay as a new message")
		*a = a.Sending("mode", string(source.New))
	}
	add(source.Replay, "primary", "Replay to "+v.Job.Source())
	return all
}

// whyNotAllowed says why an act cannot be done at the source.
func whyNotAllowed(j job.Job, origin *source.Health, kind source.Kind) string {
	if origin == nil {
		return "the source " + j.Source() + " is not attached"
	}
	return "the source " + j.Source() + " is read only; allow " + string(kind) + " in the configuration file"
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
		return v.Job.Source() + ", which is not attached"
	}
	system, _, _ := strings.Cut(v.Origin.Profile.Title, " (")
	return v.Job.Source() + " (" + system + ")"
}

// refusedReplay is what the source said when it did not carry out the replay that began
// this run; empty when it did.
func refusedReplay(v View) string {
	if l := v.letter(); l != nil && l.Run == v.Job.Run {
		return strings.TrimRight(l.Problem, ".")
	}
	return ""
}

// hearsAgain says when Redrive will know more of a job that its source has.
func hearsAgain(v View) string {
	if v.Origin != nil && v.Origin.Report.Tells {
		return "Redrive hears of the job again when it fails there, or when " + v.Job.Source() + " records that it succeeded."
	}
	return "Redrive hears of the job again only if it fails there."
}

// tries says how often the source tried the job, as far as it tells.
func tries(j job.Job) string {
	if j.Attempts == 0 {
		return ""
	}
	return " after " + format.Counted(j.Attempts, "attempt", "attempts")
}

// newestAct is what was asked of the source last; nil when nothing was.
func newestAct(v View) *source.Act {
	if v.Mirrored == nil || len(v.Mirrored.Acts) == 0 {
		return nil
	}
	return &v.Mirrored.Acts[0]
}

// styleOfRun draws the status of a run; the current one of a source's job can be returned.
func styleOfRun(v View, r jobRun) templates.Style {
	if r.current && source.Returned(v.Job, v.Now) {
		return templates.StyleOfJob(v.Job, v.Now)
	}
	return templates.StyleOf(r.status)
}
