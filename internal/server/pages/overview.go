package pages

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/queues"
	"redrive/internal/server/web"
	"redrive/internal/stats"
	"redrive/web/templates"
	"redrive/web/templates/failurepage"
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
	into(&r, &v.Queues)(p.View.Queues(ctx, now, p.fullest()))
	r.err = cmp.Or(r.err, p.steady(&v.Frame, func() (err error) {
		v.Reasons, err = p.View.Reasons(ctx)
		return err
	}))
	into(&r, &v.DeadLetterUsage)(p.letterUsage(ctx, now, v.Snapshot))
	inTime(&r, &v.Groups)(p.View.TopGroups(ctx, now, causesLimit))
	var tallies []failures.Tally
	into(&r, &tallies)(p.View.GroupTallies(ctx))

	for _, t := range tallies {
		if t.State == failures.Ignored {
			v.Ignored = t.Groups
		}
	}

	if v.Snapshot.Depths[job.StatusHeld] > 0 {
		into(&r, &v.Unhandled)(p.View.Held(ctx, "", worstHeld))
	}

	v.Failing, v.Refused = p.failing(ctx, &r, ""), p.refused(ctx, &r, filter.Filter{})
	v.Slow = r.slow
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

// letterUsage is how full the dead-letter queue is, with as many letters as the page says
// elsewhere. Those at sources may have become more since the page took its totals.
func (p *Pages) letterUsage(ctx context.Context, now time.Time, totals stats.Snapshot) (templates.DeadLetterUsage, error) {
	f, err := p.View.Usage(ctx, now)
	f.Open = max(0, totals.Depths[job.StatusDeadLetter]-f.AtSources)
	return templates.DeadLetterUsage{Usage: f, Limits: p.Config.Retention(), Forecast: p.View.Retention()}, err
}

// retention is the page /retention.
func (p *Pages) retention(c echo.Context) error {
	ctx := c.Request().Context()
	v := queuepage.Retention{Frame: p.frame(c, "Retention", "retention")}
	var r reads
	into(&r, &v.DeadLetterUsage)(p.letterUsage(ctx, v.Now, v.Snapshot))
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
		Operation: o, Canary: progress.Canary, Handed: progress.SourceRuns, Origin: p.api.SourceNamed(progress.Canary.SourceRuns.Source),
	}
	return templates.OpenOperation{Operation: o, Verdict: s.Verdict(), Brief: s.Brief(), Outcome: s.Outcome()}
}

// fullest names the queues of the overview: those with the most jobs that have
// not ended.
func (p *Pages) fullest() []string {
	var live []job.Status
	for _, state := range templates.LiveStates() {
		live = append(live, job.Status(state))
	}

	return web.Foremost(fullestLimit, p.View.QueueNames(), p.View.Fullest(fullestLimit, live))
}

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
	refused := p.View.Fullest(queuesLimit, []job.Status{job.StatusDLQFailed})
	waiting := []job.Status{job.Status(job.Available), job.Status(job.Retryable), job.Status(job.Scheduled)}
	others := p.View.Fullest(queuesLimit, []job.Status{job.StatusDeadLetter}, waiting)

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

