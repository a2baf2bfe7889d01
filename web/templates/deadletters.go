package templates

import (
	"sync"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/access"
	"redrive/internal/failures"
	"redrive/internal/filter"
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

// The parts of a letter's row, cut out of their components.
var (
	letterJobs  = sync.OnceValue(func() stencil { return cut(letterJobOf(hole, hole, hole)) })
	letterTimes = sync.OnceValue(func() stencil { return cut(letterTimeOf(hole, hole, hole, hole)) })
	alikes      = sync.OnceValue(func() stencil { return cut(alikeOf(hole, hole, hole)) })
)

// letterJob names the job of a letter and leads to it.
func letterJob(l filter.LetterRow) filled {
	return letterJobs().with(string(jobURL(l.JobID)), visible(l.Job.Type), brief(l.JobID))
}

// letterTime is when the run failed that the letter is about.
func letterTime(t, now time.Time) filled {
	precise, whole := machine(t), stamp(t)
	return letterTimes().with(precise, whole, clock(t, now), precise, whole, relative(t, now))
}

// alike leads to the failures that are like the letter's, when there are any.
func alike(g failures.Group) templ.Component {
	if g.Failures <= 1 {
		return still("")
	}
	return alikes().with(string(failureURL(g.Fingerprint)), likeThis(g), number(g.Failures))
}

// letterReplay replays the run that the letter is about: if the job has moved
// on since, the server says so instead of replaying another run.
func letterReplay(f Frame, l filter.LetterRow, back templ.SafeURL) filled {
	j := l.Job
	j.ID, j.Run = l.JobID, l.DeadLetter.Run
	return rowReplay(f, j, back)
}

// letterDiscard gives up the job of a letter, while it lies there.
func letterDiscard(f Frame, l filter.LetterRow, back templ.SafeURL) filled {
	j := l.Job
	j.ID, j.Run = l.JobID, l.DeadLetter.Run
	return rowDiscard(f, j, back)
}

// maxFacets is how many queues or types stand beside a list.
const maxFacets = 20

// lettersFilter is the filter of the list as one of jobs.
func lettersFilter(v DeadLetters) filter.Filter {
	f := v.Filter
	f.Status = job.StatusDeadLetter
	return f
}
