package pages

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/server/api"
	"redrive/internal/server/web"
	"redrive/web/templates/adminpage"
)

// access is the page /access: users, who is logged in, and tokens.
func (p *Pages) access(c echo.Context) error {
	return p.showAccess(c, http.StatusOK, adminpage.Access{})
}

// showAccess shows the page with what an act on it has to say.
func (p *Pages) showAccess(c echo.Context, status int, v adminpage.Access) error {
	ctx, who := c.Request().Context(), web.CallerOf(c)
	v.Frame = p.frame(c, "Access", "access")
	v.Open, v.Proxied = p.options.Open(), p.Config.Proxy() != nil
	var r reads
	into(&r, &v.Users)(p.View.Users(ctx))
	into(&r, &v.Sessions)(p.View.Sessions(ctx, v.Now))
	into(&r, &v.Tokens)(p.View.Tokens(ctx))
	if r.err != nil {
		return r.err
	}
	slices.SortStableFunc(v.Tokens, func(a, b access.Token) int { return cmp.Compare(over(a, v.Now), over(b, v.Now)) })
	v.Own = access.Session{Hash: who.Session}.ID()
	return p.Show(c, status, v.Page())
}

// over sorts tokens that let nobody in behind the others.
func over(t access.Token, now time.Time) int {
	if t.Live(now) {
		return 0
	}
	return 1
}

// accessForm answers a form of the page: by the page again, which says what is
// wrong when something is. The secret of a new token is on the page itself and
// nowhere else, so the answer is no way to another.
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
			return c.JSONBlob(out.Status, out.Says.Encode())
		}
		return p.showAccess(c, out.Status, adminpage.Access{Made: c.FormValue("name"), Secret: out.Secret})
	}
}

// accessRefused shows why users or tokens stay as they are.
func (p *Pages) accessRefused(c echo.Context, err error) error {
	var no *access.Refusal
	var field *invalid.Error
	if web.WantsJSON(c.Request()) || !errors.As(err, &no) && !errors.As(err, &field) && !errors.Is(err, access.ErrUnknown) {
		return err
	}
	f := web.Describe(err)
	return p.showAccess(c, f.Kind.Status, adminpage.Access{
		Problem: f.Text, Field: f.Field, Name: clip.Text(c.FormValue("name"), 64), Role: access.Role(c.FormValue("role")),
	})
}

// audit is the page /audit.
func (p *Pages) audit(c echo.Context) error {
	f, after, err := web.AuditQuery(c)
	v := adminpage.Audit{Frame: p.frame(c, "Audit", "audit"), Filter: f, After: after, Own: f.Reveals != ""}
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
