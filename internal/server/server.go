// Package server answers HTTP requests: for pages, for the acts on them, for the JSON API,
// for the live connection, and for metrics and probes.
//
// This package has the guards that every request passes, and the routes that concern the
// server itself. Four packages answer everything else: view reads and changes the store, and
// no other package does; web has what all handlers share; api answers programs and carries
// out acts; and pages draws HTML.
//
// Every request passes these guards, in this order:
//   - observe (guard.go) sets the headers of the answer, which forbid the browser everything
//     that a page does not need, and gives the request an id;
//   - recover (guard.go) turns a panic into an error;
//   - bound (limits.go) limits what one client address can take;
//   - guard (guard.go) refuses unknown host names and cross-origin writes. The host name
//     matters because the owner of another site can point its name at this address (DNS
//     rebinding): to all other guards, a request from a page of that site looks like one of
//     the same origin;
//   - rebase (guard.go) takes the base path off the address.
//
// Then the route is matched, and permit (identify.go) requires that the caller has the
// permission of the route.
//
// A GET changes nothing. A change is a POST that names what the person saw: a replay, for
// example, names the run. So the second of two clicks, persons or repeated requests learns
// that it came second.
package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/config"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/live"
	"redrive/internal/loglimit"
	"redrive/internal/server/api"
	"redrive/internal/server/limit"
	"redrive/internal/server/pages"
	"redrive/internal/server/problem"
	"redrive/internal/server/view"
	"redrive/internal/server/web"
	"redrive/internal/wire"
)

// Options are the parts of a server. Pointers and functions are required.
type Options struct {
	View    *view.View
	Config  *config.Config
	Hub     *live.Hub
	Metrics *Metrics
	Engine  web.Engine

	// Local is the token that the command line sends when the user who runs the dashboard
	// uses it on this machine. The zero token is accepted from no one.
	Local access.Token

	Insecure bool       // the server can be reached from the network, and is meant to be open to everyone
	Closed   bool       // while there are no users, refuse everyone instead of admitting everyone
	BasePath string     // the path below which all routes are, such as "/redrive"; default: the root
	Demo     pages.Demo // nil outside demo mode

	Connections int // how many connections can be open at once; default: the limit of the configuration
	Log         *slog.Logger
}

// missing returns the name of a required option that is not set, or "". The functions of
// Engine are required as well. So a mistake in building a server shows when it is built, and
// not at the first request that needs the part.
func (o Options) missing() string {
	for _, part := range []reflect.Value{reflect.ValueOf(o), reflect.ValueOf(o.Engine)} {
		for i := range part.NumField() {
			f := part.Field(i)
			name := part.Type().Field(i).Name
			if (f.Kind() == reflect.Pointer || f.Kind() == reflect.Func) && f.IsNil() {
				return name
			}
		}
	}

	return ""
}

// Server is the http.Handler of all routes.
type Server struct {
	*web.Site
	*web.Routes

	// The handlers.
	echo  *echo.Echo
	api   *api.API
	pages *pages.Pages

	// Which requests are admitted.
	basePath string
	hosts    hosts         // the names under which the server may be addressed
	proxy    *config.Proxy // the trusted proxy; nil: there is none
	proxied  proxied       // the roles that the proxy gave to users
	limits   limits

	// Who the caller is.
	closed    bool         // see Options.Closed
	local     access.Token // see Options.Local
	logins    *access.Limiter
	passwords *access.Passwords

	// What is reported about requests.
	metrics  *Metrics
	failures *loglimit.Limit[problem.Kind] // logs failed requests, but not each of many
}

// Notices returns what every page says at its top about the whole program: what keeps jobs
// from running, or what keeps the database from being written. It is empty if all is well.
func (s *Server) Notices() string { return s.pages.Notices() }

// New builds a server, whose routes are all in place afterwards. Its error names an option
// that is missing, or a base path that is not one.
func New(o Options) (*Server, error) {
	if name := o.missing(); name != "" {
		return nil, fmt.Errorf("server: the option %s is missing", name)
	}

	if !config.IsBasePath(o.BasePath) {
		return nil, fmt.Errorf("server: the base path %q is not one as /redrive", o.BasePath)
	}

	e := echo.New()
	began := time.Now()
	s := &Server{
		Site:   &web.Site{View: o.View, Config: o.Config, Hub: o.Hub, Engine: o.Engine, Limits: o.handlerLimits(), Log: o.Log},
		Routes: web.NewRoutes(e), closed: o.Closed, local: o.Local, basePath: o.BasePath, metrics: o.Metrics, echo: e,
		hosts: newHosts(o.Config.Hosts, o.Config.Proxy()), proxy: o.Config.Proxy(), limits: o.limits(),
		logins: access.NewLimiter(o.Config.Limits().Logins), passwords: access.NewPasswords(),
		failures: newFailureLog(o.Log),
	}

	s.api = api.New(s.Site, s.passwords, began)
	s.pages = pages.New(s.Site, s.api, began, pages.Options{
		Open: s.open, Insecure: o.Insecure, BasePath: o.BasePath, Demo: o.Demo,
		HTTPS: func(r *http.Request) bool { return overHTTPS(s.proxy, r) },
	})
	if err := o.Metrics.watch(s.Site); err != nil {
		return nil, err
	}

	e.IPExtractor = realIP(s.proxy)
	e.HTTPErrorHandler = s.refuse

	// The guards of every request, in their order. Those in Pre run before the route is
	// known, those in Use after that.
	e.Pre(s.observe, s.recover, s.bound, s.guard, s.rebase)
	e.Use(unescape, s.permit)

	s.routes()
	s.api.Routes(s.Routes, s.me)
	s.pages.Routes(s.Routes)

	return s, nil
}

