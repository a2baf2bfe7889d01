package api

import (
	"context"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/operation"
	"redrive/internal/server/web"
	"redrive/internal/source"
)

// operationOf is an operation as the API shows it.
func operationOf(o operation.Operation) work.Operation {
	pace := o.Planned()
	var canary *int64 // left out while it depends on a scope that is not known
	if pace.Canary >= 0 {
		canary = &pace.Canary
	}

	return work.Operation{
		ID:         o.ID,
		Kind:       o.Kind,
		State:      o.State,
		Why:        o.Why,
		Filter:     o.Filter,
		RelapsedOf: o.Source,
		Until:      apitype.At(o.Until),
		Rate:       pace.Rate,
		Spread:     apitype.Duration(pace.Spread),
		Canary:     canary,
		Guard:      pace.Guard,
		CreatedAt:  apitype.At(o.CreatedAt),
		CreatedBy:  o.CreatedBy,
		StartedAt:  apitype.At(o.StartedAt),
		StartedBy:  o.StartedBy,
		FinishedAt: apitype.At(o.FinishedAt),
		Total:      o.Total,
		Pending:    o.Pending,
		Done:       o.Done,
		Skipped:    o.Skipped,
		Failed:     o.Failed,
		Succeeded:  o.Succeeded,
		Relapsed:   o.Relapsed,
		Dropped:    o.Dropped,
		Unknown:    o.Unknown,
		Unsettled:  o.Unsettled(),
		Left:       leftOf(o),
		Causes:     o.Causes,
	}
}

// leftOf is how long the rest of an operation that has been started takes at its rate.
func leftOf(o operation.Operation) *apitype.Duration {
	left, ok := o.Left()
	if !ok || o.StartedAt.IsZero() {
		return nil
	}

	seconds := apitype.Duration(left.Round(time.Second))

	return &seconds
}

// Breakdown is what the scope of an operation consists of, which of its sources are attached,
// and which of its types have no handler.
func (a *API) Breakdown(ctx context.Context, id int64) (operation.Breakdown, error) {
	b, err := a.View.Breakdown(ctx, id)
	for i := range b.Sources {
		b.Sources[i].Attached = a.SourceNamed(b.Sources[i].Name) != nil
	}

	for i := range b.Types {
		b.Types[i].Unhandled = !a.Engine.Knows(b.Types[i].Type)
	}

	return b, err
}

// breakdownOf says what the scope of an operation consists of.
func breakdownOf(b operation.Breakdown) work.Breakdown {
	unhandled, _ := b.Unhandled()

	return work.Breakdown{
		Scope: mapped(b.Scope, func(p operation.ScopePart) work.ScopePart {
			return work.ScopePart{Queue: p.Queue, Type: p.Type, Count: p.Count}
		}),
		Causes: mapped(b.Causes, func(p operation.CausePart) work.CauseCount {
			return work.CauseCount{Cause: causeOf(p.Cause), Count: p.Count}
		}),
		Sources: mapped(b.Sources, func(p operation.SourcePart) work.ScopeSource {
			return work.ScopeSource{Name: p.Name, Count: p.Count, Attached: p.Attached}
		}),
		Unhandled: unhandled,
		Skips: mapped(b.Skips, func(s operation.SkipCount) work.SkipCount {
			return work.SkipCount{Code: s.Code, Count: s.Count}
		}),
	}
}

// causeOf is a cause of failures with what is known of it: an error group, or the type of
// jobs that have none.
func causeOf(c operation.Cause) work.Cause {
	return work.Cause{Group: c.Group, Class: c.Class, Type: c.Type}
}

// progressOf says how the canary fared, and what the guard sees of the replays that
// ended last.
func (a *API) progressOf(p operation.Progress) work.Progress {
	c, h := p.Canary, p.SourceRuns

	var back *work.CauseCount // the error that came back most often
	if p.BackN > 0 {
		back = &work.CauseCount{Cause: causeOf(p.Back), Count: p.BackN}
	}

	return work.Progress{
		CanarySucceeded: c.Succeeded,
		CanaryRelapsed:  c.Relapsed,
		CanaryDropped:   c.Dropped,
		CanaryUnknown:   c.Unknown,
		CanaryUnsettled: c.Unsettled(),
		CanaryAtSource:  c.SourceRuns.AtSource,
		CanaryReturned:  c.SourceRuns.Returned,
		AtSource:        h.AtSource,
		Returned:        h.Returned,
		Source:          h.Source,
		SourceReports:   a.sourceReports(h.Source),
		ReturnedUntil:   apitype.At(h.Until),
		CanaryCauses:    mapped(c.Causes, canaryCauseOf),
		GuardEnded:      p.Ended,
		GuardSame:       p.Same,
		GuardBack:       back,
	}
}

