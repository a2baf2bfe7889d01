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
	texts := []*string{&end.Error.Message, &end.Trace, &end.Note}
	if strings.ContainsFunc(end.Error.Type, notOfName) { // policies and rules compare names
		texts = append(texts, &end.Error.Type)
	}
	for _, text := range texts {
		if hidden, err := e.hidden(*text); err != nil {
			e.o.Log.Error("The error of a job cannot be searched for secrets. Its text is not kept.", "job", j.ID, "error", err)
			*text = unreadable
		} else {
			*text = hidden
		}
	}
}

// hidden guards against a text that breaks the redaction: it would end the process
// at every attempt of its job.
func (e *Engine) hidden(text string) (hidden string, err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("panic: %v", why)
		}
	}()
	return e.o.Hide(text), nil
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
