package pages

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype"
	"redrive/internal/invalid"
	"redrive/internal/server/api"
	"redrive/internal/server/web"
)

// form returns the handler of the form of an act.
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
	return web.Done(c, out.Page, out.Says, apitype.Done{Text: out.Text})
}

// withActed adds to the address of a list which job a form acted on, so that the
// list can say what became of a row that is no longer in it.
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

// newOperation leads to the preview of the operation that a form makes, whatever
// page the form is on: nothing happens to any job before a person has looked at
// the preview.
func newOperation(act api.Act) echo.HandlerFunc {
	return func(c echo.Context) error {
		out, err := act.Do(c)
		if err != nil {
			return err
		}

		if web.WantsJSON(c.Request()) {
			return web.JSON(c, out.Status, out.Says)
		}

		return c.Redirect(http.StatusSeeOther, out.Page)
	}
}

// setFault breaks or fixes something in the demo, for all who look at it.
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

	text := "Fixed."
	if broken {
		text = "Broken again."
	}

	return web.Done(c, "/", apitype.Done{Text: text})
}

// resetDemo starts the demo over, with a new database.
func (p *Pages) resetDemo(c echo.Context) error {
	if err := web.ReadForm(c); err != nil {
		return err
	}

	if err := p.options.Demo.Reset(c.Request().Context()); err != nil {
		return err
	}

	return web.Done(c, "/", apitype.Done{Text: "The demo starts over"})
}
