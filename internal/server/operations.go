package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/wire"
	"redrive/web/templates/operationpage"
)

// maxTicks bounds a form that names many jobs.
const maxTicks = 512 << 10

// operationRoutes adds what acts on many jobs at once.
func (s *Server) operationRoutes() {
	const page, v1 = "/operations", "/api/v1/operations"
	s.get(page, access.View, s.operations)
	s.get(page+"/:id", access.View, s.operation)
	s.exportRoutes(page+"/:id/items", s.itemSheet)
	s.post(page, access.Operate, s.operationForm)
	s.get(v1, access.View, s.listOperations)
	s.get(v1+"/:id", access.View, s.showOperation)
	s.get(v1+"/:id/items", access.View, s.listItems)
	s.get(v1+"/:id/rate", access.View, s.showRate)
	s.post(v1, access.Operate, s.newOperation)
	for _, act := range []struct {
		name string
		form paceReader // what the act is told by a form,
		body paceReader // and by a program
		do   func(echo.Context, operation.Operation, operation.Pace, audit.Actor) (operation.Operation, error)
	}{
		{"start", startForm, startBody, s.startOperation},
		{"rate", rateForm, rateBody, s.rateOperation},
		{"pause", noForm, noBody, s.pauseOperation},
		{"resume", noForm, noBody, s.resumeOperation},
		{"abort", noForm, noBody, s.abortOperation},
	} {
		s.post(page+"/:id/"+act.name, access.Operate, func(c echo.Context) error {
			o, err := s.actOnOperation(c, "dashboard", act.form, act.do)
			if err != nil {
				return err
			}
			return done(c, operationPath(o.ID), "operation", encode(operationOf(o)))
		})
		s.post(v1+"/:id/"+act.name, access.Operate, func(c echo.Context) error {
			o, err := s.actOnOperation(c, "api", act.body, act.do)
			if err != nil {
				return err
			}
			return c.JSONBlob(http.StatusOK, object("operation", encode(operationOf(o))))
		})
	}
}

func operationPath(id int64) string { return fmt.Sprintf("/operations/%d", id) }

// paceReader reads the pace that a request asks for: what it leaves out stays as
// it was agreed, of a rate that came of a spread the spread.
type paceReader func(c echo.Context, was operation.Pace) (operation.Pace, error)

// actOnOperation does what a person asks of the operation in the address.
func (s *Server) actOnOperation(c echo.Context, way string, read paceReader,
	do func(echo.Context, operation.Operation, operation.Pace, audit.Actor) (operation.Operation, error),
) (operation.Operation, error) {
	id, err := paramOperation(c)
	if err != nil {
		return operation.Operation{}, err
	}
	o, err := s.Store.Operation(c.Request().Context(), id)
	if err != nil {
		return o, err
	}
	was := o.Pace
	if was.Spread > 0 {
		was.Rate = 0
	}
	pace, err := read(c, was)
	if err != nil {
		return o, err
	}
	o, err = do(c, o, pace, s.actor(way, c))
	s.Wake()
	return o, err
}

func (s *Server) startOperation(c echo.Context, o operation.Operation, p operation.Pace, by audit.Actor) (operation.Operation, error) {
	if err := confirmed(c, o); err != nil {
		return o, err
	}
	return s.Store.StartOperation(c.Request().Context(), time.Now(), o.ID, p, by)
}

func (s *Server) rateOperation(c echo.Context, o operation.Operation, p operation.Pace, by audit.Actor) (operation.Operation, error) {
	return s.Store.SetRate(c.Request().Context(), time.Now(), o.ID, p, by)
}

func (s *Server) pauseOperation(c echo.Context, o operation.Operation, _ operation.Pace, by audit.Actor) (operation.Operation, error) {
	return s.Store.PauseOperation(c.Request().Context(), time.Now(), o.ID, by)
}

func (s *Server) resumeOperation(c echo.Context, o operation.Operation, _ operation.Pace, by audit.Actor) (operation.Operation, error) {
	return s.Store.ResumeOperation(c.Request().Context(), time.Now(), o.ID, by)
}

func (s *Server) abortOperation(c echo.Context, o operation.Operation, _ operation.Pace, by audit.Actor) (operation.Operation, error) {
	return s.Store.AbortOperation(c.Request().Context(), time.Now(), o.ID, by)
}

// confirmed refuses to start a large operation by a form in which nobody typed
// how many jobs it is. Programs have no slips of the hand.
func confirmed(c echo.Context, o operation.Operation) error {
	if strings.HasPrefix(c.Path(), "/api/") || o.Pending <= operation.ConfirmAbove {
		return nil
	}
	typed := strings.NewReplacer(",", "", " ", "", ".", "").Replace(c.FormValue("confirm"))
	if typed != strconv.FormatInt(o.Pending, 10) {
		return &invalid.Error{Field: "confirm", Problem: fmt.Sprintf("type %d, the number of jobs that this acts on", o.Pending)}
	}
	return nil
}

func paramOperation(c echo.Context) (int64, error) {
	id, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, &failure{badParameter, "id", "is not the number of an operation", nil}
	}
	return id, nil
}

// operations is the page /operations.
func (s *Server) operations(c echo.Context) error {
	after, err := number(c, "after")
	if err != nil {
		return err
	}
	v := operationpage.List{Frame: s.frame(c, "Operations", "operations"), After: after}
	if v.List, err = s.Store.Operations(c.Request().Context(), after, pageLimit); err != nil {
		return err
	}
	return s.page(c, http.StatusOK, v.Page())
}

