// Package pages draws the pages and answers their forms.
//
// A handler reads what its page shows, top to bottom, into one typed view and
// hands it to [Pages.Show], which renders into a buffer first: an error never
// arrives after half a page. The acts behind the forms are those of package api.
// With scripts a form asks for JSON, and the answer is shown in place; without
// them the browser is redirected to the page that it came from.
//
// Everything that is drawn comes through package view and is redacted. The one
// exception is the answer to a reveal.
package pages

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/apitype"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/server/api"
	"redrive/internal/server/compress"
	"redrive/internal/server/web"
	"redrive/internal/shortage"
	"redrive/web/static"
	"redrive/web/templates"
	"redrive/web/templates/adminpage"
)

// Demo is what the banner of the demo shows and does.
type Demo interface {
	Faults() []templates.Fault
	Used() bool // whether a visitor has broken or fixed one
	SetFault(name string, broken bool) error
	Reset(ctx context.Context) error
}

// Pages draws the pages of a site.
type Pages struct {
	*web.Site
	options Options
	api     *api.API
	began   time.Time
	buffers sync.Pool // of *bytes.Buffer
}

// Options are what the pages need to know about the server.
type Options struct {
	Open     func() bool              // whether no login is required
	Insecure bool                     // reachable from the network, and declared open to everyone
	BasePath string                   // below which everything is
	HTTPS    func(*http.Request) bool // whether a request came over https
	Demo     Demo                     // nil outside demo mode
}

// New returns the pages of a site. The worker in this process has been running
// since began.
func New(site *web.Site, a *api.API, began time.Time, o Options) *Pages {
	return &Pages{Site: site, options: o, api: a, began: began}
}

// Routes adds the pages and their forms, each with the permission that it needs.
// A form has the address of its act, so that pages and API cannot come apart.
func (p *Pages) Routes(r *web.Routes) {
	r.Page("/", access.View, p.overview)
	r.Page("/jobs", access.View, p.jobs, web.ListParameters()...)
	r.Page("/jobs/:id", access.View, p.job, "payload")
	r.Page("/jobs/:id/attempts", access.View, p.attempts, "after")
	r.Get("/jobs/:id/payload", access.View, p.payload)
	r.Page("/jobs/:id/replay", access.View, p.edit)
	r.Post("/jobs/:id/reveal", access.Reveal, p.reveal)
	r.Page("/dead-letters", access.View, p.deadLetters, web.ListParameters()...)
	r.Page("/trash", access.View, p.trash, web.ListParameters()...)
	r.Page("/failures", access.View, p.failures, web.GroupParameters()...)
	r.Page("/failures/:fingerprint", access.View, p.failure)
	r.Page("/operations", access.View, p.operations, "after")
	r.Page("/operations/:id", access.View, p.operation, "state", "after")
	r.Page("/queues", access.View, p.queues, "name")
	r.Page("/queues/:name", access.View, p.queue)
	r.Page("/sources", access.View, p.sources)
	r.Page("/sources/:name", access.View, p.source)
	r.Page("/retention", access.View, p.retention)
	r.Page("/workers", access.View, p.workers)
	r.Page("/policies", access.View, p.policies, policyParameters()...)
	r.Page("/audit", access.View, p.audit, web.AuditParameters()...)
	r.Page("/access", access.Manage, p.access)
	r.Get("/static/:file", access.Public, p.static, web.AnyParameter)

	for _, act := range p.api.Acts() {
		r.Post(act.Path, access.Operate, p.form(act))
	}

	for _, act := range p.api.ManageActs() {
		r.Post(act.Path, access.Manage, p.form(act))
	}

	for _, act := range p.api.AccessActs() {
		r.Post("/access"+act.Path, access.Manage, p.accessForm(act))
	}

	if p.options.Demo != nil {
		r.Post("/demo/faults/:name", access.Operate, p.setFault)
		r.Post("/demo/reset", access.Operate, p.resetDemo)
	}
}

// reads collects what goes wrong while a page is read: the first error, and
// whether a list ran out of time. A page that was read in part is not shown, but
// one whose lists are incomplete is, and says so.
type reads struct {
	err  error
	slow bool
}

