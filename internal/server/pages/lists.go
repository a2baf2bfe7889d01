package pages

import (
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/server/web"
	"redrive/web/templates"
)

// jobs is the page /jobs. The search field of every page leads here, with an
// id or with a filter.
func (p *Pages) jobs(c echo.Context) error {
	values := c.QueryParams()
	if id, err := job.ParseID(strings.TrimSpace(values.Get("q"))); err == nil {
		return c.Redirect(http.StatusSeeOther, "/jobs/"+id)
	}
	v := templates.Jobs{Frame: p.frame(c, "Jobs", "jobs"), After: values.Get("after")}
	filter, after, wrong := web.Query(values)
	v.Filter, v.Errors, v.Search = filter, byField(wrong), values.Get("q")
	var err error
	if v.Query, err = p.queryAbove(c, filter, v.Errors); err != nil {
		return err
	}
	if len(wrong) > 0 {
		return p.Show(c, http.StatusBadRequest, v.Page())
	}
	if v.Chart, err = p.chart(c.Request().Context(), time.Now(), filter); err != nil {
		return err
	}
	v.List, err = p.View.Jobs(c.Request().Context(), filter, after, web.PageLimit)
	if v.Slow, err = web.Tolerate(err); err != nil {
		return err
	}
	return p.Show(c, http.StatusOK, v.Page())
}

// byField arranges what is wrong with a filter beside its fields.
func byField(wrong []*invalid.Error) map[string]string {
	all := map[string]string{}
	for _, w := range wrong {
		all[w.Field] = w.Problem
	}
	return all
}

// deadLetters is the page /dead-letters.
func (p *Pages) deadLetters(c echo.Context) error {
	ctx, now, values := c.Request().Context(), time.Now(), c.QueryParams()
	v := templates.DeadLetters{Frame: p.frame(c, "Dead letters", "dead-letters"), After: values.Get("after")}
	f, after, wrong := web.LettersQuery(values)
	v.Filter, v.Errors, v.Search = f, byField(wrong), values.Get("q")
	dead := f
	dead.Status = job.StatusDeadLetter
	var err error
	if v.Query, err = p.queryAbove(c, dead, v.Errors); err != nil {
		return err
	}
	if v.Letters, err = p.letterRoom(ctx, now); err != nil {
		return err
	}
	v.Configs = p.queueConfigs(p.View.QueueNames()...)
	if len(wrong) > 0 {
		return p.Show(c, http.StatusBadRequest, v.Page())
	}
	var slow bool
	if v.Refused, slow, err = p.refused(ctx, filter.Filter{Queue: f.Queue, Type: f.Type}); err != nil {
		return err
	}
	v.List, err = p.View.Letters(ctx, f, after, web.PageLimit)
	if v.Slow, err = web.Tolerate(err); err != nil {
		return err
	}
	v.Slow = v.Slow || slow
	if v.Groups, err = p.View.GroupsOf(ctx, v.List.Letters); err != nil {
		return err
	}
	return p.Show(c, http.StatusOK, v.Page())
}

// trash is the page /trash.
func (p *Pages) trash(c echo.Context) error {
	v := templates.Trash{Frame: p.frame(c, "Trash", "trash"), Keeps: p.Config.Retention().Trash, After: c.QueryParam("after")}
	filter, after, wrong := web.TrashQuery(c.QueryParams())
	v.Filter, v.Errors, v.Search = filter, byField(wrong), c.QueryParam("q")
	var err error
	if v.Query, err = p.queryAbove(c, filter, v.Errors); err != nil {
		return err
	}
	if len(wrong) > 0 {
		return p.Show(c, http.StatusBadRequest, v.Page())
	}
	v.List, err = p.View.Jobs(c.Request().Context(), filter, after, web.PageLimit)
	if v.Slow, err = web.Tolerate(err); err != nil {
		return err
	}
	if v.Was, err = p.View.Trashed(c.Request().Context(), v.List.Jobs); err != nil {
		return err
	}
	return p.Show(c, http.StatusOK, v.Page())
}

// queryAbove is what stands above a list. What cannot be read stays as it was
// typed.
func (p *Pages) queryAbove(c echo.Context, f filter.Filter, wrong map[string]string) (v templates.Query, err error) {
	ctx := c.Request().Context()
	if wrong["q"] != "" {
		v.Typed = c.QueryParam("q")
	}
	v.Queues = p.View.QueueNames()
	if v.Facets, err = p.View.Facets(ctx, f); err != nil {
		return v, err
	}
	if v.Dead, err = p.View.Facets(ctx, filter.Filter{Status: job.StatusDeadLetter}); err == nil && f.Searches() {
		v.Filling = p.View.Reindexing()
		v.Lag, err = p.View.SearchLag(ctx)
	}
	return v, err
}
