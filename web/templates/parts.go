package templates

import (
	"slices"
	"strconv"

	"github.com/a-h/templ"

	"redrive/internal/access"
	"redrive/internal/job"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// Act is one button that changes something; see ActForm.
type Act struct {
	Kind   string // "replay", "discard", "cancel", "forward", "pause", "resume"
	URL    templ.SafeURL
	Word   string
	Icon   string
	Class  string // of the button: "primary", "danger", "row", "row square" with an icon only, or empty
	About  string // what it acts on, for readers who hear the button alone
	Denied string // why it cannot be used now, or empty
	hidden bool   // it does not apply now; a change of the job may bring it back
	fields []field
}

// inRow reports whether the button is in a row, and is drawn plainly.
func (a Act) inRow() bool { return a.Class == "row" || a.iconOnly() }

// iconOnly reports whether the word of the button is heard and not seen.
func (a Act) iconOnly() bool { return a.Class == "row square" }

// field is what a form sends along unseen.
type field struct{ name, value string }

// Back is the field that names the page to return to without scripts.
func Back(page templ.SafeURL) []field { return []field{{"back", string(page)}} }

// JobAct is a button that acts on one job in the run that the page shows; it
// returns there without scripts.
func JobAct(f Frame, j job.Job, kind, class string, page templ.SafeURL) Act {
	a := Act{
		Kind: kind, URL: link.JobAction(j.ID, kind), Class: class, Denied: f.Denied(access.Operate, kind), About: AboutJob(j),
		fields: []field{{"back", string(page)}, {"run", strconv.Itoa(j.Run)}},
	}
	a.Word, a.Icon = faceOf(kind)

	return a
}

// Sending is the act with a field that its form sends along.
func (a Act) Sending(name, value string) Act {
	a.fields = append(slices.Clip(a.fields), field{name, value})
	return a
}

// AboutJob names a job to readers who hear a button alone, with the end of its id that its row shows.
func AboutJob(j job.Job) string { return format.Visible(j.Type) + " " + format.ShortID(j.ID) }

// faceOf is the word and the icon of a button that acts on a job.
func faceOf(kind string) (word, symbol string) {
	face := map[string][2]string{
		"replay": {"Replay", "replay"}, "discard": {"Discard", "discarded"}, "restore": {"Restore", "replay"},
		"cancel": {"Cancel", "cancelled"}, "forward": {"Forward again", "up"},
		"reschedule": {"Run now", "play"},
	}[kind]

	return face[0], face[1]
}

// restorable reports whether a job that was just discarded can be taken out of the trash.
func restorable(c job.Change) bool {
	return job.Job{State: c.State, DeadLetter: c.DeadLetter, Source: c.Source}.Restorable()
}

// undo takes the job that was just discarded out of the trash again.
func undo(f Frame, c job.Change) Act {
	a := JobAct(f, job.Job{Token: job.Token{ID: c.ID, Run: c.Run}, Type: c.Type}, "restore", "", templ.SafeURL(f.Here))
	a.Word, a.About = "Undo", ""
	return a
}

// pip is one allowed attempt in the little picture of a run.
type pip struct {
	used     bool
	x, width string
}

// maxPips is how many attempts are drawn. Of more, the number alone can be read.
const maxPips = 10

// pipsOf draws a run of limit attempts in 38 pixels.
func pipsOf(used, limit int) []pip {
	used, limit = max(used, 0), max(limit, 0)
	pitch, gap := 7, 2
	if limit > 8 {
		pitch, gap = 3, 1
	} else if limit > 5 {
		pitch = 5
	}

	pips := make([]pip, limit)
	for i := range pips {
		x, width := float64(i*pitch), float64(pitch-gap)
		if i >= used { // hollow: the stroke stands half outside
			x, width = x+0.5, width-1
		}

		pips[i] = pip{i < used, format.Coord(x), format.Coord(width)}
	}

	return pips
}

// LiveWidth is the class that keeps enough space for a live count to double without
// moving what stands beside it.
func LiveWidth(n int64) string { return "ch-" + strconv.Itoa(min(11, len(format.Number(2*n+100)))) }

// Deny turns a button off that is not allowed, and says why.
func Deny(a *Act, allowed bool, why string) {
	if a.Denied == "" && !allowed {
		a.Denied = why
	}
}

// Disabled are the attributes of a button that cannot be used now, and why; none
// where there is no reason.
func Disabled(why string) templ.Attributes {
	if why == "" {
		return nil
	}
	return templ.Attributes{"disabled": true, "title": why}
}

// unknownAttempts says that a source does not count attempts, and what else it says.
func unknownAttempts(j job.Job) string {
	text := j.Source + " does not say how often it has tried the job"
	if limit := j.MaxAttempts(); limit > 0 {
		text += ", only that it tries it at most " + format.Counted(limit, "time", "times")
	}

	return text
}
