package engine

import (
	"fmt"
	"strings"
	"time"

	"redrive/internal/engine/outcome"
	"redrive/internal/job"
	"redrive/internal/wire"
)

// settle decides what becomes of a job whose execution ended. A dead letter
// that it leaves may still have to be sent.
func (e *Engine) settle(j *job.Job, end job.Ending) outcome.Outcome {
	// Rules, policies and everything after them see no secrets.
	e.hide(j, &end)

	if end.Outcome.Counted() && end.Outcome != job.Succeeded {
		end.Ruling, end.Note = e.o.Rules(*j, end)
	}

	o := outcome.Outcome{Job: j, Settlement: j.Settle(end, e.o.Random)}

	// What becomes of a dead letter that is kept is known at once.
	if o.Settlement.DeadLetter != job.NoDeadLetter {
		kept, known := e.o.Kept(j.Queue)
		o.Settlement = o.Settlement.Delivered(kept)
		o.Sends = !known
	}

	return o
}

// unknown is the end of a claimed job that no handler knows. Under the strategy
// hold the store gives out no such jobs.
func (e *Engine) unknown(j job.Job, now time.Time) job.Ending {
	return job.Ending{
		Outcome: job.Failed, FinishedAt: now.UTC(), Unknown: e.o.UnknownType,
		Error: job.ErrorInfo{Type: "unknown_type", Message: fmt.Sprintf("no handler is configured for the type %q", j.Type)},
	}
}

// expired is the end of a claimed job whose time to live was over before its
// first attempt.
func (e *Engine) expired(j job.Job, now time.Time) job.Ending {
	return job.Ending{
		Outcome: job.Failed, FinishedAt: now.UTC(), Expired: e.o.Expired(j.Queue),
		Error: job.ErrorInfo{Type: "expired", Message: "its time to live ended at " + wire.FormatTime(j.ExpiresAt) + ", before it ran"},
	}
}

// unreadable stands for a text that could not be searched for secrets.
const unreadable = "[not stored, because the search for secrets in the text failed]"

// hide takes the secrets out of how an execution ended, before anything of it is
// cut, grouped, judged by a rule, kept or sent. It is the one gate for all that
// handlers return, whatever they are.
func (e *Engine) hide(j *job.Job, end *job.Ending) {
	end.Error.Message = e.hidden(j, end.Error.Message)
	end.Trace = e.hidden(j, end.Trace)
	end.Note = e.hidden(j, end.Note)

	// Policies and rules compare names.
	if strings.ContainsFunc(end.Error.Type, notOfName) {
		end.Error.Type = e.hidden(j, end.Error.Type)
	}
}

// hidden is a text without its secrets. It guards against one that breaks the
// redaction, which would end the process at every attempt of its job.
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

// notOfName reports whether a character is in no name of an error, as
// http.503, auth:expired or App\Errors\Denied.
func notOfName(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune(`._-:/\$`, r):
		return false
	}

	return true
}