// workers is the page /workers: the jobs that workers have claimed, and handlers
// that do not return although their time is over.
func (p *Pages) workers(c echo.Context) error {
	v := queuepage.Workers{
		Frame: p.frame(c, "Workers", "workers"), Name: p.Engine.Worker, Since: p.began.UTC(), Stuck: p.Engine.Stuck(), Waits: map[string]bool{},
	}
	for _, name := range p.QueueNames() {
		v.Total++
		if job.SourceOf(name) != "" {
			v.Foreign++
			continue
		}

		v.Places += p.Config.Workers(name)
	}

	all, err := p.WorkerQueues(c.Request().Context(), queuesLimit)
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

// shownClasses is how many error classes the page /failures lists.
const shownClasses = 12

// failures is the page /failures. It shows the open groups unless a state is
// named.
func (p *Pages) failures(c echo.Context) error {
	ctx, now, values := c.Request().Context(), time.Now(), c.QueryParams()
	values.Set("state", cmp.Or(values.Get("state"), string(failures.Open)))
	v := failurepage.List{Frame: p.frame(c, "Failures", "failures"), Queues: p.QueueChoices(), After: values.Get("after")}
	filter, after, wrong := web.GroupQuery(values)
	filter.State = cmp.Or(filter.State, failures.Open)
	v.Filter, v.Typed, v.Errors = filter, web.TypedGroups(values), byField(wrong)
	var r reads
	into(&r, &v.Tallies)(p.View.GroupTallies(ctx))

	for _, t := range v.Tallies {
		if t.State == failures.Open { // the navigation says it, too
			v.Snapshot.OpenGroups = t.Groups
		}
	}

	if r.err == nil && len(wrong) > 0 {
		return p.Show(c, http.StatusBadRequest, v.Page())
	}

	inTime(&r, &v.List)(p.View.Groups(ctx, now, filter, after, web.PageLimit))

	if filter.Text == "" && filter.Class == "" && v.After == "" {
		inTime(&r, &v.Classes)(p.View.RollUp(ctx, now, filter, shownClasses))
	}

	v.Slow = r.slow

	return p.show(c, r, v.Page())
}

// failure is the page /failures/{fingerprint}: what fails alike, since when, and
// what the payloads of the failed jobs have in common.
func (p *Pages) failure(c echo.Context) error {
	ctx, fingerprint := c.Request().Context(), c.Param("fingerprint")

	v := failurepage.View{Frame: p.frame(c, "", "failures")}
	var err error
	if v.Detail, err = p.View.Group(ctx, v.Now, fingerprint); err != nil {
		return err
	}

	v.Now = time.Now().UTC() // all that was counted is from before, so that a selection of all has that number

	v.Title = v.Class
	v.Keys, v.Read = commonest(v.Jobs)
	if v.Operations, err = p.View.GroupOperations(ctx, fingerprint); err != nil {
		return err
	}

	if v.Class != "" {
		v.Alike, err = p.View.RollUp(ctx, v.Now, failures.Filter{State: failures.Open, Class: v.Class}, 1)
		if err != nil {
			return err
		}
	}

	return p.Show(c, http.StatusOK, v.Page())
}

// maxKeys is how many payload keys the page of a group shows. Payloads can have any
// number of them.
const maxKeys = 12

// commonest counts, for each top-level key of the payloads of some jobs, how
// many values it has and how many jobs share the most frequent one. Payloads
// that are no objects, or too large to be read here, do not count.
func commonest(jobs []job.Job) (keys []failurepage.PayloadKey, read int) {
	seen := map[string]map[string]int{}
	for _, j := range jobs {
		var object map[string]json.RawMessage
		if json.Unmarshal(j.Payload, &object) != nil || object == nil {
			continue
		}

		read++

		for name, value := range object {
			if seen[name] == nil {
				seen[name] = map[string]int{}
			}

			seen[name][string(value)]++
		}
	}

	for _, name := range slices.Sorted(maps.Keys(seen)) {
		key := failurepage.PayloadKey{Name: name, Values: len(seen[name])}
		for _, value := range slices.Sorted(maps.Keys(seen[name])) {
			if n := seen[name][value]; n > key.Jobs {
				key.Commonest, key.Jobs = value, n
			}
		}

		keys = append(keys, key)
	}

	slices.SortStableFunc(keys, func(a, b failurepage.PayloadKey) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Values, b.Values))
	})

	return keys[:min(len(keys), maxKeys)], read
}

// operations is the page /operations, the newest first.
func (p *Pages) operations(c echo.Context) error {
	after, err := web.Number(c, "after")
	if err != nil {
		return err
	}

	v := operationpage.List{Frame: p.frame(c, "Operations", "operations"), After: after}
	if v.List, err = p.View.Operations(c.Request().Context(), after, web.PageLimit); err != nil {
		return err
	}

	return p.Show(c, http.StatusOK, v.Page())
}

// operation is the page /operations/{id}: the preview, or the progress.
func (p *Pages) operation(c echo.Context) error {
	ctx := c.Request().Context()

	id, err := web.ParamOperation(c)
	if err != nil {
		return err
	}

	v := operationpage.View{
		Frame: p.frame(c, fmt.Sprintf("Operation %d", id), "operations"), Show: c.QueryParam("state"), UnknownType: p.Config.UnknownType,
	}
	if v.Operation, v.Filter, err = p.View.OperationAndScope(ctx, id); err != nil {
		return err
	}

	if v.After, err = web.Number(c, "after"); err != nil {
		return err
	}

	show, err := web.ItemQuery(c)
	if err != nil {
		return err
	}

	var r reads
	if v.Filter.Searches() {
		v.Indexing = p.View.Reindexing()
		into(&r, &v.Lag)(p.View.SearchLag(ctx))
	}

	into(&r, &v.Breakdown)(p.api.Breakdown(ctx, id))
	into(&r, &v.Items)(p.View.Items(ctx, id, show, v.After, web.PageLimit))
	into(&r, &v.Log)(p.View.OperationLog(ctx, id, web.CallerOf(c).Role.May(access.Manage)))
	into(&r, &v.Progress)(p.View.Progress(ctx, v.Frame.Now, v.Operation))

	v.Origin = p.api.SourceNamed(v.Progress.SourceRuns.Source)
	for i, o := range v.UnderWay { // the navigation says of it what the page says
		if o.ID == id {
			v.UnderWay[i] = p.shownOperation(v.Operation, v.Progress)
		}
	}

	if v.Operation.State == operation.Collecting { // until there is something to decide
		c.Response().Header().Set("Refresh", "1")
	}

	return p.show(c, r, v.Page())
}
