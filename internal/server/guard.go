package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/clip"
	"redrive/internal/loglimit"
	"redrive/internal/server/limit"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
)

// contentPolicy is the policy of every answer but the stylesheet and the script, which
// have a shorter one: a page may load scripts, styles, images and connections of its
// own, and nothing else. Text of a payload that ended up as markup could then still do
// nothing.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// referrerPolicy keeps addresses of the dashboard, with the filters and ids in them,
// from every other site. It must not be "no-referrer": browsers then send a form with
// "Origin: null", also to the page's own server, which could not be told from a form of
// another site.
const referrerPolicy = "same-origin"

// requestTimeout is how long a request may wait for the database: less than the
// writeTimeout of the server, so that the answer still gets out.
const requestTimeout = 25 * time.Second

// observe sets the headers of every answer, also of one that another guard
// refuses, gives the request an id and logs it.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		begin := time.Now()
		h := c.Response().Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Frame-Options", "DENY")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", referrerPolicy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		h.Set(echo.HeaderXRequestID, newRequestID())

		// No second request is read from a connection on which a proxy may see other requests
		// than this server does.
		if limit.Ambiguous(c.Request().Context()) {
			h.Set(echo.HeaderConnection, "close")
		}

		way := &delivery{ResponseWriter: c.Response().Writer}
		c.Response().Writer = way
		c.Set(deliveryKey, way)

		// The error is answered here and not by echo, so that the line of the log has the
		// status of the answer.
		if err := next(c); err != nil {
			s.refuse(err, c)
		}

		s.Log.Debug("request", "request", web.RequestID(c), "method", clip.Text(c.Request().Method, 16),
			"path", clip.Text(c.Request().URL.EscapedPath(), 256),
			"status", c.Response().Status, "took", time.Since(begin), "peer", c.RealIP())

		return nil
	}
}

// delivery is the way of an answer to its client. It remembers that it broke off.
type delivery struct {
	http.ResponseWriter
	broken error
}

func (d *delivery) Write(p []byte) (int, error) {
	n, err := d.ResponseWriter.Write(p)
	if err != nil {
		d.broken = err
	}

	return n, err
}

// Unwrap lets the rest of net/http reach what is below.
func (d *delivery) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// deliveryKey is where the context of a request keeps the delivery of its answer.
const deliveryKey = "delivery"

// deserted reports whether an error means only that the client left, before the answer
// or in the middle of it, or stopped reading. Nothing is wrong then, and an answer would
// reach no one.
func (s *Server) deserted(c echo.Context, err error) bool {
	way, ok := c.Get(deliveryKey).(*delivery)
	left := errors.Is(err, context.Canceled) || ok && way.broken != nil && errors.Is(err, way.broken)
	if left {
		s.Log.Debug("the client left", "request", web.RequestID(c), "path", c.Path(), "error", err)
	}

	return left
}

// recover turns a panic into an error. The stack goes into the log only.
func (s *Server) recover(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			// ErrAbortHandler cuts the connection on purpose, so it goes on to net/http.
			if r := recover(); r == http.ErrAbortHandler {
				panic(r)
			} else if r != nil {
				err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			}
		}()

		return next(c)
	}
}

// guard refuses requests for other host names, writes from other sites and
// queries that cannot be parsed, and bounds the time of all others.
func (s *Server) guard(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if err := s.checkRequest(r); err != nil {
			s.strip(r.URL) // programs are answered as such, wherever the server is
			return err
		}

		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout+extra(r))
		defer cancel()

		c.SetRequest(r.WithContext(ctx))

		return next(c)
	}
}

// checkRequest says why a request is not even routed, or nothing.
func (s *Server) checkRequest(r *http.Request) error {
	if !s.hosts.allow(r) {
		return problem.New(problem.WrongHost, fmt.Sprintf(
			"%q is not a known name of this server; use localhost, or add it to hosts in the configuration", clip.Text(r.Host, 128)))
	}

	if (!web.IsRead(r) || isUpgrade(r)) && !s.hosts.ownPage(r) {
		return problem.New(problem.CrossOrigin, s.hosts.stranger(r))
	}

	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil { // half of a filter is another filter
		return problem.New(problem.BadParameter, "the query string cannot be read: "+err.Error())
	}

	return nil
}