// into stores what was read in a field of the page.
func into[T any](r *reads, to *T) func(T, error) {
	return func(found T, err error) { *to, r.err = found, cmp.Or(r.err, err) }
}

// inTime is into for what may run out of time.
func inTime[T any](r *reads, to *T) func(T, error) {
	return func(found T, err error) {
		slow, err := web.Tolerate(err)
		*to, r.err, r.slow = found, cmp.Or(r.err, err), r.slow || slow
	}
}

// show draws a page that was read.
func (p *Pages) show(c echo.Context, r reads, page templ.Component) error {
	if r.err != nil {
		return r.err
	}
	return p.Show(c, http.StatusOK, page)
}

// Show renders a page and sends it. Rendering goes into a buffer first, so that
// an error never arrives after half a page. All data is there by now, so the
// deadline of the request no longer matters.
func (p *Pages) Show(c echo.Context, status int, page templ.Component) error {
	b, ok := p.buffers.Get().(*bytes.Buffer)
	if !ok {
		b = new(bytes.Buffer)
	}
	defer p.buffers.Put(b)

	b.Reset()

	if err := page.Render(context.WithoutCancel(c.Request().Context()), b); err != nil {
		return fmt.Errorf("render %s: %w", c.Path(), err)
	}

	return p.Send(c, status, echo.MIMETextHTMLCharsetUTF8, rebased(p.options.BasePath, b.Bytes()))
}

// address matches an attribute that holds an address on this server. Quotes in
// data are escaped everywhere on a page, so no data can look like such an
// attribute.
var address = regexp.MustCompile(`(\s(?:href|src|action|formaction|data-live|data-[a-z-]+-url)=")/`)

// rebased puts the base path in front of the addresses on a page.
func rebased(base string, page []byte) []byte {
	if base == "" {
		return page
	}
	return address.ReplaceAll(page, []byte("${1}"+base+"/"))
}

// frame is what surrounds a page. A visitor who is not logged in sees no number and
// no name of a queue.
func (p *Pages) frame(c echo.Context, title, section string) templates.Frame {
	who := web.CallerOf(c)
	if !who.Role.May(access.View) { // what the product shows is nothing for strangers
		return templates.Frame{Title: title, Now: time.Now().UTC(), Stranger: true, User: who.Name, LogOut: who.Means == web.BySession}
	}

	f := templates.Frame{
		Title: title, Section: section, Now: time.Now().UTC(), Snapshot: p.View.Snapshot(), QueueCount: len(p.View.QueueNames()),
		Insecure: p.options.Insecure && p.options.Open(), Problem: p.problem(), Acted: p.acted(c),
		User: who.Name, LogOut: who.Means == web.BySession, Paused: p.Paused(), Pause: p.pause(),
	}
	f.Seq = f.Snapshot.Seq
	f.Held, f.Origin = p.held(f.Problem), p.origin(c.Request())

	f.Outdated = templates.Outdated(p.Engine.Sources())
	var err error
	if f.UnderWay, err = p.underWay(c.Request().Context()); err != nil && c.Request().Context().Err() == nil {
		p.Log.Warn("The navigation lacks the operations that are under way.", "error", err) // the page itself is worth more
	}

	if web.IsRead(c.Request()) {
		f.Here = c.Request().URL.RequestURI()
	} else {
		f.Still = true // the answer to a form has no address at which it could be drawn again
	}

	if who.Means != web.ByOpenness {
		f.Role = who.Role
	}

	if p.options.Demo != nil {
		f.Demo = &templates.Demo{
			Faults: p.options.Demo.Faults(), Used: p.options.Demo.Used(),
			Until: "The database of this demo is deleted when the demo stops.",
		}
	}

	return f
}

// steadyTries bounds how often figures are read again because a commit came between
// them. They are in memory: to read them takes far less time than a commit.
const steadyTries = 20

// steady reads figures together with the totals of the frame, until no commit came
// between them: a page that is drawn while jobs move must not say two numbers of them.
func (p *Pages) steady(f *templates.Frame, read func() error) error {
	for range steadyTries {
		f.Snapshot = p.View.Snapshot()
		if err := read(); err != nil || p.View.Snapshot().Seq == f.Snapshot.Seq {
			return err
		}
	}

	return nil
}

