package pages

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/server/web"
	"redrive/internal/stats"
	"redrive/web/templates"
	"redrive/web/templates/operationpage"
	"redrive/web/templates/queuepage"
)

const (
	failingLimit = 12  // rows of the overview
	refusedLimit = 20  // jobs whose dead letter was refused, above a list
	causesLimit  = 5   // error groups on the overview and on the page of a queue
	openLimit    = 3   // operations in the navigation and on the overview
	fullestLimit = 20  // queues on the overview
	queuesLimit  = 100 // queues on the pages of queues and workers
	heldLimit    = 50  // types that wait for a handler
	worstHeld    = 3   // of these, on the overview
)

// overview is the page /: what fails, how full the dead-letter queue is, and what
// is under way.
func (p *Pages) overview(c echo.Context) error {
	ctx, now := c.Request().Context(), time.Now()
	v := templates.Overview{Frame: p.frame(c, "Overview", "overview")}
	var r reads
	into(&r, &v.LastHour)(p.View.LastHour(ctx, now))

	// The fullest queues, each with its figures.
	var names []string
	into(&r, &names)(p.fullest(ctx))
	into(&r, &v.Queues)(p.View.Queues(ctx, now, names))

	// The reasons are counts that have to fit the totals on the same page.
	r.err = cmp.Or(r.err, p.steady(&v.Frame, func() (err error) {
		v.Reasons, err = p.View.Reasons(ctx)
		return err
	}))
	into(&r, &v.DeadLetterUsage)(p.deadLetterUsage(ctx, now, v.Snapshot))
	inTime(&r, &v.Groups)(p.View.TopGroups(ctx, now, causesLimit))
	var tallies []failures.Tally
	into(&r, &tallies)(p.View.GroupTallies(ctx))

	for _, t := range tallies {
		if t.State == failures.Ignored {
			v.Ignored = t.Groups
		}
	}

	// The types without a handler are looked up only where a job waits for one.
	if v.Snapshot.Depths[job.StatusHeld] > 0 {
		into(&r, &v.Unhandled)(p.View.Held(ctx, "", worstHeld))
	}

	v.Failing, v.Refused = p.failing(ctx, &r, ""), p.refused(ctx, &r, filter.Filter{})
	v.Slow = r.slow

	// There is no job, and there never was one.
	v.FirstRun = v.Snapshot.Depths.Jobs() == 0 && v.Snapshot.Totals == stats.Totals{}

	return p.show(c, r, v.Page())
}

// failing returns the newest jobs that wait for a retry or ended without
// success, of one queue or of all.
func (p *Pages) failing(ctx context.Context, r *reads, queue string) (all []job.Job) {
	for _, state := range []job.State{job.Retryable, job.Discarded} {
		var page filter.List
		newest := filter.Filter{Status: job.Status(state), Queue: queue, Sort: filter.Newest}
		inTime(r, &page)(p.View.Jobs(ctx, newest, filter.Cursor{}, failingLimit))
		all = append(all, page.Jobs...)
	}

	// Either state alone can fill the list. Of both together the newest are kept.
	slices.SortFunc(all, func(a, b job.Job) int {
		return cmp.Or(b.ChangedAt.Compare(a.ChangedAt), cmp.Compare(b.Seq, a.Seq))
	})

	return all[:min(len(all), failingLimit)]
}

// refused returns the newest jobs whose dead letter was refused, and why. The
// snapshot says in advance whether there are any, which spares most pages two
// queries.
func (p *Pages) refused(ctx context.Context, r *reads, f filter.Filter) (all []templates.Refused) {
	if p.View.Snapshot().Depths[job.StatusDLQFailed] == 0 {
		return nil
	}

	f.Status, f.Sort = job.StatusDLQFailed, ""
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

// deadLetterUsage is how full the dead-letter queue is, with as many dead letters as the page says
// elsewhere. Those at sources may have become more since the page took its totals.
func (p *Pages) deadLetterUsage(ctx context.Context, now time.Time, totals stats.Snapshot) (templates.DeadLetterUsage, error) {
	f, err := p.View.Usage(ctx, now)
	f.Open = max(0, totals.Depths[job.StatusDeadLetter]-f.AtSources)
	return templates.DeadLetterUsage{Usage: f, Limits: p.Config.Retention(), Forecast: p.View.Retention()}, err
}

// retention is the page /retention.
func (p *Pages) retention(c echo.Context) error {
	ctx := c.Request().Context()
	v := queuepage.Retention{Frame: p.frame(c, "Retention", "retention")}
	var r reads
	into(&r, &v.DeadLetterUsage)(p.deadLetterUsage(ctx, v.Now, v.Snapshot))
	into(&r, &v.Removals)(p.View.Removals(ctx))

	return p.show(c, r, v.Page())
}

// underWay are the operations in the navigation and on the overview. Previews are
// left out, because they concern only the person who asked for them. The snapshot says
// in advance whether there are any, which spares most pages the queries.
func (p *Pages) underWay(ctx context.Context) (shown []templates.OpenOperation, err error) {
	if p.View.Snapshot().Operations == 0 {
		return nil, nil
	}

	all, err := p.View.OpenOperations(ctx)
	all = slices.DeleteFunc(all, func(o operation.Operation) bool { return o.State == operation.Preview })
	for _, o := range all[:min(len(all), openLimit)] {
		progress, err := p.View.QuickProgress(ctx, time.Now(), o)
		if err != nil {
			return nil, err
		}

		shown = append(shown, p.shownOperation(o, progress))
	}

	return shown, err
}

// shownOperation is an operation as the navigation and the overview show it.
func (p *Pages) shownOperation(o operation.Operation, progress operation.Progress) templates.OpenOperation {
	s := operationpage.Standing{
		Operation: o, Canary: progress.Canary, SourceRuns: progress.SourceRuns, Origin: p.api.SourceNamed(progress.Canary.SourceRuns.Source),
	}
	return templates.OpenOperation{Operation: o, Verdict: s.Verdict(), Brief: s.Brief(), Outcome: s.Outcome()}
}

// fullest names the queues of the overview: those with the most jobs that have
// not ended.
func (p *Pages) fullest(ctx context.Context) ([]string, error) {
	var live []job.Status
	for _, state := range templates.LiveStates() {
		live = append(live, job.Status(state))
	}

	fullest, err := p.View.Fullest(ctx, fullestLimit, live)

	return web.Foremost(fullestLimit, p.View.QueueNames(), fullest), err
}
