package api

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype"
	"redrive/internal/apitype/admin"
	"redrive/internal/apitype/work"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/server/problem"
	"redrive/internal/source"
)

// MaxActs is how many rows of a source's ledger are shown.
const MaxActs = 50

// sources is GET /sources: the attached sources, how they fare, and what is left of those that
// are no longer attached.
func (a *API) sources(c echo.Context) (admin.SourceList, error) {
	ctx := c.Request().Context()

	all := []admin.Source{}
	for _, h := range a.Engine.Sources() {
		s, err := a.sourceOf(ctx, h)
		if err != nil {
			return admin.SourceList{}, err
		}

		all = append(all, s)
	}

	unattached, err := a.Unattached(ctx)

	return admin.SourceList{
		Sources: all,
		Unattached: mapped(unattached, func(u source.Unattached) admin.UnattachedSource {
			return admin.UnattachedSource{Name: u.Name, DeadLetters: u.DeadLetters, Waiting: u.Waiting}
		}),
	}, err
}

// source is GET /sources/{name}: one of them, with the newest rows of its ledger.
func (a *API) source(c echo.Context) (admin.SourceDetail, error) {
	h, err := a.Source(c)
	if err != nil {
		return admin.SourceDetail{}, err
	}

	acts, err := a.View.SourceActs(c.Request().Context(), h.Name, MaxActs)
	if err != nil {
		return admin.SourceDetail{}, err
	}

	s, err := a.sourceOf(c.Request().Context(), h)

	return admin.SourceDetail{
		Source:  s,
		Hazards: h.Profile.Hazards,
		Acts:    mapped(acts, sourceActOf),
		Quarantined: mapped(h.Quarantined, func(q source.Quarantined) admin.QuarantinedRecord {
			return admin.QuarantinedRecord{Key: q.Key, Why: q.Why, Since: apitype.At(q.Since)}
		}),
	}, err
}

// Source is the attached source that the address names.
func (a *API) Source(c echo.Context) (source.Health, error) {
	name := c.Param("name")
	for _, h := range a.Engine.Sources() {
		if h.Name == name {
			return h, nil
		}
	}

	return source.Health{}, problem.New(problem.NotFound, "no source of this name is attached")
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

// DeadLettersOf counts the dead letters of a source by its queues, and the jobs that were
// replayed there and have not come back: those of which the source has still to be told, and
// those that it has.
func (a *API) DeadLettersOf(ctx context.Context, name string) (queues []filter.NameCount, returning, returned int64, err error) {
	tally, _, err := a.View.Known(ctx, filter.Filter{Status: job.StatusDeadLetter, Source: name})
	return tally.Facets.Queues, tally.States[job.Status(job.Returning)], tally.States[job.Status(job.Returned)], err
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

	// Add up what each source has left: open dead letters, and requests that have not ended.
	left := map[string]source.Unattached{}

	add := func(name string, dead, waiting int64) {
		if name == "" || a.SourceNamed(name) != nil {
			return
		}

		u := left[name]
		left[name] = source.Unattached{Name: name, DeadLetters: u.DeadLetters + dead, Waiting: u.Waiting + waiting}
	}
	for _, q := range facets.Queues {
		add(job.SourceOf(q.Name), q.Count, 0)
	}

	for name, n := range open {
		add(name, 0, n)
	}

	return slices.SortedFunc(maps.Values(left), func(a, b source.Unattached) int {
		return cmp.Or(cmp.Compare(b.DeadLetters, a.DeadLetters), cmp.Compare(a.Name, b.Name))
	}), nil
}

// sourceOf is an attached source, and how it fares.
func (a *API) sourceOf(ctx context.Context, h source.Health) (admin.Source, error) {
	queues, returning, returned, err := a.DeadLettersOf(ctx, h.Name)

	return admin.Source{
		Name:         h.Name,
		Preset:       h.Preset,
		System:       h.Profile.Title,
		Version:      h.Report.Version,
		Allow:        append([]source.Kind{}, h.Allow...),
		State:        h.Standing(time.Now()),
		Ready:        h.Ready,
		PolledAt:     apitype.At(h.Polled),
		Took:         apitype.Duration(h.Took),
		NextLookAt:   apitype.At(h.Next),
		Problem:      h.Problem,
		FailingSince: apitype.At(h.Since),
		Quarantine:   h.Quarantine(),
		Queues: mapped(queues, func(q filter.NameCount) admin.SourceQueue {
			return admin.SourceQueue{Name: q.Name, DeadLetters: q.Count}
		}),
		Returned: returning + returned,
	}, err
}

// sourceActOf is a request to a source, and what became of it.
func sourceActOf(act source.Act) work.SourceAct {
	return work.SourceAct{
		ID:        act.ID,
		JobID:     act.JobID,
		Run:       act.Run,
		Kind:      act.Kind,
		Mode:      act.Mode,
		State:     act.State,
		Why:       act.Why,
		AskedAt:   apitype.At(act.AskedAt),
		EndedAt:   apitype.At(act.EndedAt),
		By:        act.By,
		Operation: act.Bulk,
	}
}
