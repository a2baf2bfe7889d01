package api

import (
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
	"redrive/internal/source"
	"redrive/internal/stats"
)

// countLimit is how far the jobs of a filter are counted.
const countLimit = 100_000

// unsearchable is how many jobs cannot be found by their texts yet. Without it an
// empty list would claim that there is no such failure.
func (a *API) unsearchable(c echo.Context, f filter.Filter) (int, error) {
	if !f.Searches() {
		return 0, nil
	}
	return a.View.SearchLag(c.Request().Context())
}

// jobs is GET /jobs. Lists leave payloads out; GET /jobs/{id} returns them.
func (a *API) jobs(c echo.Context) (list work.JobList, err error) {
	f, found, slow, err := search(c, web.Query, a.View.Jobs)
	if err != nil {
		return list, err
	}

	list.Jobs = mapped(found.Jobs, func(j job.Job) work.JobRow { return jobRowOf(a.Begun(j)) })
	list.Page = apitype.Page{Next: found.Next.String(), Incomplete: slow}
	list.NotSearchableYet, err = a.unsearchable(c, f)

	return list, err
}

// deadLetters is GET /dead-letters: the open dead letters, each with its job.
func (a *API) deadLetters(c echo.Context) (list work.DeadLetterList, err error) {
	f, found, slow, err := search(c, web.DeadLettersQuery, a.View.DeadLetters)
	if err != nil {
		return list, err
	}

	list.DeadLetters = mapped(found.DeadLetters, func(l filter.DeadLetterRow) work.DeadLetterAndJob {
		return work.DeadLetterAndJob{DeadLetter: deadLetterRowOf(l.DeadLetter), Job: jobRowOf(l.Job)}
	})
	list.Page = apitype.Page{Next: found.Next.String(), Incomplete: slow}
	list.NotSearchableYet, err = a.unsearchable(c, f)

	return list, err
}

// trash is GET /trash: what was discarded, by whom, and when it will be purged.
// Until then it can be restored.
func (a *API) trash(c echo.Context) (work.Trash, error) {
	_, found, slow, err := search(c, web.TrashQuery, a.View.Jobs)
	if err != nil {
		return work.Trash{}, err
	}

	was, err := a.View.Trashed(c.Request().Context(), found.Jobs)
	keeps := a.Config.Retention().Trash
	rows := mapped(found.Jobs, func(j job.Job) work.Discarded {
		w, purged := was[j.Seq], time.Time{}
		if keeps > 0 {
			purged = w.At.Add(keeps)
		}

		return work.Discarded{
			JobID:       j.ID,
			Run:         j.Run,
			Type:        j.Type,
			Queue:       j.Queue,
			Was:         job.Job{State: w.State, DeadLetter: w.DeadLetter}.Status(),
			DiscardedAt: apitype.At(w.At),
			DiscardedBy: w.By,
			PurgedAt:    apitype.At(purged),
		}
	})

	return work.Trash{Trash: rows, Page: apitype.Page{Next: found.Next.String(), Incomplete: slow}}, err
}

// job is GET /jobs/{id}, with its newest attempts or those of an older page.
func (a *API) job(c echo.Context) (work.JobDetail, error) {
	before, err := web.Number(c, "attempts_after")
	if err != nil {
		return work.JobDetail{}, err
	}

	d, err := a.Job(c, before)
	if err != nil {
		return work.JobDetail{}, err
	}

	return a.Detail(c, d)
}

// Detail is everything about a job, with what people did to it.
func (a *API) Detail(c echo.Context, d history.Detail) (work.JobDetail, error) {
	trail, err := a.Trail(c, d.Job.ID)

	var acts []source.Act // on the source of the job
	if d.Mirrored != nil {
		acts = d.Mirrored.Acts
	}

	return work.JobDetail{
		Job:           fullJobOf(d.Job),
		Attempts:      attemptsOf(d),
		AttemptsTotal: d.Total,
		AttemptsNext:  d.Before(),
		DeadLetters:   mapped(d.DeadLetters, deadLetterOf),
		Replays:       mapped(d.Replays, func(r history.Replay) work.Replay { return replayOf(d.Job, r) }),
		Operations:    mapped(d.Bulk, operationActOf),
		Acts:          mapped(acts, sourceActOf),
		SourceReports: a.sourceReports(d.Job.Source),
		Group:         d.Group.Fingerprint,
		Trail:         mapped(trail, entryOf),
	}, err
}

// revealed is POST /jobs/{id}/reveal.
func (a *API) revealed(c echo.Context) (work.JobDetail, error) {
	d, err := a.Reveal(c)
	if err != nil {
		return work.JobDetail{}, err
	}

	return a.Detail(c, d)
}

// Reveal is everything about a job with nothing redacted. Who asked is in the
// audit log before anything is shown.
func (a *API) Reveal(c echo.Context) (history.Detail, error) {
	id, err := web.ParamID(c)
	if err == nil {
		err = readNothing(c)
	}

	if err != nil {
		return history.Detail{}, err
	}

	d, err := a.View.Reveal(c.Request().Context(), time.Now(), id, web.Actor(c))
	d.Job = a.Begun(d.Job)

	return d, err
}

// facets is GET /facets: the values to which a list can be narrowed, with the
// number of jobs of each.
func (a *API) facets(c echo.Context) (work.Facets, error) {
	f, _, wrong := web.Query(c.QueryParams())
	if len(wrong) > 0 {
		return work.Facets{}, problem.InAddress(wrong[0])
	}

	facets, err := a.View.Facets(c.Request().Context(), f)

	return work.Facets{
		Reasons: mapped(facets.Reasons, func(r filter.ReasonCount) work.Facet {
			return work.Facet{Value: string(r.Reason), Count: r.Count}
		}),
		Queues: mapped(facets.Queues, facetOf),
		Types:  mapped(facets.Types, facetOf),
	}, err
}

// facetOf is a value of a filter with the number of jobs that have it.
func facetOf(n filter.NameCount) work.Facet { return work.Facet{Value: n.Name, Count: n.Count} }

// countJobs is GET /jobs/count: how many jobs a filter selects, up to a limit
// beyond which "more" says that there are others. A count that takes too long,
// or that waits for the search index, is incomplete and has no number.
func (a *API) countJobs(c echo.Context) (work.JobCount, error) {
	f, _, wrong := web.Query(c.QueryParams())
	if len(wrong) > 0 {
		return work.JobCount{}, problem.InAddress(wrong[0])
	}

	n, more, err := a.View.Count(c.Request().Context(), f, countLimit)
	if slow, err := web.Tolerate(err); slow || err != nil {
		return work.JobCount{Incomplete: true}, err
	}

	return work.JobCount{Count: &n, More: &more}, nil
}

// counters is GET /counters: the totals since the beginning. They never fall, so
// a program can compute rates from them.
func (a *API) counters(echo.Context) (stats.Totals, error) { return a.View.Snapshot().Totals, nil }
