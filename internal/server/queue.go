package server

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/queues"
	"redrive/web/templates"
	"redrive/web/templates/queuepage"
)

const causesLimit = 5 // error groups on the overview and on the page of a queue

// queue is the page /queues/{name}.
func (s *Server) queue(c echo.Context) error {
	name, err := s.paramQueue(c)
	if err != nil {
		return err
	}
	ctx, now := c.Request().Context(), time.Now()
	v := queuepage.View{Frame: s.frame(c, name, "queues"), Queue: queues.Info{Name: name}}
	all, err := s.Store.Queues(ctx, now)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(all, func(q queues.Info) bool { return q.Name == name }); i >= 0 {
		v.Queue = all[i]
	}
	v.Config = s.queueConfigs(name)[name]
	v.Configured = slices.Contains(s.Config.Queues(), name)
	if v.Chart, err = s.chart(ctx, now, filter.Filter{Queue: name}); err != nil {
		return err
	}
	if v.Failing, v.Slow, err = s.failing(ctx, name); err != nil {
		return err
	}
	groups, err := s.Store.Groups(ctx, now, failures.Filter{State: failures.Open, Queue: name}, failures.Cursor{}, causesLimit)
	slow, err := tolerate(err)
	if err != nil {
		return err
	}
	v.Groups, v.Slow = groups.Groups, v.Slow || slow
	if v.Held, err = s.Store.Held(ctx); err != nil {
		return err
	}
	v.Held = slices.DeleteFunc(v.Held, func(h queues.Held) bool { return h.Queue != name })
	return s.page(c, http.StatusOK, v.Page())
}

// chart is what became of the jobs that a filter selects by queue and type; nil
// when it selects by neither.
func (s *Server) chart(ctx context.Context, now time.Time, f filter.Filter) (*templates.Chart, error) {
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
	hour, err := s.Store.Series(ctx, now, f.Queue, f.Type, queues.LastHour())
	slow, err := tolerate(err)
	if err != nil {
		return nil, err
	}
	day, err := s.Store.Series(ctx, now, f.Queue, f.Type, queues.LastDay())
	late, err := tolerate(err)
	if err != nil {
		return nil, err
	}
	if chart.Slow = slow || late; !chart.Slow {
		chart.Hour, chart.Day = hour, day
	}
	return chart, nil
}
