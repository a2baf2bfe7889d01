package templates

import (
	"redrive/internal/access"
	"redrive/internal/failures"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// Queue is the page /queues/{name}.
type Queue struct {
	Frame
	Queue      queues.Info
	Config     QueueConfig
	Configured bool // the configuration mentions it
	Chart      *Chart
	Failing    []job.Job        // its newest failures
	Groups     []failures.Group // its open error groups with the most dead jobs
	Held       []queues.Held
	Slow       bool
}

// flip is the button that pauses the queue and resumes it.
func (v Queue) flip() flipAct {
	here := back(link.Queue(v.Queue.Name))
	return flipAct{
		is: !v.Queue.PausedAt.IsZero(), about: format.Visible(v.Queue.Name), denied: v.Denied(access.Operate, "pause or resume a queue"),
		on:  face{url: link.QueueAction(v.Queue.Name, "resume"), icon: "play", word: "Resume", fields: here},
		off: face{url: link.QueueAction(v.Queue.Name, "pause"), icon: "pause", word: "Pause", fields: here},
	}
}

// unattended reports whether nobody here works the queue off.
func (v Queue) unattended() bool { return v.Queue.PausedAt.IsZero() && v.Config.Workers == 0 }

// statuses are the depths that the page lists.
func (v Queue) statuses() []job.Status {
	var all []job.Status
	for _, s := range live() {
		all = append(all, job.Status(s))
	}
	return append(all, job.StatusHeld, job.StatusDeadLetter, job.StatusDLQFailed, job.Status(job.Completed), job.Status(job.Cancelled))
}

// rate is how many attempts ended in the last hour, and how many of them failed.
func (v Queue) rate() string {
	s := format.Counted(sum(series(v.Queue.LastHour, executions)), "attempt", "attempts") + " in the last hour"
	if share, known := failingShare(v.Queue); known {
		s += ", " + partOf(share) + " failed"
	}
	return s
}

// policyOfQueue is the name under which the queue's policy can be looked at.
func policyOfQueue(v Queue) string {
	if v.Configured {
		return "queue:" + v.Queue.Name
	}
	return "default"
}
