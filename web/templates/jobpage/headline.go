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

// This file has the words of the sentences at the top of the page of a job (headline.templ).

// nextAttempt names the next attempt of the current run: "Attempt 4 of 5".
func nextAttempt(v View) string {
	n := v.Job.Attempts + 1
	s := "Attempt " + format.Number(n) + " of " + format.Number(v.Job.MaxAttempts())
	if rule := ruleOf(lastAttempt(v)); rule != "" && n > v.Job.Policy.Limit() {
		s += " (added by the rule " + rule + ")"
	}

	return s
}

// rescheduledBy returns the entry of the audit log about the person who chose when the job runs
// next. It is nil if no person did: then the policy chose the time after the last attempt, or the
// client that enqueued the job.
func (v View) rescheduledBy() *audit.Entry {
	// A choice counts only if it came after the job was enqueued, replayed and last attempted.
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

// endedAt is when the job ended.
func (v View) endedAt() time.Time { return latest(v.Job.FinishedAt, v.Job.ChangedAt) }

// ago returns a time as an argument of say and sentence that is shown as "5 minutes ago".
func (v View) ago(t time.Time) templates.Since { return templates.Since(t) }

// isBlocked reports whether something keeps the job from starting when its time has come.
func isBlocked(v View) bool { return v.NoHandler || v.Job.Held || !v.PausedAt.IsZero() }

// delayText says how long the delay before a coming attempt is.
func delayText(c coming) string {
	if c.high == 0 {
		return "no delay"
	}
	return format.DurationRange(c.low, c.high)
}

// outcomeVerb says how an attempt failed, as a verb: "failed", "timed out", "was lost".
func outcomeVerb(o job.Outcome) string {
	if o == job.Lost {
		return "was lost"
	}
	return templates.StyleOfOutcome(o).Word
}

// fate says in a clause what will become of the job if its last attempt fails. A queue without a
// dead-letter queue refuses the dead letter and keeps the job, which a person should know before
// it happens.
func fate(v View) string {
	switch {
	case v.Job.Policy.OnExhaustion != retry.DeadLetter:
		return "the job is discarded"
	case v.KeepsDeadLetters:
		return "the job becomes a dead letter"
	}

	return "the dead letter will be refused (the queue has no dead-letter queue)"
}

// replayOf returns the replay that ended a run, or nil.
func replayOf(replays []history.Replay, run int) *history.Replay {
	if i := slices.IndexFunc(replays, func(r history.Replay) bool { return r.Run == run }); i >= 0 {
		return &replays[i]
	}
	return nil
}

// lastAttempt returns the newest attempt of the current run, or nil.
func lastAttempt(v View) *job.Attempt {
	if n := len(v.Attempts); n > 0 && v.Attempts[n-1].Run == v.Job.Run {
		return &v.Attempts[n-1]
	}
	return nil
}

// deadLetterOf returns the dead letter of a run, or nil.
func deadLetterOf(deadLetters []job.DeadLetter, run int) *job.DeadLetter {
	if i := slices.IndexFunc(deadLetters, func(l job.DeadLetter) bool { return l.Run == run }); i >= 0 {
		return &deadLetters[i]
	}
	return nil
}

// deadLetter returns the dead letter of the current run, or nil.
func (v View) deadLetter() *job.DeadLetter { return deadLetterOf(v.DeadLetters, v.Job.Run) }

// whyRefused says in a clause why the dead letter of the current run was refused.
func whyRefused(v View) string {
	if l := v.deadLetter(); l != nil && l.Problem != "" {
		return strings.TrimRight(l.Problem, ".")
	}
	return "the queue has no dead-letter queue"
}

// whyEnded says in a clause why the job ended: in the words of its last attempt where that tells
// more than the reason does.
func whyEnded(v View) string {
	switch v.Job.Reason {
	case retry.AttemptsExhausted:
		return allFailed(v.Job.Attempts) + lastAttemptClause(v)
	case retry.NonRetryable:
		return "errors of the type " + format.Visible(v.Job.Error.Type) + " are never retried"
	case retry.HandlerDeadLetter:
		if a := lastAttempt(v); a != nil && a.DecidedBy == "handler:not_retryable" {
			return "the handler marked the error as not retryable"
		}
		return "the handler asked for it"
	case retry.RuleDecided:
		if name := ruleOf(lastAttempt(v)); name != "" {
			return "decided by the rule " + format.Visible(name) + lastAttemptClause(v)
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

// allFailed says that all attempts of a run failed, given their number.
func allFailed(attempts int) string {
	switch attempts {
	case 1:
		return "the only attempt failed"
	case 2:
		return "both attempts failed"
	}

	return "all " + format.Number(attempts) + " attempts failed"
}

// lastAttemptClause returns the end of a sentence that says how the last attempt failed: "" if it
// simply failed, and otherwise that it timed out or was lost.
func lastAttemptClause(v View) string {
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
