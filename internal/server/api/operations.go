package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/audit"
	"redrive/internal/invalid"
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

	p, err := a.View.QuickProgress(ctx, now, o)
	if err != nil {
		return d, err
	}

	if p.SourceRuns, err = a.View.SourceRuns(ctx, now, o); err != nil {
		return d, err
	}

	if p.Canary.Causes, err = a.View.CanaryCauses(ctx, o); err != nil {
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
	if id, err = web.ParamOperation(c); err != nil {
		return 0, f, err
	}

	if f, err = web.ItemQuery(c); err != nil {
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

// operationActs make an operation on many jobs, start it and steer it. The
// engine is notified after each of them, so that a pause takes effect at once.
func (a *API) operationActs() []Act {
	v := a.View
	acts := []Act{{
		Path: "/operations", Says: "Makes an operation on many jobs", Request: work.NewOperation{},
		Answer: work.OperationAnswer{}, Created: true, Keyed: true, Do: a.newOperation,
	}}
	for _, act := range []struct {
		name, says string
		request    any
		pace       paceReader
		do         func(context.Context, time.Time, int64, operation.Pace, audit.Actor) (operation.Operation, error)
	}{
		{"start", "Starts an operation", work.PaceRequest{}, readStart, v.StartOperation},
		{"rate", "Changes the rate of an operation", work.RateRequest{}, readRate, v.SetRate},
		{"pause", "Pauses an operation", apitype.Nothing{}, readNoPace, paceless(v.PauseOperation)},
		{"resume", "Resumes an operation", apitype.Nothing{}, readNoPace, paceless(v.ResumeOperation)},
		{"resume-passed", "Resumes an operation with the causes whose canary passed", apitype.Nothing{}, readNoPace, paceless(v.ResumePassed)},
		{"abort", "Ends an operation; what it has done stays", apitype.Nothing{}, readNoPace, paceless(v.AbortOperation)},
	} {
		do := func(c echo.Context) (Outcome, error) {
			o, err := a.paramOperation(c)
			if err != nil {
				return Outcome{}, err
			}

			pace, err := act.pace(c, o)
			if err != nil {
				return Outcome{}, err
			}

			o, err = act.do(c.Request().Context(), time.Now(), o.ID, pace, web.Actor(c))

			a.Engine.Notify()

			return operationOutcome(o), err
		}
		acts = append(acts, Act{
			Path: "/operations/:id/" + act.name, Says: act.says, Request: act.request, Answer: work.OperationAnswer{}, Do: do,
		})
	}

	return acts
}

// operationOutcome leads back to the page of the operation.
func operationOutcome(o operation.Operation) Outcome {
	return Outcome{Says: work.OperationAnswer{Operation: operationOf(o)}, Page: fmt.Sprintf("/operations/%d", o.ID)}
}

// paceless adapts an act that leaves the pace alone.
func paceless(do func(context.Context, time.Time, int64, audit.Actor) (operation.Operation, error)) func(
	context.Context, time.Time, int64, operation.Pace, audit.Actor) (operation.Operation, error) {
	return func(ctx context.Context, now time.Time, id int64, _ operation.Pace, by audit.Actor) (operation.Operation, error) {
		return do(ctx, now, id, by)
	}
}

// newOperation is POST /operations. A repeat under an idempotency key is answered
// with the first operation, in whatever state it is now, and with 200.
func (a *API) newOperation(c echo.Context) (Outcome, error) {
	n := operation.Request{Pace: operation.Pace{Canary: -1, Guard: true}}

	read := readRequest
	if web.IsForm(c) {
		read = readRequestForm
	}

	if err := read(c, &n); err != nil {
		return Outcome{}, err
	}

	o, err := a.begin(c, n)

	out := operationOutcome(o)
	out.Status = createdUnless(o.Repeat)
	if err == nil && !web.IsForm(c) {
		c.Response().Header().Set("Location", v1+out.Page)
	}

	return out, err
}

// begin makes an operation. A filter that selects nothing in particular is
// refused, because it would act on every job by mistake; a caller who means every
// job has to write so.
func (a *API) begin(c echo.Context, n operation.Request) (o operation.Operation, err error) {
	if err := n.Kind.Check(); err != nil {
		return o, err
	}

	if n.Named == nil && n.Relapsed == 0 {
		if n.Filter.Zero() {
			return o, &invalid.Error{Field: "filter", Problem: "is empty, which would select every job; use state:dead_letter for all dead letters"}
		}

		if n.Filter, err = n.Kind.Scope(n.Filter); err != nil {
			return o, aboutFilter(err)
		}
	}

	switch {
	case n.Relapsed != 0 && n.Kind != operation.Replay:
		return o, &invalid.Error{Field: "kind", Problem: "must be replay for what failed again"}
	case len(n.Named) > operation.MaxNamed:
		return o, &invalid.Error{Field: "jobs", Problem: fmt.Sprintf(
			"%d jobs; name at most %d, or use a filter", len(n.Named), operation.MaxNamed)}
	}

	if err := cmp.Or(aboutFilter(n.Filter.Check()), n.Pace.Check()); err != nil {
		return o, err
	}

	o, err = a.View.NewOperation(c.Request().Context(), time.Now(), n, web.Actor(c))
	a.Engine.Notify()

	return o, reused(c, err)
}

// aboutFilter attributes an error in some part of a filter to the one field that
// holds the whole filter.
func aboutFilter(err error) error {
	field := new(invalid.Error)
	if !errors.As(err, &field) || field.Field == "kind" || field.Field == "filter" {
		return err
	}

	problem := field.Problem
	if field.Field != "q" {
		problem = field.Field + ": " + problem
	}

	return &invalid.Error{Field: "filter", Problem: problem}
}
