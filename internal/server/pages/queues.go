package pages

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/web/templates"
	"redrive/web/templates/queuepage"
)

// queues is the page /queues. It shows the queues that exist and those that
// are only configured.
func (p *Pages) queues(c echo.Context) error {
	ctx := c.Request().Context()
	v := queuepage.List{Frame: p.frame(c, "Queues", "queues")}
	var r reads
	into(&r, &v.Queues)(p.Queues(ctx))
	into(&r, &v.Held)(p.View.Held(ctx))
	v.Configs = p.queueConfigs(p.QueueNames()...)
	return p.show(c, r, v.Page())
}

// queueConfigs is what the configuration says about these queues.
func (p *Pages) queueConfigs(queues ...string) map[string]templates.QueueConfig {
	all, running := map[string]templates.QueueConfig{}, p.Engine.Running()
	for _, name := range queues {
		all[name] = templates.QueueConfig{
			Workers: p.Config.Workers(name), Running: running[name], Policy: p.Config.Policy(name),
			DeadLetters: p.Config.DeadLetters(name), ForwardedTo: p.WebhookHost(name),
		}
	}
	return all
}

// queue is the page /queues/{name}.
func (p *Pages) queue(c echo.Context) error {
	name, err := p.ParamQueue(c)
	if err != nil {
		return err
	}
	ctx, now := c.Request().Context(), time.Now()
	v := queuepage.View{Frame: p.frame(c, name, "queues")}
	var r reads
	into(&r, &v.Queue)(p.Queue(ctx, name))
	v.Config = p.queueConfigs(name)[name]
	v.Configured = slices.Contains(p.Config.Queues(), name)
	into(&r, &v.Chart)(p.chart(ctx, now, filter.Filter{Queue: name}))
	v.Failing = p.failing(ctx, &r, name)
	var groups failures.List
	inTime(&r, &groups)(p.View.Groups(ctx, now, failures.Filter{State: failures.Open, Queue: name}, failures.Cursor{}, causesLimit))
	into(&r, &v.Held)(p.View.Held(ctx))
	v.Groups, v.Slow = groups.Groups, r.slow
	v.Held = slices.DeleteFunc(v.Held, func(h queues.Held) bool { return h.Queue != name })
	return p.show(c, r, v.Page())
}

// chart is what became of the jobs that a filter selects by queue and type; nil
// when it selects by neither.
func (p *Pages) chart(ctx context.Context, now time.Time, f filter.Filter) (*templates.Chart, error) {
	chart := &templates.Chart{}
	switch {
	case f.Queue != "" && f.Type != "":
		chart.Of = f.Type + " in the queue " + f.Queue
	case f.Queue != "":
		chart.Of = "the queue " + f.Queue
	case f.Type != "":
		chart.Of = f.Type
	default:
		return nil, nil
	}
	var r reads
	inTime(&r, &chart.Hour)(p.View.Series(ctx, now, f.Queue, f.Type, queues.LastHour()))
	inTime(&r, &chart.Day)(p.View.Series(ctx, now, f.Queue, f.Type, queues.LastDay()))
	if chart.Slow = r.slow; r.slow {
		chart.Hour, chart.Day = nil, nil
	}
	return chart, r.err
}

// workers is the page /workers.
func (p *Pages) workers(c echo.Context) error {
	v := queuepage.Workers{
		Frame: p.frame(c, "Workers", "workers"), Name: p.Engine.Worker, Since: p.began.UTC(), Stuck: p.Engine.Stuck(), Waits: map[string]bool{},
	}
	all, err := p.WorkerQueues(c.Request().Context())
	if err != nil {
		return err
	}
	running := p.Engine.Running()
	for _, q := range all {
		v.Queues = append(v.Queues, queuepage.WorkerQueue{
			Name: q.Name, Workers: p.Config.Workers(q.Name), Running: running[q.Name],
			Waiting: q.Depths[job.Status(job.Available)], PausedAt: q.PausedAt,
		})
	}
	claimed, more, slow, err := p.Claimed(c.Request().Context())
	if err != nil {
		return err
	}
	for _, j := range claimed {
		v.Waits[j.ID] = j.Waits
		v.Jobs = append(v.Jobs, j.Job)
	}
	v.More, v.Slow = more, slow
	return p.Show(c, http.StatusOK, v.Page())
}
