package pages

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/web/templates"
)

const (
	failingLimit = 12 // rows of the overview
	refusedLimit = 20 // jobs whose dead letter was refused, above a list
	causesLimit  = 5  // error groups on the overview and on the page of a queue
	openLimit    = 5  // operations on the overview
)

// overview is the page /.
func (p *Pages) overview(c echo.Context) error {
	ctx, now := c.Request().Context(), time.Now()
	v := templates.Overview{Frame: p.frame(c, "Overview", "overview")}
	var r reads
	into(&r, &v.LastHour)(p.View.LastHour(ctx, now))
	into(&r, &v.Queues)(p.View.Queues(ctx, now))
	into(&r, &v.Reasons)(p.View.Reasons(ctx))
	into(&r, &v.Letters)(p.letterRoom(ctx, now))
	into(&r, &v.Operations)(p.openOperations(ctx))
	inTime(&r, &v.Groups)(p.View.TopGroups(ctx, now, causesLimit))
	v.Failing, v.Refused = p.failing(ctx, &r, ""), p.refused(ctx, &r, filter.Filter{})
	v.Slow = r.slow
	v.FirstRun = v.Snapshot.Depths.Jobs() == 0 && v.Snapshot.Totals == job.Totals{}
	return p.show(c, r, v.Page())
}

// failing are the newest jobs that wait for a retry or ended without success, of
// one queue or of all.
func (p *Pages) failing(ctx context.Context, r *reads, queue string) (all []job.Job) {
	for _, state := range []job.State{job.Retryable, job.Discarded} {
		var page filter.List
		inTime(r, &page)(p.View.Jobs(ctx, filter.Filter{Status: job.Status(state), Queue: queue}, filter.Cursor{}, failingLimit))
		all = append(all, page.Jobs...)
	}
	slices.SortFunc(all, func(a, b job.Job) int {
		return cmp.Or(b.ChangedAt.Compare(a.ChangedAt), cmp.Compare(b.Seq, a.Seq))
	})
	return all[:min(len(all), failingLimit)]
}

// refused are the newest jobs whose dead letter was refused, and why it was.
func (p *Pages) refused(ctx context.Context, r *reads, f filter.Filter) (all []templates.Refused) {
	if p.View.Snapshot().Depths[job.StatusDLQFailed] == 0 {
		return nil
	}
	f.Status = job.StatusDLQFailed
	var page filter.List
	inTime(r, &page)(p.View.Jobs(ctx, f, filter.Cursor{}, refusedLimit))
	var problems map[int64]string
	if len(page.Jobs) > 0 {
		into(r, &problems)(p.View.Problems(ctx, page.Jobs))
	}
	for _, j := range page.Jobs {
		all = append(all, templates.Refused{Job: j, Problem: problems[j.Seq]})
	}
	return all
}

// letterRoom is how full the dead-letter queue is.
func (p *Pages) letterRoom(ctx context.Context, now time.Time) (templates.LetterUsage, error) {
	f, err := p.View.Usage(ctx, now)
	return templates.LetterUsage{Usage: f, Limits: p.Config.Retention()}, err
}

// openOperations are those that the overview shows: a preview concerns who asked
// for it alone.
func (p *Pages) openOperations(ctx context.Context) ([]operation.Operation, error) {
	all, err := p.View.OpenOperations(ctx)
	all = slices.DeleteFunc(all, func(o operation.Operation) bool { return o.State == operation.Preview })
	return all[:min(len(all), openLimit)], err
}
