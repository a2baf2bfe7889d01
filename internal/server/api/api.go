// Package api answers programs in JSON, and carries out what people and programs
// ask for.
//
// A GET has a handler that returns an object; [API.Routes] lists them all. A
// change is an [Act], and there is one for both ways in: a program sends a body,
// a page sends a form, and only the reading of the two differs. The pages take
// the acts from [API.Acts] and show what came of them.
//
// The names in answers are a contract with programs, so the functions named
// shape spell them out beside the values, apart from the types of package job
// and its neighbours, whose fields may be renamed. A payload goes in and out as
// the bytes that were received, because an encoder would change them.
package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/singleflight"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
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

// Routes adds the routes of the API and of the exports, each with the permission
// that a caller needs and the parameters that it takes. The exports live outside /api/v1 because people open them
// in a browser.
func (a *API) Routes(r *web.Routes) {
	get := func(path string, need access.Permission, h func(echo.Context) (web.Object, error), parameters ...string) {
		r.Get(v1+path, need, a.answered(h), parameters...)
	}
	list := func(path string, h func(echo.Context) (web.Object, error), parameters ...string) {
		get(path, access.View, h, append(parameters, "limit")...)
	}
	list("/jobs", a.jobs, web.ListParameters()...)
	get("/jobs/count", access.View, a.countJobs, web.FilterParameters()...)
	get("/jobs/:id", access.View, a.job, "attempts_after")
	r.Get(v1+"/jobs/:id/envelope", access.View, a.envelope, "original")
	list("/dead-letters", a.letters, web.ListParameters()...)
	get("/dead-letters/fill", access.View, a.usage)
	get("/retention", access.View, a.retention)
	list("/trash", a.trash, web.ListParameters()...)
	get("/facets", access.View, a.facets, web.FilterParameters()...)
	r.Get(v1+"/counters", access.View, a.counters)
	get("/queues", access.View, a.queues, "after")
	get("/queues/:name", access.View, a.queue)
	get("/sources", access.View, a.sources)
	get("/sources/:name", access.View, a.source)
	get("/workers", access.View, a.workers)
	get("/policies", access.View, a.policies)
	list("/failures", a.groups, web.GroupParameters()...)
	get("/failures/classes", access.View, a.classes, "state", "queue", "source", "type", "class")
	get("/failures/:fingerprint", access.View, a.group)
	list("/operations", a.operations, "after")
	get("/operations/:id", access.View, a.operation)
	list("/operations/:id/items", a.items, "state", "after")
	get("/operations/:id/rate", access.View, a.rate)
	list("/audit", a.audit, web.AuditParameters()...)
	get("/users", access.Manage, a.users)
	get("/sessions", access.Manage, a.sessions)
	get("/tokens", access.Manage, a.tokens)

	r.Post(v1+"/jobs", access.Enqueue, a.enqueue)
	r.Post(v1+"/jobs/batch", access.Enqueue, a.enqueueBatch)
	r.Post(v1+"/queues/:name/envelopes", access.Enqueue, a.enqueueEnvelopes)
	r.Post(v1+"/jobs/:id/reveal", access.Reveal, a.answered(func(c echo.Context) (web.Object, error) {
		d, err := a.Reveal(c)
		if err != nil {
			return nil, err
		}
		return a.Detail(c, d)
	}))
	for _, act := range a.Acts() {
		r.Post(v1+act.Path, access.Operate, act.answer)
	}
	for _, act := range a.ManageActs() {
		r.Post(v1+act.Path, access.Manage, act.answer)
	}
	for _, act := range a.AccessActs() {
		r.Post(v1+act.Path, access.Manage, act.answer)
	}

	a.export(r, "/export", a.exportJobs, web.ListParameters()...)
	a.export(r, "/failures", a.exportGroups, web.GroupParameters()...)
	a.export(r, "/audit", a.exportAudit, web.AuditParameters()...)
	a.export(r, "/operations/:id/items", a.exportItems, "state", "after")
}

