package policypage

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// Write writes what the page of policies says about one of them, for a
// terminal.
func Write(w io.Writer, e Entry, h retry.Simulation) error {
	var b bytes.Buffer
	p := e.Policy
	fmt.Fprintf(&b, "%s\n%s\n\n", e.title(), e.about())

	if p.Limit() > 1 {
		fmt.Fprintf(&b, "  %s\n", format.PolicyFormula(p).Plain())
	}

	fmt.Fprintf(&b, "  %s\n\n", format.PolicySentence(p))
	wait, more := format.TimeToDeath(p, e.TTR)
	fmt.Fprintf(&b, "  Attempts        %s, the first included\n", format.Number(p.Limit()))
	fmt.Fprintf(&b, "  Time to death   %s%s\n", wait, more)
	fmt.Fprintf(&b, "  Never retried   %s\n", cmp.Or(format.Visible(strings.Join(p.NonRetryable, ", ")), "no error"))
	fmt.Fprintf(&b, "  When exhausted  %s\n", templates.ActionWord(p.OnExhaustion))

	if p.Limit() > 1 {
		b.WriteString("\n")
		writeDelays(&b, p)
		fmt.Fprintf(&b, "\n  %s\n", simulationSentence(p, h))
	}

	_, err := b.WriteTo(w)

	return err
}

// writeDelays writes the table, its figures ending below one another. Writing
// to a buffer cannot fail.
func writeDelays(b *bytes.Buffer, p retry.Policy) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(n, raw, delay, jitter, total, spread string) {
		cells := []string{n, raw, delay, total}
		if p.Jitter.On() {
			cells = []string{n, raw, delay, jitter, total, spread}
		}

		fmt.Fprintf(t, "%s\t\n", strings.Join(cells, "\t"))
	}
	line("  n", "Raw", "Delay", "With jitter", "In all", "Between")

	for _, r := range delayRows(p) {
		line(format.Number(r.Retry), format.RawDelay(p, r).Plain(), format.Duration(r.Capped), format.Span(r.Delay),
			format.LongDuration(r.Total.Mean), format.Span(r.Total))
	}

	t.Flush()

	if rest := moreRetries(p); rest != "" {
		fmt.Fprintf(b, "  %s\n", rest)
	}
}

// simulationSentence is the simulation without its picture.
func simulationSentence(p retry.Policy, h retry.Simulation) string {
	s := fmt.Sprintf("%s jobs that fail together make at most %s retries in one second",
		format.Number(h.Jobs), format.Number(ownPeak(h, p)))
	if h.Cut {
		s = fmt.Sprintf("In their first %d retries, %s", h.Retries, s)
	}

	if p.Jitter.On() {
		return s + fmt.Sprintf("; without jitter it would be %s.", format.Number(h.Together.Peak))
	}

	return s + fmt.Sprintf("; with jitter %s it would be %s.", "×"+format.Jitter(h.Jitter), format.Number(h.Spread.Peak))
}
