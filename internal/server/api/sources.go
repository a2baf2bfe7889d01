package api

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/server/web"
	"redrive/internal/source"
)

// MaxActs is how many rows of a source's ledger are shown.
const MaxActs = 50

// sources is GET /sources: the attached sources, how they fare, and what is left of those that
// are no longer attached.
func (a *API) sources(c echo.Context) (web.Object, error) {
	ctx := c.Request().Context()

	all := []web.Object{}
	for _, h := range a.Engine.Sources() {
		shaped, err := a.shapeSource(ctx, h)
		if err != nil {
			return nil, err
		}
		all = append(all, shaped)
	}

	unattached, err := a.Unattached(ctx)
	return web.Object{"sources", all, "unattached", web.List(unattached, func(u source.Unattached) web.Object {
		return web.Object{"name", u.Name, "dead_letters", u.Letters, "waiting", u.Waiting}
	})}, err
}

// source is GET /sources/{name}: one of them, with the newest rows of its ledger.
func (a *API) source(c echo.Context) (web.Object, error) {
	h, err := a.Source(c)
	if err != nil {
		return nil, err
	}
	acts, err := a.View.SourceActs(c.Request().Context(), h.Name, MaxActs)
	if err != nil {
		return nil, err
	}
	shaped, err := a.shapeSource(c.Request().Context(), h)
	quarantined := web.List(h.Quarantined, func(q source.Quarantined) web.Object {
		return web.Object{"key", q.Key, "why", q.Why, "since", q.Since}
	})
	return append(shaped, "hazards", h.Profile.Hazards, "acts", web.List(acts, shapeAct), "quarantined", quarantined), err
}

// Source is the attached source that the address names.
func (a *API) Source(c echo.Context) (source.Health, error) {
	name := c.Param("name")
	for _, h := range a.Engine.Sources() {
		if h.Name == name {
			return h, nil
		}
	}
	return source.Health{}, web.Fail(web.NotFound, "no source of this name is attached")
}

// SourceOf is the attached source of a job; nil when it has none, or when that is not
// attached any more.
func (a *API) SourceOf(j job.Job) *source.Health { return a.SourceNamed(j.Source) }

// SourceNamed is how the attached source with a name fares; nil when there is none.
func (a *API) SourceNamed(name string) *source.Health {
	for _, h := range a.Engine.Sources() {
		if h.Name == name {
			return &h
		}
	}
	return nil
}

// sourceReports is what a source tells of the jobs that it took; empty if that is not known.
func (a *API) sourceReports(name string) string {
	switch s := a.SourceNamed(name); {
	case s == nil:
		return ""
	case s.Report.Tells:
		return "failures and successes"
	}
	return "failures"
}

// Letters counts the dead letters of a source by its queues, and the jobs that were
// replayed there and have not come back.
func (a *API) Letters(ctx context.Context, name string) (queues []filter.NameCount, handed int64, err error) {
	letters, _, err := a.View.Known(ctx, filter.Filter{Status: job.StatusDeadLetter, Source: name})
	return letters.Facets.Queues, letters.States[job.Status(job.Returning)] + letters.States[job.Status(job.Returned)], err
}

// Unattached is what is left of each source that is no longer attached, the one with the most
// dead letters first.
func (a *API) Unattached(ctx context.Context) ([]source.Unattached, error) {
	facets, err := a.View.Facets(ctx, filter.Filter{Status: job.StatusDeadLetter})
	if err != nil {
		return nil, err
	}
	open, err := a.View.OpenActs(ctx)
	if err != nil {
		return nil, err
	}

	left := map[string]source.Unattached{}
	add := func(name string, letters, waiting int64) {
		if name == "" || a.SourceNamed(name) != nil {
			return
		}
		u := left[name]
		left[name] = source.Unattached{Name: name, Letters: u.Letters + letters, Waiting: u.Waiting + waiting}
	}
	for _, q := range facets.Queues {
		add(job.SourceOf(q.Name), q.Count, 0)
	}
	for name, n := range open {
		add(name, 0, n)
	}
	return slices.SortedFunc(maps.Values(left), func(a, b source.Unattached) int {
		return cmp.Or(cmp.Compare(b.Letters, a.Letters), cmp.Compare(a.Name, b.Name))
	}), nil
}

func (a *API) shapeSource(ctx context.Context, h source.Health) (web.Object, error) {
	queues, handed, err := a.Letters(ctx, h.Name)
	return web.Object{
		"name", h.Name, "preset", h.Preset, "system", h.Profile.Title, "version?", h.Report.Version, "allow", append([]source.Kind{}, h.Allow...),
		"state", h.Standing(time.Now()),
		"ready", h.Ready, "polled_at?", h.Polled, "took?", h.Took, "next_look_at?", h.Next, "problem?", h.Problem, "failing_since?", h.Since,
		"quarantine", h.Quarantine(),
		"queues", web.List(queues, func(q filter.NameCount) web.Object { return web.Object{"name", q.Name, "dead_letters", q.Count} }),
		"handed", handed,
	}, err
}

func shapeAct(act source.Act) web.Object {
	return web.Object{
		"id", act.ID, "job_id", act.JobID, "run", act.Run, "kind", act.Kind, "mode?", act.Mode, "state", act.State, "why?", act.Why,
		"asked_at", act.AskedAt, "ended_at?", act.EndedAt, "by", act.By, "operation?", act.Bulk,
	}
}
