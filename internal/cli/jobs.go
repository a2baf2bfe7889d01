package cli

import (
	"fmt"
	"strconv"
	"time"

	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/cli/console"
	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/wire"
)

// shownJob adds to a job, as the API answers it, what tables show.
type shownJob struct{ work.FullJob }

// foreign reports whether the job is one of a source, which may leave any of its facts out.
func (j shownJob) foreign() bool { return job.SourceOf(j.Queue) != "" }

// state is where the job stands, as far as it is known.
func (j shownJob) state() string {
	switch {
	case j.ReplayUnknown:
		return "unknown"
	case j.Returned:
		return "returned"
	case j.AtSource:
		return "at " + job.SourceOf(j.Queue)
	}

	return string(j.Status)
}

// heldBySource says since when the source of a job has it, and what it may still report.
func (j shownJob) heldBySource(reports string) string {
	since, until, name := console.ToTheSecond(j.ChangedAt.Time), console.ToTheSecond(j.ReturnedUntil.Time), job.SourceOf(j.Queue)
	switch {
	case !j.AtSource:
		return "-"
	case j.Returned:
		return since + ", and not back: it succeeded there, still waits, or was removed"
	case reports == "failures":
		return fmt.Sprintf("%s; %s reports only failures: if the job is not back by %s, it counts as returned", since, name, until)
	case reports != "":
		return fmt.Sprintf("%s; %s reports %s: if neither is known by %s, the job counts as returned", since, name, reports, until)
	}

	return since
}

// tries are the attempts made and allowed, with a separator between them, as in "3/25"; a dash
// where the source of the job does not say how many were made.
func (j shownJob) tries(separator string) string {
	attempts, most := numberOrZero(j.Attempts), numberOrZero(j.MaxAttempts)
	switch {
	case j.foreign() && attempts == 0:
		return "–"
	case most == 0:
		return strconv.Itoa(attempts)
	}

	return strconv.Itoa(attempts) + separator + strconv.Itoa(most)
}

// numberOrZero is a number of an answer that may leave it out, zero then.
func numberOrZero(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// policy says how the job is retried; of a job of a source, Redrive has no policy.
func (j shownJob) policy() string {
	if j.Policy == nil {
		return "-"
	}
	return fmt.Sprintf("%s, at most %d attempts of %s", j.Policy.Strategy, j.Policy.MaxAttempts, j.limit())
}

// limit is the longest that an attempt may take.
func (j shownJob) limit() string {
	if j.TTR == nil {
		return ""
	}
	return wire.FormatDuration(time.Duration(*j.TTR))
}

// time is a time that the source of the job may not say.
func (j shownJob) time(t apitype.Time) string {
	if j.foreign() && t.IsZero() {
		return "unknown"
	}
	return console.ToTheSecond(t.Time)
}

// ended is when the run of the job ended, if it has.
func (j shownJob) ended() string {
	if j.Status == job.Status(job.Returning) || j.Status == job.Status(job.Returned) {
		return console.ToTheSecond(j.FinishedAt.Time)
	}
	return j.time(j.FinishedAt)
}

// errorLine is an error on one line of at most so many characters.
func errorLine(e *work.Error, most int) string {
	if e == nil {
		return "-"
	}

	failure := job.Failure{ErrorInfo: job.ErrorInfo{Type: e.Type, Message: e.Message}}

	return console.Printable(clip.Text(clip.Line(failure.Error()), most))
}