// canaryCauseOf is what became of the jobs of one cause in a canary.
func canaryCauseOf(c operation.CauseCanary) work.CanaryCause {
	return work.CanaryCause{
		Cause:     causeOf(c.Cause),
		Succeeded: c.Succeeded,
		Relapsed:  c.Relapsed,
		Dropped:   c.Dropped,
		Unknown:   c.Unknown,
		Unsettled: c.Unsettled(),
	}
}

// itemOf is one job of an operation, and what became of it.
func itemOf(it operation.Item) work.OperationItem {
	return work.OperationItem{
		N:              it.N,
		JobID:          it.Job.ID,
		Type:           it.Job.Type,
		Queue:          it.Job.Queue,
		Run:            it.Run,
		State:          it.State,
		Code:           it.Code,
		Why:            it.Why,
		OtherOperation: it.Other,
		At:             apitype.At(it.At),
		Outcome:        it.Outcome,
		EndedAt:        apitype.At(it.EndedAt),
		Returned:       it.Outcome == "" && it.Job.Run == it.Run+1 && source.Returned(it.Job, time.Now()),
	}
}

// operations is GET /operations, the newest first.
func (a *API) operations(c echo.Context) (work.OperationList, error) {
	after, limit, err := numbered(c)
	if err != nil {
		return work.OperationList{}, err
	}

	found, err := a.View.Operations(c.Request().Context(), after, limit)

	return work.OperationList{
		Operations:   mapped(found.Operations, operationOf),
		NumberedPage: apitype.NumberedPage{Next: found.Next},
	}, err
}

// operation is GET /operations/{id}: its progress, its scope, and who did what
// to it.
func (a *API) operation(c echo.Context) (d work.OperationDetail, err error) {
	ctx, now := c.Request().Context(), time.Now()

	o, err := a.paramOperation(c)
	if err != nil {
		return d, err
	}

	b, err := a.Breakdown(ctx, o.ID)
	if err != nil {
		return d, err
	}

	// Of the progress, what takes longer the more jobs there are is left to the pages, but for
	// the runs at sources and the causes of the canary.
	p, err := a.View.QuickProgress(ctx, now, o)
	if err != nil {
		return d, err
	}

	p.SourceRuns, err = a.View.SourceRuns(ctx, now, o)
	if err != nil {
		return d, err
	}

	p.Canary.Causes, err = a.View.CanaryCauses(ctx, o)
	if err != nil {
		return d, err
	}

	log, err := a.View.OperationLog(ctx, o.ID, web.CallerOf(c).Role.May(access.Manage))

	return work.OperationDetail{
		Operation: operationOf(o),
		Progress:  a.progressOf(p),
		Breakdown: breakdownOf(b),
		Skipped:   mapped(b.Skipped, itemOf),
		Log:       mapped(log, entryOf),
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
func (a *API) rate(c echo.Context) (work.OperationRate, error) {
	o, err := a.paramOperation(c)
	if err != nil {
		return work.OperationRate{}, err
	}

	p, err := a.View.Progress(c.Request().Context(), time.Now(), o)
	if len(p.Rate.Done) == 0 {
		return work.OperationRate{Done: []int64{}}, err
	}

	return work.OperationRate{From: apitype.At(p.Rate.From), StepSeconds: p.Rate.Step.Seconds(), Done: p.Rate.Done}, err
}

// paramItems reads which items are asked for. An operation that does not exist
// is an error here, since its list of items would merely be empty.
func (a *API) paramItems(c echo.Context) (id int64, f operation.ItemFilter, err error) {
	id, err = web.ParamOperation(c)
	if err != nil {
		return 0, f, err
	}

	f, err = web.ItemQuery(c)
	if err != nil {
		return 0, f, err
	}

	_, err = a.View.Operation(c.Request().Context(), id)

	return id, f, err
}

// items is GET /operations/{id}/items, in processing order.
func (a *API) items(c echo.Context) (work.OperationItems, error) {
	after, limit, err := numbered(c)
	if err != nil {
		return work.OperationItems{}, err
	}

	id, f, err := a.paramItems(c)
	if err != nil {
		return work.OperationItems{}, err
	}

	found, err := a.View.Items(c.Request().Context(), id, f, after, limit)

	return work.OperationItems{
		Items:        mapped(found.Items, itemOf),
		NumberedPage: apitype.NumberedPage{Next: found.Next},
	}, err
}
