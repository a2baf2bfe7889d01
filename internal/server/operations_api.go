package server

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/operation"
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

func operationOf(o operation.Operation) operationShape {
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

func breakdownOf(b operation.Breakdown) breakdownShape {
	shape := breakdownShape{[]scopeShape{}, []skipShape{}}
	for _, p := range b.Scope {
		shape.Scope = append(shape.Scope, scopeShape(p))
	}
	for _, c := range b.Skips {
		shape.Skips = append(shape.Skips, skipShape(c))
	}
	return shape
}

// listOperations is GET /operations, the newest first.
func (s *Server) listOperations(c echo.Context) error {
	after, limit, err := numbered(c)
	if err != nil {
		return err
	}
	page, err := s.View.Operations(c.Request().Context(), after, limit)
	if err != nil {
		return err
	}
	all := make([][]byte, len(page.Operations))
	for i, o := range page.Operations {
		all[i] = encode(operationOf(o))
	}
	return c.JSONBlob(http.StatusOK, object("operations", list(all), endOf(page.Next, false)...))
}

// numbered reads where a page of a list begins whose rows have numbers, and how
// many rows a program wants.
func numbered(c echo.Context) (after int64, limit int, err error) {
	if after, err = number(c, "after"); err != nil {
		return 0, 0, err
	}
	limit, err = pageSize(c.QueryParams())
	return after, limit, inAddress(err)
}

// endOf is what an answer says about the end of a list: where the next page
// begins, when there is one, and whether more may match than was found in time.
func endOf[C string | int64](next C, slow bool) (more []any) {
	if next != *new(C) {
		more = append(more, "next", encode(next))
	}
	if slow {
		more = append(more, "incomplete", encode(true))
	}
	return more
}

// showOperation is GET /operations/{id}: how far it is, what its scope is
// made of, and who did what to it.
func (s *Server) showOperation(c echo.Context) error {
	id, err := paramOperation(c)
	if err != nil {
		return err
	}
	o, err := s.View.Operation(c.Request().Context(), id)
	if err != nil {
		return err
	}
	b, err := s.View.Breakdown(c.Request().Context(), id)
	if err != nil {
		return err
	}
	p, err := s.View.QuickProgress(c.Request().Context(), o)
	if err != nil {
		return err
	}
	log, err := s.View.OperationLog(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, object("operation", encode(operationOf(o)), "progress", encode(progressOf(p)),
		"breakdown", encode(breakdownOf(b)), "skipped", encodeItems(b.Skipped), "log", encodeEntries(log)))
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

func progressOf(p operation.Progress) progressShape {
	c := p.Canary
	return progressShape{c.Succeeded, c.Relapsed, c.Dropped, c.Unsettled(), p.Ended, p.Same}
}

// showRate is GET /operations/{id}/rate: how many jobs were done in each step of
// its time.
func (s *Server) showRate(c echo.Context) error {
	id, err := paramOperation(c)
	if err != nil {
		return err
	}
	o, err := s.View.Operation(c.Request().Context(), id)
	if err != nil {
		return err
	}
	p, err := s.View.Progress(c.Request().Context(), time.Now(), o)
	if err != nil {
		return err
	}
	if len(p.Rate.Done) == 0 {
		return c.JSONBlob(http.StatusOK, object("done", list(nil)))
	}
	return c.JSONBlob(http.StatusOK, object("from", encode(wire.FormatTime(p.Rate.From)), "step_seconds", encode(p.Rate.Step.Seconds()),
		"done", encode(p.Rate.Done)))
}

// newOperation is POST /operations. A repeat of an idempotency key is answered
// with the first operation, wherever that is by now, and 200.
func (s *Server) newOperation(c echo.Context) error {
	data, err := body(c, maxTicks)
	if err != nil {
		return err
	}
	n := operation.Request{Pace: operation.Pace{Canary: -1, Guard: true}}
	scopes := 0
	read := paceFields(&n.Pace)
	read["kind"] = value(&n.Kind, "replay, discard or restore")
	read["start"] = value(&n.Start, "true or false")
	read["filter"] = func(path string, raw json.RawMessage) (err error) {
		scopes++
		var text string
		if err := value(&text, "a filter as text")(path, raw); err != nil {
			return err
		}
		n.Filter, err = filter.Parse(text, time.Now())
		return aboutFilter(err)
	}
	read["relapsed_of"] = func(path string, raw json.RawMessage) error {
		scopes++
		err := value(&n.Relapsed, "the number of an operation")(path, raw)
		if err == nil && n.Relapsed < 1 {
			err = &invalid.Error{Field: path, Problem: "is not the number of an operation"}
		}
		return err
	}
	read["jobs"] = func(path string, raw json.RawMessage) (err error) {
		scopes++
		n.Named, err = namedJobs(path, raw)
		return err
	}
	if err := read.read("", data); err != nil {
		return err
	}
	if scopes != 1 {
		return &invalid.Error{Field: "filter", Problem: "say what to act on by one of filter, jobs and relapsed_of"}
	}
	if n.Key, err = key(c); err != nil {
		return err
	}
	o, err := s.begin(c, n, s.actor("api", c))
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if o.Repeat {
		status = http.StatusOK
	}
	c.Response().Header().Set("Location", "/api/v1"+operationPath(o.ID))
	return c.JSONBlob(status, object("operation", encode(operationOf(o))))
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

// paceFields reads the members that say a pace.
func paceFields(p *operation.Pace) fields {
	return fields{
		"rate":   value(&p.Rate, "a number of jobs a second"),
		"spread": positive(&p.Spread),
		"canary": func(path string, raw json.RawMessage) error {
			if err := value(&p.Canary, "a whole number of jobs")(path, raw); err != nil {
				return err
			}
			if p.Canary < 0 {
				return &invalid.Error{Field: path, Problem: "must be 0, for none, or more"}
			}
			return nil
		},
		"guard": value(&p.Guard, "true or false"),
	}
}

func startBody(c echo.Context, was operation.Pace) (operation.Pace, error) {
	p, _, err := paceBody(c, was, "rate", "spread", "canary", "guard")
	return p, err
}

func rateBody(c echo.Context, was operation.Pace) (operation.Pace, error) {
	p, said, err := paceBody(c, was, "rate", "spread")
	if err == nil && !said {
		err = noRate()
	}
	return p, err
}

func noBody(c echo.Context, was operation.Pace) (operation.Pace, error) {
	p, _, err := paceBody(c, was)
	return p, err
}

// paceBody reads a body that may be missing, of some members of a pace. A rate
// takes the place of a spread, and the other way round; said is false where
// there is neither.
func paceBody(c echo.Context, was operation.Pace, members ...string) (p operation.Pace, said bool, err error) {
	data, err := optional(c)
	if err != nil {
		return was, false, err
	}
	p = operation.Pace{Rate: math.NaN(), Canary: was.Canary, Guard: was.Guard}
	all, known := paceFields(&p), fields{}
	for _, name := range members {
		known[name] = all[name]
	}
	if err := known.read("", data); err != nil {
		return was, false, err
	}
	switch silent := math.IsNaN(p.Rate); {
	case silent && p.Spread == 0:
		p.Rate, p.Spread = was.Rate, was.Spread
	case silent:
		p.Rate, said = 0, true
	default:
		said = true
	}
	return p, said, p.Check()
}
