package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/wire"
	"redrive/web/templates"
	"redrive/web/templates/queuepage"
)

// claimedLimit is how many running jobs a page or an answer lists.
const claimedLimit = 200

// rest is whether the worker in this process is quiet, and who made it so. It
// survives nothing: a worker that starts is awake.
type rest struct {
	changes sync.Mutex // held by whoever changes it, also while the audit log is written
	quiet   atomic.Pointer[templates.WorkerPause]
}

// now is what holds now, which nobody changes; nil while the worker is awake.
func (r *rest) now() *templates.WorkerPause { return r.quiet.Load() }

// hush makes the worker quiet, or wakes it; who was first stays. The audit log
// knows it before the worker does.
func (s *Server) hush(ctx context.Context, on bool, by audit.Actor) error {
	s.rest.changes.Lock()
	defer s.rest.changes.Unlock()
	if on == (s.rest.now() != nil) {
		return nil
	}
	action := "worker.resume"
	if on {
		action = "worker.quiet"
	}
	now := time.Now().UTC()
	if err := s.Store.Record(ctx, audit.Entry{At: now, Actor: by, Action: action, Subject: s.Worker, Count: 1}); err != nil {
		return err
	}
	s.Quiet(on)
	var quiet *templates.WorkerPause
	if on {
		quiet = &templates.WorkerPause{Since: now, By: by.Name}
	}
	s.rest.quiet.Store(quiet)
	return nil
}

// workers is the page /workers.
func (s *Server) workers(c echo.Context) error {
	v := queuepage.Workers{Frame: s.frame(c, "Workers", "workers"), Name: s.Worker, Since: s.began.UTC(), Stuck: s.Stuck(), Waits: map[string]bool{}}
	var err error
	if v.Queues, err = s.workerQueues(c.Request().Context()); err != nil {
		return err
	}
	page, err := s.Store.Jobs(c.Request().Context(), filter.Filter{Status: job.Status(job.Active)}, filter.Cursor{}, claimedLimit)
	if v.Slow, err = tolerate(err); err != nil {
		return err
	}
	for _, j := range page.Jobs {
		if _, _, waits := s.Waiting(j.ID); waits {
			v.Waits[j.ID] = true
		}
		v.Jobs = append(v.Jobs, s.sinceItBegan(j))
	}
	v.More = page.Next != filter.Cursor{}
	return s.page(c, http.StatusOK, v.Page())
}

// workerQueues are the queues that have workers or jobs, those with workers
// first.
func (s *Server) workerQueues(ctx context.Context) ([]queuepage.WorkerQueue, error) {
	infos, err := s.Store.Queues(ctx, time.Now())
	running, known := s.Running(), map[string]bool{}
	var all []queuepage.WorkerQueue
	add := func(q queues.Info) {
		known[q.Name] = true
		all = append(all, queuepage.WorkerQueue{
			Name: q.Name, Workers: s.Config.Workers(q.Name), Running: running[q.Name],
			Waiting: q.Depths[job.Status(job.Available)], PausedAt: q.PausedAt,
		})
	}
	for _, q := range infos {
		add(q)
	}
	for _, name := range s.Config.Queues() {
		if !known[name] {
			add(queues.Info{Name: name})
		}
	}
	slices.SortFunc(all, func(a, b queuepage.WorkerQueue) int {
		return cmp.Or(cmp.Compare(min(b.Workers, 1), min(a.Workers, 1)), cmp.Compare(a.Name, b.Name))
	})
	return all, err
}

func (s *Server) quietForm(c echo.Context) error { return s.hushForm(c, true, "The worker is quiet") }

func (s *Server) wakeForm(c echo.Context) error { return s.hushForm(c, false, "The worker is awake") }

func (s *Server) hushForm(c echo.Context, on bool, text string) error {
	if err := readForm(c); err != nil {
		return err
	}
	if err := s.hush(c.Request().Context(), on, s.actor("dashboard", c)); err != nil {
		return err
	}
	return done(c, "/workers", "text", encode(text))
}

