package jobpage

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"redrive/internal/clip"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// What one page shows of a job that lived long; the whole is in the API.
const (
	maxShownRuns  = 50
	openRuns      = 4 // the newest runs; older ones are folded
	maxShownTrace = 8 << 10
	maxErrorLine  = 300     // bytes; a longer error stands in a box
	maxShownError = 2 << 10 // of an attempt that is not the newest
)

// jobRun is one life of a job, from its enqueueing or replay to its end. An
// attempt belongs to exactly one run.
type jobRun struct {
	number     int
	current    bool
	over       bool
	began      time.Time // enqueued, or replayed
	by         string    // who replayed the run before, or empty
	status     job.Status
	reason     retry.Reason
	attempts   []job.Attempt // those on this page, in the order of execution
	cut        bool          // earlier ones are on another page
	next       *job.Attempt  // the one that followed them, on another page
	used       int           // how many cycles the run completed, on this page and on others
	deadLetter *job.DeadLetter
	replay     *history.Replay // what followed
	foreign    bool            // it ran at a source
}

// after is what followed attempt i in its run, or nil.
func (r *jobRun) after(i int) *job.Attempt {
	if i+1 < len(r.attempts) {
		return &r.attempts[i+1]
	}
	return r.next
}

// newest reports whether attempt i is the newest of the job's current run.
func (r *jobRun) newest(i int) bool { return r.current && r.after(i) == nil }

// uncounted reports whether the source of a job does not tell how often it tried.
func (r *jobRun) uncounted() bool {
	return r.foreign && (r.deadLetter == nil || r.deadLetter.Attempts == 0)
}

// unreported reports whether a run at a source has no attempt of which the source tells: it took
// the reason and the attempts over from the run before.
func (r *jobRun) unreported() bool { return r.foreign && len(r.attempts) == 0 && r.next == nil }

// runsOf arranges a page of attempts by their runs, oldest first. The newest page has
// the newest runs of the job, with attempts or without.
func runsOf(d history.Detail) (runs []jobRun) {
	last := d.Job.Run
	if d.Following != nil {
		last = d.Attempts[len(d.Attempts)-1].Run
	}

	first := max(1, last-maxShownRuns+1)
	if d.Following != nil {
		first = max(first, d.Attempts[0].Run)
	}

	for number := first; number <= last; number++ {
		runs = append(runs, runOf(d, number))
	}

	return runs
}

// earlierThan counts the attempts that are older than the runs on a page, and says from
// which execution the page of them counts back.
func earlierThan(d history.Detail, runs []jobRun) (n, before int) {
	n = d.Earlier
	for _, a := range d.Attempts {
		if a.Run >= runs[0].number {
			return n, a.Execution
		}

		n++
	}

	return n, math.MaxInt
}

// runOf gathers what is known of one run. It began when the job was enqueued, or
// when the run before it was replayed.
func runOf(d history.Detail, number int) jobRun {
	r := jobRun{number: number, current: number == d.Job.Run, began: d.Job.EnqueuedAt, foreign: d.Job.Source != ""}
	r.over = !r.current || !d.Job.Cancellable() && d.Job.State != job.Returning && d.Job.State != job.Returned
	for _, a := range d.Attempts {
		if a.Run == number {
			r.attempts = append(r.attempts, a)
		}
	}

	r.cut = d.Earlier > 0 && len(r.attempts) > 0 && r.attempts[0].Execution == d.Before() && r.attempts[0].Number != 1
	if d.Following != nil && d.Following.Run == number {
		r.next = d.Following
	}

	r.deadLetter, r.replay = deadLetterOf(d.DeadLetters, number), replayOf(d.Replays, number)
	if begun := replayOf(d.Replays, number-1); begun != nil {
		r.began, r.by = begun.At, begun.By
	}

	r.ended(d.Job)

	for _, a := range r.attempts { // a source knows of some what it does not count
		r.used = max(r.used, a.Number)
	}

	return r
}

// ended tells the status of the run. That of the current run is the job's; that
// of an earlier one was noted by the replay that followed it, unless the run left
// a dead letter, which says more.
func (r *jobRun) ended(j job.Job) {
	if r.current {
		r.status, r.reason, r.used = j.Status(), j.Reason, j.Attempts
		return
	}

	if r.replay != nil {
		r.status, r.reason, r.used = job.Status(r.replay.State), r.replay.Reason, r.replay.Attempts
	}

	if l := r.deadLetter; l != nil && l.DiscardedAt.IsZero() {
		r.status = job.StatusDeadLetter
		if l.Refused {
			r.status = job.StatusDLQFailed
		}
	}
}

// interrupted reports whether the run was replayed while it waited for a retry, which
// it will not have.
func (r jobRun) interrupted() bool { return !r.current && r.status == job.Status(job.Retryable) }

// word says how the run ended, or where it stands.
func (r jobRun) word() string {
	if r.interrupted() {
		return "replayed"
	}
	return templates.StyleOf(r.status).Word
}

// took is the time from the start of its first attempt to the end of its last; 0 when it is
// not known.
func (r jobRun) took() time.Duration {
	if len(r.attempts) == 0 || r.attempts[0].StartedAt.IsZero() {
		return 0
	}

	last := r.attempts[len(r.attempts)-1]

	return max(0, last.FinishedAt.Sub(r.attempts[0].StartedAt))
}

