package operationpage

import (
	"fmt"
	"strings"

	"redrive/internal/operation"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// sourceWord names the source that has replayed jobs.
func sourceWord(h operation.SourceRuns) string {
	if h.Source == "" {
		return "their sources"
	}
	return h.Source
}

// reports says what the system of the source tells of a replayed job; empty when that is
// not known.
func (s Standing) reports() string {
	if s.Origin == nil {
		return ""
	}

	// The title can end in a remark in parentheses, which does not belong in a sentence.
	system, _, _ := strings.Cut(s.Origin.Profile.Title, " (")
	if s.Origin.Report.Tells {
		return system + " reports failures and successes."
	}

	return system + " reports only failures."
}

// sourceVerdict is how a canary stands whose jobs a source has: all other runs have ended
// without a failure.
func (s Standing) sourceVerdict() templates.Style {
	c, h := s.Canary, s.Canary.SourceRuns
	text := fmt.Sprintf("%d of %d handed to %s", h.AtSource, c.Done, sourceWord(h))
	if reports := s.reports(); reports != "" {
		text += "; " + strings.TrimSuffix(reports, ".")
	}

	text += "."

	switch {
	// Some jobs may still come back.
	case s.canary() == canaryAtSource:
		return templates.Style{Class: "is-active", Icon: "active", Word: text + succeededSoFar(c)}
	case h.Returned == 1:
		text += " It did not come back within 10 minutes."
	default:
		text += " None came back within 10 minutes."
	}

	return templates.Style{Class: "is-pending", Icon: "unknown", Word: text + succeededSoFar(c)}
}

// succeededSoFar says what became of the other jobs of a canary.
func succeededSoFar(c operation.Canary) string {
	if c.Succeeded == 0 {
		return ""
	}
	return " " + format.Counted(c.Succeeded, "job", "jobs") + " succeeded."
}

// unknownVerdict is how a canary stands of which it is unknown whether its source took it.
func (s Standing) unknownVerdict() templates.Style {
	c := s.Canary
	return templates.Style{Class: "is-warn", Icon: "unknown", Word: fmt.Sprintf(
		"It is unknown whether the source took %d of %d jobs.", c.Unknown, c.Done) + succeededSoFar(c)}
}

// sourceResult is how an operation ended of whose jobs sources have some, or may have.
func (s Standing) sourceResult() templates.Style {
	o, h := s.Operation, s.SourceRuns
	var parts []string
	add := func(n int64, text string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(text, format.Counted(n, "job", "jobs")))
		}
	}

	// What became of the jobs, for example "2 jobs failed again, 5 jobs handed to orders",
	// without the counts that are zero.
	add(o.Relapsed, "%s failed again")
	add(o.Succeeded, "%s succeeded")
	add(o.Unknown, "%s unknown")
	add(h.AtSource, "%s handed to "+sourceWord(h))

	text := strings.Join(parts, ", ")
	if h.AtSource > 0 {
		text += fmt.Sprintf(" (%s not back within 10 minutes)", format.Number(h.Returned))
	}

	style := templates.Style{Class: "is-completed", Icon: "completed", Word: "Finished: " + text + ". "}

	// The worst of it gives the colour: a failure before what is unknown, and that before jobs
	// that may still come back.
	switch {
	case o.Relapsed > 0:
		style.Class, style.Icon = "is-failed", "failed"
	case o.Unknown > 0:
		style.Class, style.Icon = "is-warn", "unknown"
	case h.Returned < h.AtSource:
		style.Class, style.Icon, style.Word = "is-active", "active", "All jobs are handed over: "+text+". "
	}

	if h.AtSource > 0 {
		style.Word += s.reports()
	}

	style.Word = strings.TrimSpace(style.Word)

	return style
}
