// Package policypage draws the page /policies: the retry policies in use, the
// presets, and one of them in full, with its formula, the curve and the table of
// its delays, and what many jobs that fail together would do. A form asks
// what another policy would do; its answer is in the address and changes
// nothing.
//
// All figures come from package retry. Write says the same on a terminal, for
// the command that explains a policy without a browser.
package policypage

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"redrive/internal/retry"
	"redrive/internal/wire"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// View is the page /policies: the policies in use, the presets, and one of
// them in full, as it is or with changes that the user is thinking about.
type View struct {
	templates.Frame
	InUse          []Entry // the default first
	Presets        []Entry
	From           Entry             // which one the form starts from
	Form           map[string]string // by parameter: what stands in the form
	Errors         map[string]string // by parameter: what is wrong with it; then no policy is shown
	Policy         retry.Policy      // the one that is shown
	Simulation     retry.Simulation  // of Policy
	FromSimulation retry.Simulation  // of From, where Policy is another one
}

// Entry is a policy with the name under which it can be asked for:
// "default", "queue:orders", "type:email.*", "ojs".
type Entry struct {
	Name   string
	Policy retry.Policy
	TTR    time.Duration // zero where the name says nothing about it
}

// maxEntries bounds the policies in use that the page lists.
const maxEntries = 60

// Changed reports whether the policy that is shown is not the one that the
// form starts from.
func (v View) Changed() bool {
	return !bytes.Equal(wire.EncodePolicy(v.Policy), wire.EncodePolicy(v.From.Policy))
}

// title names a policy as people speak of it: "queue orders".
func (e Entry) title() string {
	return format.Visible(strings.Replace(e.Name, ":", " ", 1))
}

// about says for which jobs a policy holds.
func (e Entry) about() string {
	kind, place, _ := strings.Cut(e.Name, ":")
	switch {
	case kind == "queue":
		return "for jobs of the queue " + format.Visible(place) + " without a policy of their own; stored with each job at enqueue"
	case kind == "type":
		return "for jobs of the type " + format.Visible(place) + " without a policy of their own, in queues without one; " +
			"stored with each job at enqueue"
	case kind == "file":
		return "from the file, on top of the configured default"
	case e.Name == "default":
		return "used when no other policy applies; stored with each job at enqueue"
	}

	return "for every policy that names it, with use: " + format.Visible(e.Name)
}

// line sums a policy up under its name.
func (e Entry) line() format.Calculation {
	p := e.Policy
	if p.Limit() == 1 {
		return format.Calculation{Text: "never retried, " + format.PolicyEnding(p)}
	}

	c := format.Calculation{Text: format.Number(p.Limit()) + " × "}
	switch p.Strategy {
	case retry.Immediate:
		c.Text += "at once"
	case retry.Schedule:
		c.Text += "schedule " + format.ShortSchedule(p.Schedule)
	case retry.Polynomial:
		c.Text, c.Power = c.Text+format.Duration(p.InitialInterval)+" · n", format.Factor(p.Coefficient)
	default:
		c.Text += format.Visible(string(p.Strategy)) + " " + format.Duration(p.InitialInterval)
	}

	if p.Jitter.On() {
		c.Rest += ", ×" + format.Factor(p.Jitter.Low) + " to " + format.Factor(p.Jitter.High)
	}

	return c
}

// against compares what the user thinks about with what there is, by the two
// figures that matter most in an outage.
func (v View) against() string {
	return fmt.Sprintf("Compared with %s: the peak %s, and the time to death %s.", v.From.title(),
		moved(ownPeak(v.FromSimulation, v.From.Policy), ownPeak(v.Simulation, v.Policy)), v.deathMoved())
}

// moved says how a peak changes.
func moved(from, to int) string {
	switch {
	case to < from:
		return fmt.Sprintf("falls from %s to %s per second", format.Number(from), format.Number(to))
	case to > from:
		return fmt.Sprintf("rises from %s to %s per second", format.Number(from), format.Number(to))
	}

	return fmt.Sprintf("stays at %s per second", format.Number(to))
}

// deathMoved says how the time until the last attempt changes.
func (v View) deathMoved() string {
	before, _ := format.TimeToDeath(v.From.Policy, 0)
	after, _ := format.TimeToDeath(v.Policy, 0)
	if before == after {
		return "stays at " + after + " on average"
	}

	return "goes from " + before + " to " + after + " on average"
}

// summary is the page in one sentence, for people who listen.
func (v View) summary() string {
	wait, _ := format.TimeToDeath(v.Policy, 0)
	return fmt.Sprintf("%s, %s of waiting on average, at most %s retries per second of %s jobs.",
		format.UpperFirst(format.Attempts(v.Policy)), wait, format.Number(ownPeak(v.Simulation, v.Policy)), format.Number(v.Simulation.Jobs))
}

// ownPeak is the peak of the policy as it is, with its own jitter or none. A simulation
// holds both, so that the page can show what jitter is good for.
func ownPeak(h retry.Simulation, p retry.Policy) int {
	if p.Jitter.On() {
		return h.Spread.Peak
	}
	return h.Together.Peak
}

// strategyOf is the strategy that the form shows as chosen.
func (v View) strategyOf() retry.Strategy {
	return cmp.Or(retry.Strategy(v.Form["strategy"]), v.From.Policy.Strategy)
}

// maxRows is how many retries a table lists and a curve draws.
const maxRows = 25

// delayRows lists the retries that a policy allows.
func delayRows(p retry.Policy) []retry.Row { return p.Table(min(p.Limit()-1, maxRows)) }

// moreRetries says what a table does not list.
func moreRetries(p retry.Policy) string {
	rest := p.Limit() - 1 - maxRows
	if rest <= 0 {
		return ""
	}

	wait, _ := format.TimeToDeath(p, 0)

	return fmt.Sprintf("%s more, up to %s in total on average.", format.Counted(rest, "retry", "retries"), wait)
}

// hasCurve reports whether there is anything to draw: some delay.
func hasCurve(p retry.Policy) bool {
	if p.Limit() == 1 {
		return false
	}

	rows := p.Table(maxRows)

	return rows[len(rows)-1].Total.High > 0
}

// asConfiguration writes a policy as redrive.yaml has it.
func asConfiguration(p retry.Policy) string {
	var b strings.Builder

	// A value is written even if it is the default, for example "max_interval: 1h". Empty lists
	// are left out.
	line := func(name, value string) { b.WriteString("\n  " + name + ": " + value) }

	b.WriteString("policy:")
	line("max_attempts", strconv.Itoa(p.MaxAttempts))
	line("strategy", string(p.Strategy))
	line("initial_interval", format.Compact(p.InitialInterval))
	line("coefficient", format.Factor(p.Coefficient))

	if len(p.Schedule) > 0 {
		line("schedule", "["+format.CompactList(p.Schedule)+"]")
	}

	line("max_interval", format.Compact(p.MaxInterval))

	if p.Jitter.On() {
		line("jitter", "["+format.Factor(p.Jitter.Low)+", "+format.Factor(p.Jitter.High)+"]")
	} else {
		line("jitter", "false")
	}

	if len(p.NonRetryable) > 0 {
		line("non_retryable_errors", quoted(p.NonRetryable))
	}

	line("on_exhaustion", string(p.OnExhaustion))

	return b.String()
}

// quoted is a list of words as YAML takes it on one line.
func quoted(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = strconv.Quote(w)
	}

	return "[" + strings.Join(all, ", ") + "]"
}