// rules are those that allowed attempts beyond the limit of the policy.
func (r jobRun) rules(limit int) (names []string) {
	for i := range r.attempts {
		a := &r.attempts[i]
		if name := ruleOf(a); name != "" && a.Action == retry.Retry && a.Number >= limit && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}

	return names
}

// id is the anchor of the run.
func (r jobRun) id() string { return "run-" + strconv.Itoa(r.number) }

// progress says how far the run got: "3 of 5 attempts", or who allowed more than its
// policy does: "4 attempts (3 + 1 by rule mail-once-more)". It is empty when that is
// unknown. j is the job as it was in the run.
func (r jobRun) progress(j job.Job) string {
	if r.uncounted() || r.unreported() {
		return ""
	}

	if r.foreign && j.MaxAttempts() == 0 {
		return format.Counted(r.used, "attempt", "attempts")
	}

	limit := j.Policy.Limit()
	if more := r.used - limit; more > 0 && len(r.rules(limit)) > 0 {
		return fmt.Sprintf("%s (%s + %s by rule %s)", format.Counted(r.used, "attempt", "attempts"),
			format.Number(limit), format.Number(more), format.Visible(strings.Join(r.rules(limit), ", ")))
	}

	if !r.current {
		s := format.Counted(r.used, "attempt", "attempts")
		if took := r.took(); took > 0 && !r.cut && r.next == nil {
			s += ", " + format.Duration(took)
		}

		return s
	}

	return fmt.Sprintf("%s of %s", format.Number(r.used), format.Counted(j.MaxAttempts(), "attempt", "attempts"))
}

// lead is the progress, before how the run came about.
func (r jobRun) lead(j job.Job) string {
	text := r.progress(j)
	if text != "" && !r.began.IsZero() {
		text += "; "
	}

	return text
}

// anchor is the id of an attempt on the page, to which its bar leads. An execution
// that does not count has no number.
func anchor(a job.Attempt) string {
	if a.Number > 0 {
		return "run-" + strconv.Itoa(a.Run) + "-attempt-" + strconv.Itoa(a.Number)
	}
	return "run-" + strconv.Itoa(a.Run) + "-execution-" + strconv.Itoa(a.Execution)
}

// attemptName is what an attempt is called.
func attemptName(a job.Attempt) string {
	if a.Number > 0 {
		return "Attempt " + format.Number(a.Number)
	}
	return "Execution " + format.Number(a.Execution)
}

// foreignName is what attempt i of a run at a source is called. The source may not number it.
func (r *jobRun) foreignName(i int) string {
	switch a := r.attempts[i]; {
	case !r.uncounted() && a.Number > 0:
		return attemptName(a)
	case r.after(i) == nil:
		return "Last attempt"
	}

	return "Earlier attempt"
}

// running is the execution in progress as an attempt, which it will become. It
// has no end and no outcome yet.
func running(j job.Job) job.Attempt {
	return job.Attempt{
		Run: j.Run, Number: j.Attempts + 1, Execution: j.Execution, Worker: j.Worker, StartedAt: j.StartedAt,
	}
}

// tookOn is how long an attempt took, and where.
func tookOn(a job.Attempt) string {
	s := format.Duration(max(0, a.FinishedAt.Sub(a.StartedAt)))
	if a.Worker != "" {
		s += " on " + format.Visible(a.Worker)
	}

	return s
}

// settled reports whether anything is to be said of what followed attempt i.
func (r *jobRun) settled(i int) bool {
	a, last := r.attempts[i], r.after(i) == nil
	switch {
	case a.Outcome == job.Interrupted, a.Outcome == job.CancelledBy, a.Action == retry.DeadLetter, a.Action == retry.Discard:
		return true
	case a.Action == retry.Retry:
		return !last || r.current || r.replay != nil
	}

	return last && (r.replay != nil || r.deadLetter != nil && !r.deadLetter.DiscardedAt.IsZero())
}

// placeOf says which attempts are on a page.
func placeOf(p history.AttemptPage) string {
	return fmt.Sprintf("%s to %s of %s, the newest first.",
		format.Number(p.Earlier+1), format.Number(p.Earlier+len(p.Attempts)), format.Number(p.Total))
}

// leftOut names what a long life leaves out of the page: "3 older runs and 41
// older attempts".
func leftOut(runs, attempts int) string {
	var parts []string
	if runs > 0 {
		parts = append(parts, format.Counted(runs, "older run", "older runs"))
	}

	if attempts > 0 {
		parts = append(parts, format.Counted(attempts, "older attempt", "older attempts"))
	}

	return strings.Join(parts, " and ")
}

// traceOf divides the part of a trace that is shown: what happened, on its first
// line, and where.
func traceOf(trace string) (first, rest string) {
	if len(trace) > maxShownTrace {
		trace = clip.Text(trace, maxShownTrace)
	}

	first, rest, found := strings.Cut(format.VisibleLines(trace), "\n")
	if found {
		rest = "\n" + rest
	}

	return first, rest
}

// lines counts the lines of a text; a line break at its end begins no new one.
func lines(s string) int { return strings.Count(strings.TrimRight(s, "\n"), "\n") + 1 }
