package pages

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/job"
	"redrive/internal/server/web"
	"redrive/internal/shortage"
	"redrive/web/templates"
)

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
	f.Breaker, f.Origin = p.openBreaker(f.Problem), p.origin(c.Request())

	f.Outdated = templates.Outdated(p.Engine.Sources())
	f.Hindrances = p.hindrances()

	var err error
	f.UnderWay, err = p.underWay(c.Request().Context())
	if err != nil && c.Request().Context().Err() == nil {
		p.Log.Warn("The navigation lacks the operations that are under way.", "error", err) // the page itself is worth more
	}

	// An undo returns to this page, unless the page is an answer to a form.
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

// openBreaker is why no jobs are started, unless that is said already.
func (p *Pages) openBreaker(problem string) *shortage.OpenBreaker {
	breaker, ok := p.Engine.OpenBreaker()
	if !ok || breaker.Of == shortage.Database && problem != "" {
		return nil
	}

	return &breaker
}

// hindrances are what keeps the server of the database from cleaning up.
func (p *Pages) hindrances() []templates.Hindrance {
	found := p.View.Hindrances()
	all := make([]templates.Hindrance, len(found))
	for i, h := range found {
		all[i] = templates.Hindrance{Name: h.Name, Since: h.Since, Remedy: h.Remedy, Statements: h.Statements}
	}

	return all
}

// Notices is what every page says about the whole program. When it differs, the
// pages that are open have to be drawn again.
func (p *Pages) Notices() string {
	text := p.problem()
	if breaker := p.openBreaker(text); breaker != nil {
		text += fmt.Sprint(*breaker)
	}

	if pause := p.Paused(); pause != nil {
		text += fmt.Sprint(*pause)
	}

	// An error can differ at each look, and need not be drawn again for that.
	for _, h := range templates.Outdated(p.Engine.Sources()) {
		text += fmt.Sprint(h.Name, h.Moved, h.Own, h.Since)
	}

	return text + fmt.Sprint(p.hindrances())
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
