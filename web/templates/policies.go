package templates

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
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

func shortSchedule(schedule []time.Duration) string {
	words := make([]string, 0, 4)
	for i, d := range schedule[:min(len(schedule), 3)] {
		words = append(words, format.Duration(d))
		if i == 2 && len(schedule) > 3 {
			words = append(words, "…")
		}
	}
	return cmp.Or(strings.Join(words, ", "), "of nothing")
}

// ending is what becomes of a job whose last attempt failed.
func ending(p retry.Policy) string {
	if p.OnExhaustion == retry.Discard {
		return "then discarded"
	}
	return "then dead letter"
}

// formula is the delay before retry n, as a calculation.
func formula(p retry.Policy) cell {
	c, limit := cell{text: format.Duration(p.InitialInterval)}, ", "+format.Duration(p.MaxInterval)+" )"
	switch p.Strategy {
	case retry.Immediate:
		return cell{text: "delay(n) = 0"}
	case retry.Schedule:
		if len(p.Schedule) == 0 {
			return cell{text: "delay(n) = 0"}
		}
		c.text = fmt.Sprintf("[%s][min(n, %d)]", longSchedule(p.Schedule), len(p.Schedule))
	case retry.Linear:
		c.text += " × n"
	case retry.Exponential:
		c.text, c.power = c.text+" × "+format.Factor(p.Coefficient), "n−1"
	case retry.Polynomial:
		c.text, c.power = c.text+" × n", format.Factor(p.Coefficient)
	}
	c.text, c.rest = "min( "+c.text, limit
	if p.Jitter.On() {
		c.text = "min( " + c.text
		c.rest += " × [" + format.Factor(p.Jitter.Low) + ", " + format.Factor(p.Jitter.High) + ")" + limit
	}
	c.text = "delay(n) = " + c.text
	return c
}

// longSchedule lists a schedule, its middle left out where it is long.
func longSchedule(schedule []time.Duration) string {
	words := make([]string, 0, len(schedule))
	for i, d := range schedule {
		if len(schedule) > 12 && i == 10 {
			words = append(words, "…")
		}
		if len(schedule) <= 12 || i < 10 || i == len(schedule)-1 {
			words = append(words, format.Duration(d))
		}
	}
	return strings.Join(words, ", ")
}

// inSentences says the formula in words.
func inSentences(p retry.Policy) string {
	if p.Limit() == 1 {
		return "A job has one attempt and is never retried."
	}
	s, initial := "", format.Duration(p.InitialInterval)
	switch p.Strategy {
	case retry.Immediate:
		return "Each retry starts at once."
	case retry.Schedule:
		if len(p.Schedule) == 0 {
			return "The schedule is empty: each retry starts at once."
		}
		s = "Retry n waits for the n-th delay of the list, and the last one repeats"
	case retry.Linear:
		s = fmt.Sprintf("The first retry waits %s, and each further one %s longer", initial, initial)
	case retry.Exponential:
		s = fmt.Sprintf("The first retry waits %s, and each further one %s times as long as the one before", initial, format.Factor(p.Coefficient))
	case retry.Polynomial:
		s = fmt.Sprintf("The first retry waits %s, and retry n that times n to the power of %s", initial, format.Factor(p.Coefficient))
	default:
		s = fmt.Sprintf("Each retry waits %s", initial)
	}
	s += fmt.Sprintf(", but none more than %s.", format.Duration(p.MaxInterval))
	if p.Jitter.On() {
		s += fmt.Sprintf(" Chance makes each delay %s to %s times that, under the same cap.", format.Factor(p.Jitter.Low), format.Factor(p.Jitter.High))
	}
	return s
}

// forever is what a sum of delays says that no clock can hold.
func forever(d time.Duration) string {
	if d == math.MaxInt64 {
		return "more than 292 years"
	}
	return format.Duration(d)
}

// spanWords says between which bounds a span lies, or nothing where chance has no
// part in it.
func spanWords(s retry.Span) string {
	if s.Low == s.High {
		return ""
	}
	if s.High == math.MaxInt64 {
		return "more than " + format.Duration(s.Low)
	}
	return format.DurationRange(s.Low, s.High)
}

// death is how long a job waits until its last attempt: the average, and what
// else there is to say.
func death(p retry.Policy, ttr time.Duration) (wait, more string) {
	total, exact := p.UntilDeath()
	wait = forever(total.Mean)
	if !exact {
		wait = "more than " + wait
	}
	more = " of waiting"
	if between := spanWords(total); between != "" && exact {
		more += ", " + between
	}
	if ttr > 0 {
		more += fmt.Sprintf(", plus up to %s × %s of running", format.Number(p.Limit()), format.Duration(ttr))
	} else {
		more += ", plus the attempts themselves"
	}
	return wait, more
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
