package pages

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/server/web"
	"redrive/web/templates"
	"redrive/web/templates/listpage"
)

// jobs is the page /jobs. The search field of every page leads here, with an id
// or with a filter.
func (p *Pages) jobs(c echo.Context) error {
	values := c.QueryParams()
	if id, ok := pastedID(values); ok {
		return c.Redirect(http.StatusSeeOther, "/jobs/"+id)
	}

	v := listpage.Jobs{Frame: p.frame(c, "Jobs", "jobs"), After: values.Get("after")}
	filter, after, wrong := web.Query(values)
	v.Filter, v.Errors = filter, byField(wrong)
	var r reads
	into(&r, &v.Query)(p.queryAbove(c, &v.Frame, filter, v.Errors))

	if r.err == nil && len(wrong) > 0 {
		return p.Show(c, http.StatusBadRequest, v.Page())
	}

	into(&r, &v.Chart)(p.chart(c.Request().Context(), time.Now(), filter))
	inTime(&r, &v.List)(p.View.Jobs(c.Request().Context(), filter, after, web.PageLimit))
	into(&r, &v.Hits)(p.View.Hits(c.Request().Context(), filter, v.List.Jobs))
	v.Slow = r.slow

	return p.show(c, r, v.Page())
}

// pastedID is the id of a job that stands alone in the search field of a list. It
// leads to the job, since a filter would find at most that one.
func pastedID(values url.Values) (string, bool) {
	id, err := job.ParseID(strings.TrimSpace(values.Get("q")))
	return id, err == nil
}

// byField arranges the errors of a filter by its fields, so that each is shown
// beside its own.
func byField(wrong []*invalid.Error) map[string]string {
	all := map[string]string{}
	for _, w := range wrong {
		all[w.Field] = w.Problem
	}

	return all
}

// deadLetters is the page /dead-letters. Above the list it shows the jobs whose
// dead letter was refused: they are in no list of letters, and wait for a person.
func (p *Pages) deadLetters(c echo.Context) error {
	ctx, now, values := c.Request().Context(), time.Now(), c.QueryParams()
	if id, ok := pastedID(values); ok {
		return c.Redirect(http.StatusSeeOther, "/jobs/"+id)
	}

	v := listpage.DeadLetters{Frame: p.frame(c, "Dead letters", "dead-letters"), After: values.Get("after")}
	f, after, wrong := web.DeadLettersQuery(values)
	v.Filter, v.Errors = f, byField(wrong)

	// The tabs above count jobs; the list itself is of dead letters.
	dead := f
	dead.Status = job.StatusDeadLetter
	var r reads
	into(&r, &v.Query)(p.queryAbove(c, &v.Frame, dead, v.Errors))
	into(&r, &v.DeadLetterUsage)(p.deadLetterUsage(ctx, now, v.Snapshot))

	if r.err == nil && len(wrong) > 0 {
		return p.Show(c, http.StatusBadRequest, v.Page())
	}

	v.Refused = p.refused(ctx, &r, f)
	inTime(&r, &v.List)(p.View.DeadLetters(ctx, f, after, web.PageLimit))

	jobs := make([]job.Job, len(v.List.DeadLetters))
	for i, l := range v.List.DeadLetters {
		jobs[i] = l.Job
	}

	into(&r, &v.Hits)(p.View.Hits(ctx, f, jobs))

	// A refused dead letter can be sent again where its queue takes it by now.
	var queues []string
	for _, refused := range v.Refused {
		queues = append(queues, refused.Job.Queue)
	}

	v.Configs = p.queueConfigs(queues...)
	into(&r, &v.Groups)(p.View.GroupsOf(ctx, v.List.DeadLetters))
	v.Slow = r.slow

	return p.show(c, r, v.Page())
}

// trash is the page /trash. A job stays there until it is purged, and until then
// it can be restored.
func (p *Pages) trash(c echo.Context) error {
	if id, ok := pastedID(c.QueryParams()); ok {
		return c.Redirect(http.StatusSeeOther, "/jobs/"+id)
	}

	v := listpage.Trash{Frame: p.frame(c, "Trash", "trash"), Keeps: p.Config.Retention().Trash, After: c.QueryParam("after")}
	filter, after, wrong := web.TrashQuery(c.QueryParams())
	v.Filter, v.Errors = filter, byField(wrong)
	var r reads
	into(&r, &v.Query)(p.queryAbove(c, &v.Frame, filter, v.Errors))

	if r.err == nil && len(wrong) > 0 {
		return p.Show(c, http.StatusBadRequest, v.Page())
	}

	inTime(&r, &v.List)(p.View.Jobs(c.Request().Context(), filter, after, web.PageLimit))
	into(&r, &v.Hits)(p.View.Hits(c.Request().Context(), filter, v.List.Jobs))
	into(&r, &v.Was)(p.View.Trashed(c.Request().Context(), v.List.Jobs))
	v.Slow = r.slow

	return p.show(c, r, v.Page())
}

// queryAbove is the search and its facets above a list, as of the totals of the frame,
// which it reads again. A query that cannot be read stays as it was typed.
func (p *Pages) queryAbove(c echo.Context, frame *templates.Frame, f filter.Filter, wrong map[string]string) (listpage.Query, error) {
	var r reads

	ctx, v := c.Request().Context(), listpage.Query{Queues: p.View.QueueNames()}
	if wrong["q"] != "" {
		v.Typed = c.QueryParam("q")
	}

	into(&r, &v.Tally)(p.tally(ctx, frame, f, len(wrong) == 0))
	frame.Now = time.Now().UTC() // all that was counted is from before, so that a selection of all has that number

	into(&r, &v.Dead)(p.View.Facets(ctx, filter.Filter{Status: job.StatusDeadLetter}))

	if f.Searches() {
		v.Indexing = p.View.Reindexing()
		into(&r, &v.Lag)(p.View.SearchLag(ctx))
	}

	return v, r.err
}

// What is not counted in advance is counted while the page is read, as long as that
// costs little.
const (
	tallyLimit = 10_000
	tallyTime  = 100 * time.Millisecond
)

// tally counts the jobs of a list, if its filter can be used.
func (p *Pages) tally(ctx context.Context, frame *templates.Frame, f filter.Filter, usable bool) (filter.Tally, error) {
	var known filter.Tally

	var complete bool
	err := p.steady(frame, func() (err error) {
		known, complete, err = p.View.Known(ctx, f)
		return err
	})
	if complete || err != nil {
		return known, err
	}

	known.More = true // until it is counted
	if !usable {
		return known, nil
	}

	ctx, cancel := context.WithTimeout(ctx, tallyTime)
	defer cancel()

	t, slow, err := web.InTime(p.View.Tally(ctx, f, tallyLimit))
	if slow || err != nil {
		return known, err
	}

	if !t.Whole {
		t.Facets = known.Facets
	}

	return t, nil
}