// answered makes a handler of a function that returns an object.
func (a *API) answered(h func(echo.Context) (web.Object, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		says, err := h(c)
		if err != nil {
			return err
		}
		return a.Send(c, http.StatusOK, echo.MIMEApplicationJSON, says.Encode())
	}
}

// An Act changes something, for a program that sends a body or a page that sends
// a form: web.IsForm tells which.
type Act struct {
	Path string // of the form, and of the API below /api/v1
	Do   func(echo.Context) (Outcome, error)
}

// Outcome is the result of an act. Says goes to every caller; the fields after it
// are for a program or for a person only.
type Outcome struct {
	Status  int        // of the answer; default: 200
	Says    web.Object // to every caller
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

// ManageActs are the acts that no one can undo.
func (a *API) ManageActs() []Act { return []Act{a.removeQueue(), a.reload()} }

// reload makes the program read its configuration again.
func (a *API) reload() Act {
	return Act{"/reload", func(c echo.Context) (out Outcome, err error) {
		if err := readNothing(c); err != nil {
			return out, err
		}
		ctx := c.Request().Context()
		changed, restart, err := a.Engine.Reload(ctx)
		if err != nil {
			return out, err
		}
		out.Text, out.Says = "Reloaded the configuration", web.Object{"changed", changed, "restart", restart}
		err = a.View.Record(ctx, audit.Entry{
			At: time.Now().UTC(), Actor: web.Actor(c), Action: "config.reload", Subject: a.Config.File(), Count: int64(len(changed)),
		})
		if err != nil { // the new configuration is in effect all the same, and the caller has to know that
			a.Log.Error("A reload could not be recorded in the audit log.", "request", web.RequestID(c), "by", web.Actor(c).Name, "error", err)
		}
		return out, nil
	}}
}

// answer answers a program. Unlike a form it is never redirected: it gets the
// object and the status.
func (act Act) answer(c echo.Context) error {
	out, err := act.Do(c)
	if err != nil {
		return err
	}
	return c.JSONBlob(cmp.Or(out.Status, http.StatusOK), append(out.Says, out.Program...).Encode())
}

// readNothing reads the form or the body of an act that is fully named by its
// address. The body may be missing, but one with members is refused: a client
// that sends a member expects it to mean something.
func readNothing(c echo.Context) error {
	if web.IsForm(c) {
		return web.ReadForm(c)
	}
	return readSmall(c, fields{})
}

// text is a field that holds a text.
type text struct {
	name string
	want string // what a program is told that it must be
	to   *string
}

const aString = "a string"

// readTexts reads a form or a body that holds nothing but texts.
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

// search reads one page of a list that a program selects with a filter. A filter
// that is wrong in any field selects nothing: half of a filter would be a wider
// one. slow reports that the search ran out of time, so that more may match than
// was found.
func search[F, C, L any](
	c echo.Context, query func(url.Values) (F, C, []*invalid.Error), list func(context.Context, F, C, int) (L, error),
) (f F, found L, slow bool, err error) {
	f, after, wrong := query(c.QueryParams())
	if len(wrong) > 0 {
		return f, found, false, web.InAddress(wrong[0])
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
		return 0, web.FailIn(web.BadParameter, "limit", fmt.Sprintf("%q is not a number from 1 to %d", clip.Text(text, 64), maxLimit))
	}
	return limit, nil
}

// numbered reads the cursor and the page size of a list whose rows are numbered.
func numbered(c echo.Context) (after int64, limit int, err error) {
	if after, err = web.Number(c, "after"); err != nil {
		return 0, 0, err
	}
	limit, err = pageSize(c)
	return after, limit, err
}

// page is the answer with one page of a list. It says where the next page
// begins, if there is one, and whether more may match than was found in time.
func page[C string | int64](name string, rows []web.Object, next C, slow bool) web.Object {
	says := web.Object{name, rows}
	if next != *new(C) {
		says = append(says, "next", next)
	}
	if slow {
		says = append(says, "incomplete", true)
	}
	return says
}
