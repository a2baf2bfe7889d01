package queuepage

import (
	"redrive/internal/access"
	"redrive/internal/failures"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/web/templates"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

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

// pauseSwitch is the button that pauses the queue and resumes it.
func (v View) pauseSwitch() templates.Switch {
	here := templates.Back(link.Queue(v.Queue.Name))
	return templates.Switch{
		Is: !v.Queue.PausedAt.IsZero(), About: format.Visible(v.Queue.Name), Denied: v.Denied(access.Operate, "pause or resume a queue"),
		On:  templates.SwitchAction{URL: link.QueueAction(v.Queue.Name, "resume"), Icon: "play", Word: "Resume", Fields: here},
		Off: templates.SwitchAction{URL: link.QueueAction(v.Queue.Name, "pause"), Icon: "pause", Word: "Pause", Fields: here},
	}
}

// unattended reports whether nobody here works the queue off.
func (v View) unattended() bool { return v.Queue.PausedAt.IsZero() && v.Config.Workers == 0 }

// statuses are the depths that the page lists.
func (v View) statuses() []job.Status {
	var all []job.Status
	for _, s := range templates.LiveStates() {
		all = append(all, job.Status(s))
	}
	return append(all, job.StatusHeld, job.StatusDeadLetter, job.StatusDLQFailed, job.Status(job.Completed), job.Status(job.Cancelled))
}

// rate is how many attempts ended in the last hour, and how many of them failed.
func (v View) rate() string {
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
