// Package web is what the packages of the server have in common: what handlers
// work with ([Site], [Engine]), who sends a request ([Caller]), how a request is
// read, and how it is answered.
package web

import (
	"cmp"
	"context"
	"log/slog"
	"math"
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
	"redrive/internal/server/compress"
	"redrive/internal/server/view"
	"redrive/internal/shortage"
	"redrive/internal/source"
)

const (
	PageLimit = 50 // rows of a list, unless the request names another number

	claimedLimit = 200 // running jobs that a page or an answer lists
)

// Engine is what the server asks of the engine that runs jobs and operations,
// and what it tells it.
type Engine struct {
	// The worker in this process.
	Worker      string                              // its name
	Ready       func() error                        // why no jobs are run, or nil
	Pause       func(on bool)                       // ends the claiming of jobs, or begins it again
	OpenBreaker func() (shortage.OpenBreaker, bool) // since when nothing is claimed because something has run out
	Knows       func(typ string) bool               // whether a handler knows a type of job
	Running     func() map[string]int               // executions at this moment, by queue
	Stuck       func() []job.Stuck                  // the handlers that do not return

	// Began is when an execution under way began, which may be after its claim.
	Began func(job.Token) (at time.Time, ok bool)
	// Waiting reports whether a claimed job has not begun because of the handler
	// of an earlier execution: since when that one should have returned, and
	// until when the job waits for it; both zero when it waits for a worker by
	// now.
	Waiting func(id string) (since, until time.Time, ok bool)
	// Shortages counts what had run out, and what met it.
	Shortages func() map[shortage.Resource]shortage.Counts

	// What else the process does: operations, sources, dead letters, its configuration.
	Notify  func()                                                      // says that an operation was made or changed
	Sources func() []source.Health                                      // how the attached sources fare
	Deliver func(context.Context, job.Job, job.DeadLetter) job.Delivery // sends a dead letter that was refused once more

	// Reload reads the configuration again, and names the sections that changed and
	// those that need a restart. When the file is wrong, nothing changes.
	Reload func(context.Context) (changed, restart []string, err error)
}

// Site is what every handler works with.
type Site struct {
	compress.Sender
	View   *view.View
	Config *config.Config
	Hub    *live.Hub
	Engine Engine
	Limits Limits
	Log    *slog.Logger

	changes sync.Mutex // held by the request that pauses the worker, also while the audit log is written
	pause   atomic.Pointer[queues.Pause]
}

// Paused is the pause of the worker, or nil while it claims jobs. It does not
// block. A restart ends the pause.
func (s *Site) Paused() *queues.Pause { return s.pause.Load() }

// PauseWorker stops the claiming of jobs or starts it again. When that is so
// already, nothing changes: the first pause stays, with the name of who made it.
// The audit log is written before the worker is told, so that there is no pause
// without an entry.
func (s *Site) PauseWorker(ctx context.Context, on bool, by audit.Actor) error {
	s.changes.Lock()
	defer s.changes.Unlock()

	if on == (s.Paused() != nil) {
		return nil
	}

	now, action, pause := time.Now().UTC(), "worker.resume", (*queues.Pause)(nil)
	if on {
		action, pause = "worker.quiet", &queues.Pause{Since: now, By: by.Name}
	}

	if err := s.View.Record(ctx, audit.Entry{At: now, Actor: by, Action: action, Subject: s.Engine.Worker, Count: 1}); err != nil {
		return err
	}

	s.Engine.Pause(on)
	s.pause.Store(pause)

	return nil
}

// Job is everything about the job that the address names, with the newest attempts before
// an execution; 0: the newest of all.
func (s *Site) Job(c echo.Context, before int64) (history.Detail, error) {
	id, err := ParamID(c)
	if err != nil {
		return history.Detail{}, err
	}

	d, err := s.View.JobBefore(c.Request().Context(), id, int(cmp.Or(before, math.MaxInt)))
	d.Job = s.Begun(d.Job)

	return d, err
}

// Begun corrects the start of a running job. The store knows when it was
// claimed; the engine knows when its execution began.
func (s *Site) Begun(j job.Job) job.Job {
	if j.State == job.Active {
		if at, ok := s.Engine.Began(j.Token); ok {
			j.StartedAt = at.UTC()
		}
	}

	return j
}

// Trail is what the audit log knows of a job, as far as the caller may see it.
func (s *Site) Trail(c echo.Context, id string) ([]audit.Entry, error) {
	page, err := s.View.Audit(c.Request().Context(), audit.Filter{Subject: id, Own: ownOnly(c)}, 0, PageLimit)
	_, err = Tolerate(err)
	return page.Entries, err
}

// ownOnly names the caller if they may not manage: of what is guarded in the audit log,
// they see only their own entries.
func ownOnly(c echo.Context) string {
	if who := CallerOf(c); !who.Role.May(access.Manage) {
		return who.Name
	}
	return ""
}

// Claimed is a job that a worker has at this moment.
type Claimed struct {
	job.Job
	Waits bool // for the handler of an earlier execution
}

// Claimed lists the jobs that workers have at this moment, the newest first.
func (s *Site) Claimed(ctx context.Context) (all []Claimed, more, slow bool, err error) {
	page, slow, err := InTime(s.View.Jobs(ctx, filter.Filter{Status: job.Status(job.Active)}, filter.Cursor{}, claimedLimit))
	for _, j := range page.Jobs {
		_, _, waits := s.Engine.Waiting(j.ID)
		all = append(all, Claimed{s.Begun(j), waits})
	}

	return all, page.Next != filter.Cursor{}, slow, err
}

// Policies lists the policies of the configuration under the names by which they
// can be asked for, and then the presets. A TTR is zero where none goes with the
// name.
func Policies[T any](c *config.Config, shape func(name string, p retry.Policy, ttr time.Duration) T) (inUse, presets []T) {
	for _, use := range c.PoliciesInUse() {
		name := "default"
		if use.Queue != "" {
			name = "queue:" + use.Queue
		} else if use.Type != "" {
			name = "type:" + use.Type
		}

		inUse = append(inUse, shape(name, use.Policy, use.TTR))
	}

	for _, named := range c.NamedPolicies() {
		inUse = append(inUse, shape(named.Name, named.Policy, 0))
	}

	for _, name := range retry.Presets() {
		policy, _ := retry.Preset(name)
		presets = append(presets, shape(name, policy, 0))
	}

	return inUse, presets
}