// openOperations are those that the overview shows: a preview concerns who asked
// for it alone.
func (s *Server) openOperations(ctx context.Context) ([]operation.Operation, error) {
	all, err := s.Store.OpenOperations(ctx)
	all = slices.DeleteFunc(all, func(o operation.Operation) bool { return o.State == operation.Preview })
	return all[:min(len(all), openLimit)], err
}

// openLimit is how many operations the overview shows.
const openLimit = 5

// number is a number in the address, 0 when there is none.
func number(c echo.Context, name string) (int64, error) {
	text := c.QueryParam(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, &failure{badParameter, name, "is not a number that a list returned", nil}
	}
	return n, nil
}

// operation is the page /operations/{id}: a preview, or how far it is.
func (s *Server) operation(c echo.Context) error {
	ctx := c.Request().Context()
	id, err := paramOperation(c)
	if err != nil {
		return err
	}
	v := operationpage.View{Show: c.QueryParam("state")}
	if v.Operation, v.Filter, err = s.Store.scoped(ctx, id); err != nil {
		return err
	}
	if v.After, err = number(c, "after"); err != nil {
		return err
	}
	show, err := itemFilter(v.Show)
	if err != nil {
		return err
	}
	v.Frame = s.frame(c, fmt.Sprintf("Operation %d", id), "operations")
	if v.Filter.Searches() {
		v.Indexing = s.Store.Filling()
		if v.Lag, err = s.Store.SearchLag(ctx); err != nil {
			return err
		}
	}
	if v.Breakdown, err = s.Store.Breakdown(ctx, id); err != nil {
		return err
	}
	if v.Items, err = s.Store.Items(ctx, id, show, v.After, pageLimit); err != nil {
		return err
	}
	if v.Log, err = s.Store.OperationLog(ctx, id); err != nil {
		return err
	}
	if v.Progress, err = s.Store.Progress(ctx, v.Frame.Now, v.Operation); err != nil {
		return err
	}
	if v.Operation.State == operation.Collecting { // until there is something to decide
		c.Response().Header().Set("Refresh", "1")
	}
	return s.page(c, http.StatusOK, v.Page())
}

// operationForm begins an operation, and leads to its preview. The form says
// what to act on: a filter, jobs that were ticked, or what failed again.
func (s *Server) operationForm(c echo.Context) error {
	if err := readFormOf(c, maxTicks); err != nil {
		return err
	}
	n := operation.Request{Kind: operation.Kind(c.FormValue("kind")), Pace: operation.Pace{Canary: -1, Guard: true}}
	form := c.Request().Form
	var err error
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
	if err != nil {
		return err
	}
	o, err := s.begin(c, n, s.actor("dashboard", c))
	if err != nil {
		return err
	}
	if wantsJSON(c.Request()) {
		return c.JSONBlob(http.StatusCreated, object("operation", encode(operationOf(o))))
	}
	return c.Redirect(http.StatusSeeOther, operationPath(o.ID))
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

// begin makes an operation.
func (s *Server) begin(c echo.Context, n operation.Request, by audit.Actor) (o operation.Operation, err error) {
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
		return o, &invalid.Error{Field: "jobs", Problem: fmt.Sprintf("%d jobs; name at most %d, or use a filter", len(n.Named), operation.MaxNamed)}
	}
	if err := cmp.Or(aboutFilter(n.Filter.Check()), n.Pace.Check()); err != nil {
		return o, err
	}
	o, err = s.Store.NewOperation(c.Request().Context(), time.Now(), n, by)
	s.Wake()
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

// startForm reads at which pace to start.
func startForm(c echo.Context, was operation.Pace) (operation.Pace, error) {
	p, _, err := spokenRate(c, was)
	if text := c.FormValue("guard"); text != "" {
		p.Guard = text != "off"
	}
	if text := strings.TrimSpace(c.FormValue("canary")); err == nil && text != "" {
		if p.Canary, err = strconv.ParseInt(text, 10, 32); err != nil || p.Canary < 0 {
			return p, &invalid.Error{Field: "canary", Problem: "must be a number of jobs, 0 for none"}
		}
	}
	return p, cmp.Or(err, p.Check())
}

// rateForm reads another rate, or a time over which to spread.
func rateForm(c echo.Context, was operation.Pace) (operation.Pace, error) {
	p, said, err := spokenRate(c, was)
	if err == nil && !said {
		err = noRate()
	}
	return p, cmp.Or(err, p.Check())
}

// noRate refuses to change a rate for want of a word.
func noRate() error {
	return &invalid.Error{Field: "rate", Problem: "is missing; say a rate, or a spread"}
}

// spokenRate reads the rate of a form, or the time over which to spread, which
// counts when both are given: the page sends its rate along. said is false where
// there is neither.
func spokenRate(c echo.Context, was operation.Pace) (p operation.Pace, said bool, err error) {
	if err := readForm(c); err != nil {
		return was, false, err
	}
	if text := strings.TrimSpace(c.FormValue("spread")); text != "" {
		over, err := wire.ParseGoDuration(text)
		if err != nil || over <= 0 {
			return was, false, &invalid.Error{Field: "spread", Problem: fmt.Sprintf("%q is not a duration as 10m or 2h", clip.Text(text, 64))}
		}
		was.Rate, was.Spread = 0, over
		return was, true, nil
	}
	if text := strings.TrimSpace(c.FormValue("rate")); text != "" {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return was, false, &invalid.Error{Field: "rate", Problem: fmt.Sprintf("%q is not a number of jobs a second", clip.Text(text, 64))}
		}
		was.Rate, was.Spread = rate, 0
		return was, true, nil
	}
	return was, false, nil
}

func noForm(c echo.Context, was operation.Pace) (operation.Pace, error) { return was, readForm(c) }
