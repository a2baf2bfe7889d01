// Package server answers HTTP: pages, the actions on them, the JSON API, the
// live connection, metrics and probes.
//
// A page handler reads what the page shows, top to bottom, into one typed view
// and hands it to [Server.page], which renders into a buffer first: an error
// never arrives after half a page. A handler that cannot answer returns an
// error; [describe] is the one table from errors to answers, for browsers and
// for the API alike.
//
// Every request passes the same guards, in this order (see guard.go): headers
// that forbid everything a page does not need, a request id, recovery from
// panics, the list of host names, and the refusal of cross-origin writes. The
// list of names is what stops a page elsewhere whose name was pointed at this
// address: such a request looks like one of the same origin to all the others.
// Then the base path is taken off (see basepath.go), the route is matched, and
// whoever sends the request must be allowed to use it (see identify.go).
//
// Nothing changes by GET. A change is a POST that names what the person saw (a
// replay names the run), so a second click, a second person or a repeated
// request finds that it came second and says so.
package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/singleflight"

	"redrive/internal/access"
	"redrive/internal/config"
	"redrive/internal/job"
	"redrive/internal/live"
	"redrive/internal/server/view"
	"redrive/web/templates"
)

// Demo is what the demo's banner shows and does.
type Demo interface {
	Faults() []templates.Fault
	SetFault(name string, broken bool) error
	Reset(ctx context.Context) error
}

// Options are the parts of a server. Those without a default are required.
type Options struct {
	View    *view.View
	Config  *config.Config
	Hub     *live.Hub
	Metrics *Metrics
	Running func() map[string]int // executions at this moment, by queue
	Knows   func(typ string) bool // whether a handler knows a type of job
	Ready   func() error          // why no jobs are run, or nil

	// Deliver sends a dead letter that was refused once more; default: into
	// the built-in dead-letter queue, where the job's queue has one.
	Deliver func(context.Context, job.Job, job.DeadLetter) job.Delivery
	// Waiting reports whether a claimed job has not begun because of the handler
	// of an earlier execution: since when that one should have returned, and
	// until when the job waits for it; both zero when it waits for a worker by
	// now. Default: none waits.
	Waiting func(id string) (since, until time.Time, ok bool)
	// Began is when an execution that is under way began: later than its claim,
	// when it had to wait; default: at its claim.
	Began func(job.Token) (at time.Time, ok bool)

	Wake   func()             // tells who carries operations through that one was made or changed; default: nobody is told
	Worker string             // name of the worker in this process
	Quiet  func(on bool)      // ends its claiming, or begins it again; default: nothing happens
	Stuck  func() []job.Stuck // its handlers that do not return; default: none

	Insecure bool         // reachable from the network, and said to be open to everybody
	Closed   bool         // without any user nobody is let in, instead of everybody
	BasePath string       // below which everything is, as "/redrive"; default: the root
	Demo     Demo         // nil outside demo mode
	Log      *slog.Logger // default: none
}

// missing names a required option that is not set, or nothing.
func (o Options) missing() string {
	switch {
	case o.View == nil:
		return "View"
	case o.Config == nil:
		return "Config"
	case o.Hub == nil:
		return "Hub"
	case o.Metrics == nil:
		return "Metrics"
	case o.Running == nil:
		return "Running"
	case o.Knows == nil:
		return "Knows"
	case o.Ready == nil:
		return "Ready"
	}
	return ""
}

