package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/audit"
	"redrive/internal/invalid"
	"redrive/internal/operation"
	"redrive/internal/server/web"
)

// operationActs make an operation on many jobs, start it and steer it. The
// engine is notified after each of them, so that a pause takes effect at once.
func (a *API) operationActs() []Act {
	v := a.View
	acts := []Act{{
		Path: "/operations", Says: "Makes an operation on many jobs", Request: work.NewOperation{},
		Answer: work.OperationAnswer{}, Created: true, Keyed: true, Do: a.newOperation,
	}}

	// All other acts differ only in how the pace is read and in what is done to the operation.
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

			// What a request leaves out of the pace stays as it was.
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
	// A request that says nothing about the pace gets a canary that suits the number of jobs,
	// and the guard.
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

	// A program is told the address of the operation in the API.
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

	// The jobs come from a filter, unless a person has selected them one by one or they are
	// those that failed again in an earlier operation.
	if n.Named == nil && n.Relapsed == 0 {
		if n.Filter.Zero() {
			return o, &invalid.Error{Field: "filter", Problem: "is empty, which would select every job; use state:dead_letter for all dead letters"}
		}

		// A filter without a state gets the one that suits the kind, for example dead letters.
		n.Filter, err = n.Kind.Scope(n.Filter)
		if err != nil {
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

	// The part that is wrong moves from the field into the text.
	problem := field.Problem
	if field.Field != "q" {
		problem = field.Field + ": " + problem
	}

	return &invalid.Error{Field: "filter", Problem: problem}
}
