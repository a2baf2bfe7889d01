package pages

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"redrive/internal/invalid"
	"redrive/internal/server/api"
	"redrive/internal/server/web"
)

// form answers the form of an act.
func (p *Pages) form(act api.Act) echo.HandlerFunc {
	switch act.Path {
	case "/jobs/:id/replay":
		return p.replay(act)
	case "/operations":
		return newOperation(act)
	}
	return func(c echo.Context) error { return p.act(c, act) }
}

// act does what a form asks for, and says what came of it.
func (p *Pages) act(c echo.Context, act api.Act) error {
	out, err := act.Do(c)
	if err != nil {
		return err
	}
	return done(c, out)
}

// done says what came of a form.
func done(c echo.Context, out api.Outcome) error {
	if back, ok := web.LocalPath(c.FormValue("back")); ok && out.Job != "" {
		c.Request().Form.Set("back", withActed(back, out.Job))
	}
	if out.Text != "" {
		out.Says = append(out.Says, "text", out.Text)
	}
	return web.Done(c, out.Page, out.Says...)
}

// withActed tells the page to which a form goes back which job it acted on.
func withActed(back, id string) string {
	u, err := url.Parse(back)
	if err != nil { // unreachable: LocalPath has parsed it
		return back
	}
	values := u.Query()
	values.Set("acted", id)
	u.RawQuery = values.Encode()
	return u.String()
}

// newOperation leads to the preview of the operation that a form begins, wherever
// that form is.
func newOperation(act api.Act) echo.HandlerFunc {
	return func(c echo.Context) error {
		out, err := act.Do(c)
		if err != nil {
			return err
		}
		if web.WantsJSON(c.Request()) {
			return c.JSONBlob(out.Status, out.Says.Encode())
		}
		return c.Redirect(http.StatusSeeOther, out.Page)
	}
}

// setFault breaks or fixes something in the demo.
func (p *Pages) setFault(c echo.Context) error {
	if err := web.ReadForm(c); err != nil {
		return err
	}
	broken, err := strconv.ParseBool(c.FormValue("broken"))
	if err != nil {
		return &invalid.Error{Field: "broken", Problem: "must be true or false"}
	}
	if err := p.options.Demo.SetFault(c.Param("name"), broken); err != nil {
		return err
	}
	text := "Fixed"
	if broken {
		text = "Broken"
	}
	return web.Done(c, "/", "text", text)
}

// resetDemo starts the demo over.
func (p *Pages) resetDemo(c echo.Context) error {
	if err := web.ReadForm(c); err != nil {
		return err
	}
	if err := p.options.Demo.Reset(c.Request().Context()); err != nil {
		return err
	}
	return web.Done(c, "/", "text", "The demo starts over")
}
