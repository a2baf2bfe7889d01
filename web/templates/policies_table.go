package templates

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/retry"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// maxRows is how many retries a table lists and a curve draws.
const maxRows = 25

// delayRow is one retry in words.
type delayRow struct {
	retry         string
	raw           cell
	delay, jitter string
	total, spread string
}

// delayRows lists the retries that a policy allows.
func delayRows(p retry.Policy) []delayRow {
	var rows []delayRow
	for _, r := range p.Table(min(p.Limit()-1, maxRows)) {
		rows = append(rows, delayRow{
			retry: format.Number(r.Retry), raw: rawOf(p, r), delay: format.Duration(r.Capped), jitter: spanWords(r.Delay),
			total: forever(r.Total.Mean), spread: spanWords(r.Total),
		})
	}
	return rows
}

// rawOf is the strategy's own delay before one retry, as a calculation.
func rawOf(p retry.Policy, r retry.Row) cell {
	initial := format.Duration(p.InitialInterval)
	switch p.Strategy {
	case retry.Immediate:
		return cell{text: "at once"}
	case retry.Linear:
		return cell{text: initial + " × " + format.Number(r.Retry)}
	case retry.Exponential:
		return cell{text: initial + " × " + format.Factor(p.Coefficient), power: strconv.Itoa(r.Retry - 1)}
	case retry.Polynomial:
		return cell{text: initial + " × " + format.Number(r.Retry), power: format.Factor(p.Coefficient)}
	case retry.Schedule:
		return cell{text: entryOf(p, r.Retry)}
	}
	return cell{text: initial}
}

// entryOf names the entry of a schedule; the last one repeats.
func entryOf(p retry.Policy, n int) string {
	switch last := len(p.Schedule); {
	case last == 0:
		return "at once"
	case n > last:
		return "entry " + format.Number(last) + " again"
	}
	return "entry " + format.Number(n)
}

// moreRetries says what a table does not list.
func moreRetries(p retry.Policy) string {
	rest := p.Limit() - 1 - maxRows
	if rest <= 0 {
		return ""
	}
	wait, _ := death(p, 0)
	return fmt.Sprintf("%s more, up to %s in all on average.", format.Counted(rest, "retry", "retries"), wait)
}

// herdRow is one wave of retries: the most in one second.
type herdRow struct{ wave, together, spread string }

func herdRows(h retry.Herd) []herdRow {
	rows := make([]herdRow, h.Retries)
	for i := range rows {
		rows[i] = herdRow{format.Number(i + 1), format.Number(h.Together.Waves[i]), format.Number(h.Spread.Waves[i])}
	}
	return rows
}

// herdNote says what the herd is, and how far it was followed.
func herdNote(h retry.Herd) string {
	note := format.Number(h.Jobs) + " jobs fail in the same second and keep failing: retries per second"
	if h.Cut {
		note += ", of the first " + format.Number(h.Retries) + " retries"
	}
	if h.Bucket.Seconds() > 1 {
		note += "; each bar is the busiest second of " + format.Duration(h.Bucket)
	}
	return note
}

func factors(j retry.Jitter) string {
	return "×" + format.Factor(j.Low) + " to " + format.Factor(j.High)
}

// hasCurve reports whether there is anything to draw: some delay.
func hasCurve(p retry.Policy) bool {
	if p.Limit() == 1 {
		return false
	}
	rows := p.Table(maxRows)
	return rows[len(rows)-1].Total.High > 0
}

// MaxWhatIf is how many bytes a field of the form takes.
const MaxWhatIf = 400

// asConfiguration writes a policy as redrive.yaml has it.
func asConfiguration(p retry.Policy) string {
	var b strings.Builder
	line := func(name, value string) { b.WriteString("\n  " + name + ": " + value) }
	b.WriteString("policy:")
	line("max_attempts", strconv.Itoa(p.MaxAttempts))
	line("strategy", string(p.Strategy))
	line("initial_interval", Compact(p.InitialInterval))
	line("coefficient", format.Factor(p.Coefficient))
	if len(p.Schedule) > 0 {
		line("schedule", "["+CompactList(p.Schedule)+"]")
	}
	line("max_interval", Compact(p.MaxInterval))
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

func quoted(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = strconv.Quote(w)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// Compact writes a duration as a configuration and the form take it: "5s",
// "1m30s", "7d".
func Compact(d time.Duration) string {
	if d >= format.Day && d%format.Day == 0 {
		return strconv.Itoa(int(d/format.Day)) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// CompactList is Compact for a schedule.
func CompactList(schedule []time.Duration) string {
	all := make([]string, len(schedule))
	for i, d := range schedule {
		all[i] = Compact(d)
	}
	return strings.Join(all, ", ")
}

// WhatIfFields are the fields of the form on /policies, by name, as they stand
// there for a policy.
func WhatIfFields(p retry.Policy) map[string]string {
	factor := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	all := map[string]string{
		"strategy": string(p.Strategy), "max_attempts": strconv.Itoa(p.MaxAttempts),
		"initial_interval": Compact(p.InitialInterval), "coefficient": factor(p.Coefficient),
		"schedule": CompactList(p.Schedule), "max_interval": Compact(p.MaxInterval),
		"jitter_low": "", "jitter_high": "",
	}
	if p.Jitter.On() {
		all["jitter_low"], all["jitter_high"] = factor(p.Jitter.Low), factor(p.Jitter.High)
	}
	return all
}

// whatIfURL is the page of policies with the form filled in with a policy.
func whatIfURL(p retry.Policy) templ.SafeURL {
	values := url.Values{}
	for name, value := range WhatIfFields(p) {
		values.Set(name, value)
	}
	return link.Policies("") + templ.SafeURL("?"+values.Encode())
}
