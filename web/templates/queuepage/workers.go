package queuepage

import (
	"fmt"
	"time"

	"redrive/internal/access"
	"redrive/internal/job"
	"redrive/web/templates"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// Workers is the page /workers: who runs jobs, and what they run now.
type Workers struct {
	templates.Frame
	Name   string    // of the worker in this process
	Since  time.Time // when it began
	Queues []WorkerQueue
	Jobs   []job.Job // that are claimed, the newest first
	More   bool      // there are more of them
	Stuck  []job.Stuck
	Waits  map[string]bool // jobs that are claimed and have not begun, by their id
	Slow   bool
}

// WorkerQueue is how busy the workers of one queue are.
type WorkerQueue struct {
	Name     string
	Workers  int
	Running  int
	Waiting  int64 // available jobs
	PausedAt time.Time
}

// workerSwitch is the button that pauses the worker and resumes it.
func workerSwitch(f templates.Frame) templates.Switch {
	return templates.Switch{
		Is: f.Paused != nil, About: "this worker", Denied: f.Denied(access.Operate, "make the worker quiet"),
		On:  templates.SwitchAction{URL: link.WorkerAction("resume"), Icon: "play", Word: "Resume", Fields: templates.Back(link.Workers())},
		Off: templates.SwitchAction{URL: link.WorkerAction("quiet"), Icon: "pause", Word: "Quiet", Fields: templates.Back(link.Workers())},
	}
}

// summary says how busy the worker is.
func (v Workers) summary() string {
	busy, all := 0, 0
	for _, q := range v.Queues {
		busy, all = busy+q.Running, all+q.Workers
	}
	queues := format.Counted(len(v.Queues), "queue", "queues")
	return fmt.Sprintf("%s, %s of %s", queues, format.Number(busy), format.Counted(all, "place busy", "places busy"))
}

// share is how much of a queue's workers is in use.
func (q WorkerQueue) share() string {
	if q.Workers == 0 {
		return "0%"
	}
	return format.Percent(100 * float64(min(q.Running, q.Workers)) / float64(q.Workers))
}

// busy says the same in words.
func (q WorkerQueue) busy() string {
	if q.Workers == 0 && q.Running == 0 {
		return "no workers"
	}
	return fmt.Sprintf("%d of %d", q.Running, q.Workers)
}

// doing is what a claimed job does now.
func (v Workers) doing(j job.Job) templates.Look {
	switch {
	case v.Waits[j.ID]:
		return templates.Look{Class: "is-retryable", Icon: "later", Word: "waits for its handler before"}
	case !j.LeaseUntil.After(v.Now):
		return templates.Look{Class: "is-dead", Icon: "lost", Word: "lease ran out"}
	case j.Timeout > 0 && v.Now.Sub(j.StartedAt) > j.Timeout:
		return templates.Look{Class: "is-failed", Icon: "timed-out", Word: "over its time limit"}
	}
	return templates.Look{Class: "is-active", Icon: "active", Word: "runs"}
}

// limitOf says how much of its time limit a running job has used.
func (v Workers) limitOf(j job.Job) string {
	if j.Timeout <= 0 {
		return "no limit"
	}
	return "of " + format.Duration(j.Timeout)
}
