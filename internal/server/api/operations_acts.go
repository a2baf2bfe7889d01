package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/server/web"
)

// operationActs begin an operation on many jobs, and do what people ask of it.
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

func operationOutcome(o operation.Operation) Outcome {
	return Outcome{Says: web.Object{"operation", shapeOperation(o)}, Page: fmt.Sprintf("/operations/%d", o.ID)}
}

// paceless is an act that says nothing about the pace.
func paceless(do func(context.Context, time.Time, int64, audit.Actor) (operation.Operation, error)) func(
	context.Context, time.Time, int64, operation.Pace, audit.Actor) (operation.Operation, error) {
	return func(ctx context.Context, now time.Time, id int64, _ operation.Pace, by audit.Actor) (operation.Operation, error) {
		return do(ctx, now, id, by)
	}
}

// newOperation is POST /operations. A repeat of an idempotency key is answered
// with the first operation, wherever that is by now, and 200.
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

// begin makes an operation.
func (a *API) begin(c echo.Context, n operation.Request) (o operation.Operation, err error) {
	if err := n.Kind.Check(); err != nil {
		return o, err
	}
	if n.Named == nil && n.Relapsed == 0 {
		if n.Filter.Zero() {
			return o, &invalid.Error{Field: "filter", Problem: "is empty, which would be every job; write state:dead_letter for all dead letters"}
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
	return o, err
}

// aboutFilter says of what is wrong with a filter that it stands in the one
// field that holds all of it.
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

// readRequestForm reads what a form acts on: a filter, jobs that were ticked, or
// what failed again.
func readRequestForm(c echo.Context, n *operation.Request) (err error) {
	if err := web.ReadFormOf(c, maxTicks); err != nil {
		return err
	}
	form := c.Request().Form
	n.Kind = operation.Kind(form.Get("kind"))
	switch {
	case form.Has("relapsed"):
		if n.Relapsed, err = strconv.ParseInt(form.Get("relapsed"), 10, 64); err != nil || n.Relapsed < 1 {
			return &invalid.Error{Field: "relapsed", Problem: "is not the number of an operation"}
		}
	case form.Has("q"):
		n.Filter, err = filter.Parse(form.Get("q"), time.Now())
		err = aboutFilter(err)
	case form.Has("item"):
		n.Named, err = ticked(form["item"])
	default:
		err = &invalid.Error{Field: "item", Problem: "is missing: tick at least one row"}
	}
	return err
}

// ticked reads ticks: ID:RUN.
func ticked(ticks []string) (all []operation.Named, err error) {
	for _, tick := range ticks {
		id, run, _ := strings.Cut(tick, ":")
		n, err := strconv.Atoi(run)
		if id, err2 := job.ParseID(id); err == nil && err2 == nil && n > 0 {
			all = append(all, operation.Named{ID: id, Run: n})
			continue
		}
		return nil, &invalid.Error{Field: "item", Problem: fmt.Sprintf("%q is not a job and its run, as ID:RUN", clip.Text(tick, 64))}
	}
	return all, nil
}

// readRequest reads what a program acts on.
func readRequest(c echo.Context, n *operation.Request) error {
	data, err := readBody(c, maxTicks)
	if err != nil {
		return err
	}
	scopes := 0
	scope := func(read reader) reader {
		return func(path string, raw json.RawMessage) error { scopes++; return read(path, raw) }
	}
	read := paceFields(&n.Pace)
	read["kind"] = value(&n.Kind, "replay, discard or restore")
	read["start"] = value(&n.Start, "true or false")
	read["filter"] = scope(func(path string, raw json.RawMessage) (err error) {
		var text string
		if err := value(&text, "a filter as text")(path, raw); err != nil {
			return err
		}
		n.Filter, err = filter.Parse(text, time.Now())
		return aboutFilter(err)
	})
	read["relapsed_of"] = scope(checked(&n.Relapsed, "the number of an operation", func(id int64) string {
		if id < 1 {
			return "is not the number of an operation"
		}
		return ""
	}))
	read["jobs"] = scope(func(path string, raw json.RawMessage) (err error) {
		n.Named, err = namedJobs(path, raw)
		return err
	})
	if err := read.read("", data); err != nil {
		return err
	}
	if scopes != 1 {
		return &invalid.Error{Field: "filter", Problem: "say what to act on by one of filter, jobs and relapsed_of"}
	}
	n.Key, err = key(c)
	return err
}

// namedJobs reads a list of jobs and their runs.
func namedJobs(path string, raw json.RawMessage) ([]operation.Named, error) {
	if first(raw) != '[' {
		return nil, wrongType(path, `a list of {"id", "run"}`, raw)
	}
	all := []operation.Named{}
	for part := range parts(raw) {
		if len(all) == operation.MaxNamed {
			return nil, &invalid.Error{Field: path, Problem: fmt.Sprintf("more than %d jobs; use a filter", operation.MaxNamed)}
		}
		at := path + "[" + strconv.Itoa(len(all)) + "]"
		n := operation.Named{}
		err := fields{"id": value(&n.ID, "a job's id"), "run": value(&n.Run, "a number")}.read(at, part)
		if err == nil {
			n.ID, err = job.ParseID(n.ID)
		}
		if err == nil {
			err = checkRun(n.Run)
		}
		if err != nil {
			return nil, within(at, err)
		}
		all = append(all, n)
	}
	if len(all) == 0 {
		return nil, &invalid.Error{Field: path, Problem: "must name at least one job"}
	}
	return all, nil
}
