package pages

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/queues"
	"redrive/internal/server/web"
	"redrive/web/templates"
)

// queues is the page /queues. It shows the queues that exist and those that
// are only configured.
func (p *Pages) queues(c echo.Context) error {
	ctx := c.Request().Context()
	v := templates.Queues{Frame: p.frame(c, "Queues", "queues")}
	var err error
	if v.Queues, err = p.Queues(ctx); err != nil {
		return err
	}
	if v.Held, err = p.View.Held(ctx); err != nil {
		return err
	}
	v.Configs = p.queueConfigs(namesOf(v.Queues)...)
	return p.Show(c, http.StatusOK, v.Page())
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

func namesOf(queues []queues.Info) []string {
	names := make([]string, len(queues))
	for i, q := range queues {
		names[i] = q.Name
	}
	return names
}

// queue is the page /queues/{name}.
func (p *Pages) queue(c echo.Context) error {
	name, err := p.ParamQueue(c)
	if err != nil {
		return err
	}
	ctx, now := c.Request().Context(), time.Now()
	v := templates.Queue{Frame: p.frame(c, name, "queues")}
	if v.Queue, err = p.Queue(ctx, name); err != nil {
		return err
	}
	v.Config = p.queueConfigs(name)[name]
	v.Configured = slices.Contains(p.Config.Queues(), name)
	if v.Chart, err = p.chart(ctx, now, filter.Filter{Queue: name}); err != nil {
		return err
	}
	if v.Failing, v.Slow, err = p.failing(ctx, name); err != nil {
		return err
	}
	groups, err := p.View.Groups(ctx, now, failures.Filter{State: failures.Open, Queue: name}, failures.Cursor{}, causesLimit)
	slow, err := web.Tolerate(err)
	if err != nil {
		return err
	}
	v.Groups, v.Slow = groups.Groups, v.Slow || slow
	if v.Held, err = p.View.Held(ctx); err != nil {
		return err
	}
	v.Held = slices.DeleteFunc(v.Held, func(h queues.Held) bool { return h.Queue != name })
	return p.Show(c, http.StatusOK, v.Page())
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
	hour, err := p.View.Series(ctx, now, f.Queue, f.Type, queues.LastHour())
	slow, err := web.Tolerate(err)
	if err != nil {
		return nil, err
	}
	day, err := p.View.Series(ctx, now, f.Queue, f.Type, queues.LastDay())
	late, err := web.Tolerate(err)
	if err != nil {
		return nil, err
	}
	if chart.Slow = slow || late; !chart.Slow {
		chart.Hour, chart.Day = hour, day
	}
	return chart, nil
}

// workers is the page /workers.
func (p *Pages) workers(c echo.Context) error {
	v := templates.Workers{
		Frame: p.frame(c, "Workers", "workers"), Name: p.Engine.Worker, Since: p.began.UTC(), Stuck: p.Engine.Stuck(), Waits: map[string]bool{},
	}
	all, err := p.WorkerQueues(c.Request().Context())
	if err != nil {
		return err
	}
	for _, q := range all {
		v.Queues = append(v.Queues, templates.WorkerQueue(q))
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
