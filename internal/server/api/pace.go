package api

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/operation"
	"redrive/internal/server/web"
	"redrive/internal/wire"
)

// paceReader reads the pace that a request asks for: what it leaves out stays as
// it was agreed.
type paceReader func(c echo.Context, o operation.Operation) (operation.Pace, error)

// agreed is the pace of an operation; of a rate that came of a spread, the spread.
func agreed(o operation.Operation) operation.Pace {
	was := o.Pace
	if was.Spread > 0 {
		was.Rate = 0
	}
	return was
}

// readStart reads at which pace to start.
func readStart(c echo.Context, o operation.Operation) (operation.Pace, error) {
	if !web.IsForm(c) {
		p, _, err := paceBody(c, agreed(o), "rate", "spread", "canary", "guard")
		return p, err
	}
	p, _, err := paceForm(c, agreed(o))
	if text := c.FormValue("guard"); text != "" {
		p.Guard = text != "off"
	}
	if text := strings.TrimSpace(c.FormValue("canary")); err == nil && text != "" {
		if p.Canary, err = strconv.ParseInt(text, 10, 32); err != nil || p.Canary < 0 {
			return p, &invalid.Error{Field: "canary", Problem: "must be a number of jobs, 0 for none"}
		}
	}
	return p, cmp.Or(err, p.Check(), confirmed(c, o))
}

// confirmed refuses to start a large operation by a form in which nobody typed
// how many jobs it is. Programs have no slips of the hand.
func confirmed(c echo.Context, o operation.Operation) error {
	if o.Pending <= operation.ConfirmAbove {
		return nil
	}
	typed := strings.NewReplacer(",", "", " ", "", ".", "").Replace(c.FormValue("confirm"))
	if typed != strconv.FormatInt(o.Pending, 10) {
		return &invalid.Error{Field: "confirm", Problem: fmt.Sprintf("type %d, the number of jobs that this acts on", o.Pending)}
	}
	return nil
}

// readRate reads another rate, or a time over which to spread.
func readRate(c echo.Context, o operation.Operation) (p operation.Pace, err error) {
	said := false
	if web.IsForm(c) {
		p, said, err = paceForm(c, agreed(o))
	} else {
		p, said, err = paceBody(c, agreed(o), "rate", "spread")
	}
	if err == nil && !said {
		err = &invalid.Error{Field: "rate", Problem: "is missing; say a rate, or a spread"}
	}
	return p, cmp.Or(err, p.Check())
}

func readNoPace(c echo.Context, o operation.Operation) (operation.Pace, error) {
	return o.Pace, readNothing(c)
}

// paceForm reads the rate of a form, or the time over which to spread, which
// counts when both are given: the page sends its rate along. said is false where
// there is neither.
func paceForm(c echo.Context, was operation.Pace) (p operation.Pace, said bool, err error) {
	if err := web.ReadForm(c); err != nil {
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

// paceFields reads the members that say a pace.
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

// paceBody reads a body that may be missing, of some members of a pace. A rate
// takes the place of a spread, and the other way round; said is false where
// there is neither.
func paceBody(c echo.Context, was operation.Pace, members ...string) (p operation.Pace, said bool, err error) {
	p = operation.Pace{Rate: math.NaN(), Canary: was.Canary, Guard: was.Guard}
	all, known := paceFields(&p), fields{}
	for _, name := range members {
		known[name] = all[name]
	}
	if err := readOptional(c, known); err != nil {
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
