package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retention"
	"redrive/internal/server/web"
	"redrive/internal/wire"
)

type queueShape struct {
	Name string `json:"name"`
	job.Totals
	States     job.Depths `json:"states"` // every status, also at zero
	Workers    int        `json:"workers"`
	Running    int        `json:"running"`
	DeadLetter bool       `json:"dead_letter"`
	Forward    string     `json:"forward,omitempty"` // the host to which dead letters are forwarded
	Oldest     string     `json:"oldest,omitempty"`
	PausedAt   string     `json:"paused_at,omitempty"`
	PausedBy   string     `json:"paused_by,omitempty"`
}

// usageShape is how full the dead-letter queue is. Bounds that are not set and
// times that are not foreseen are left out.
type usageShape struct {
	Open    int64   `json:"open"`
	Limit   int64   `json:"limit,omitempty"`
	Share   float64 `json:"share"`
	LastDay int64   `json:"last_day"` // of these, failed in this hour or the 23 before
	Oldest  string  `json:"oldest,omitempty"`
	MaxAge  string  `json:"max_age,omitempty"`
	WarnsAt string  `json:"warns_at,omitempty"` // when 80 percent will be reached at this pace
	FullAt  string  `json:"full_at,omitempty"`
	Warning bool    `json:"warning"`
}

func shapeUsage(f retention.Usage, r retention.Limits, now time.Time) usageShape {
	shape := usageShape{
		Open: f.Open, Limit: r.Count, Share: f.Share(r), LastDay: f.LastDay, Oldest: wire.FormatTime(f.Oldest),
		Warning: r.Count > 0 && f.Share(r) >= retention.WarnShare,
	}
	if r.Age > 0 {
		shape.MaxAge = wire.FormatDuration(r.Age)
	}
	if at, ok := f.Reaches(r, retention.WarnShare, now); ok {
		shape.WarnsAt = wire.FormatTime(at)
	}
	if at, ok := f.Reaches(r, 1, now); ok {
		shape.FullAt = wire.FormatTime(at)
	}
	return shape
}

// usage is GET /dead-letters/fill: how full the dead-letter queue is. It is apart
// from the counters because it is no total: it falls as letters are replayed,
// discarded and pruned.
func (a *API) usage(c echo.Context) error {
	now := time.Now()
	u, err := a.View.Usage(c.Request().Context(), now)
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, append(web.Encode(shapeUsage(u, a.Config.Retention(), now)), '\n'))
}

// queues is GET /queues.
func (a *API) queues(c echo.Context) (web.Object, error) {
	all, err := a.View.Queues(c.Request().Context(), time.Now())
	running := a.Engine.Running()
	return web.Object{"queues", web.List(all, func(q queues.Info) queueShape { return a.shapeQueue(q, running) })}, err
}

// queue is GET /queues/{name}.
func (a *API) queue(c echo.Context) (web.Object, error) {
	name, err := a.ParamQueue(c)
	if err != nil {
		return nil, err
	}
	q, err := a.Queue(c.Request().Context(), name)
	return web.Object{"queue", a.shapeQueue(q, a.Engine.Running())}, err
}

func (a *API) shapeQueue(q queues.Info, running map[string]int) queueShape {
	depths := job.Depths{}
	for _, status := range job.Statuses() {
		depths[status] = q.Depths[status]
	}
	return queueShape{
		Name: q.Name, Totals: q.Totals, States: depths, Workers: a.Config.Workers(q.Name), Running: running[q.Name],
		DeadLetter: a.Config.DeadLetters(q.Name), Forward: a.WebhookHost(q.Name),
		Oldest: wire.FormatTime(q.Oldest), PausedAt: wire.FormatTime(q.PausedAt), PausedBy: q.PausedBy,
	}
}

// queueActs are the acts on queues, and on the worker in this process.
func (a *API) queueActs() []Act {
	return []Act{
		a.queueAct("pause", a.View.Pause, true, "Paused "), a.queueAct("resume", a.View.Resume, false, "Resumed "),
		a.workerAct("quiet", true, "The worker is quiet"), a.workerAct("resume", false, "The worker is awake"),
	}
}

func (a *API) queueAct(name string, do func(context.Context, time.Time, string, audit.Actor) error, paused bool, text string) Act {
	return Act{"/queues/:name/" + name, func(c echo.Context) (Outcome, error) {
		queue, err := a.ParamQueue(c)
		if err == nil {
			err = readNothing(c)
		}
		if err == nil {
			err = do(c.Request().Context(), time.Now(), queue, web.Actor(c))
		}
		return Outcome{Program: web.Object{"queue", queue, "paused", paused}, Text: text + queue, Page: "/queues"}, err
	}}
}

func (a *API) workerAct(name string, pause bool, text string) Act {
	return Act{"/workers/" + name, func(c echo.Context) (Outcome, error) {
		err := readNothing(c)
		if err == nil {
			err = a.PauseWorker(c.Request().Context(), pause, web.Actor(c))
		}
		out := Outcome{Text: text, Page: "/workers"}
		if err == nil && !web.IsForm(c) {
			out.Program, err = a.workers(c)
		}
		return out, err
	}}
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

// workers is GET /workers.
func (a *API) workers(c echo.Context) (web.Object, error) {
	all, err := a.WorkerQueues(c.Request().Context())
	if err != nil {
		return nil, err
	}
	claimed, _, slow, err := a.Claimed(c.Request().Context())
	w := workerShape{
		Name: a.Engine.Worker, Since: wire.FormatTime(a.began), Queues: []workerQueueShape{}, Jobs: []claimShape{}, Stuck: []stuckShape{},
	}
	if p := a.Paused(); p != nil {
		w.Quiet, w.QuietAt, w.QuietBy = true, wire.FormatTime(p.Since), p.By
	}
	for _, q := range all {
		w.Queues = append(w.Queues, workerQueueShape{q.Name, q.Workers, q.Running, q.Waiting, !q.PausedAt.IsZero()})
	}
	for _, j := range claimed {
		w.Jobs = append(w.Jobs, claimShape{
			j.ID, j.Type, j.Queue, j.Run, j.Execution, j.Worker,
			wire.FormatTime(j.StartedAt), wire.FormatTime(j.LeaseUntil), wire.FormatTime(j.LastSeen), j.Waits,
		})
	}
	for _, stuck := range a.Engine.Stuck() {
		w.Stuck = append(w.Stuck, stuckShape{
			stuck.Job.ID, stuck.Job.Type, stuck.Job.Queue, wire.FormatTime(stuck.Job.StartedAt), wire.FormatTime(stuck.Since),
		})
	}
	return page("workers", web.Raw(web.Encode([]workerShape{w})), "", slow), err
}

type policyShape struct {
	Name   string          `json:"name"` // as a job's policy or the page can name it
	Policy json.RawMessage `json:"policy"`
	TTR    string          `json:"ttr,omitempty"`
}

func shapePolicy(p web.Policy) policyShape {
	shape := policyShape{Name: p.Name, Policy: wire.EncodePolicy(p.Policy)}
	if p.TTR > 0 {
		shape.TTR = wire.FormatDuration(p.TTR)
	}
	return shape
}

// policies is GET /policies: those of the configuration, and the presets.
func (a *API) policies(echo.Context) (web.Object, error) {
	return web.Object{"policies", web.List(a.Policies(), shapePolicy), "presets", web.List(web.Presets(), shapePolicy)}, nil
}
