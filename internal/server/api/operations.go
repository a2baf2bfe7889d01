package api

import (
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/operation"
	"redrive/internal/server/web"
	"redrive/internal/wire"
)

// operationShape is an operation as the API shows it. Numbers are absolute:
// total = pending + done + skipped + failed.
type operationShape struct {
	ID         int64           `json:"id"`
	Kind       operation.Kind  `json:"kind"`
	State      operation.State `json:"state"`
	Why        string          `json:"why,omitempty"`
	Filter     string          `json:"filter,omitempty"`
	Source     int64           `json:"relapsed_of,omitempty"`
	Until      string          `json:"until"`
	Rate       float64         `json:"rate"` // jobs a second; 0: as fast as it goes
	Spread     string          `json:"spread,omitempty"`
	Canary     int64           `json:"canary"`
	Guard      bool            `json:"guard"`
	CreatedAt  string          `json:"created_at"`
	CreatedBy  string          `json:"created_by"`
	StartedAt  string          `json:"started_at,omitempty"`
	StartedBy  string          `json:"started_by,omitempty"`
	FinishedAt string          `json:"finished_at,omitempty"`
	Total      int64           `json:"total"`
	Pending    int64           `json:"pending"`
	Done       int64           `json:"done"`
	Skipped    int64           `json:"skipped"`
	Failed     int64           `json:"failed"`
	Succeeded  int64           `json:"succeeded"` // of those done
	Relapsed   int64           `json:"relapsed"`
	Dropped    int64           `json:"dropped"`
	Unsettled  int64           `json:"unsettled"`
	Left       string          `json:"left,omitempty"` // how long the rest takes at this rate
}

func shapeOperation(o operation.Operation) operationShape {
	shape := operationShape{
		ID: o.ID, Kind: o.Kind, State: o.State, Why: o.Why, Filter: o.Filter, Source: o.Source, Until: wire.FormatTime(o.Until),
		Rate: o.Pace.Rate, Canary: max(0, o.Pace.Canary), Guard: o.Pace.Guard,
		CreatedAt: wire.FormatTime(o.CreatedAt), CreatedBy: o.CreatedBy,
		StartedAt: wire.FormatTime(o.StartedAt), StartedBy: o.StartedBy, FinishedAt: wire.FormatTime(o.FinishedAt),
		Total: o.Total, Pending: o.Pending, Done: o.Done, Skipped: o.Skipped, Failed: o.Failed,
		Succeeded: o.Succeeded, Relapsed: o.Relapsed, Dropped: o.Dropped, Unsettled: o.Unsettled(),
	}
	if o.Pace.Spread > 0 {
		shape.Spread = wire.FormatDuration(o.Pace.Spread)
	}
	if left, ok := o.Left(); ok && !o.StartedAt.IsZero() {
		shape.Left = wire.FormatDuration(left.Round(time.Second))
	}
	return shape
}

// breakdownShape is what the scope of an operation is made of.
type breakdownShape struct {
	Scope []scopeShape `json:"scope"`
	Skips []skipShape  `json:"skips"`
}

type scopeShape struct {
	Queue string `json:"queue"`
	Type  string `json:"type"`
	Count int64  `json:"count"`
}

type skipShape struct {
	Code  operation.Skip `json:"code"`
	Count int64          `json:"count"`
}

func shapeBreakdown(b operation.Breakdown) breakdownShape {
	shape := breakdownShape{[]scopeShape{}, []skipShape{}}
	for _, p := range b.Scope {
		shape.Scope = append(shape.Scope, scopeShape(p))
	}
	for _, c := range b.Skips {
		shape.Skips = append(shape.Skips, skipShape(c))
	}
	return shape
}

// progressShape is how an operation went so far: what became of its canary, and
// what its guard sees of the replays that ended last.
type progressShape struct {
	CanarySucceeded int64 `json:"canary_succeeded"`
	CanaryRelapsed  int64 `json:"canary_relapsed"`
	CanaryDropped   int64 `json:"canary_dropped"`
	CanaryUnsettled int64 `json:"canary_unsettled"`
	GuardEnded      int64 `json:"guard_ended"`
	GuardSame       int64 `json:"guard_same"` // of those ended: failed again as before
}

func shapeProgress(p operation.Progress) progressShape {
	c := p.Canary
	return progressShape{c.Succeeded, c.Relapsed, c.Dropped, c.Unsettled(), p.Ended, p.Same}
}

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

func shapeItem(it operation.Item) itemShape {
	return itemShape{
		N: it.N, JobID: it.Job.ID, Type: it.Job.Type, Queue: it.Job.Queue, Run: it.Run, State: it.State, Code: it.Code, Why: it.Why,
		Other: it.Other, At: wire.FormatTime(it.At), Outcome: it.Outcome, EndedAt: wire.FormatTime(it.EndedAt),
	}
}

// operations is GET /operations, the newest first.
func (a *API) operations(c echo.Context) (web.Object, error) {
	after, limit, err := numbered(c)
	if err != nil {
		return nil, err
	}
	found, err := a.View.Operations(c.Request().Context(), after, limit)
	return page("operations", web.List(found.Operations, shapeOperation), found.Next, false), err
}

// operation is GET /operations/{id}: how far it is, what its scope is made of, and
// who did what to it.
func (a *API) operation(c echo.Context) (web.Object, error) {
	ctx := c.Request().Context()
	o, err := a.paramOperation(c)
	if err != nil {
		return nil, err
	}
	b, err := a.View.Breakdown(ctx, o.ID)
	if err != nil {
		return nil, err
	}
	p, err := a.View.QuickProgress(ctx, o)
	if err != nil {
		return nil, err
	}
	log, err := a.View.OperationLog(ctx, o.ID)
	return web.Object{
		"operation", shapeOperation(o), "progress", shapeProgress(p), "breakdown", shapeBreakdown(b),
		"skipped", web.List(b.Skipped, shapeItem), "log", web.List(log, shapeEntry),
	}, err
}

// paramOperation is the operation that the address names.
func (a *API) paramOperation(c echo.Context) (operation.Operation, error) {
	id, err := web.ParamOperation(c)
	if err != nil {
		return operation.Operation{}, err
	}
	return a.View.Operation(c.Request().Context(), id)
}

// rate is GET /operations/{id}/rate: how many jobs were done in each step of its
// time.
func (a *API) rate(c echo.Context) (web.Object, error) {
	o, err := a.paramOperation(c)
	if err != nil {
		return nil, err
	}
	p, err := a.View.Progress(c.Request().Context(), time.Now(), o)
	if len(p.Rate.Done) == 0 {
		return web.Object{"done", []int64{}}, err
	}
	return web.Object{"from", wire.FormatTime(p.Rate.From), "step_seconds", p.Rate.Step.Seconds(), "done", p.Rate.Done}, err
}

// paramItems reads which items of which operation are asked for.
func (a *API) paramItems(c echo.Context) (id int64, f operation.ItemFilter, err error) {
	if id, err = web.ParamOperation(c); err != nil {
		return 0, f, err
	}
	if f, err = web.ItemQuery(c); err != nil {
		return 0, f, err
	}
	_, err = a.View.Operation(c.Request().Context(), id)
	return id, f, err
}

// items is GET /operations/{id}/items, in the order of work.
func (a *API) items(c echo.Context) (web.Object, error) {
	after, limit, err := numbered(c)
	if err != nil {
		return nil, err
	}
	id, f, err := a.paramItems(c)
	if err != nil {
		return nil, err
	}
	found, err := a.View.Items(c.Request().Context(), id, f, after, limit)
	return page("items", web.List(found.Items, shapeItem), found.Next, false), err
}
