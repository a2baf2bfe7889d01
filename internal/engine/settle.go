package engine

import (
	"fmt"
	"strings"
	"time"

	"redrive/internal/engine/outcome"
	"redrive/internal/job"
	"redrive/internal/wire"
)

// settle decides what becomes of a job whose execution ended. If the outcome has Sends, a dead
// letter has to be sent before the outcome is written.
func (e *Engine) settle(j *job.Job, end job.Ending) outcome.Outcome {
	// Rules, policies and everything after them see no secrets.
	e.hide(j, &end)

	if end.Outcome.Counted() && end.Outcome != job.Succeeded {
		end.Ruling, end.Note = e.o.Rules(*j, end)
	}

	o := outcome.Outcome{Job: j, Settlement: j.Settle(end, e.o.Random)}

	// If the queue keeps its dead letters, the delivery is known at once.
	if o.Settlement.DeadLetter != job.NoDeadLetter {
		kept, known := e.o.Kept(j.Queue)
		o.Settlement = o.Settlement.Delivered(kept)
		o.Sends = !known
	}

	return o
}

// unknown returns how a claimed job ends for whose type there is no handler. Such jobs are claimed
// only if Options.UnknownType is not hold.
func (e *Engine) unknown(j job.Job, now time.Time) job.Ending {
	return job.Ending{
		Outcome: job.Failed, FinishedAt: now.UTC(), Unknown: e.o.UnknownType,
		Error: job.ErrorInfo{Type: "unknown_type", Message: fmt.Sprintf("no handler is configured for the type %q", j.Type)},
	}
}

// expired returns how a claimed job ends whose time to live was over before its first attempt.
func (e *Engine) expired(j job.Job, now time.Time) job.Ending {
	return job.Ending{
		Outcome: job.Failed, FinishedAt: now.UTC(), Expired: e.o.Expired(j.Queue),
		Error: job.ErrorInfo{Type: "expired", Message: "its time to live ended at " + wire.FormatTime(j.ExpiresAt) + ", before it ran"},
	}
}

// unreadable replaces a text that could not be searched for secrets.
const unreadable = "[not stored, because the search for secrets in the text failed]"

// hide hides the secrets in what a handler said, before any of it is cut, grouped, judged by a
// rule, stored or sent. What any kind of handler says passes through here.
func (e *Engine) hide(j *job.Job, end *job.Ending) {
	end.Error.Message = e.hidden(j, end.Error.Message)
	end.Trace = e.hidden(j, end.Trace)
	end.Note = e.hidden(j, end.Note)

	// Policies and rules compare the type, so it is left alone if it is a plain name.
	if strings.ContainsFunc(end.Error.Type, notOfName) {
		end.Error.Type = e.hidden(j, end.Error.Type)
	}
}

// hidden returns a text with its secrets hidden. It recovers from a panic of the redaction, which
// would otherwise end the process at every attempt of the job that caused it.
func (e *Engine) hidden(j *job.Job, text string) (hidden string) {
	defer func() {
		why := recover()
		if why != nil {
			e.o.Log.Error("The error of a job cannot be searched for secrets. Its text is not kept.",
				"job", j.ID, "error", fmt.Errorf("panic: %v", why))

			hidden = unreadable
		}
	}()

	return e.o.Hide(text)
}

// notOfName reports whether a character cannot be part of the name of an error, such as http.503,
// auth:expired or App\Errors\Denied.
func notOfName(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune(`._-:/\$`, r):
		return false
	}

	return true
}
