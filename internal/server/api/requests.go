package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/clip"
	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/rawjson"
	"redrive/internal/server/web"
	"redrive/internal/wire"
)

// readRequestForm reads what a form acts on: a filter, the jobs that were
// ticked, or the jobs of another operation that failed again.
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
	case form.Has("group"):
		n.Filter, err = deadOf(form["group"], form.Get("to"))
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

// deadOf selects the jobs of error groups that were dead when the page was drawn.
func deadOf(groups []string, drawn string) (f filter.Filter, err error) {
	f = filter.Filter{Status: job.StatusDeadLetter, Group: strings.Join(groups, ",")}
	if f.To, err = time.Parse(time.RFC3339Nano, drawn); err != nil {
		return f, &invalid.Error{Field: "to", Problem: fmt.Sprintf("%q is not a time such as 2026-03-12T14:00:00Z", clip.Text(drawn, 64))}
	}
	return f, nil
}

// ticked reads the values of checkboxes, ID:RUN. The run is the one that the row
// showed.
func ticked(ticks []string) (all []operation.Named, err error) {
	for _, tick := range ticks {
		id, run, _ := strings.Cut(tick, ":")
		n, err := strconv.Atoi(run)
		if id, err2 := job.ParseID(id); err == nil && err2 == nil && n > 0 {
			all = append(all, operation.Named{ID: id, Run: n})
			continue
		}
		return nil, &invalid.Error{Field: "item", Problem: fmt.Sprintf("%q is not a job and its run, written ID:RUN", clip.Text(tick, 64))}
	}
	return all, nil
}

// readRequest reads what a program acts on. Exactly one scope must be given,
// because an act on the wrong jobs is worse than none.
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
		return &invalid.Error{Field: "filter", Problem: "send one of filter, jobs and relapsed_of"}
	}
	n.Key, err = key(c)
	n.Caller, n.Content = web.CallerOf(c).Scope(), hash(string(data))
	return err
}

// namedJobs reads a list of jobs with their runs.
func namedJobs(path string, raw json.RawMessage) ([]operation.Named, error) {
	if rawjson.Kind(raw) != '[' {
		return nil, wrongType(path, `a list of {"id", "run"}`, raw)
	}
	all := []operation.Named{}
	for part := range rawjson.Elements(raw) {
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

// A paceReader reads the pace that a request asks for. What the request leaves
// out stays as it was agreed before.
type paceReader func(c echo.Context, o operation.Operation) (operation.Pace, error)

// agreed is the pace that an operation has now. A rate that was computed from a
// spread is left out in favour of the spread.
func agreed(o operation.Operation) operation.Pace {
	was := o.Pace
	if was.Spread > 0 {
		was.Rate = 0
	}
	return was
}

// readStart reads the pace at which to start.
func readStart(c echo.Context, o operation.Operation) (operation.Pace, error) {
	if !web.IsForm(c) {
		p, _, err := paceBody(c, agreed(o), "rate", "spread", "canary", "guard")
		return p, err
	}
	p, _, err := paceForm(c, agreed(o))
	if text := c.FormValue("guard"); text != "" {
		p.Guard = text != "off"
	}
	if err == nil && c.Request().Form.Has("canary") { // a field that the user has cleared: none
		text := cmp.Or(strings.TrimSpace(c.FormValue("canary")), "0")
		if p.Canary, err = strconv.ParseInt(text, 10, 32); err != nil || p.Canary < 0 {
			return p, &invalid.Error{Field: "canary", Problem: "must be a number of jobs, 0 for none"}
		}
	}
	return p, cmp.Or(err, p.Check(), confirmed(c, o))
}

// confirmed refuses to start a large operation from a form in which the person
// did not type how many jobs it acts on. Programs are not asked: they do not
// click by mistake.
func confirmed(c echo.Context, o operation.Operation) error {
	if o.Pending <= operation.ConfirmAbove {
		return nil
	}
	typed := strings.NewReplacer(",", "", " ", "", ".", "").Replace(c.FormValue("confirm"))
	if typed != strconv.FormatInt(o.Pending, 10) {
		return &invalid.Error{Field: "confirm", Problem: fmt.Sprintf("type %d, the number of affected jobs", o.Pending)}
	}
	return nil
}

// readRate reads another rate, or a duration over which to spread what is left.
func readRate(c echo.Context, o operation.Operation) (p operation.Pace, err error) {
	said := false
	if web.IsForm(c) {
		p, said, err = paceForm(c, agreed(o))
	} else {
		p, said, err = paceBody(c, agreed(o), "rate", "spread")
	}
	if err == nil && !said {
		err = &invalid.Error{Field: "rate", Problem: "is missing; enter a rate or a spread"}
	}
	return p, cmp.Or(err, p.Check())
}

// readNoPace reads a request that leaves the pace alone.
func readNoPace(c echo.Context, o operation.Operation) (operation.Pace, error) {
	return o.Pace, readNothing(c)
}

// paceForm reads the rate of a form, or the duration over which to spread the
// jobs. The duration wins when both are given, because the page always sends its
// rate along. said is false when there is neither.
func paceForm(c echo.Context, was operation.Pace) (p operation.Pace, said bool, err error) {
	if err := web.ReadForm(c); err != nil {
		return was, false, err
	}
	if text := strings.TrimSpace(c.FormValue("spread")); text != "" {
		over, err := wire.ParseDuration(text)
		if err != nil || over <= 0 {
			return was, false, &invalid.Error{Field: "spread", Problem: fmt.Sprintf("%q is not a duration such as 10m or 2h", clip.Text(text, 64))}
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

// paceFields reads the members of a body that describe a pace.
func paceFields(p *operation.Pace) fields {
	return fields{
		"rate":   value(&p.Rate, "a number of jobs a second"),
		"spread": positive(&p.Spread),
		"canary": checked(&p.Canary, "a whole number of jobs", func(n int64) string {
			if n < 0 {
				return "must be 0, for none, or more"
			}
			return ""
		}),
		"guard": value(&p.Guard, "true or false"),
	}
}

// paceBody reads some members of a pace from a body that may be missing. A rate
// replaces a spread and the other way round; said is false when there is
// neither.
func paceBody(c echo.Context, was operation.Pace, members ...string) (p operation.Pace, said bool, err error) {
	p = operation.Pace{Rate: math.NaN(), Canary: was.Canary, Guard: was.Guard}
	all, known := paceFields(&p), fields{}
	for _, name := range members {
		known[name] = all[name]
	}
	if err := readSmall(c, known); err != nil {
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
