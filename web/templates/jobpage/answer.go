package jobpage

import (
	"slices"
	"strings"
	"time"

	"redrive/internal/audit"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// nextAttempt is the next attempt among those of the run: "Attempt 4 of 5".
func nextAttempt(v View) string {
	n := v.Job.Attempts + 1
	s := "Attempt " + format.Number(n) + " of " + format.Number(v.Job.MaxAttempts())
	if rule := ruleOf(lastAttempt(v)); rule != "" && n > v.Job.Policy.Limit() {
		s += " (added by the rule " + rule + ")"
	}

	return s
}

// moved is the entry of the person who last chose when the waiting job runs, or nil: only
// its policy chose, or the client that enqueued it.
func (v View) moved() *audit.Entry {
	since := v.Job.EnqueuedAt
	if r := replayOf(v.Replays, v.Job.Run-1); r != nil {
		since = r.At
	}

	if a := lastAttempt(v); a != nil {
		since = latest(since, a.FinishedAt)
	}

	for i, e := range v.Trail { // newest first
		if e.Action == rescheduled {
			if e.At.Before(since) {
				return nil
			}
			return &v.Trail[i]
		}
	}

	return nil
}

// ended is when the job came to its end.
func (v View) ended() time.Time { return latest(v.Job.FinishedAt, v.Job.ChangedAt) }

// ago is a time as seen from now.
func (v View) ago(t time.Time) templates.Since { return templates.Since(t) }

// blocked reports whether something keeps the job from starting when its time
// has come.
func blocked(v View) bool { return v.NoHandler || v.Job.Held || !v.PausedAt.IsZero() }

// waitRange is the delay before an attempt to come.
func waitRange(c coming) string {
	if c.high == 0 {
		return "no delay"
	}
	return format.DurationRange(c.low, c.high)
}

// failedHow is the outcome as a verb.
func failedHow(o job.Outcome) string {
	if o == job.Lost {
		return "was lost"
	}
	return templates.StyleOfOutcome(o).Word
}

// fate is what becomes of the job when its last attempt fails, as a clause. A
// queue without a dead-letter queue refuses the letter and keeps the job, which a
// person should know before it happens.
func fate(v View) string {
	switch {
	case v.Job.Policy.OnExhaustion != retry.DeadLetter:
		return "the job is discarded"
	case v.KeepsDeadLetters:
		return "the job becomes a dead letter"
	}

	return "the dead letter will be refused (the queue has no dead-letter queue)"
}

// replayOf finds the replay of a run.
func replayOf(replays []history.Replay, run int) *history.Replay {
	if i := slices.IndexFunc(replays, func(r history.Replay) bool { return r.Run == run }); i >= 0 {
		return &replays[i]
	}
	return nil
}

// lastAttempt is the newest record of the current run.
func lastAttempt(v View) *job.Attempt {
	if n := len(v.Attempts); n > 0 && v.Attempts[n-1].Run == v.Job.Run {
		return &v.Attempts[n-1]
	}
	return nil
}

// deadLetterOf is the dead letter of a run, or nil.
func deadLetterOf(deadLetters []job.DeadLetter, run int) *job.DeadLetter {
	if i := slices.IndexFunc(deadLetters, func(l job.DeadLetter) bool { return l.Run == run }); i >= 0 {
		return &deadLetters[i]
	}
	return nil
}

// deadLetter is the dead letter of the current run, or nil.
func (v View) deadLetter() *job.DeadLetter { return deadLetterOf(v.DeadLetters, v.Job.Run) }

// whyRefused is why the dead letter of the current run was not taken.
func whyRefused(v View) string {
	if l := v.deadLetter(); l != nil && l.Problem != "" {
		return strings.TrimRight(l.Problem, ".")
	}
	return "the queue has no dead-letter queue"
}

// whyOver is the reason in words, as far as the last attempt tells.
func whyOver(v View) string {
	switch v.Job.Reason {
	case retry.AttemptsExhausted:
		return allFailed(v.Job.Attempts) + lastly(v)
	case retry.NonRetryable:
		return "errors of the type " + format.Visible(v.Job.Error.Type) + " are never retried"
	case retry.HandlerDeadLetter:
		if a := lastAttempt(v); a != nil && a.DecidedBy == "handler:not_retryable" {
			return "the handler marked the error as not retryable"
		}
		return "the handler asked for it"
	case retry.RuleDecided:
		if name := ruleOf(lastAttempt(v)); name != "" {
			return "decided by the rule " + format.Visible(name) + lastly(v)
		}
	case retry.UnknownType:
		return "no handler is configured for the type"
	case retry.Expired:
		return "the time to live ended before the job ran"
	case retry.Manual:
		return "decided manually"
	case "":
		return "no reason was given"
	}

	return templates.Explain(v.Job.Reason).Short
}

// allFailed says that every attempt of a run failed.
func allFailed(attempts int) string {
	switch attempts {
	case 1:
		return "the only attempt failed"
	case 2:
		return "both attempts failed"
	}

	return "all " + format.Number(attempts) + " attempts failed"
}

// lastly adds how the last attempt ended, where that says more than that it
// failed.
func lastly(v View) string {
	l := v.deadLetter()
	switch {
	case l == nil || l.Cause == "":
		return ""
	case v.Job.Attempts == 1 && l.Cause == job.Lost:
		return " (lost)"
	case v.Job.Attempts == 1:
		return " (timed out)"
	case l.Cause == job.Lost:
		return ", the last one was lost"
	}

	return ", the last one timed out"
}
