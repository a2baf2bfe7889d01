package pages

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"redrive/internal/server/compress"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
	"redrive/web/static"
	"redrive/web/templates"
	"redrive/web/templates/adminpage"
)

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

// Login shows the login form, and why a login was refused.
func (p *Pages) Login(c echo.Context, status int, next, name, problem string) error {
	v := adminpage.Login{Frame: p.frame(c, "Log in", ""), Next: next, Name: name, Problem: problem, NoUsers: !p.View.Guarded()}
	v.Stranger = true
	return p.Show(c, status, v.Page())
}

// Problem shows why a request was refused.
func (p *Pages) Problem(c echo.Context, f problem.Problem) error {
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
