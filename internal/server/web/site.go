// Package web is what the rooms of the server have in common: what handlers work
// with ([Site], [Engine]), who sends a request ([Caller]), how a request is read,
// and how it is answered, above all when something is wrong with it: [Describe]
// is the one table from errors to answers, for browsers and programs alike.
//
// A handler that cannot answer returns an error. It never chooses a status for
// one: it names a [Kind], or returns what a package below returned.
package web

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/config"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/live"
	"redrive/internal/queues"
	"redrive/internal/retry"
	"redrive/internal/server/view"
)

const (
	PageLimit = 50 // rows of a list, unless the request names another number

	claimedLimit = 200 // running jobs that a page or an answer lists
)

// Engine is what the server asks of those who run jobs and operations, and what
// it tells them.
type Engine struct {
	Worker  string                                  // name of the worker in this process
	Running func() map[string]int                   // executions at this moment, by queue
	Knows   func(typ string) bool                   // whether a handler knows a type of job
	Ready   func() error                            // why no jobs are run, or nil
	Began   func(job.Token) (at time.Time, ok bool) // when an execution under way began, which may be after its claim
	Stuck   func() []job.Stuck                      // the handlers that do not return
	Pause   func(on bool)                           // ends the claiming of jobs, or begins it again
	Notify  func()                                  // says that an operation was made or changed

	// Deliver sends a dead letter that was refused once more.
	Deliver func(context.Context, job.Job, job.DeadLetter) job.Delivery
	// Waiting reports whether a claimed job has not begun because of the handler
	// of an earlier execution: since when that one should have returned, and
	// until when the job waits for it; both zero when it waits for a worker by
	// now.
	Waiting func(id string) (since, until time.Time, ok bool)
}

// Site is what every handler works with.
type Site struct {
	View   *view.View
	Config *config.Config
	Hub    *live.Hub
	Engine Engine
	Log    *slog.Logger

	changes sync.Mutex // held by whoever pauses the worker, also while the audit log is written
	pause   atomic.Pointer[Pause]
}

// Pause is since when the worker in this process claims no jobs, and who said so.
type Pause struct {
	Since time.Time
	By    string
}

// Paused is the pause of the worker; nil while it claims jobs. It waits for
// nobody, and survives no restart.
func (s *Site) Paused() *Pause { return s.pause.Load() }

// PauseWorker ends the claiming of jobs or begins it again; whoever was first
// stays. The audit log knows it before the worker does.
func (s *Site) PauseWorker(ctx context.Context, on bool, by audit.Actor) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	if on == (s.Paused() != nil) {
		return nil
	}
	now, action, pause := time.Now().UTC(), "worker.resume", (*Pause)(nil)
	if on {
		action, pause = "worker.quiet", &Pause{Since: now, By: by.Name}
	}
	if err := s.View.Record(ctx, audit.Entry{At: now, Actor: by, Action: action, Subject: s.Engine.Worker, Count: 1}); err != nil {
		return err
	}
	s.Engine.Pause(on)
	s.pause.Store(pause)
	return nil
}

// Job is everything about the job that the address names.
func (s *Site) Job(c echo.Context) (history.Detail, error) {
	id, err := ParamID(c)
	if err != nil {
		return history.Detail{}, err
	}
	d, err := s.View.Job(c.Request().Context(), id)
	d.Job = s.Begun(d.Job)
	return d, err
}

// Begun is a job that runs since its execution began. The store knows when it was
// claimed.
func (s *Site) Begun(j job.Job) job.Job {
	if j.State == job.Active {
		if at, ok := s.Engine.Began(j.Token); ok {
			j.StartedAt = at.UTC()
		}
	}
	return j
}

// Trail is what the audit log knows of a job, as far as whoever asks may see it.
func (s *Site) Trail(c echo.Context, id string) ([]audit.Entry, error) {
	page, err := s.View.Audit(c.Request().Context(), audit.Filter{Subject: id, Reveals: ownReveals(c)}, 0, PageLimit)
	_, err = Tolerate(err)
	return page.Entries, err
}

// ownReveals is whose reveals are shown alone, to those who may not manage.
func ownReveals(c echo.Context) string {
	if who := CallerOf(c); !who.Role.May(access.Manage) {
		return who.Name
	}
	return ""
}

// Claimed is a job that a worker has now.
type Claimed struct {
	job.Job
	Waits bool // for the handler of an earlier execution
}

