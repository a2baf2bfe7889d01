package server

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"redrive/internal/operation"
	"redrive/internal/wire"
)

// itemsPage is how many items of an export are read at once.
const itemsPage = 200

// itemShape is an item of an operation: a job, and what became of it.
type itemShape struct {
	N       int64                `json:"n"`
	JobID   string               `json:"job_id,omitempty"`
	Type    string               `json:"type,omitempty"`
	Queue   string               `json:"queue,omitempty"`
	Run     int                  `json:"run"`
	State   operation.ItemState  `json:"state"`
	Code    operation.Skip       `json:"code,omitempty"`
	Why     string               `json:"why,omitempty"`
	Other   int64                `json:"other_operation,omitempty"`
	At      string               `json:"at,omitempty"`
	Outcome operation.RunOutcome `json:"outcome,omitempty"`
	EndedAt string               `json:"ended_at,omitempty"`
}

func itemOf(it operation.Item) itemShape {
	return itemShape{
		N: it.N, JobID: it.Job.ID, Type: it.Job.Type, Queue: it.Job.Queue, Run: it.Run, State: it.State, Code: it.Code, Why: it.Why,
		Other: it.Other, At: wire.FormatTime(it.At), Outcome: it.Outcome, EndedAt: wire.FormatTime(it.EndedAt),
	}
}

func encodeItems(items []operation.Item) []byte {
	all := make([][]byte, len(items))
	for i, it := range items {
		all[i] = encode(itemOf(it))
	}
	return list(all)
}

// itemFilter reads which items to show.
func itemFilter(text string) (operation.ItemFilter, error) {
	switch o := operation.RunOutcome(text); o {
	case operation.RunSucceeded, operation.RunRelapsed, operation.RunDropped, operation.RunUnsettled:
		return operation.ItemFilter{Outcome: o}, nil
	}
	switch s := operation.ItemState(text); s {
	case "", operation.ItemPending, operation.ItemDone, operation.ItemSkipped, operation.ItemFailed:
		return operation.ItemFilter{State: s}, nil
	}
	return operation.ItemFilter{}, &failure{badParameter, "state",
		"is unknown; use pending, done, skipped, failed, succeeded, relapsed, dropped or unsettled", nil}
}

// paramItems reads which items of which operation are asked for.
func (s *Server) paramItems(c echo.Context) (id int64, f operation.ItemFilter, err error) {
	if id, err = paramOperation(c); err != nil {
		return 0, f, err
	}
	if f, err = itemFilter(c.QueryParam("state")); err != nil {
		return 0, f, err
	}
	_, err = s.View.Operation(c.Request().Context(), id)
	return id, f, err
}

// listItems is GET /operations/{id}/items, in the order of work.
func (s *Server) listItems(c echo.Context) error {
	after, limit, err := numbered(c)
	if err != nil {
		return err
	}
	id, f, err := s.paramItems(c)
	if err != nil {
		return err
	}
	page, err := s.View.Items(c.Request().Context(), id, f, after, limit)
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, object("items", encodeItems(page.Items), endOf(page.Next, false)...))
}

// itemSheet is the items of an operation, in the order of work.
func (s *Server) itemSheet(c echo.Context) (sheet, error) {
	id, f, err := s.paramItems(c)
	if err != nil {
		return sheet{}, err
	}
	after, err := number(c, "after")
	if err != nil {
		return sheet{}, err
	}
	next := func(ctx context.Context) (leaf, error) {
		page, err := s.View.Items(ctx, id, f, after, itemsPage)
		after = page.Next
		return leafOf(page.Items, itemOf, after != 0, false), err
	}
	sh := sheet{name: fmt.Sprintf("operation-%d-items", id), head: itemHead(), next: next}
	if state := c.QueryParam("state"); state != "" {
		sh.filter = "state:" + state
	}
	return sh, nil
}

func itemHead() []string {
	return []string{"n", "job_id", "type", "queue", "run", "state", "code", "why", "other_operation", "at", "outcome", "ended_at"}
}

func (i itemShape) line() []byte { return encode(i) }

func (i itemShape) cells() []string {
	other := ""
	if i.Other != 0 {
		other = strconv.FormatInt(i.Other, 10)
	}
	return []string{
		strconv.FormatInt(i.N, 10), i.JobID, i.Type, i.Queue, strconv.Itoa(i.Run), string(i.State), string(i.Code), i.Why,
		other, i.At, string(i.Outcome), i.EndedAt,
	}
}
