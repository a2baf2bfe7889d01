package templates

import (
	"time"

	"redrive/internal/failures"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/source"
	"redrive/web/templates/format"
)

// Style is how a state, an outcome or a reason is drawn: the class that sets
// its colour, its icon and its word.
type Style struct{ Class, Icon, Word string }

// StyleOf draws a status; pages and scripts use the same words.
func StyleOf(s job.Status) Style {
	switch s {
	case job.StatusDeadLetter:
		return Style{"is-dead", "dead", "dead letter"}
	case job.StatusDLQFailed:
		return Style{"is-dlq-failed", "dlq-failed", "refused"}
	case job.StatusTrashed:
		return Style{"is-discarded", "discarded", "trashed"}
	case job.StatusHeld:
		return Style{"is-warn", "unknown", "no handler"}
	case job.Status(job.Returning), job.Status(job.Returned):
		return Style{"is-" + string(s), "pending", string(s)}
	}

	for _, known := range job.States() {
		if s == job.Status(known) {
			return Style{"is-" + string(s), string(s), string(s)}
		}
	}

	return Style{"is-pending", "unknown", format.Visible(string(s))}
}

// StyleOfJob draws the status of a job. One that was given back to its source is there, and
// returned after a while: it is not known to have succeeded.
func StyleOfJob(j job.Job, now time.Time) Style {
	switch {
	case source.InDoubt(j):
		return Style{"is-warn", "unknown", "unknown"}
	case source.Returned(j, now):
		return Style{"is-returned", "unknown", "returned"}
	case source.AtSource(j):
		return Style{"is-returned", "pending", "at " + j.Source}
	}

	return StyleOf(j.Status())
}

// StyleOfOutcome draws how an attempt ended. The form of its bar says the same
// as its colour.
func StyleOfOutcome(o job.Outcome) Style {
	switch o {
	case job.TimedOut:
		return Style{"is-timed-out", "timed-out", "timed out"}
	case job.Succeeded, job.Failed, job.Panicked, job.Lost, job.Interrupted, job.CancelledBy:
		return Style{"is-" + string(o), string(o), string(o)}
	}

	return Style{"is-pending", "unknown", format.Visible(string(o))}
}

// ActionWord says what became of a job after an attempt.
func ActionWord(a retry.Action) string {
	if a == retry.DeadLetter {
		return "dead letter"
	}
	return format.Visible(string(a))
}

// LikeThis says how many failures are in the group of a job's newest one.
func LikeThis(g failures.Group) string {
	if g.Failures <= 1 {
		return "first occurrence"
	}
	return format.Number(g.Failures) + " similar failures"
}

// Explanation is what pages say about a reason: in a badge, as a part of a
// sentence, and where there is space, what it means and what to do.
type Explanation struct {
	icon, Word string
	Short      string // after "dead-lettered:"
	Means      string // a sentence
	Todo       string // another one
}

const thenReplay = "Fix the cause, then replay."

// Explain has words for every reason; a test holds it to that. What is not
// known is shown by its code.
func Explain(r retry.Reason) Explanation {
	switch r {
	case retry.AttemptsExhausted:
		return Explanation{"exhausted", "exhausted", "attempts exhausted",
			"All attempts that the policy allows failed.", thenReplay}
	case retry.NonRetryable:
		return Explanation{"non-retryable", "not retryable", "the error is not retryable",
			"The policy lists this error type as not retryable.", thenReplay}
	case retry.HandlerDeadLetter:
		return Explanation{"handler", "handler", "requested by the handler",
			"The handler answered DEAD_LETTER, or marked the error as not retryable.", thenReplay}
	case retry.HandlerDiscard:
		return Explanation{"handler", "handler", "requested by the handler",
			"The handler answered DISCARD or FAIL, so there is no dead letter.", "No action is needed."}
	case retry.RuleDecided:
		return Explanation{"rule", "rule", "decided by a rule",
			"A rule in the configuration file ended the job. The job's page names the rule.", thenReplay}
	case retry.UnknownType:
		return Explanation{"unknown", "unknown type", "no handler for the type",
			"No handler is configured for the job's type.", "Add one under handlers in the configuration file, reload it, then replay."}
	case retry.Expired:
		return Explanation{"expired", "expired", "the time to live ended",
			"The time to live ended before the job ran.", "Replay the job if it is still needed. A replay does not expire."}
	case retry.GoneAtSource:
		return Explanation{"gone", "gone", "gone from its source",
			"The dead letter is gone from its source: it was replayed or deleted elsewhere, or the source removed it.", "No action is needed."}
	case retry.ReasonUnknown:
		return Explanation{"unknown", "unknown", "its source does not say why",
			"The source does not say why it gave the job up: its attempts may be used up, or the error is one that it never retries.", thenReplay}
	case retry.Manual:
		return Explanation{"manual", "by hand", "by hand", "A person made the job a dead letter.", "The job's history shows who."}
	}

	return becauseOfEnvelope(r)
}

// becauseOfEnvelope is for envelopes that were set aside, which are kept to
// the byte.
func becauseOfEnvelope(r retry.Reason) Explanation {
	malformed := func(word, short, means string) Explanation {
		return Explanation{"malformed", word, short, means + " The original bytes are kept.",
			"Replaying won't help. Fix the producer and resend the message."}
	}
	switch r {
	case retry.NotJSON:
		return malformed("not JSON", "the envelope is not JSON", "The envelope is not a JSON object that can be read exactly.")
	case retry.MissingURN:
		return malformed("no urn", "the envelope names no valid type",
			"The job or urn of the envelope is missing or invalid, so the type is unknown.")
	case retry.MissingMeta:
		return malformed("no meta", "the envelope has no meta", "The envelope has no meta object.")
	case retry.InvalidData:
		return malformed("data invalid", "the envelope's data is invalid", "The data of the envelope is neither an object nor an array.")
	case retry.MissingTraceID:
		return malformed("no trace id", "the envelope has no trace id", "The envelope has no trace_id.")
	case retry.InvalidAttempts:
		return malformed("attempts invalid", "the envelope's attempts are invalid",
			"The attempts of the envelope are not a whole number of at least zero.")
	case retry.UnsupportedVersion:
		return Explanation{"schema", "schema", "the envelope's schema is unknown",
			"The schema_version of the envelope is missing, or newer than this program supports. The original bytes are kept.",
			"Upgrade Redrive and replay the job, or let the producer send version 1."}
	}

	return Explanation{"info", format.Visible(string(r)), format.Visible(string(r)), "The code is " + format.Visible(string(r)) + ".", ""}
}
