package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/invalid"
	"redrive/internal/operation"
	"redrive/internal/server/web"
	"redrive/internal/source"
	"redrive/internal/wire"
)

// shapeOperation is an operation as the API shows it. The numbers are absolute:
// total = pending + done + skipped + failed, and for a replay done = succeeded +
// relapsed + dropped + unknown + unsettled.
func shapeOperation(o operation.Operation) web.Object {
	pace, canary := o.Planned(), (*int64)(nil) // left out while it depends on a scope that is not known
	if pace.Canary >= 0 {
		canary = &pace.Canary
	}
	left := "" // how long the rest takes at this rate
	if d, ok := o.Left(); ok && !o.StartedAt.IsZero() {
		left = wire.FormatDuration(d.Round(time.Second))
	}
	return web.Object{
		"id", o.ID, "kind", o.Kind, "state", o.State, "why?", o.Why, "filter?", o.Filter, "relapsed_of?", o.Source, "until", o.Until,
		"rate", pace.Rate, // jobs a second; 0: as fast as possible
		"spread?", pace.Spread, "canary?", canary, "guard", pace.Guard,
		"created_at", o.CreatedAt, "created_by", o.CreatedBy, "started_at?", o.StartedAt, "started_by?", o.StartedBy,
		"finished_at?", o.FinishedAt, "total", o.Total, "pending", o.Pending, "done", o.Done, "skipped", o.Skipped, "failed", o.Failed,
		"succeeded", o.Succeeded, "relapsed", o.Relapsed, "dropped", o.Dropped, "unknown", o.Unknown,
		"unsettled", o.Unsettled(), "left?", left, "causes", o.Causes,
	}
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

// shapeBreakdown says what the scope of an operation consists of.
func shapeBreakdown(b operation.Breakdown) web.Object {
	unhandled, _ := b.Unhandled()
	return web.Object{
		"scope", web.List(b.Scope, func(p operation.ScopePart) web.Object {
			return web.Object{"queue", p.Queue, "type", p.Type, "count", p.Count}
		}),
		"causes", web.List(b.Causes, func(p operation.CausePart) web.Object { return shapeCause(p.Cause, "count", p.Count) }),
		"sources", web.List(b.Sources, func(p operation.SourcePart) web.Object {
			return web.Object{"name", p.Name, "count", p.Count, "attached", p.Attached}
		}),
		"unhandled", unhandled,
		"skips", web.List(b.Skips, func(s operation.SkipCount) web.Object { return web.Object{"code", s.Code, "count", s.Count} }),
	}
}

// shapeCause is a cause of failures with what is known of it: an error group, or the type of
// jobs that have none.
func shapeCause(c operation.Cause, about ...any) web.Object {
	return append(web.Object{"group?", c.Group, "class?", c.Class, "type?", c.Type}, about...)
}

// shapeProgress says how the canary fared, and what the guard sees of the
// replays that ended last. Of those, guard_same failed again in the same way.
// Of the unsettled ones, sources have some, and of the returned ones among those they
// have said nothing for so long that no more is expected.
func (a *API) shapeProgress(p operation.Progress) web.Object {
	c, h := p.Canary, p.Handed
	var back web.Object // the error that came back most often
	if p.BackN > 0 {
		back = shapeCause(p.Back, "count", p.BackN)
	}
	return web.Object{
		"canary_succeeded", c.Succeeded, "canary_relapsed", c.Relapsed, "canary_dropped", c.Dropped, "canary_unknown", c.Unknown,
		"canary_unsettled", c.Unsettled(), "canary_at_source", c.Handed.AtSource, "canary_returned", c.Handed.Returned,
		"at_source", h.AtSource, "returned", h.Returned, "source?", h.Source, "source_reports?", a.sourceReports(h.Source),
		"returned_until?", h.Until,
		"canary_causes", web.List(c.Causes, func(c operation.CauseCanary) web.Object {
			return shapeCause(c.Cause, "succeeded", c.Succeeded, "relapsed", c.Relapsed, "dropped", c.Dropped, "unknown", c.Unknown,
				"unsettled", c.Unsettled())
		}),
		"guard_ended", p.Ended, "guard_same", p.Same, "guard_back?", back,
	}
}

// shapeItem is one job of an operation, and what became of it.
func shapeItem(it operation.Item) web.Object {
	return web.Object{
		"n", it.N, "job_id?", it.Job.ID, "type?", it.Job.Type, "queue?", it.Job.Queue, "run", it.Run, "state", it.State,
		"code?", it.Code, "why?", it.Why, "other_operation?", it.Other, "at?", it.At, "outcome?", it.Outcome, "ended_at?", it.EndedAt,
		"returned?", it.Outcome == "" && it.Job.Run == it.Run+1 && source.Returned(it.Job, time.Now()),
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

// operation is GET /operations/{id}: its progress, its scope, and who did what
// to it.
func (a *API) operation(c echo.Context) (web.Object, error) {
	ctx := c.Request().Context()
	o, err := a.paramOperation(c)
	if err != nil {
		return nil, err
	}
	b, err := a.Breakdown(ctx, o.ID)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	p, err := a.View.QuickProgress(ctx, now, o)
	if err != nil {
		return nil, err
	}
	if p.Handed, err = a.View.Handed(ctx, now, o); err != nil {
		return nil, err
	}
	if p.Canary.Causes, err = a.View.CanaryCauses(ctx, o); err != nil {
		return nil, err
	}
	log, err := a.View.OperationLog(ctx, o.ID, web.CallerOf(c).Role.May(access.Manage))
	return web.Object{
		"operation", shapeOperation(o), "progress", a.shapeProgress(p), "breakdown", shapeBreakdown(b),
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

// operationActs make an operation on many jobs, start it and steer it. The
// engine is notified after each of them, so that a pause takes effect at once.
func (a *API) operationActs() []Act {
	v := a.View
	acts := []Act{{"/operations", a.newOperation}}
	for _, act := range []struct {
		name string
		pace paceReader
		do   func(context.Context, time.Time, int64, operation.Pace, audit.Actor) (operation.Operation, error)
	}{
		{"start", readStart, v.StartOperation},
		{"rate", readRate, v.SetRate},
		{"pause", readNoPace, paceless(v.PauseOperation)},
		{"resume", readNoPace, paceless(v.ResumeOperation)},
		{"resume-passed", readNoPace, paceless(v.ResumePassed)},
		{"abort", readNoPace, paceless(v.AbortOperation)},
	} {
		acts = append(acts, Act{"/operations/:id/" + act.name, func(c echo.Context) (Outcome, error) {
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
		}})
	}
	return acts
}

// operationOutcome leads back to the page of the operation.
func operationOutcome(o operation.Operation) Outcome {
	return Outcome{Says: web.Object{"operation", shapeOperation(o)}, Page: fmt.Sprintf("/operations/%d", o.ID)}
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