// newRequestID makes an id that joins an answer to its lines in the log.
func newRequestID() string {
	var id [8]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// Below a base path everything inside stays as it is at the root: routes,
// handlers, the addresses in forms, and what they redirect to. The path is
// taken off each request before it is routed, and put before each address that
// leaves: in Location and in the attributes of a page. No code has to guess
// whether an address has it already; inside, none has.

// rebase takes the base path off a request, and puts it in front of the address
// that a redirect leads to. Nothing exists outside the base path.
func (s *Server) rebase(next echo.HandlerFunc) echo.HandlerFunc {
	if s.basePath == "" {
		return next
	}

	return func(c echo.Context) error {
		answer, u := c.Response(), c.Request().URL
		answer.Before(func() {
			if to := answer.Header().Get(echo.HeaderLocation); strings.HasPrefix(to, "/") {
				answer.Header().Set(echo.HeaderLocation, s.basePath+to)
			}
		})

		if u.Path == s.basePath || u.Path == "/" { // the front page, where people look for it
			return c.Redirect(308, "/")
		}

		if !s.strip(u) {
			return echo.ErrNotFound
		}

		return next(c)
	}
}

// strip takes the base path off an address, and reports whether it was there.
func (s *Server) strip(u *url.URL) bool {
	// RawPath is empty unless the path has escapes that have to be kept, such as %2F.
	path, ok := strings.CutPrefix(u.Path, s.basePath)
	raw, also := strings.CutPrefix(u.RawPath, s.basePath)
	if !ok || !strings.HasPrefix(path, "/") || u.RawPath != "" && !also {
		return false
	}

	u.Path, u.RawPath = path, raw

	return true
}

// metricsNeed tells the person who configures Prometheus what is missing.
const metricsNeed = "/metrics needs the token of a viewer: create one with " +
	"dashboard token create --name prometheus --role viewer --expires 365d, write it into a file, " +
	"and name that file in Prometheus as authorization: {credentials_file: FILE}"

// newFailureLog bounds how many requests that failed for a reason of the server are logged:
// a full disk fails all of them.
func newFailureLog(log *slog.Logger) *loglimit.Limit[problem.Kind] {
	return loglimit.New(func(k problem.Kind, times int) {
		log.Error("more requests failed", "code", k.Code, "requests", times, "within", loglimit.Period)
	})
}

// refuse answers an error. It is echo's HTTPErrorHandler. What went wrong inside
// is only in the log; the answer names the request under which to find it.
func (s *Server) refuse(err error, c echo.Context) {
	if s.deserted(c, err) {
		return
	}

	// Log what is the server's own fault, and count what met a limit.
	f := *problem.Of(err)
	status := f.Kind.Status
	if status >= http.StatusInternalServerError && f.Kind != problem.Overloaded {
		s.failures.Log(f.Kind, func() {
			s.Log.Error("request failed", "request", web.RequestID(c), "path", c.Path(), "status", status, "error", err)
		})
	}

	if f.Kind == problem.QueuesFull {
		s.metrics.Refused(limitQueues, limit.ByAll)
	}

	if c.Response().Committed {
		return // half an answer is out; the connection ends
	}

	// Say what to do about it: log in, try again later, or look into the log.
	if c.Path() == "/metrics" && (f.Kind == problem.UnknownCaller || f.Kind == problem.Forbidden) {
		f.Text = metricsNeed
	}

	if f.Kind == problem.UnknownCaller {
		if forBrowsers(c) {
			s.sendToLogin(c)
			return
		}

		c.Response().Header().Set("WWW-Authenticate", "Bearer")
	}

	again := status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests
	if h := c.Response().Header(); again && h.Get("Retry-After") == "" {
		h.Set("Retry-After", "2")
	}

	switch {
	case f.Kind == problem.Unexpected:
		f.Text += " under request " + web.RequestID(c)
	case errors.Is(err, context.DeadlineExceeded) && web.IsRead(c.Request()):
		f.Text += "; try again"
	case errors.Is(err, context.DeadlineExceeded):
		f.Text += "; the change may still take effect, so check before you try again"
	}

	switch {
	case c.Path() == "/metrics": // Prometheus logs what it gets
		err = c.String(status, f.Text+"\n")
	case web.WantsJSON(c.Request()):
		err = c.JSONBlob(status, f.Encode())
	default:
		err = s.pages.Problem(c, f)
	}

	// The answer itself can fail. Its status goes out in any case.
	if err != nil && !s.deserted(c, err) {
		s.Log.Warn("an error could not be shown", "request", web.RequestID(c), "error", err)
	}

	if !c.Response().Committed {
		c.Response().WriteHeader(status)
	}
}
