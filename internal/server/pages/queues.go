package pages

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/server/web"
	"redrive/web/templates"
	"redrive/web/templates/queuepage"
)

// queues is the page /queues. It shows the queues that had jobs and those that
// are only configured.
func (p *Pages) queues(c echo.Context) error {
	ctx, now, all := c.Request().Context(), time.Now(), p.QueueNames()
	v := queuepage.List{Frame: p.frame(c, "Queues", "queues"), Total: len(all), Name: strings.TrimSpace(c.QueryParam("name"))}
	var r reads

	names, found, err := p.listed(ctx, all, v.Name)
	if err != nil {
		return err
	}

	v.Found = found
	into(&r, &v.Queues)(p.Queues(ctx, names))
	into(&r, &v.Held)(p.View.Held(ctx, "", heldLimit))
	into(&r, &v.LastHour)(p.View.LastHour(ctx, now))

	v.Configs = p.queueConfigs(names...)
	for _, name := range all {
		if job.SourceOf(name) != "" {
			v.Foreign++
			continue
		}

		v.Workers += p.Config.Workers(name)
	}

	return p.show(c, r, v.Page())
}

// listed are the queues that have a text in their name, case ignored, and how many do;
// without a text those that most need attention.
func (p *Pages) listed(ctx context.Context, all []string, text string) (names []string, found int, err error) {
	if text == "" {
		names, err = p.attention(ctx, all)
		return names, len(all), err
	}

	names = slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		return !strings.Contains(strings.ToLower(name), strings.ToLower(text))
	})

	return names[:min(len(names), queuesLimit)], len(names), nil
}

// attention names the queues that most need a person's attention: first those with
// refused dead letters, then paused ones, those with dead letters, those with a backlog.
func (p *Pages) attention(ctx context.Context, all []string) ([]string, error) {
	if len(all) <= queuesLimit {
		return all, nil
	}

	paused, err := p.View.PausedQueues(ctx, queuesLimit)
	if err != nil {
		return nil, err
	}

	refused, err := p.View.Fullest(ctx, queuesLimit, []job.Status{job.StatusDLQFailed})
	if err != nil {
		return nil, err
	}

	waiting := []job.Status{job.Status(job.Available), job.Status(job.Retryable), job.Status(job.Scheduled)}
	others, err := p.View.Fullest(ctx, queuesLimit, []job.Status{job.StatusDeadLetter}, waiting)

	return web.Foremost(queuesLimit, all, refused, paused, others), err
}

// queueConfigs is what the configuration says about some queues, and how many of
// their jobs run at this moment.
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

// queue is the page /queues/{name}, with its chart and what fails in it.
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
	into(&r, &v.Held)(p.View.Held(ctx, name, heldLimit))
	v.Groups, v.Slow = groups.Groups, r.slow

	return p.show(c, r, v.Page())
}

// chart is what became of the jobs of a queue, a type or both; nil when the
// filter names neither. A chart that was read in part would show falling
// numbers, so it is left out.
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

	chart.Slow = r.slow
	if r.slow {
		chart.Hour, chart.Day = nil, nil
	}

	return chart, r.err
}