// Claimed lists the jobs that workers have now, the newest first.
func (s *Site) Claimed(ctx context.Context) (all []Claimed, more, slow bool, err error) {
	page, slow, err := InTime(s.View.Jobs(ctx, filter.Filter{Status: job.Status(job.Active)}, filter.Cursor{}, claimedLimit))
	for _, j := range page.Jobs {
		_, _, waits := s.Engine.Waiting(j.ID)
		all = append(all, Claimed{s.Begun(j), waits})
	}
	return all, page.Next != filter.Cursor{}, slow, err
}

// ParamQueue is the queue that the address names. One that had no job yet must be
// configured: a queue is not made by a slip of the pen.
func (s *Site) ParamQueue(c echo.Context) (string, error) {
	name := c.Param("name")
	if err := job.CheckQueue(name); err != nil {
		return "", InAddress(err)
	}
	if !slices.Contains(s.QueueNames(), name) {
		return "", job.ErrNotFound
	}
	return name, nil
}

// QueueNames are the queues that had a job and those that are configured.
func (s *Site) QueueNames() []string {
	return slices.Compact(slices.Sorted(slices.Values(append(s.Config.Queues(), s.View.QueueNames()...))))
}

// Queues are the queues of [Site.QueueNames] by their names, with their numbers.
func (s *Site) Queues(ctx context.Context) ([]queues.Info, error) {
	all, err := s.View.Queues(ctx, time.Now())
	for _, name := range s.Config.Queues() {
		if !slices.ContainsFunc(all, func(q queues.Info) bool { return q.Name == name }) {
			all = append(all, queues.Info{Name: name})
		}
	}
	slices.SortFunc(all, func(a, b queues.Info) int { return cmp.Compare(a.Name, b.Name) })
	return all, err
}

// Queue is one queue with its numbers. One that is only configured has had no job.
func (s *Site) Queue(ctx context.Context, name string) (queues.Info, error) {
	all, err := s.View.Queues(ctx, time.Now())
	if i := slices.IndexFunc(all, func(q queues.Info) bool { return q.Name == name }); i >= 0 {
		return all[i], err
	}
	return queues.Info{Name: name}, err
}

// WorkerQueue is a queue as its workers see it.
type WorkerQueue struct {
	Name     string
	Workers  int
	Running  int
	Waiting  int64 // available jobs
	PausedAt time.Time
}

// WorkerQueues are the queues that have workers or jobs, those with workers first.
func (s *Site) WorkerQueues(ctx context.Context) ([]WorkerQueue, error) {
	all, err := s.Queues(ctx)
	running := s.Engine.Running()
	queues := make([]WorkerQueue, len(all))
	for i, q := range all {
		queues[i] = WorkerQueue{
			q.Name, s.Config.Workers(q.Name), running[q.Name], q.Depths[job.Status(job.Available)], q.PausedAt,
		}
	}
	slices.SortStableFunc(queues, func(a, b WorkerQueue) int { return cmp.Compare(min(b.Workers, 1), min(a.Workers, 1)) })
	return queues, err
}

// Policy is a retry policy that has a name.
type Policy struct {
	Name   string
	Policy retry.Policy
	TTR    time.Duration // zero where the name says nothing about it
}

// Policies are those of the configuration.
func (s *Site) Policies() []Policy {
	var all []Policy
	for _, use := range s.Config.PoliciesInUse() {
		name := "default"
		if use.Queue != "" {
			name = "queue:" + use.Queue
		} else if use.Type != "" {
			name = "type:" + use.Type
		}
		all = append(all, Policy{name, use.Policy, use.TTR})
	}
	for _, named := range s.Config.NamedPolicies() {
		all = append(all, Policy{Name: named.Name, Policy: named.Policy})
	}
	return all
}

// Presets are the policies that every configuration has.
func Presets() []Policy {
	var all []Policy
	for _, name := range retry.Presets() {
		policy, _ := retry.Preset(name)
		all = append(all, Policy{Name: name, Policy: policy})
	}
	return all
}

// WebhookHost is where a queue sends its dead letters, without credentials; empty
// when it has no webhook.
func (s *Site) WebhookHost(queue string) string {
	hook, ok := s.Config.Webhook(queue)
	if !ok {
		return ""
	}
	u, err := url.Parse(hook.URL)
	if err != nil { // unreachable: the configuration has parsed it
		return "a webhook"
	}
	return u.Host
}