// origin is where a request reached the dashboard, as its browser names it.
func (p *Pages) origin(r *http.Request) string {
	scheme := "http"
	if p.options.HTTPS(r) {
		scheme = "https"
	}

	return scheme + "://" + r.Host + p.options.BasePath
}

// Refreshing takes a tenth of a core at most, however many pages are open: a page
// takes about 3 ms (make bench-pages), and each waits so long for every page that is.
const pauseForEach = 30 * time.Millisecond

// pause is how long an open page waits at least before it is drawn again.
func (p *Pages) pause() time.Duration {
	return max(time.Second, time.Duration(p.Hub.Clients())*pauseForEach)
}

// problem says why nothing can be changed now, and since when; or nothing.
func (p *Pages) problem() string {
	text, since := p.View.Problem()
	if text == "" {
		return ""
	}

	return fmt.Sprintf("%s%s. This began at %s.", strings.ToUpper(text[:1]), text[1:], since.Format("15:04:05 UTC on 2006-01-02"))
}

// held is why no jobs are started, unless that is said already.
func (p *Pages) held(problem string) *shortage.OpenBreaker {
	held, ok := p.Engine.Held()
	if !ok || held.Of == shortage.Database && problem != "" {
		return nil
	}

	return &held
}

// Notices is what every page says about the whole program. When it differs, the
// pages that are open have to be drawn again.
func (p *Pages) Notices() string {
	text := p.problem()
	if held := p.held(text); held != nil {
		text += fmt.Sprint(*held)
	}

	if pause := p.Paused(); pause != nil {
		text += fmt.Sprint(*pause)
	}

	// An error can differ at each look, and need not be drawn again for that.
	for _, h := range templates.Outdated(p.Engine.Sources()) {
		text += fmt.Sprint(h.Name, h.Moved, h.Own, h.Since)
	}

	return text
}

// acted is the present state of the job that a form has just acted on. It is
// read from the database, because the link could say anything.
func (p *Pages) acted(c echo.Context) *job.Change {
	id, err := job.ParseID(c.QueryParam("acted"))
	if err != nil {
		return nil
	}

	changes, err := p.View.Changes(c.Request().Context(), []string{id})
	if err != nil || len(changes) == 0 {
		return nil // the page itself is worth more than this line
	}

	return &changes[0]
}

// Login shows the login form, and why a login was refused.
func (p *Pages) Login(c echo.Context, status int, next, name, problem string) error {
	v := adminpage.Login{Frame: p.frame(c, "Log in", ""), Next: next, Name: name, Problem: problem, NoUsers: !p.View.Accounts().Guarded()}
	v.Stranger = true
	return p.Show(c, status, v.Page())
}

// Problem shows why a request was refused.
func (p *Pages) Problem(c echo.Context, f web.Failure) error {
	frame := p.frame(c, f.Kind.Title, "")
	if f.First != nil && f.First.Job.ID != "" {
		return p.Show(c, f.Kind.Status, templates.Conflict{Frame: frame, Action: web.LastSegment(c.Path()), Err: f.First}.Page())
	}

	if f.Field != "" {
		f.Field = "“" + f.Field + "”" // at the beginning of a sentence it would get a capital
	}

	view := templates.Problem{Frame: frame, Status: f.Kind.Status, Title: f.Kind.Title, Text: f.Error(), RequestID: web.RequestID(c)}

	return p.Show(c, f.Kind.Status, view.Page())
}

// static sends the stylesheet or the script. The address changes with the
// content, so browsers may keep the file forever. Neither is a page: the content
// policy of pages would only make the headers longer.
func (p *Pages) static(c echo.Context) error {
	file, ok := static.Find(c.Request().URL.Path)
	if !ok {
		return echo.ErrNotFound
	}

	c.Response().Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	c.Response().Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	c.Response().Header().Set(echo.HeaderVary, echo.HeaderAcceptEncoding)

	content := file.Plain
	switch coding := compress.Coding(c.Request()); coding {
	case compress.Brotli:
		c.Response().Header().Set(echo.HeaderContentEncoding, coding)

		content = file.Brotli()
	case compress.Gzip:
		c.Response().Header().Set(echo.HeaderContentEncoding, coding)

		content = file.Gzip()
	}

	return c.Blob(http.StatusOK, file.Type, content)
}

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
