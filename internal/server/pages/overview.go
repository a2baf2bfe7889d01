package pages

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/server/web"
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
	var err error
	if v.LastHour, err = p.View.LastHour(ctx, now); err != nil {
		return err
	}
	if v.Queues, err = p.View.Queues(ctx, now); err != nil {
		return err
	}
	if v.Reasons, err = p.View.Reasons(ctx); err != nil {
		return err
	}
	if v.Letters, err = p.letterRoom(ctx, now); err != nil {
		return err
	}
	if v.Operations, err = p.openOperations(ctx); err != nil {
		return err
	}
	v.Groups, err = p.View.TopGroups(ctx, now, causesLimit)
	slowGroups, err := web.Tolerate(err)
	if err != nil {
		return err
	}
	var slowFailing, slowRefused bool
	if v.Failing, slowFailing, err = p.failing(ctx, ""); err != nil {
		return err
	}
	if v.Refused, slowRefused, err = p.refused(ctx, filter.Filter{}); err != nil {
		return err
	}
	v.Slow = slowGroups || slowFailing || slowRefused
	v.FirstRun = v.Snapshot.Depths.Jobs() == 0 && v.Snapshot.Totals == job.Totals{}
	return p.Show(c, http.StatusOK, v.Page())
}

// failing are the newest jobs that wait for a retry or ended without success, of
// one queue or of all.
func (p *Pages) failing(ctx context.Context, queue string) (all []job.Job, slow bool, err error) {
	for _, state := range []job.State{job.Retryable, job.Discarded} {
		page, err := p.View.Jobs(ctx, filter.Filter{Status: job.Status(state), Queue: queue}, filter.Cursor{}, failingLimit)
		late, err := web.Tolerate(err)
		if err != nil {
			return nil, false, err
		}
		all, slow = append(all, page.Jobs...), slow || late
	}
	slices.SortFunc(all, func(a, b job.Job) int {
		return cmp.Or(b.ChangedAt.Compare(a.ChangedAt), cmp.Compare(b.Seq, a.Seq))
	})
	return all[:min(len(all), failingLimit)], slow, nil
}

// refused are the newest jobs whose dead letter was refused, and why it was.
func (p *Pages) refused(ctx context.Context, f filter.Filter) (all []templates.Refused, slow bool, err error) {
	if p.View.Snapshot().Depths[job.StatusDLQFailed] == 0 {
		return nil, false, nil
	}
	f.Status = job.StatusDLQFailed
	page, err := p.View.Jobs(ctx, f, filter.Cursor{}, refusedLimit)
	if slow, err = web.Tolerate(err); err != nil || len(page.Jobs) == 0 {
		return nil, slow, err
	}
	problems, err := p.View.Problems(ctx, page.Jobs)
	for _, j := range page.Jobs {
		all = append(all, templates.Refused{Job: j, Problem: problems[j.Seq]})
	}
	return all, slow, err
}

// letterRoom is how full the dead-letter queue is.
func (p *Pages) letterRoom(ctx context.Context, now time.Time) (templates.LetterRoom, error) {
	f, err := p.View.Usage(ctx, now)
	return templates.LetterRoom{Usage: f, Limits: p.Config.Retention()}, err
}

// openOperations are those that the overview shows: a preview concerns who asked
// for it alone.
func (p *Pages) openOperations(ctx context.Context) ([]operation.Operation, error) {
	all, err := p.View.OpenOperations(ctx)
	all = slices.DeleteFunc(all, func(o operation.Operation) bool { return o.State == operation.Preview })
	return all[:min(len(all), openLimit)], err
}
