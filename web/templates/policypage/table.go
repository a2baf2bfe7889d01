package policypage

import (
	"fmt"
	"strconv"
	"strings"

	"redrive/internal/retry"
	"redrive/web/templates/format"
)

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
	return fmt.Sprintf("%s more, up to %s in all on average.", format.Counted(rest, "retry", "retries"), wait)
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

func quoted(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = strconv.Quote(w)
	}
	return "[" + strings.Join(all, ", ") + "]"
}
