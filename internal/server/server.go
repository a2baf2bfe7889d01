// Package server answers HTTP: pages, the acts on them, the JSON API, the live
// connection, metrics and probes.
//
// This package holds what every request passes. Behind it are four others: view,
// the only way to the store; web, what handlers have in common; api, which
// answers programs and carries out acts; and pages, which draws.
//
// Every request passes the same guards in this order (guard.go): headers that
// forbid everything a page does not need, a request id, recovery from panics,
// the limits of its address (limits.go), the list of host names, and the refusal of cross-origin writes. The list of
// host names stops a page of another site whose name was pointed at this
// address: to all the other guards such a request looks like one of the same
// origin. Then the base path is taken off, the route is matched, and the caller
// must have the permission that the route needs (identify.go).
//
// Nothing changes by GET. A change is a POST that names what the person saw (a
// replay names the run), so a second click, a second person or a repeated
// request learns that it came second.
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

	Local access.Token // with which the commands of the user who runs the dashboard come; zero: with none

	Insecure bool       // reachable from the network, and declared open to everyone
	Closed   bool       // without any user no one is let in, instead of everyone
	BasePath string     // below which everything is, as "/redrive"; default: the root
	Demo     pages.Demo // nil outside demo mode

	Connections int // open at once; default: as the configuration says
	Log         *slog.Logger
}

// missing names an option that is not set, or nothing. A server that is put
// together wrongly fails here and not with the first request.
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

// Server is an http.Handler.
type Server struct {
	*web.Site
	*web.Routes

	// What answers requests.
	echo  *echo.Echo
	api   *api.API
	pages *pages.Pages

	// Where requests may come from, and to which address.
	basePath string
	hosts    hosts
	proxy    *config.Proxy // nil: none is trusted
	proxied  proxied
	limits   limits

	// Who sends them.
	closed    bool         // without any user no one is let in, instead of everyone
	local     access.Token // of the commands on this machine
	logins    *access.Limiter
	passwords *access.Passwords

	// What is told of them.
	metrics  *Metrics
	failures *loglimit.Limit[problem.Kind]
}

// Notices is what every page says about the whole program: what keeps jobs from being
// run, or the database from being written.
func (s *Server) Notices() string { return s.pages.Notices() }

// New builds a server.
func New(o Options) (*Server, error) {
	if name := o.missing(); name != "" {
		return nil, fmt.Errorf("server: the option %s is missing", name)
	}

	if !config.IsBasePath(o.BasePath) {
		return nil, fmt.Errorf("server: the base path %q is not one as /redrive", o.BasePath)
	}

	e, began := echo.New(), time.Now()
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

	// A request passes these in this order: first what bounds and guards every request, then
	// who sends it.
	e.IPExtractor = realIP(s.proxy)
	e.HTTPErrorHandler = s.refuse
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
	s.Get("/healthz", access.Public, func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") }, web.AnyParameter)
	s.Get("/readyz", access.Public, s.ready, web.AnyParameter)
}

// unescape decodes the names in an address, such as "orders%40shop". The router takes them
// from the address as it was sent if that is encoded otherwise than Go would.
func unescape(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Request().URL.RawPath == "" {
			return next(c)
		}

		values := slices.Clone(c.ParamValues())
		for i, name := range c.ParamNames() {
			if name == "*" { // a path, of which the separators matter
				continue
			}

			if value, err := url.PathUnescape(values[i]); err == nil { // net/http refuses an address that is not encoded well
				values[i] = value
			}
		}

		c.SetParamValues(values...)

		return next(c)
	}
}

// ready is GET /readyz: whether jobs are taken and run. A load balancer stops
// sending requests when it fails, so it must not wait long for a busy database.
func (s *Server) ready(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), 2*time.Second)
	defer cancel()

	if err := s.Engine.Ready(); err != nil {
		return c.String(http.StatusServiceUnavailable, "the engine is not running: "+err.Error()+"\n")
	}

	err := s.View.Ping(ctx)
	cause, since := s.View.Problem()
	if err != nil {
		cause = problem.Of(err).Text
	}

	if cause != "" { // also while small writes still find room
		text := "the database cannot be written: " + cause
		if !since.IsZero() {
			text += "; that began at " + wire.FormatTime(since)
		}

		return c.String(http.StatusServiceUnavailable, text+"\n")
	}

	return c.String(http.StatusOK, "ready\n")
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// How long a request may take to arrive, and its answer to be sent, counted from the
// header. A large body adds what [extra] says to both.
const (
	readTimeout  = 30 * time.Second
	writeTimeout = 30 * time.Second
)

// HTTP is the http.Server that serves s, with limits on time and size. An
// upgraded connection has limits of its own.
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

// live is /live: a websocket, or a single poll of the same data when no upgrade
// is asked for. The websocket stays open for long, so its permission is checked
// again and again.
func (s *Server) live(c echo.Context) error {
	if c.IsWebSocket() {
		who := web.CallerOf(c)
		s.Hub.Serve(c.Response(), c.Request(), live.Pass{
			Address: limit.AddressOf(c.RealIP()).String(),
			Valid:   func(ctx context.Context) bool { return s.stillAllowed(ctx, who, access.View) },
		})

		switch c.Response().Status { // the hub has answered
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

// paramList reads which list a page shows: its filter and its first row.
func paramList(c echo.Context) (l live.List, err error) {
	l.Filter = filter.Filter{Status: job.Status(c.QueryParam("state")), Queue: c.QueryParam("queue"), Type: c.QueryParam("type")}
	if err := l.Filter.Check(); err != nil {
		return l, problem.InAddress(err)
	}

	l.First, err = filter.ParseCursor(c.QueryParam("first"))

	return l, problem.InAddress(err)
}

// paramIDs reads the jobs that a page follows, of which there may be only so
// many: each costs a lookup on every change.
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
