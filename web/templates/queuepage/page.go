// Package queuepage draws the queues, /queues, one queue, /queues/{name}, and the
// workers, /workers: how deep and how fast each queue is, by which rules its jobs
// are tried again, and whether a worker works it off.
//
// What is a figure is as of the page. Pausing takes effect at once, and its
// switch shows the new state without another page.
package queuepage

import (
	"github.com/a-h/templ"

	"redrive/internal/access"
	"redrive/internal/failures"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// deadLettersGo says where the dead letters of a queue go.
func deadLettersGo(c templates.QueueConfig) string {
	switch {
	case c.ForwardedTo != "":
		return "to " + format.Visible(c.ForwardedTo)
	case c.DeadLetters:
		return "stored in Redrive"
	}

	return "off"
}

// deadLettersLeave adds to a policy's line what is remarkable about the way of its
// dead letters.
func deadLettersLeave(c templates.QueueConfig) string {
	switch {
	case c.Policy.OnExhaustion != retry.DeadLetter:
		return ""
	case c.ForwardedTo != "":
		return " to " + format.Visible(c.ForwardedTo)
	case !c.DeadLetters:
		return " (refused)"
	}

	return ""
}

// pauseSwitch is the button that pauses a queue and resumes it; it returns to
// the page it is on. what names the act to those who may not do it.
func pauseSwitch(f templates.Frame, q queues.Info, class, what string, page templ.SafeURL) templates.Switch {
	action := func(action, icon, word string) templates.SwitchAction {
		return templates.SwitchAction{URL: link.QueueAction(q.Name, action), Icon: icon, Word: word, Fields: templates.Back(page)}
	}

	return templates.Switch{
		Is: !q.PausedAt.IsZero(), Class: class, About: format.Visible(q.Name), Denied: f.Denied(access.Operate, what),
		On: action("resume", "play", "Resume"), Off: action("pause", "pause", "Pause"),
	}
}

// View is the page /queues/{name}.
type View struct {
	templates.Frame
	Queue      queues.Info
	Config     templates.QueueConfig
	Configured bool // the configuration mentions it
	Chart      *templates.Chart
	Failing    []job.Job        // its newest failures
	Groups     []failures.Group // its open error groups with the most dead jobs
	Held       []queues.Held
	Slow       bool
}

// unattended reports whether no worker here works the queue off.
func (v View) unattended() bool {
	return v.Queue.Source == "" && v.Queue.PausedAt.IsZero() && v.Config.Workers == 0
}

// statuses are the depths that the page lists.
func (v View) statuses() []job.Status {
	if v.Queue.Source != "" { // the others are the source's, which does not tell them
		return []job.Status{job.StatusDeadLetter, job.Status(job.Returning), job.Status(job.Returned), job.Status(job.Completed)}
	}

	var all []job.Status
	for _, s := range templates.LiveStates() {
		if s == job.Returning || s == job.Returned { // which only jobs of a source are
			continue
		}

		all = append(all, job.Status(s))
		if s == job.Available {
			all = append(all, job.StatusHeld)
		}
	}

	return append(all, job.StatusDeadLetter, job.StatusDLQFailed, job.StatusTrashed, job.Status(job.Completed), job.Status(job.Cancelled))
}

// word names a status of the queue's jobs.
func (v View) word(s job.Status) string {
	if s == job.Status(job.Returned) { // which only a queue of a source has
		return "at " + v.Queue.Source
	}

	word := templates.StyleOf(s).Word
	if s == job.StatusHeld { // they are available, too
		word = "of these " + word
	}

	return format.UpperFirst(word)
}

// finished is how many of the queue's jobs are over, without those that deadLetters counts.
func (v View) finished() int64 {
	d := v.Queue.Depths
	return d[job.Status(job.Completed)] + d[job.Status(job.Cancelled)] + d[job.Status(job.Discarded)] - v.deadLetters()
}

// deadLetters is how many of the queue's jobs have a dead letter that is open or was
// refused, or are in the trash.
func (v View) deadLetters() int64 {
	d := v.Queue.Depths
	return d[job.StatusDeadLetter] + d[job.StatusDLQFailed] + d[job.StatusTrashed]
}

// occupied is how many jobs keep the queue from being removed.
func (v View) occupied() int64 {
	n := v.deadLetters()
	for _, s := range templates.LiveStates() {
		n += v.Queue.Depths[job.Status(s)]
	}

	return n
}

// removal says what becomes of a queue that is removed, or why it cannot be.
func (v View) removal() string {
	if v.Configured {
		return "The configuration file names this queue. To remove the queue, first remove it there and reload the configuration."
	}

	if n := v.occupied(); n > 0 {
		return "Only an empty queue can be removed: one without waiting or running jobs, dead letters or jobs in the trash. " +
			format.Counted(n, "job is left.", "jobs are left.")
	}

	s := "The queue is empty."
	if n := v.finished(); n > 0 {
		s += " The history of " + format.Counted(n, "finished job", "finished jobs") + " is removed with the queue."
	}

	return s
}

// removeWord is what the button says.
func (v View) removeWord() string {
	if n := v.finished(); n > 0 {
		return "Remove the queue and " + format.Counted(n, "finished job", "finished jobs")
	}
	return "Remove the queue"
}

// rate is how many attempts ended in the last hour, and how many of them failed.
func (v View) rate() string {
	if v.Queue.Source != "" {
		return whyUnknown(v.Queue)
	}

	s := format.Counted(templates.Sum(templates.Series(v.Queue.LastHour, templates.Executions)), "attempt", "attempts") + " in the last hour"
	if share, known := failingShare(v.Queue); known {
		s += ", " + partOf(share) + " failed"
	}

	return s
}

// policyOfQueue is the name under which the queue's policy can be looked at.
func policyOfQueue(v View) string {
	if v.Configured {
		return "queue:" + v.Queue.Name
	}
	return "default"
}
