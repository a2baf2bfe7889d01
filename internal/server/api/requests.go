package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype/work"
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
		n.Relapsed, err = strconv.ParseInt(form.Get("relapsed"), 10, 64)
		if err != nil || n.Relapsed < 1 {
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

	f.To, err = time.Parse(time.RFC3339Nano, drawn)
	if err != nil {
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

	in := work.NewOperation{}

	err = decode("", data, &in, func(member, path string, raw json.RawMessage) (err error) {
		switch member {
		case "filter":
			n.Filter, err = filter.Parse(*in.Filter, time.Now())
			err = aboutFilter(err)
		case "relapsed_of":
			if *in.RelapsedOf < 1 {
				err = errors.New("is not the number of an operation")
			}
		case "jobs":
			n.Named, err = namedJobs(path, raw)
		default:
			err = checkPace(member, in.PaceRequest)
		}

		return err
	})
	if err != nil {
		return err
	}

	// Exactly one of the three says which jobs are meant.
	scopes := 0
	for _, given := range []bool{in.Filter != nil, in.RelapsedOf != nil, n.Named != nil} {
		if given {
			scopes++
		}
	}

	if scopes != 1 {
		return &invalid.Error{Field: "filter", Problem: "send one of filter, jobs and relapsed_of"}
	}

	n.Kind, n.Start = in.Kind, in.Start
	if in.RelapsedOf != nil {
		n.Relapsed = *in.RelapsedOf
	}

	// A repeat of the request is known by its key and by what it asked for.
	setPace(&n.Pace, in.PaceRequest)
	n.Key, err = key(c)
	n.Caller, n.Content = web.CallerOf(c).Scope(), hash(string(data))

	return err
}

// namedJobs reads a list of jobs with their runs.
func namedJobs(path string, raw json.RawMessage) ([]operation.Named, error) {
	all := []operation.Named{}
	for part := range rawjson.Elements(raw) {
		if len(all) == operation.MaxNamed {
			return nil, &invalid.Error{Field: path, Problem: fmt.Sprintf("more than %d jobs; use a filter", operation.MaxNamed)}
		}

		at := path + "[" + strconv.Itoa(len(all)) + "]"
		var in work.JobRun

		err := decode(at, part, &in, nil)
		if err == nil {
			in.ID, err = job.ParseID(in.ID)
			err = within(at, cmp.Or(err, checkRun(in.Run)))
		}

		if err != nil {
			return nil, err
		}

		all = append(all, operation.Named{ID: in.ID, Run: in.Run})
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
		var in work.PaceRequest
		err := readSmall(c, &in, func(member, _ string, _ json.RawMessage) error { return checkPace(member, in) })
		p := agreed(o)
		setPace(&p, in)

		return p, cmp.Or(err, p.Check())
	}

	p, _, err := paceForm(c, agreed(o))
	if text := c.FormValue("guard"); text != "" {
		p.Guard = text != "off"
	}

	if err == nil && c.Request().Form.Has("canary") { // a field that the user has cleared: none
		text := cmp.Or(strings.TrimSpace(c.FormValue("canary")), "0")

		p.Canary, err = strconv.ParseInt(text, 10, 32)
		if err != nil || p.Canary < 0 {
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
		var in work.PaceRequest
		err = readSmall(c, &in.RateRequest, func(member, _ string, _ json.RawMessage) error { return checkPace(member, in) })
		p, said = agreed(o), in.Rate != nil || in.Spread != nil
		setPace(&p, in)
		err = cmp.Or(err, p.Check())
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

// checkPace checks a member that describes a pace.
func checkPace(member string, in work.PaceRequest) error {
	switch {
	case member == "spread":
		return longerThanZero(in.Spread)
	case member == "canary" && *in.Canary < 0:
		return errors.New("must be 0, for none, or more")
	}

	return nil
}

// setPace changes a pace as a request says. A rate replaces a spread and the other way
// round.
func setPace(p *operation.Pace, in work.PaceRequest) {
	if in.Rate != nil || in.Spread != nil {
		p.Rate, p.Spread = 0, 0
	}

	if in.Rate != nil {
		p.Rate = *in.Rate
	}

	if in.Spread != nil {
		p.Spread = time.Duration(*in.Spread)
	}

	if in.Canary != nil {
		p.Canary = *in.Canary
	}

	if in.Guard != nil {
		p.Guard = *in.Guard
	}
}
