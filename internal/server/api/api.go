// Package api answers programs in JSON, and carries out what people and programs
// ask for.
//
// A GET has a handler that returns an answer; [API.Endpoints] lists them all. A
// change is an [Act], and there is one for both ways in: a program sends a body,
// a page sends a form, and only the reading of the two differs. The pages take
// the acts from [API.Acts] and show what came of them.
//
// The answers are of package apitype, whose names are a contract with programs.
// The functions here whose names end in "Of" fill them with the values of package
// job and its neighbours. A payload goes in and out as the bytes that were
// received, because an encoder would change them.
package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/singleflight"

	"redrive/internal/access"
	"redrive/internal/apitype"
	"redrive/internal/apitype/admin"
	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
)

const (
	v1       = "/api/v1"
	maxLimit = 200 // rows of a list that a program can ask for

	maxBody  = job.MaxPayload + job.MaxMeta + 512<<10 // of one job: all its limits, with room
	MaxBatch = 64 << 20                               // of a batch, in bytes
	maxTicks = 512 << 10                              // of a request that names many jobs
)

// API answers programs.
type API struct {
	*web.Site
	passwords *access.Passwords
	began     time.Time
	resends   singleflight.Group // of refused dead letters, by job and run
}

// New returns the API of a site. The worker in this process has been running
// since began.
func New(site *web.Site, passwords *access.Passwords, began time.Time) *API {
	return &API{Site: site, passwords: passwords, began: began}
}

// answered makes a handler of a function that returns an answer.
func answered[T any](a *API, h func(echo.Context) (T, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		answer, err := h(c)
		if err != nil {
			return err
		}

		return a.Send(c, http.StatusOK, echo.MIMEApplicationJSON, append(apitype.Encode(answer), '\n'))
	}
}

// mapped lists what the API shows of each item.
func mapped[T, A any](items []T, shown func(T) A) []A {
	all := make([]A, len(items))
	for i, x := range items {
		all[i] = shown(x)
	}

	return all
}

// An Act changes something, for a program that sends a body or a page that sends
// a form: web.IsForm tells which.
type Act struct {
	Path    string // of the form, and of the API below /api/v1
	Says    string // what it does, in a sentence
	Request any    // an empty value of the type that a program sends
	Answer  any    // an empty value of the type that a program gets
	Created bool   // it may make something: 201
	Keyed   bool   // a program may send an idempotency key

	Do func(echo.Context) (Outcome, error)
}

// Outcome is the result of an act. Says goes to every caller; the fields after it
// are for a program or for a person only.
type Outcome struct {
	Status  int    // of the answer; default: 200
	Says    any    // of package apitype, to every caller; nil: nothing
	Program any    // beside it to a program
	Text    string // to a person
	Page    string // where a form leads that names no page to come back to
	Job     string // the job that was acted on, if it was one
	Secret  string // shown this once
}

// Acts are the acts on jobs, queues, workers, error groups and operations.
func (a *API) Acts() []Act {
	return slices.Concat(a.jobActs(), a.queueActs(), a.groupActs(), a.operationActs())
}

// ManageActs are the acts that no one can undo.
func (a *API) ManageActs() []Act { return []Act{a.removeQueue(), a.reload()} }

// reload makes the program read its configuration again.
func (a *API) reload() Act {
	do := func(c echo.Context) (out Outcome, err error) {
		if err := readNothing(c); err != nil {
			return out, err
		}

		ctx := c.Request().Context()

		changed, restart, err := a.Engine.Reload(ctx)
		if err != nil {
			return out, err
		}

		out.Text, out.Says = "Reloaded the configuration", admin.Reloaded{Changed: changed, Restart: restart}

		err = a.View.Record(ctx, audit.Entry{
			At: time.Now().UTC(), Actor: web.Actor(c), Action: "config.reload", Subject: a.Config.File(), Count: int64(len(changed)),
		})
		if err != nil { // the new configuration is in effect all the same, and the caller has to know that
			a.Log.Error("A reload could not be recorded in the audit log.", "request", web.RequestID(c), "by", web.Actor(c).Name, "error", err)
		}

		return out, nil
	}
	says := "Reads the configuration again"

	return Act{Path: "/reload", Says: says, Request: apitype.Nothing{}, Answer: admin.Reloaded{}, Do: do}
}

// answer answers a program. Unlike a form it is never redirected: it gets the
// object and the status.
func (act Act) answer(c echo.Context) error {
	out, err := act.Do(c)
	if err != nil {
		return err
	}

	return web.JSON(c, cmp.Or(out.Status, http.StatusOK), out.Says, out.Program)
}

// readNothing reads the form or the body of an act that is fully named by its
// address. The body may be missing, but one with members is refused: a client
// that sends a member expects it to mean something.
func readNothing(c echo.Context) error {
	if web.IsForm(c) {
		return web.ReadForm(c)
	}
	return readSmall(c, &apitype.Nothing{}, nil)
}

// readTexts reads a form or a body that holds nothing but texts.
func readTexts(c echo.Context, into any) error {
	if !web.IsForm(c) {
		return readSmall(c, into, nil)
	}

	err := web.ReadForm(c)
	object := reflect.ValueOf(into).Elem()
	for _, m := range apitype.Members(object.Type()) {
		object.FieldByIndex(m.Index).SetString(c.FormValue(m.Name))
	}

	return err
}

// search reads one page of a list that a program selects with a filter. A filter
// that is wrong in any field selects nothing: half of a filter would be a wider
// one. slow reports that the search ran out of time, so that more may match than
// was found.
func search[F, C, L any](
	c echo.Context, query func(url.Values) (F, C, []*invalid.Error), list func(context.Context, F, C, int) (L, error),
) (f F, found L, slow bool, err error) {
	f, after, wrong := query(c.QueryParams())
	if len(wrong) > 0 {
		return f, found, false, problem.InAddress(wrong[0])
	}

	limit, err := pageSize(c)
	if err != nil {
		return f, found, false, err
	}

	found, slow, err = web.InTime(list(c.Request().Context(), f, after, limit))

	return f, found, slow, err
}

// pageSize reads how many rows a program wants. The limit keeps one request from
// holding the database for long.
func pageSize(c echo.Context) (int, error) {
	text := c.QueryParam("limit")
	if text == "" {
		return web.PageLimit, nil
	}

	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxLimit {
		return 0, problem.In(problem.BadParameter, "limit", fmt.Sprintf("%q is not a number from 1 to %d", clip.Text(text, 64), maxLimit))
	}

	return limit, nil
}

// numbered reads the cursor and the page size of a list whose rows are numbered.
func numbered(c echo.Context) (after int64, limit int, err error) {
	after, err = web.Number(c, "after")
	if err != nil {
		return 0, 0, err
	}

	limit, err = pageSize(c)

	return after, limit, err
}
