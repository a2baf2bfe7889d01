package pages

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/retry"
	"redrive/internal/server/api"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
	"redrive/internal/wire"
	"redrive/web/templates"
	"redrive/web/templates/adminpage"
	"redrive/web/templates/policypage"
)

// policies is the page /policies. Its address names a policy and says what would
// be different about it; nothing is stored. Errors are shown beside their
// fields, because the user is still typing.
func (p *Pages) policies(c echo.Context) error {
	v := policypage.View{Frame: p.frame(c, "Policies", "policies"), Errors: map[string]string{}}
	v.InUse, v.Presets = web.Policies(p.Config, func(name string, p retry.Policy, ttr time.Duration) policypage.Entry {
		return policypage.Entry{Name: name, Policy: p, TTR: ttr}
	})
	values := c.QueryParams()
	name := cmp.Or(values.Get("preset"), "default")

	policy, ttr, err := p.Config.Find(name)
	if err != nil {
		v.Errors["preset"], name = err.Error(), "default"
		policy, ttr, err = p.Config.Find(name)
	}

	if err != nil { // unreachable: there is always a default
		return err
	}

	v.From = policypage.Entry{Name: name, Policy: policy, TTR: ttr}
	v.Title = v.Title + ": " + name

	q := formFields{values, v.Errors}
	v.Form, v.Policy = q.form(policy), q.policy(policy)
	if len(v.Errors) == 0 {
		v.Simulation = simulationOf(v.Policy)
		if v.Changed() {
			v.FromSimulation = simulationOf(v.From.Policy)
		}
	}

	return p.Show(c, http.StatusOK, v.Page())
}

// policyParameters are the parameters of the page /policies.
func policyParameters() []string {
	return append(slices.Sorted(maps.Keys(templates.PolicyValues(retry.Default()))), "preset")
}

// simulationOf simulates with the same random numbers each time, so that two pages
// differ only where their policies do.
func simulationOf(p retry.Policy) retry.Simulation {
	return p.Simulate(rand.New(rand.NewPCG(1, 1000)).Float64)
}

// formFields reads the fields of a policy from a form. An empty or missing field
// keeps what the policy says. Jitter alone can be turned off: both of its fields
// must be there and empty.
type formFields struct {
	values url.Values
	wrong  map[string]string
}

// form is what the fields show: what was typed, or what the policy says.
func (q formFields) form(p retry.Policy) map[string]string {
	all := templates.PolicyValues(p)
	for name := range all {
		if q.values.Has(name) {
			all[name] = clip.Text(q.values.Get(name), templates.MaxField)
		}
	}

	return all
}

// policy is p with the changes of the form.
func (q formFields) policy(p retry.Policy) retry.Policy {
	p = p.With(q.patch())
	q.noteField(p.Validate())
	return p
}

// noteField notes beside its field what is wrong with a policy. The first error
// of a field is kept.
func (q formFields) noteField(err error) {
	var wrong *invalid.Error
	if errors.As(err, &wrong) {
		field := strings.TrimPrefix(wrong.Field, "policy.")
		if field == "jitter" {
			field = "jitter_low"
		}

		q.wrong[field] = cmp.Or(q.wrong[field], wrong.Problem)
	}
}

// patch is the part of a policy that the form changes.
func (q formFields) patch() retry.Patch {
	return retry.Patch{
		Strategy:        read(q, "strategy", func(s string) (retry.Strategy, error) { return retry.Strategy(s), nil }),
		MaxAttempts:     read(q, "max_attempts", wholeNumber),
		InitialInterval: read(q, "initial_interval", wire.ParseDuration),
		Coefficient:     read(q, "coefficient", anyNumber),
		Schedule:        read(q, "schedule", durations),
		MaxInterval:     read(q, "max_interval", wire.ParseDuration),
		Jitter:          q.jitter(),
	}
}

// read reads one field, or notes what is wrong with it. nil means that the field
// says nothing.
func read[T any](q formFields, name string, parse func(string) (T, error)) *T {
	text := strings.TrimSpace(q.values.Get(name))
	if text == "" {
		return nil
	}

	if len(text) > templates.MaxField || !utf8.ValidString(text) {
		q.wrong[name] = fmt.Sprintf("must be valid UTF-8 of at most %d bytes", templates.MaxField)
		return nil
	}

	value, err := parse(text)
	if err != nil {
		q.wrong[name] = err.Error()
		return nil
	}

	return &value
}