// routes adds the routes that concern the server itself.
func (s *Server) routes() {
	s.Page("/login", access.Public, s.loginPage, "next")
	s.Post("/login", access.Public, s.login)
	s.Post("/logout", access.Public, s.logout)
	s.Get("/live", access.View, s.live, "ids", "state", "queue", "type", "first")
	s.Get("/metrics", access.View, echo.WrapHandler(s.metrics.handler(s.Log)), web.AnyParameter)
	s.Get("/healthz", access.Public, s.healthy, web.AnyParameter)
	s.Get("/readyz", access.Public, s.ready, web.AnyParameter)
}

// unescape decodes the parameters in a path, such as "orders%40shop". The router leaves them
// encoded if the client encoded the path in another way than Go would: RawPath is then set.
func unescape(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Request().URL.RawPath == "" {
			return next(c)
		}

		values := slices.Clone(c.ParamValues())
		for i, name := range c.ParamNames() {
			if name == "*" { // a path: an encoded slash must not become a separator
				continue
			}

			// The error is always nil: net/http has refused paths with a bad encoding.
			if value, err := url.PathUnescape(values[i]); err == nil {
				values[i] = value
			}
		}

		c.SetParamValues(values...)

		return next(c)
	}
}

// healthy answers GET /healthz with ok, also while the process is short of something, and with 503 from the
// moment on at which it must not go on: another one may work on its database by then, and a balancer has
// to tell them apart.
func (s *Server) healthy(c echo.Context) error {
	why := s.View.Failed()
	if why != "" {
		return c.String(http.StatusServiceUnavailable, "failed: "+why+"\n")
	}

	return c.String(http.StatusOK, "ok\n")
}

// ready answers GET /readyz with 200 if jobs are accepted and run, and otherwise with 503 and
// the reason. A load balancer that gets no answer stops sending requests here, so ready does
// not wait long for a busy database.
func (s *Server) ready(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), 2*time.Second)
	defer cancel()

	if err := s.Engine.Ready(); err != nil {
		return c.String(http.StatusServiceUnavailable, "the engine is not running: "+err.Error()+"\n")
	}

	// A write that fails now says why best. If it succeeds, the problem of an earlier write may
	// persist all the same: a full disk, for example, still has room for a small one.
	err := s.View.Ping(ctx)
	cause, since := s.View.Problem()
	if err != nil {
		cause = problem.Of(err).Text
	}

	if cause != "" {
		text := "the database cannot be written: " + cause
		if !since.IsZero() {
			text += "; that began at " + wire.FormatTime(since)
		}

		return c.String(http.StatusServiceUnavailable, text+"\n")
	}

	return c.String(http.StatusOK, "ready\n")
}

// ServeHTTP passes a request through the guards to the handler of its route.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// How long it may take until a request has arrived, and until its answer has been sent. Both
// times begin with the header of the request, and are longer by [extra] for a large body.
const (
	readTimeout  = 30 * time.Second
	writeTimeout = 30 * time.Second
)

// HTTP returns an http.Server that serves s, with limits on time and size. The caller starts
// it and stops it. A websocket has limits of its own (see live.Hub).
func (s *Server) HTTP() *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ConnState:         s.limits.connections.State,
		ConnContext:       limit.WithConnection,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
}

// live answers GET /live: with a websocket if the request asks for one, and otherwise with a
// single look at the same data.
func (s *Server) live(c echo.Context) error {
	// A websocket stays open for long, so the hub asks again and again whether its caller is
	// still allowed to have it.
	if c.IsWebSocket() {
		who := web.CallerOf(c)
		s.Hub.Serve(c.Response(), c.Request(), live.Pass{
			Address: limit.AddressOf(c.RealIP()).String(),
			Valid:   func(ctx context.Context) bool { return s.stillAllowed(ctx, who, access.View) },
		})

		// The hub has answered. Count a connection that it refused.
		switch c.Response().Status {
		case http.StatusTooManyRequests:
			s.Limits.Refused(limitWebsockets, limit.ByAddress)
		case http.StatusServiceUnavailable:
			s.Limits.Refused(limitWebsockets, limit.ByAll)
		}

		return nil
	}

	// Without a websocket, one look at the same data.
	ids, err := paramIDs(c)
	if err != nil {
		return err
	}

	list, err := paramList(c)
	if err != nil {
		return err
	}

	data, err := s.Hub.Poll(c.Request().Context(), ids, list)
	if err != nil {
		return err
	}

	return s.Send(c, http.StatusOK, echo.MIMEApplicationJSON, append(data, '\n'))
}

// paramList reads from the parameters which list a page shows: its filter and its first row.
func paramList(c echo.Context) (l live.List, err error) {
	l.Filter = filter.Filter{Status: job.Status(c.QueryParam("state")), Queue: c.QueryParam("queue"), Type: c.QueryParam("type")}
	if err := l.Filter.Check(); err != nil {
		return l, problem.InAddress(err)
	}

	l.First, err = filter.ParseCursor(c.QueryParam("first"))

	return l, problem.InAddress(err)
}

// paramIDs reads the ids of the jobs that a page follows. There may be at most live.MaxIDs,
// because each of them costs a lookup.
func paramIDs(c echo.Context) (ids []string, err error) {
	given := c.QueryParam("ids")
	if given == "" {
		return nil, nil
	}

	if n := strings.Count(given, ",") + 1; n > live.MaxIDs {
		return nil, problem.In(problem.BadParameter, "ids", fmt.Sprintf("%d ids, at most %d are accepted", n, live.MaxIDs))
	}

	for text := range strings.SplitSeq(given, ",") {
		id, err := job.ParseID(text)
		if err != nil {
			return nil, problem.In(problem.BadParameter, "ids", err.Error())
		}

		ids = append(ids, id)
	}

	return ids, nil
}
