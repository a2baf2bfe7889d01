package templates

import (
	"github.com/a-h/templ"

	"redrive/internal/access"
	"redrive/internal/job"
)

// lettersBack is the page that a form returns to without scripts.
func lettersBack(v DeadLetters) templ.SafeURL { return deadLettersURL(v.Filter, v.After) }

// rowForward is the button of a row that sends a refused dead letter again.
func rowForward(v DeadLetters, j job.Job) filled {
	denied := v.off(access.Operate, "forward")
	if config, ok := v.Configs[j.Queue]; denied == "" && ok && !config.DeadLetters {
		denied = whyNoForward(j)
	}
	return rowForm(rowFace{kind: "forward", class: "row", hidden: j.Letter != job.LetterRefused}, j, lettersBack(v), denied)
}

// whyNoForward is why a dead letter of this queue cannot be sent again.
func whyNoForward(j job.Job) string {
	return "the queue " + visible(j.Queue) + " has no dead-letter queue; switch it on in the configuration file, or replay"
}

// letterFrom is where a letter came from, and what else is remarkable about it.
func letterFrom(l job.DeadLetter) string {
	s := visible(l.Queue)
	if l.Cause != "" {
		s += " · " + lookOfOutcome(l.Cause).word
	}
	if l.ForwardedTo != "" {
		s += " · forwarded"
	}
	return s
}

// letterReplay replays the run that the letter is about: if the job has moved
// on since, the server says so instead of replaying another run.
func letterReplay(f Frame, l job.LetterRow, back templ.SafeURL) filled {
	j := l.Job
	j.ID, j.Run = l.JobID, l.DeadLetter.Run
	return rowReplay(f, j, back)
}

// letterDiscard gives up the job of a letter, while it lies there.
func letterDiscard(f Frame, l job.LetterRow, back templ.SafeURL) filled {
	j := l.Job
	j.ID, j.Run = l.JobID, l.DeadLetter.Run
	return rowDiscard(f, j, back)
}

// maxFacets is how many queues or types stand beside a list.
const maxFacets = 20

// lettersFilter is the filter of the list as one of jobs.
func lettersFilter(v DeadLetters) job.Filter {
	f := v.Filter
	f.Status = job.StatusDeadLetter
	return f
}