// jitter reads a pair: both factors, or neither.
func (q formFields) jitter() *retry.Jitter {
	low, high := read(q, "jitter_low", anyNumber), read(q, "jitter_high", anyNumber)
	switch {
	case low != nil && high != nil:
		return &retry.Jitter{Low: *low, High: *high}
	case q.wrong["jitter_low"] != "" || q.wrong["jitter_high"] != "":
	case low != nil:
		q.wrong["jitter_high"] = "is empty; write both factors, or neither for no jitter"
	case high != nil:
		q.wrong["jitter_low"] = "is empty; write both factors, or neither for no jitter"
	case q.values.Has("jitter_low") && q.values.Has("jitter_high"):
		return &retry.Jitter{}
	}

	return nil
}

// wholeNumber parses a whole number.
func wholeNumber(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number, or is too large", clip.Text(s, 32))
	}

	return n, nil
}

// anyNumber parses a number.
func anyNumber(s string) (float64, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", clip.Text(s, 32))
	}

	return x, nil
}

// durations parses a list of durations.
func durations(s string) ([]time.Duration, error) {
	words := strings.Split(s, ",")
	if len(words) > retry.MaxEntries {
		return nil, fmt.Errorf("has %d entries, at most %d are allowed", len(words), retry.MaxEntries)
	}

	all := make([]time.Duration, len(words))
	for i, word := range words {
		var err error

		all[i], err = wire.ParseDuration(strings.TrimSpace(word))
		if err != nil {
			return nil, err
		}
	}

	return all, nil
}

// access is the page /access: users, who is logged in, and tokens.
func (p *Pages) access(c echo.Context) error {
	return p.showAccess(c, http.StatusOK, adminpage.Access{})
}

// showAccess shows the page with the result of an act on it.
func (p *Pages) showAccess(c echo.Context, status int, v adminpage.Access) error {
	ctx, who := c.Request().Context(), web.CallerOf(c)
	v.Frame = p.frame(c, "Access", "access")
	v.Open, v.Proxied = p.options.Open(), p.Config.Proxy().LogsIn()
	var r reads
	into(&r, &v.Users)(p.View.Users().Users(ctx))
	into(&r, &v.Sessions)(p.View.Sessions().Sessions(ctx, v.Now))
	into(&r, &v.Tokens)(p.View.Tokens().Tokens(ctx))

	if r.err != nil {
		return r.err
	}

	slices.SortStableFunc(v.Tokens, func(a, b access.Token) int { return cmp.Compare(over(a, v.Now), over(b, v.Now)) })
	v.Own = access.Session{Hash: who.Session}.ID()

	return p.Show(c, status, v.Page())
}

// over sorts the tokens that let no one in behind the others.
func over(t access.Token, now time.Time) int {
	if t.Live(now) {
		return 0
	}
	return 1
}

// accessForm answers a form of the page. What is wrong is shown on the page
// itself. So is the secret of a new token: it is nowhere else, so there is no
// redirect after which it would be lost.
func (p *Pages) accessForm(act api.Act) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := web.ReadForm(c); err != nil {
			return err
		}

		out, err := act.Do(c)
		switch {
		case err != nil:
			return p.accessRefused(c, err)
		case out.Secret == "":
			return done(c, out)
		case web.WantsJSON(c.Request()):
			return web.JSON(c, out.Status, out.Says)
		}

		return p.showAccess(c, out.Status, adminpage.Access{Made: c.FormValue("name"), Secret: out.Secret})
	}
}

// accessRefused shows why users or tokens stay as they are. What was typed stays
// too, except for passwords.
func (p *Pages) accessRefused(c echo.Context, err error) error {
	var no *access.Refusal
	var field *invalid.Error
	if web.WantsJSON(c.Request()) || !errors.As(err, &no) && !errors.As(err, &field) && !errors.Is(err, access.ErrUnknown) {
		return err
	}

	f := problem.Of(err)

	return p.showAccess(c, f.Kind.Status, adminpage.Access{
		Problem: f.Text, Field: f.Field, Name: clip.Text(c.FormValue("name"), 64), Role: access.Role(c.FormValue("role")),
	})
}

// audit is the page /audit. Those who may not manage see everything but addresses, and
// the reveals and logins of others.
func (p *Pages) audit(c echo.Context) error {
	f, after, err := web.AuditQuery(c)
	v := adminpage.Audit{Frame: p.frame(c, "Audit", "audit"), Filter: f, After: after, Own: f.Own != ""}
	if wrong := new(invalid.Error); errors.As(err, &wrong) {
		v.Errors = byField([]*invalid.Error{wrong})
		return p.Show(c, http.StatusBadRequest, v.Page())
	} else if err != nil {
		return err
	}

	var r reads
	inTime(&r, &v.List)(p.View.Audit(c.Request().Context(), f, after, web.PageLimit))
	v.Slow = r.slow

	return p.show(c, r, v.Page())
}
