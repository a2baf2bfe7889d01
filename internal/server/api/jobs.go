package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/clip"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/server/web"
	"redrive/internal/wire"
)

// countLimit is how far the jobs of a filter are counted.
const countLimit = 10_000

// search reads the page of a list that a program asks for by a filter, and reports
// whether more may match than was found in time.
func search[F, C, L any](
	c echo.Context, query func(url.Values) (F, C, []*invalid.Error), list func(context.Context, F, C, int) (L, error),
) (f F, found L, slow bool, err error) {
	f, after, wrong := query(c.QueryParams())
	if len(wrong) > 0 {
		return f, found, false, web.InAddress(wrong[0])
	}
	limit, err := pageSize(c)
	if err != nil {
		return f, found, false, err
	}
	found, slow, err = web.InTime(list(c.Request().Context(), f, after, limit))
	return f, found, slow, err
}

// pageSize reads how many rows a program wants.
func pageSize(c echo.Context) (int, error) {
	text := c.QueryParam("limit")
	if text == "" {
		return web.PageLimit, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxLimit {
		return 0, web.FailIn(web.BadParameter, "limit", fmt.Sprintf("%q is not a number from 1 to %d", clip.Text(text, 64), maxLimit))
	}
	return limit, nil
}

// numbered reads where a page of a list begins whose rows have numbers, and how
// many rows a program wants.
func numbered(c echo.Context) (after int64, limit int, err error) {
	if after, err = web.Number(c, "after"); err != nil {
		return 0, 0, err
	}
	limit, err = pageSize(c)
	return after, limit, err
}

// page is an answer with a page of a list. It says where the next one begins,
// when there is one, and whether more may match than was found in time.
func page[C string | int64](name string, rows web.Raw, next C, slow bool) web.Object {
	says := web.Object{name, rows}
	if next != *new(C) {
		says = append(says, "next", next)
	}
	if slow {
		says = append(says, "incomplete", true)
	}
	return says
}

// searched is a page that says as well whether it cannot know the newest failures
// yet.
func (a *API) searched(c echo.Context, says web.Object, f filter.Filter) (web.Object, error) {
	if !f.Searches() {
		return says, nil
	}
	lag, err := a.View.SearchLag(c.Request().Context())
	if lag > 0 {
		says = append(says, "not_searchable_yet", lag)
	}
	return says, err
}

// jobs is GET /jobs. Lists leave payloads out: GET /jobs/{id} has them.
func (a *API) jobs(c echo.Context) (web.Object, error) {
	f, found, slow, err := search(c, web.Query, a.View.Jobs)
	if err != nil {
		return nil, err
	}
	rows := web.List(found.Jobs, func(j job.Job) web.Raw { return encodeJob(a.Begun(j), false) })
	return a.searched(c, page("jobs", rows, found.Next.String(), slow), f)
}

// letters is GET /dead-letters: the open ones, each with its job.
func (a *API) letters(c echo.Context) (web.Object, error) {
	f, found, slow, err := search(c, web.LettersQuery, a.View.Letters)
	if err != nil {
		return nil, err
	}
	rows := web.List(found.Letters, func(l filter.LetterRow) web.Raw {
		return bytes.TrimSpace(web.Object{"letter", shapeLetter(l.DeadLetter), "job", encodeJob(l.Job, false)}.Encode())
	})
	return a.searched(c, page("dead_letters", rows, found.Next.String(), slow), f)
}

// trashShape is a job in the trash.
type trashShape struct {
	JobID       string     `json:"job_id"`
	Run         int        `json:"run"`
	Type        string     `json:"type"`
	Queue       string     `json:"queue"`
	Status      job.Status `json:"was"` // where it was
	DiscardedAt string     `json:"discarded_at"`
	DiscardedBy string     `json:"discarded_by"`
	PurgedAt    string     `json:"purged_at,omitempty"`
}

// trash is GET /trash: what was discarded, and when it will be purged.
func (a *API) trash(c echo.Context) (web.Object, error) {
	_, found, slow, err := search(c, web.TrashQuery, a.View.Jobs)
	if err != nil {
		return nil, err
	}
	was, err := a.View.Trashed(c.Request().Context(), found.Jobs)
	rows := web.List(found.Jobs, func(j job.Job) trashShape {
		w := was[j.Seq]
		shape := trashShape{
			JobID: j.ID, Run: j.Run, Type: j.Type, Queue: j.Queue, Status: job.Job{State: w.State, Letter: w.Letter}.Status(),
			DiscardedAt: wire.FormatTime(w.At), DiscardedBy: w.By,
		}
		if keeps := a.Config.Retention().Trash; keeps > 0 {
			shape.PurgedAt = wire.FormatTime(w.At.Add(keeps))
		}
		return shape
	})
	return page("trash", rows, found.Next.String(), slow), err
}

// job is GET /jobs/{id}.
func (a *API) job(c echo.Context) (web.Object, error) {
	d, err := a.Job(c)
	if err != nil {
		return nil, err
	}
	return a.Detail(c, d)
}

// Detail is everything about a job, and what people did to it.
func (a *API) Detail(c echo.Context, d history.Detail) (web.Object, error) {
	trail, err := a.Trail(c, d.Job.ID)
	return web.Object{
		"job", encodeJob(d.Job, true), "attempts", shapeAttempts(d), "dead_letters", web.List(d.Letters, shapeLetter),
		"replays", web.List(d.Replays, shapeReplay), "operations", web.List(d.Bulk, shapeBulkAct),
		"group", d.Group.Fingerprint, "trail", web.List(trail, shapeEntry),
	}, err
}

// Reveal is everything about a job as it is, after it was written down who wants
// to see it.
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

// facets is GET /facets: what a list can be narrowed to.
func (a *API) facets(c echo.Context) (web.Object, error) {
	f, _, wrong := web.Query(c.QueryParams())
	if len(wrong) > 0 {
		return nil, web.InAddress(wrong[0])
	}
	facets, err := a.View.Facets(c.Request().Context(), f)
	return web.Object{
		"reasons", web.List(facets.Reasons, func(r filter.ReasonCount) facetShape { return facetShape{string(r.Reason), r.Count} }),
		"queues", web.List(facets.Queues, shapeFacet), "types", web.List(facets.Types, shapeFacet),
	}, err
}

type facetShape struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}

func shapeFacet(n filter.NameCount) facetShape { return facetShape{n.Name, n.Count} }

// countJobs is GET /jobs/count: how many jobs a filter selects, up to a limit
// beyond which "more" says that there are others. One that takes too long to
// count, or that waits for the index of texts, is incomplete, and has no number.
func (a *API) countJobs(c echo.Context) (web.Object, error) {
	f, _, wrong := web.Query(c.QueryParams())
	if len(wrong) > 0 {
		return nil, web.InAddress(wrong[0])
	}
	n, more, err := a.View.Count(c.Request().Context(), f, countLimit)
	if slow, err := web.Tolerate(err); slow || err != nil {
		return web.Object{"incomplete", true}, err
	}
	return web.Object{"count", n, "more", more}, nil
}

// counters is GET /counters.
func (a *API) counters(c echo.Context) error { return c.JSON(http.StatusOK, a.View.Snapshot().Totals) }
