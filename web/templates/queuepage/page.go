// Package queuepage draws the queues, /queues, one queue, /queues/{name}, and the
// workers, /workers: how deep and how fast each queue is, by which rules its jobs
// are tried again, and whether a worker works it off.
//
// What is a figure is as of the page. Pausing takes effect at once, and its
// switch shows the new state without another page.
package queuepage

import (
	"fmt"
	"strings"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/access"
	"redrive/internal/failures"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retry"
	"redrive/internal/stats"
	"redrive/web/templates"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// List is the page /queues.
type List struct {
	templates.Frame
	Name     string         // what the names have that are listed; empty: all are
	Queues   []queues.Info  // all of those, or some
	Found    int            // how many those are
	Total    int            // queues
	Foreign  int            // of them: queues of sources
	Workers  int            // of all queues
	LastHour []stats.Totals // of all queues, by the minute
	Configs  map[string]templates.QueueConfig
	Held     []queues.Held // the types that most jobs wait for
}

// fewQueues are found without a filter.
const fewQueues = 20

// shown says which queues are listed when they are not all, and how to find others.
func (v List) shown() string {
	if v.Name != "" {
		return "Type more of the name to see them."
	}
	return "These are the queues that most need attention. Filter by name to see the others."
}

// maxStuck is how many handlers that do not return are listed.
const maxStuck = 100

// pausable reports whether a queue can be paused or resumed here: that of a source cannot be
// paused, and may have been before that was known.
func pausable(q queues.Info) bool { return q.Source == "" || !q.PausedAt.IsZero() }

// unattended reports whether no worker here works the queue off. The jobs of a source have
// its workers.
func (v List) unattended(q queues.Info) bool {
	return q.Source == "" && q.PausedAt.IsZero() && v.Configs[q.Name].Workers == 0
}

// waiting is how many jobs of a queue could run or will.
func waiting(q queues.Info) int64 {
	return q.Depths[job.Status(job.Available)] + q.Depths[job.Status(job.Retryable)] + q.Depths[job.Status(job.Scheduled)]
}

// depthColumns are those of jobs that wait or run.
const depthColumns = 4

// whyUnknown says why numbers of a source's queue are missing.
func whyUnknown(q queues.Info) string {
	return fmt.Sprintf("Redrive does not know what waits or runs at %s.", q.Source)
}

// summary says how much all queues do.
func summary(v List) string {
	hour := templates.Sum(templates.Series(v.LastHour, templates.Executions))
	return fmt.Sprintf("%s, %s, %s in the last hour%s", format.Counted(v.Total-v.Foreign, "queue", "queues"),
		format.Counted(v.Workers, "worker", "workers"), format.Counted(hour, "attempt", "attempts"), andForeign(v.Foreign))
}

// andForeign adds the queues of sources, which are not counted among those of Redrive.
func andForeign(n int) string {
	if n == 0 {
		return ""
	}
	return ", and " + format.Counted(n, "queue", "queues") + " of sources"
}

// workers says how busy a queue's workers are.
func workers(c templates.QueueConfig) string {
	if c.Workers == 0 {
		return "no workers"
	}
	return fmt.Sprintf("%d of %d busy", c.Running, c.Workers)
}

// alarmingShare is the share of failed attempts from which a queue is marked.
const alarmingShare = 0.25

// failingShare is the part of the last hour's attempts that failed; it is not
// known when there was none.
func failingShare(q queues.Info) (share float64, known bool) {
	failed := templates.Sum(templates.Series(q.LastHour, func(t stats.Totals) int64 { return t.Failed }))

	all := templates.Sum(templates.Series(q.LastHour, templates.Executions))
	if all == 0 {
		return 0, false
	}

	return float64(failed) / float64(all), true
}

// partOf writes a share as a person reads it: "8.1 %", "100 %".
func partOf(share float64) string {
	return strings.Replace(fmt.Sprintf("%.1f %%", 100*share), "100.0", "100", 1)
}

// delaysInRow is how long a job waits between its attempts, as far as a row has room: the
// page of the policy has its jitter and all of a schedule.
func delaysInRow(p retry.Policy) format.Calculation {
	p.Jitter = retry.Jitter{}
	if p.Strategy == retry.Schedule && len(p.Schedule) > 0 {
		return format.Calculation{Text: "after " + format.ShortSchedule(p.Schedule)}
	}

	return format.PolicyDelays(p)
}

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
