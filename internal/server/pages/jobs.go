package pages

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/server/web"
	"redrive/web/templates/adminpage"
	"redrive/web/templates/jobpage"
	"redrive/web/templates/listpage"
)

// jobs is the page /jobs. The search field of every page leads here, with an
// id or with a filter.
func (p *Pages) jobs(c echo.Context) error {
	values := c.QueryParams()
	if id, err := job.ParseID(strings.TrimSpace(values.Get("q"))); err == nil {
		return c.Redirect(http.StatusSeeOther, "/jobs/"+id)
	}
	v := listpage.Jobs{Frame: p.frame(c, "Jobs", "jobs"), After: values.Get("after")}
	filter, after, wrong := web.Query(values)
	v.Filter, v.Errors, v.Search = filter, byField(wrong), values.Get("q")
	var r reads
	into(&r, &v.Query)(p.queryAbove(c, filter, v.Errors))
	if r.err == nil && len(wrong) > 0 {
		return p.Show(c, http.StatusBadRequest, v.Page())
	}
	into(&r, &v.Chart)(p.chart(c.Request().Context(), time.Now(), filter))
	inTime(&r, &v.List)(p.View.Jobs(c.Request().Context(), filter, after, web.PageLimit))
	v.Slow = r.slow
	return p.show(c, r, v.Page())
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
	v := listpage.DeadLetters{Frame: p.frame(c, "Dead letters", "dead-letters"), After: values.Get("after")}
	f, after, wrong := web.LettersQuery(values)
	v.Filter, v.Errors, v.Search = f, byField(wrong), values.Get("q")
	dead := f
	dead.Status = job.StatusDeadLetter
	var r reads
	into(&r, &v.Query)(p.queryAbove(c, dead, v.Errors))
	into(&r, &v.Letters)(p.letterRoom(ctx, now))
	v.Configs = p.queueConfigs(p.View.QueueNames()...)
	if r.err == nil && len(wrong) > 0 {
		return p.Show(c, http.StatusBadRequest, v.Page())
	}
	v.Refused = p.refused(ctx, &r, filter.Filter{Queue: f.Queue, Type: f.Type})
	inTime(&r, &v.List)(p.View.Letters(ctx, f, after, web.PageLimit))
	into(&r, &v.Groups)(p.View.GroupsOf(ctx, v.List.Letters))
	v.Slow = r.slow
	return p.show(c, r, v.Page())
}

// trash is the page /trash.
func (p *Pages) trash(c echo.Context) error {
	v := listpage.Trash{Frame: p.frame(c, "Trash", "trash"), Keeps: p.Config.Retention().Trash, After: c.QueryParam("after")}
	filter, after, wrong := web.TrashQuery(c.QueryParams())
	v.Filter, v.Errors, v.Search = filter, byField(wrong), c.QueryParam("q")
	var r reads
	into(&r, &v.Query)(p.queryAbove(c, filter, v.Errors))
	if r.err == nil && len(wrong) > 0 {
		return p.Show(c, http.StatusBadRequest, v.Page())
	}
	inTime(&r, &v.List)(p.View.Jobs(c.Request().Context(), filter, after, web.PageLimit))
	into(&r, &v.Was)(p.View.Trashed(c.Request().Context(), v.List.Jobs))
	v.Slow = r.slow
	return p.show(c, r, v.Page())
}

// queryAbove is what stands above a list. What cannot be read stays as it was
// typed.
func (p *Pages) queryAbove(c echo.Context, f filter.Filter, wrong map[string]string) (listpage.Query, error) {
	var r reads
	ctx, v := c.Request().Context(), listpage.Query{Queues: p.View.QueueNames()}
	if wrong["q"] != "" {
		v.Typed = c.QueryParam("q")
	}
	into(&r, &v.Facets)(p.View.Facets(ctx, f))
	into(&r, &v.Dead)(p.View.Facets(ctx, filter.Filter{Status: job.StatusDeadLetter}))
	if f.Searches() {
		v.Indexing = p.View.Reindexing()
		into(&r, &v.Lag)(p.View.SearchLag(ctx))
	}
	return v, r.err
}

const previewLimit = 64 << 10 // bytes of a payload on a page

// job is the page /jobs/{id}.
func (p *Pages) job(c echo.Context) error {
	d, err := p.Job(c)
	if errors.Is(err, job.ErrNotFound) {
		return p.gone(c, err)
	}
	if err != nil {
		return err
	}
	return p.jobPage(c, d, false)
}

// jobPage draws a job, redacted unless somebody was allowed to see it.
func (p *Pages) jobPage(c echo.Context, d history.Detail, revealed bool) error {
	j := d.Job
	v := jobpage.View{
		Frame: p.frame(c, j.Type+" "+j.ID[len(j.ID)-8:], "jobs"), Detail: d,
		DeadLetters: p.Config.DeadLetters(j.Queue), ForwardedTo: p.WebhookHost(j.Queue), NoHandler: !p.Engine.Knows(j.Type),
		Preview: min(len(j.Payload), previewLimit),
	}
	if since, until, ok := p.Engine.Waiting(j.ID); ok && j.State == job.Active {
		v.Waits, v.StuckSince, v.StuckUntil = true, since.UTC(), until.UTC()
	}
	var r reads
	into(&r, &v.Trail)(p.Trail(c, j.ID))
	inTime(&r, &v.Recent)(p.View.Recent(c.Request().Context(), j.Type, jobpage.RecentJobs))
	v.Revealed, v.RecentSlow = revealed, r.slow
	var err error
	v.PausedAt, v.PausedBy, err = p.View.Paused(c.Request().Context(), j.Queue)
	r.err = cmp.Or(r.err, err)
	return p.show(c, r, v.Page())
}

// payload sends the exact bytes that a job was given, to be kept as a file.
func (p *Pages) payload(c echo.Context) error {
	d, err := p.Job(c)
	if err != nil {
		return err
	}
	return web.Download(c, d.Job.ID, "text/plain; charset=utf-8", d.Job.Payload)
}

// gone is the page of a job that was removed, or the error of one that nobody
// knows.
func (p *Pages) gone(c echo.Context, missing error) error {
	id, err := web.ParamID(c)
	if err != nil {
		return err
	}
	entries, err := p.Trail(c, id)
	if err != nil || len(entries) == 0 {
		return errors.Join(missing, err)
	}
	return p.Show(c, http.StatusGone, adminpage.Gone{Frame: p.frame(c, "Gone", "jobs"), ID: id, Entries: entries}.Page())
}

// reveal answers with the job's page, this once with nothing hidden.
func (p *Pages) reveal(c echo.Context) error {
	if err := web.ReadForm(c); err != nil {
		return err
	}
	d, err := p.api.Reveal(c)
	if err != nil {
		return err
	}
	if !web.WantsJSON(c.Request()) {
		return p.jobPage(c, d, true)
	}
	says, err := p.api.Detail(c, d)
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, says.Encode())
}
