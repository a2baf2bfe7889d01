package templates

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"time"

	"redrive/internal/retry"
	"redrive/internal/wire"
	"redrive/web/templates/format"
)

// Policies is the page /policies: the policies in use, the presets, and one of
// them in full, as it is or with changes that somebody is thinking about.
type Policies struct {
	Frame
	InUse    []PolicyEntry // the default first
	Presets  []PolicyEntry
	From     PolicyEntry       // which one the form starts from
	Form     map[string]string // by parameter: what stands in the form
	Errors   map[string]string // by parameter: what is wrong with it; then no policy is shown
	Policy   retry.Policy      // the one that is shown
	Herd     retry.Herd        // of Policy
	FromHerd retry.Herd        // of From, where Policy is another one
}

// PolicyEntry is a policy with the name under which it can be asked for:
// "default", "queue:orders", "type:email.*", "ojs".
type PolicyEntry struct {
	Name   string
	Policy retry.Policy
	TTR    time.Duration // zero where the name says nothing about it
}

// maxEntries bounds the policies in use that the page lists.
const maxEntries = 60

// Changed reports whether the policy that is shown is not the one that the
// form starts from.
func (v Policies) Changed() bool {
	return !bytes.Equal(wire.EncodePolicy(v.Policy), wire.EncodePolicy(v.From.Policy))
}

// title names a policy as people speak of it: "queue orders".
func (e PolicyEntry) title() string {
	return format.Visible(strings.Replace(e.Name, ":", " ", 1))
}

// about says for which jobs a policy holds.
func (e PolicyEntry) about() string {
	kind, place, _ := strings.Cut(e.Name, ":")
	switch {
	case kind == "queue":
		return "for jobs of the queue " + format.Visible(place) + " that say nothing else; stored with each job at enqueue"
	case kind == "type":
		return "for jobs of the type " + format.Visible(place) + " that say nothing else, on a queue that says nothing; stored with each job at enqueue"
	case kind == "file":
		return "as the file says, with the default of the configuration beneath"
	case e.Name == "default":
		return "for jobs about which nobody says anything else; stored with each job at enqueue"
	}
	return "for whatever names it in its policy, as use: " + format.Visible(e.Name)
}

// line sums a policy up under its name.
func (e PolicyEntry) line() cell {
	p := e.Policy
	if p.Limit() == 1 {
		return cell{text: "never retried, " + ending(p)}
	}
	c := cell{text: format.Number(p.Limit()) + " × "}
	switch p.Strategy {
	case retry.Immediate:
		c.text += "at once"
	case retry.Schedule:
		c.text += "schedule " + shortSchedule(p.Schedule)
	case retry.Polynomial:
		c.text, c.power = c.text+format.Duration(p.InitialInterval)+" · n", format.Factor(p.Coefficient)
	default:
		c.text += format.Visible(string(p.Strategy)) + " " + format.Duration(p.InitialInterval)
	}
	if p.Jitter.On() {
		c.rest += ", ×" + format.Factor(p.Jitter.Low) + " to " + format.Factor(p.Jitter.High)
	}
	return c
}

// against compares what somebody thinks about with what there is.
func (v Policies) against() string {
	return fmt.Sprintf("Against %s: the peak %s, and the time to death %s.", v.From.title(),
		moved(ownPeak(v.FromHerd, v.From.Policy), ownPeak(v.Herd, v.Policy)), v.deathMoved())
}

func moved(from, to int) string {
	switch {
	case to < from:
		return fmt.Sprintf("falls from %s to %s per second", format.Number(from), format.Number(to))
	case to > from:
		return fmt.Sprintf("rises from %s to %s per second", format.Number(from), format.Number(to))
	}
	return fmt.Sprintf("stays at %s per second", format.Number(to))
}

func (v Policies) deathMoved() string {
	before, _ := death(v.From.Policy, 0)
	after, _ := death(v.Policy, 0)
	if before == after {
		return "stays at " + after + " on average"
	}
	return "goes from " + before + " to " + after + " on average"
}

// summary is the page in one sentence, for people who listen.
func (v Policies) summary() string {
	wait, _ := death(v.Policy, 0)
	return fmt.Sprintf("%s, %s of waiting on average, at most %s retries per second of %s jobs.",
		format.UpperFirst(attemptsAllowed(v.Policy)), wait, format.Number(ownPeak(v.Herd, v.Policy)), format.Number(v.Herd.Jobs))
}

// ownPeak is the peak of the policy as it is, with its own jitter or none.
func ownPeak(h retry.Herd, p retry.Policy) int {
	if p.Jitter.On() {
		return h.Spread.Peak
	}
	return h.Together.Peak
}

// strategyOf is the strategy that the form shows as chosen.
func (v Policies) strategyOf() retry.Strategy {
	return cmp.Or(retry.Strategy(v.Form["strategy"]), v.From.Policy.Strategy)
}
