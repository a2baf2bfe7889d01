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
	Name    string        // of the worker in this process
	Since   time.Time     // when it began
	Queues  []WorkerQueue // all of them, or those in which something runs or waits
	Total   int           // queues
	Foreign int           // of them: queues of sources
	Places  int           // of the workers of all queues
	Jobs    []job.Job     // that are claimed, the newest first
	More    bool          // there are more of them
	Stuck   []job.Stuck
	Waits   map[string]bool // jobs that are claimed and have not begun, by their id
	Slow    bool
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
	busy := 0
	for _, q := range v.Queues { // all in which something runs are among them
		busy += q.Running
	}

	queues := format.Counted(v.Total-v.Foreign, "queue", "queues")
	places := format.Counted(v.Places, "place busy", "places busy")

	return fmt.Sprintf("%s, %s of %s%s", queues, format.Number(busy), places, andForeign(v.Foreign))
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
	if job.SourceOf(q.Name) != "" {
		return "–"
	}

	if q.Workers == 0 && q.Running == 0 {
		return "no workers"
	}

	return fmt.Sprintf("%d of %d", q.Running, q.Workers)
}

// doing is what a claimed job does now.
func (v Workers) doing(j job.Job) templates.Style {
	switch {
	case v.Waits[j.ID]:
		return templates.Style{Class: "is-retryable", Icon: "later", Word: "waits for its previous execution"}
	case !j.LeaseUntil.After(v.Now):
		return templates.Style{Class: "is-dead", Icon: "lost", Word: "lease ran out"}
	case j.Timeout > 0 && v.Now.Sub(j.StartedAt) > j.Timeout:
		return templates.Style{Class: "is-failed", Icon: "timed-out", Word: "over its time limit"}
	}

	return templates.Style{Class: "is-active", Icon: "active", Word: "runs"}
}

// limitOf says how much of its time limit a running job has used.
func (v Workers) limitOf(j job.Job) string {
	if j.Timeout <= 0 {
		return "no limit"
	}
	return "of " + format.Duration(j.Timeout)
}
