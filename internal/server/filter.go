package server

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/clip"
	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/web/templates/listpage"
)

// query reads the filter and the cursor of a list, and returns what is wrong
// with each field. The filter is what q says in the language of filters together
// with the parameters that have the names of its qualifiers. Parameters that are
// not known are ignored.
func query(values url.Values) (f filter.Filter, after filter.Cursor, wrong []*invalid.Error) {
	now := time.Now()
	check := func(err error) bool {
		if err != nil {
			wrong = append(wrong, fieldOf(err))
		}
		return err == nil
	}
	f, err := filter.Parse(values.Get("q"), now)
	check(err)
	for _, q := range filter.Qualifiers() {
		part, err := filter.ReadPart(q.Name, values.Get(q.Name), now)
		if !check(err) {
			continue
		}
		if sum, err := f.Combine(part); check(err) {
			f = sum
		}
	}
	if len(wrong) == 0 {
		check(f.Check())
	}
	after, err = filter.ParseCursor(values.Get("after"))
	check(err)
	return f, after, wrong
}

// fieldOf is what is wrong with a field of a filter. An error about none is one
// about all that was typed: half of a filter is another filter.
func fieldOf(err error) *invalid.Error {
	if field := new(invalid.Error); errors.As(err, &field) {
		return field
	}
	return &invalid.Error{Field: "q", Problem: err.Error()}
}

// lettersQuery does so for a list of dead letters, which have no other state.
func lettersQuery(values url.Values) (f filter.Filter, after filter.Cursor, wrong []*invalid.Error) {
	f, after, wrong = query(values)
	if f.Status != "" && f.Status != job.StatusDeadLetter {
		wrong = append(wrong, &invalid.Error{Field: "q", Problem: fmt.Sprintf(
			"state: every row here is a dead letter; look for %s jobs in the list of jobs", f.Status)})
	}
	f.Status = ""
	return f, after, wrong
}

// queryAbove is what stands above a list. What cannot be read stays as it was
// typed.
func (s *Server) queryAbove(c echo.Context, f filter.Filter, wrong map[string]string) (v listpage.Query, err error) {
	ctx := c.Request().Context()
	if wrong["q"] != "" {
		v.Typed = c.QueryParam("q")
	}
	v.Queues = s.Store.QueueNames()
	if v.Facets, err = s.Store.Facets(ctx, f); err != nil {
		return v, err
	}
	if v.Dead, err = s.Store.Facets(ctx, filter.Filter{Status: job.StatusDeadLetter}); err == nil && f.Searches() {
		v.Indexing = s.Store.Filling()
		v.Lag, err = s.Store.SearchLag(ctx)
	}
	return v, err
}

// asked reads how many rows a program wants of a list, after its filter.
func asked(values url.Values, wrong []*invalid.Error) (limit int, err error) {
	if len(wrong) > 0 {
		return 0, inAddress(wrong[0])
	}
	limit, err = pageSize(values)
	return limit, inAddress(err)
}

// pageSize reads how many rows a program wants.
func pageSize(values url.Values) (int, error) {
	text := values.Get("limit")
	if text == "" {
		return pageLimit, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxLimit {
		return 0, &invalid.Error{Field: "limit", Problem: fmt.Sprintf("%q is not a number from 1 to %d", clip.Text(text, 64), maxLimit)}
	}
	return limit, nil
}

// listed answers with a page of a list. One whose search took too long is
// incomplete: the next page goes on there. So is one that cannot know the newest
// failures yet.
func (s *Server) listed(c echo.Context, name string, all [][]byte, f filter.Filter, next filter.Cursor, slow bool) error {
	more := endOf(next.String(), slow)
	if f.Searches() {
		lag, err := s.Store.SearchLag(c.Request().Context())
		if err != nil {
			return err
		}
		if lag > 0 {
			more = append(more, "not_searchable_yet", encode(lag))
		}
	}
	return c.JSONBlob(http.StatusOK, object(name, list(all), more...))
}

// listLetters is GET /dead-letters: the open ones, each with its job.
func (s *Server) listLetters(c echo.Context) error {
	values := c.QueryParams()
	f, after, wrong := lettersQuery(values)
	limit, err := asked(values, wrong)
	if err != nil {
		return err
	}
	page, err := s.Store.Letters(c.Request().Context(), f, after, limit)
	slow, err := tolerate(err)
	if err != nil {
		return err
	}
	all := make([][]byte, len(page.Letters))
	for i, l := range page.Letters {
		all[i] = bytes.TrimSpace(object("letter", encodeLetter(l.DeadLetter), "job", encodeJob(l.Job, false)))
	}
	return s.listed(c, "dead_letters", all, f, page.Next, slow)
}

// listFacets is GET /facets: what a list can be narrowed to.
func (s *Server) listFacets(c echo.Context) error {
	f, _, wrong := query(c.QueryParams())
	if len(wrong) > 0 {
		return inAddress(wrong[0])
	}
	facets, err := s.Store.Facets(c.Request().Context(), f)
	if err != nil {
		return err
	}
	reasons := make([]facetShape, len(facets.Reasons))
	for i, r := range facets.Reasons {
		reasons[i] = facetShape{string(r.Reason), r.Count}
	}
	return c.JSONBlob(http.StatusOK, object("reasons", encode(reasons),
		"queues", encode(facetShapes(facets.Queues)), "types", encode(facetShapes(facets.Types))))
}

type facetShape struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}

func facetShapes(counts []filter.NameCount) []facetShape {
	all := make([]facetShape, len(counts))
	for i, c := range counts {
		all[i] = facetShape{c.Name, c.Count}
	}
	return all
}

// countLimit is how far the jobs of a filter are counted.
const countLimit = 10_000

// countJobs is GET /jobs/count: how many jobs a filter selects, up to a limit
// beyond which "more" says that there are others. One that takes too long to
// count, or that waits for the index of texts, is incomplete, and has no number.
func (s *Server) countJobs(c echo.Context) error {
	f, _, wrong := query(c.QueryParams())
	if len(wrong) > 0 {
		return inAddress(wrong[0])
	}
	n, more, err := s.Store.Count(c.Request().Context(), f, countLimit)
	slow, err := tolerate(err)
	if err != nil {
		return err
	}
	if slow {
		return c.JSONBlob(http.StatusOK, object("incomplete", encode(true)))
	}
	return c.JSONBlob(http.StatusOK, object("count", encode(n), "more", encode(more)))
}