// fill sets the defaults.
func (o *Options) fill() {
	if o.Deliver == nil {
		o.Deliver = func(_ context.Context, j job.Job, _ job.DeadLetter) job.Delivery {
			return job.InDeadLetters(j.Queue, o.Config.DeadLetters(j.Queue))
		}
	}
	if o.Waiting == nil {
		o.Waiting = func(string) (since, until time.Time, ok bool) { return time.Time{}, time.Time{}, false }
	}
	if o.Began == nil {
		o.Began = func(job.Token) (at time.Time, ok bool) { return time.Time{}, false }
	}
	if o.Wake == nil {
		o.Wake = func() {}
	}
	if o.Quiet == nil {
		o.Quiet = func(bool) {}
	}
	if o.Stuck == nil {
		o.Stuck = func() []job.Stuck { return nil }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Server is an http.Handler.
type Server struct {
	Options
	echo     *echo.Echo
	hosts    hosts
	cross    *http.CrossOriginProtection
	buffers  sync.Pool          // of *bytes.Buffer, for pages
	large    chan struct{}      // a place for each large body that is held
	exports  chan struct{}      // a place for each file that is written
	forwards singleflight.Group // of refused dead letters, by job and run
	needs    map[route]access.Permission
	proxy    *config.Proxy // nil: none is trusted
	proxied  proxied
	logins   *access.Limiter
	secrets  *access.Passwords
	rest     rest
	began    time.Time
}

// New builds a server.
func New(o Options) (*Server, error) {
	if name := o.missing(); name != "" {
		return nil, fmt.Errorf("server: the option %s is missing", name)
	}
	o.fill()
	s := &Server{
		Options: o, echo: echo.New(), began: time.Now(),
		hosts: newHosts(o.Config.Hosts), cross: http.NewCrossOriginProtection(),
		large: make(chan struct{}, maxLarge), exports: make(chan struct{}, maxExports), needs: map[route]access.Permission{},
		proxy: o.Config.Proxy(), logins: access.NewLimiter(), secrets: access.NewPasswords(),
	}
	if !config.IsBasePath(o.BasePath) {
		return nil, fmt.Errorf("server: the base path %q is not one as /redrive", o.BasePath)
	}
	if err := o.Metrics.watch(s); err != nil {
		return nil, err
	}
	s.echo.IPExtractor = realIP(s.proxy)
	s.echo.HTTPErrorHandler = s.refuse
	s.echo.Pre(s.observe, s.recover, s.guard, s.rebase)
	s.echo.Use(s.permit)
	s.pages()
	s.api()
	s.operationRoutes()
	s.accessRoutes()
	s.trashRoutes()
	s.auditRoutes()
	s.probes()
	return s, nil
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// HTTP is the http.Server that serves s, with its time and size limits. An
// upgraded connection has its own.
func (s *Server) HTTP() *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
}

func (s *Server) pages() {
	s.get("/", access.View, s.overview)
	s.get("/jobs", access.View, s.jobs)
	s.exportRoutes("/export", s.jobSheet)
	s.get("/jobs/:id", access.View, s.job)
	s.get("/jobs/:id/payload", access.View, s.payload)
	s.get("/jobs/:id/replay", access.View, s.redoPage)
	s.get("/dead-letters", access.View, s.deadLetters)
	s.groupRoutes()
	s.get("/queues", access.View, s.queues)
	s.get("/queues/:name", access.View, s.queue)
	s.get("/workers", access.View, s.workers)
	s.get("/policies", access.View, s.policies)
	s.get("/static/:hash/*", access.Public, s.static)
	s.get("/live", access.View, s.live)
	s.post("/jobs/:id/replay", access.Operate, s.replayForm)
	s.post("/jobs/:id/discard", access.Operate, s.discardForm)
	s.post("/jobs/:id/cancel", access.Operate, s.cancelForm)
	s.post("/jobs/:id/forward", access.Operate, s.forwardForm)
	s.post("/queues/:name/pause", access.Operate, s.pauseForm)
	s.post("/workers/quiet", access.Operate, s.quietForm)
	s.post("/workers/resume", access.Operate, s.wakeForm)
	s.post("/queues/:name/resume", access.Operate, s.resumeForm)
	if s.Demo != nil {
		s.post("/demo/faults/:name", access.Operate, s.faultForm)
		s.post("/demo/reset", access.Operate, s.resetForm)
	}
}

func (s *Server) api() {
	const v1 = "/api/v1"
	s.get(v1+"/jobs", access.View, s.listJobs)
	s.get(v1+"/jobs/count", access.View, s.countJobs)
	s.get(v1+"/jobs/:id", access.View, s.showJob)
	s.get(v1+"/counters", access.View, s.showCounters)
	s.get(v1+"/dead-letters", access.View, s.listLetters)
	s.get(v1+"/dead-letters/fill", access.View, s.showFill)
	s.get(v1+"/facets", access.View, s.listFacets)
	s.get(v1+"/queues", access.View, s.listQueues)
	s.get(v1+"/queues/:name", access.View, s.showQueue)
	s.get(v1+"/policies", access.View, s.listPolicies)
	s.get(v1+"/workers", access.View, s.listWorkers)
	s.post(v1+"/workers/quiet", access.Operate, s.quietWorkers)
	s.post(v1+"/workers/resume", access.Operate, s.wakeWorkers)
	s.post(v1+"/jobs", access.Enqueue, s.enqueue)
	s.post(v1+"/jobs/batch", access.Enqueue, s.enqueueBatch)
	s.get(v1+"/jobs/:id/envelope", access.View, s.showEnvelope)
	s.post(v1+"/queues/:name/envelopes", access.Enqueue, s.enqueueEnvelopes)
	s.post(v1+"/jobs/:id/replay", access.Operate, s.replayJob)
	s.post(v1+"/jobs/:id/discard", access.Operate, s.discardJob)
	s.post(v1+"/jobs/:id/cancel", access.Operate, s.cancelJob)
	s.post(v1+"/jobs/:id/forward", access.Operate, s.forwardJob)
	s.post(v1+"/queues/:name/pause", access.Operate, s.pauseQueue)
	s.post(v1+"/queues/:name/resume", access.Operate, s.resumeQueue)
}

// get and post add a route and what a person needs to be allowed to use it.
func (s *Server) get(path string, need access.Permission, h echo.HandlerFunc) {
	s.route(http.MethodGet, path, need, h)
	s.route(http.MethodHead, path, need, h)
}

func (s *Server) post(path string, need access.Permission, h echo.HandlerFunc) {
	s.route(http.MethodPost, path, need, h)
}

func (s *Server) route(method, path string, need access.Permission, h echo.HandlerFunc) {
	s.needs[route{method, path}] = need
	s.echo.Add(method, path, h)
}

// route is a way into the server as echo matches it.
type route struct{ method, path string }

// Gets lists the paths that are answered by GET, as their routes name them:
// /jobs/:id.
func (s *Server) Gets() []string {
	var all []string
	for r := range s.needs {
		if r.method == http.MethodGet {
			all = append(all, r.path)
		}
	}
	slices.Sort(all)
	return all
}

// wantsJSON reports whether the answer is for a program.
func wantsJSON(r *http.Request) bool {
	return r.URL.Path == "/live" || strings.HasPrefix(r.URL.Path, "/api/") || strings.Contains(r.Header.Get("Accept"), "application/json")
}
