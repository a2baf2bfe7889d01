package templates

import (
	"cmp"
	"slices"

	"github.com/a-h/templ"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// lettersBack is the page that a form returns to without scripts.
func lettersBack(v DeadLetters) templ.SafeURL { return deadLettersURL(v.Filter, v.After) }

// rowForward is the button of a row that sends a refused dead letter again.
func rowForward(v DeadLetters, j job.Job) act {
	a := jobAct(v.Frame, j, "forward", "row", lettersBack(v))
	a.hidden = j.Letter != job.LetterRefused
	config, ok := v.Configs[j.Queue]
	deny(&a, !ok || config.DeadLetters, whyNoForward(j))
	return a
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
func letterReplay(v DeadLetters, l job.LetterRow) act {
	j := l.Job
	j.ID, j.Run = l.JobID, l.DeadLetter.Run
	return rowReplay(v.Frame, j, lettersBack(v))
}

// letterDiscard gives up the job of a letter, while it lies there.
func letterDiscard(v DeadLetters, l job.LetterRow) act {
	j := l.Job
	j.ID, j.Run = l.JobID, l.DeadLetter.Run
	return rowDiscard(v.Frame, j, lettersBack(v))
}

// toggleReason is the list under this reason, or without it when it is chosen.
func toggleReason(f job.Filter, r retry.Reason) templ.SafeURL {
	if f.Reason == r {
		r = ""
	}
	f.Reason = r
	return deadLettersURL(f, "")
}

// toggleQueue is the list under this queue, or without it when it is chosen.
func toggleQueue(f job.Filter, queue string) templ.SafeURL {
	if f.Queue == queue {
		queue = ""
	}
	f.Queue = queue
	return deadLettersURL(f, "")
}

// maxFacets is how many queues stand beside the dead letters.
const maxFacets = 20

// deadest are the queues that have dead letters, most first.
func deadest(queues []job.QueueInfo) []job.QueueInfo {
	dead := slices.DeleteFunc(slices.Clone(queues), func(q job.QueueInfo) bool {
		return q.Depths[job.StatusDeadLetter] == 0
	})
	slices.SortStableFunc(dead, func(a, b job.QueueInfo) int {
		return cmp.Compare(b.Depths[job.StatusDeadLetter], a.Depths[job.StatusDeadLetter])
	})
	return dead
}
