package engine

import (
	"fmt"
	"strings"

	"redrive/internal/job"
)

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
