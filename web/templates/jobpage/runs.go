package jobpage

import (
	"fmt"
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
	maxShownAttempts = 200
	maxShownRuns     = 50
	openRuns         = 4 // the newest runs; older ones are folded
	maxShownTrace    = 8 << 10
	maxErrorLine     = 300     // bytes; a longer error stands in a box
	maxShownError    = 2 << 10 // of an attempt that is not the newest
)

// jobRun is one life of a job, from its enqueueing or replay to its end. An
// attempt belongs to exactly one run.
type jobRun struct {
	number   int
	current  bool
	over     bool
	began    time.Time // enqueued, or replayed
	by       string    // who replayed the run before, or empty
	status   job.Status
	reason   retry.Reason
	attempts []job.Attempt // in the order of execution
	letter   *job.DeadLetter
	replay   *history.Replay // what followed
	foreign  bool            // it ran at a source
}

// uncounted reports whether the source of a job does not tell how often it tried.
func (r *jobRun) uncounted() bool { return r.foreign && (r.letter == nil || r.letter.Attempts == 0) }

// runsOf arranges what is known of a job by its runs, oldest first, and says
// how many attempts were left out.
func runsOf(d history.Detail) (runs []jobRun, left int) {
	left = max(0, len(d.Attempts)-maxShownAttempts)
	attempts := d.Attempts[left:]
	first := max(1, d.Job.Run-maxShownRuns+1)
	for number := first; number <= d.Job.Run; number++ {
		runs = append(runs, runOf(d, attempts, number))
	}
	for _, a := range attempts {
		if a.Run < first {
			left++
		}
	}
	return runs, left
}

// runOf gathers what is known of one run. It began when the job was enqueued, or
// when the run before it was replayed.
func runOf(d history.Detail, attempts []job.Attempt, number int) jobRun {
	r := jobRun{number: number, current: number == d.Job.Run, began: d.Job.EnqueuedAt, foreign: d.Job.Source() != ""}
	r.over = !r.current || !d.Job.Cancellable() && d.Job.State != job.Pending
	for _, a := range attempts {
		if a.Run == number {
			r.attempts = append(r.attempts, a)
		}
	}
	r.letter, r.replay = letterOf(d.Letters, number), replayOf(d.Replays, number)
	if begun := replayOf(d.Replays, number-1); begun != nil {
		r.began, r.by = begun.At, begun.By
	}
	r.ended(d.Job)
	return r
}

// ended tells the status of the run. That of the current run is the job's; that
// of an earlier one was noted by the replay that followed it, unless the run left
// a dead letter, which says more.
func (r *jobRun) ended(j job.Job) {
	if r.current {
		r.status, r.reason = j.Status(), j.Reason
		return
	}
	if r.replay != nil {
		r.status, r.reason = job.Status(r.replay.State), r.replay.Reason
	}
	if l := r.letter; l != nil && l.DiscardedAt.IsZero() {
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

// used is how many cycles the run completed.
func (r jobRun) used() int {
	n := 0
	for _, a := range r.attempts {
		n = max(n, a.Number)
	}
	return n
}

// took is the time from the start of its first attempt to the end of its last.
func (r jobRun) took() time.Duration {
	if len(r.attempts) == 0 {
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
// policy does: "4 attempts (3 + 1 by rule mail-once-more)". It is empty when nobody
// knows. j is the job as it was in the run.
func (r jobRun) progress(j job.Job) string {
	if r.uncounted() {
		return ""
	}
	limit := j.Policy.Limit()
	if more := r.used() - limit; more > 0 && len(r.rules(limit)) > 0 {
		return fmt.Sprintf("%s (%s + %s by rule %s)", format.Counted(r.used(), "attempt", "attempts"),
			format.Number(limit), format.Number(more), format.Visible(strings.Join(r.rules(limit), ", ")))
	}
	if !r.current {
		s := format.Counted(r.used(), "attempt", "attempts")
		if took := r.took(); took > 0 {
			s += ", " + format.Duration(took)
		}
		return s
	}
	return fmt.Sprintf("%s of %s", format.Number(r.used()), format.Counted(j.MaxAttempts(), "attempt", "attempts"))
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
	a, last := r.attempts[i], i == len(r.attempts)-1
	switch {
	case a.Outcome == job.Interrupted, a.Outcome == job.CancelledBy, a.Action == retry.DeadLetter, a.Action == retry.Discard:
		return true
	case a.Action == retry.Retry:
		return !last || r.current || r.replay != nil
	}
	return last && (r.replay != nil || r.letter != nil && !r.letter.DiscardedAt.IsZero())
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
