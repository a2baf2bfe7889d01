package api

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"redrive/internal/server/web"
)

// An Act changes something, for a program that sends a body or a page that sends
// a form: web.IsForm tells which.
type Act struct {
	Path string // of the form, and of the API below /api/v1
	Do   func(echo.Context) (Outcome, error)
}

// Outcome is what came of an act.
type Outcome struct {
	Status  int        // of the answer; default: 200
	Says    web.Object // to whoever asked
	Program web.Object // beside it to a program
	Text    string     // to a person
	Page    string     // where a form leads that names no page to come back to
	Job     string     // the job that was acted on, if it was one
	Secret  string     // shown this once
}

// Acts are the acts on jobs, queues, workers, error groups and operations.
func (a *API) Acts() []Act {
	return slices.Concat(a.jobActs(), a.queueActs(), a.groupActs(), a.operationActs())
}

// answer answers a program.
func (act Act) answer(c echo.Context) error {
	out, err := act.Do(c)
	if err != nil {
		return err
	}
	return c.JSONBlob(cmp.Or(out.Status, http.StatusOK), append(out.Says, out.Program...).Encode())
}

// readNothing reads a form, or a body that may be missing, of an act that says
// everything in its address.
func readNothing(c echo.Context) error {
	if web.IsForm(c) {
		return web.ReadForm(c)
	}
	return readOptional(c, fields{})
}

// text is a field that holds a text.
type text struct {
	name string
	want string // what a program is told that it must be
	to   *string
}

const aString = "a string"

// readTexts reads a form or a body that has nothing but texts.
func readTexts(c echo.Context, texts ...text) error {
	if web.IsForm(c) {
		err := web.ReadForm(c)
		for _, t := range texts {
			*t.to = c.FormValue(t.name)
		}
		return err
	}
	f := fields{}
	for _, t := range texts {
		f[t.name] = value(t.to, t.want)
	}
	return readSmall(c, f)
}