// quietWorkers is POST /workers/quiet, wakeWorkers is POST /workers/resume.
func (s *Server) quietWorkers(c echo.Context) error { return s.hushWorkers(c, true) }
func (s *Server) wakeWorkers(c echo.Context) error  { return s.hushWorkers(c, false) }

func (s *Server) hushWorkers(c echo.Context, on bool) error {
	_, err := s.bareAct(c, func(echo.Context) (string, error) { return "", nil })
	if err != nil {
		return err
	}
	if err := s.hush(c.Request().Context(), on, s.actor("api", c)); err != nil {
		return err
	}
	return s.listWorkers(c)
}

type workerShape struct {
	Name    string             `json:"name"`
	Since   string             `json:"since"`
	Quiet   bool               `json:"quiet"`
	QuietAt string             `json:"quiet_at,omitempty"`
	QuietBy string             `json:"quiet_by,omitempty"`
	Queues  []workerQueueShape `json:"queues"`
	Jobs    []claimShape       `json:"jobs"` // claimed now, by whatever worker; at most 200, the newest first
	Stuck   []stuckShape       `json:"stuck"`
}

type workerQueueShape struct {
	Name    string `json:"name"`
	Workers int    `json:"workers"`
	Running int    `json:"running"`
	Waiting int64  `json:"available"`
	Paused  bool   `json:"paused"`
}

type claimShape struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	Queue      string `json:"queue"`
	Run        int    `json:"run"`
	Execution  int    `json:"execution"`
	Worker     string `json:"worker"`
	StartedAt  string `json:"started_at"`
	LeaseUntil string `json:"lease_until"`
	LastSeen   string `json:"last_seen"`
	Waits      bool   `json:"waits,omitempty"` // for the handler of an earlier execution
}

type stuckShape struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Queue     string `json:"queue"`
	StartedAt string `json:"started_at"`
	GivenUpAt string `json:"given_up_at"`
}

// listWorkers is GET /workers.
func (s *Server) listWorkers(c echo.Context) error {
	queues, err := s.workerQueues(c.Request().Context())
	if err != nil {
		return err
	}
	page, err := s.Store.Jobs(c.Request().Context(), filter.Filter{Status: job.Status(job.Active)}, filter.Cursor{}, claimedLimit)
	slow, err := tolerate(err)
	if err != nil {
		return err
	}
	w := workerShape{
		Name: s.Worker, Since: wire.FormatTime(s.began), Queues: []workerQueueShape{}, Jobs: []claimShape{}, Stuck: []stuckShape{},
	}
	if quiet := s.rest.now(); quiet != nil {
		w.Quiet, w.QuietAt, w.QuietBy = true, wire.FormatTime(quiet.Since), quiet.By
	}
	for _, q := range queues {
		w.Queues = append(w.Queues, workerQueueShape{q.Name, q.Workers, q.Running, q.Waiting, !q.PausedAt.IsZero()})
	}
	for _, j := range page.Jobs {
		j = s.sinceItBegan(j)
		_, _, waits := s.Waiting(j.ID)
		w.Jobs = append(w.Jobs, claimShape{
			j.ID, j.Type, j.Queue, j.Run, j.Execution, j.Worker,
			wire.FormatTime(j.StartedAt), wire.FormatTime(j.LeaseUntil), wire.FormatTime(j.LastSeen), waits,
		})
	}
	for _, stuck := range s.Stuck() {
		w.Stuck = append(w.Stuck, stuckShape{
			stuck.Job.ID, stuck.Job.Type, stuck.Job.Queue, wire.FormatTime(stuck.Job.StartedAt), wire.FormatTime(stuck.Since),
		})
	}
	return c.JSONBlob(http.StatusOK, object("workers", list([][]byte{encode(w)}), endOf("", slow)...))
}
