package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"redrive/internal/bulk"
	"redrive/internal/config"
	"redrive/internal/engine"
	"redrive/internal/handler"
	"redrive/internal/job"
	"redrive/internal/live"
	"redrive/internal/server"
	"redrive/internal/server/pages"
	"redrive/internal/server/view"
	"redrive/internal/server/web"
	"redrive/internal/store"
	"redrive/internal/store/db"
	"redrive/internal/store/sqlite"
	"redrive/internal/webhook"
)

const (
	engineGrace = 30 * time.Second // for running jobs, in a graceful stop
	httpGrace   = 5 * time.Second  // for requests under way

	maxConnections = 12_000 // of browsers and programs; more wait until one ends
)

// parts are what an app is made of. Those that may be left out say so.
type parts struct {
	listen   string       // port 0 takes a free one
	listener net.Listener // instead of listen
	db       string
	relaxed  bool
	open     bool   // reachable from the network although nobody has to log in
	base     string // path below which everything is
	config   *config.Config
	log      *slog.Logger
	handlers func(typ string) (engine.Handler, bool) // default: those of the configuration
	letters  letters                                 // default: the webhooks of the configuration
	demo     pages.Demo                              // default: none
	worker   string                                  // name of the worker, default: of this machine and process
}

// letters knows which queues send their dead letters, and sends them.
type letters interface {
	Kept(queue string) (job.Delivery, bool)
	Deliver(context.Context, job.Job, job.DeadLetter) job.Delivery
}

// app is everything that runs. Each step of its start registers its own undo;
// a stop runs them backwards, and so does a start that fails halfway.
type app struct {
	parts
	undo   []step
	failed chan error // what ends the app from within

	store   *store.Store
	search  searcher
	hub     *live.Hub
	bulk    *bulk.Runner
	forward *webhook.Forwarder
	engine  *engine.Engine
	server  *server.Server
	metrics *server.Metrics
	address net.Addr
	running atomic.Bool
}

// step is how one part is stopped. Without time left, ctx is done.
type step struct {
	name string
	stop func(ctx context.Context) error
}

// startApp builds and starts everything. ctx bounds the start only.
func startApp(ctx context.Context, p parts) (*app, error) {
	a := &app{parts: p, failed: make(chan error, 1)}
	for _, start := range []func(context.Context) error{
		a.readHandlers, a.openStore, a.checkReach, a.openHub, a.buildForwarder, a.buildEngine, a.startBulk, a.buildServer, a.listenAndServe, a.startEngine,
		a.startPruner, a.startReopener, a.startSearcher,
	} {
		if err := start(ctx); err != nil {
			hurry, cancel := context.WithCancel(ctx)
			cancel()
			return nil, errors.Join(err, a.stop(hurry))
		}
	}
	return a, nil
}

func (a *app) onStop(name string, stop func(context.Context) error) {
	a.undo = append(a.undo, step{name, stop})
}

// stop stops what was started, in the opposite order, once. The end of ctx
// ends the patience with what still runs.
func (a *app) stop(ctx context.Context) error {
	var all error
	for _, s := range slices.Backward(a.undo) {
		if err := s.stop(ctx); err != nil {
			all = errors.Join(all, fmt.Errorf("stop the %s: %w", s.name, err))
		}
	}
	a.undo = nil
	return all
}

// url is where the dashboard is.
func (a *app) url() string { return "http://" + a.address.String() + a.base }

// fail ends the app; the first reason is kept.
func (a *app) fail(err error) {
	select {
	case a.failed <- err:
	default:
	}
}

func (a *app) readHandlers(context.Context) error {
	if a.handlers != nil {
		a.handlers = handler.Envelopes(a.handlers)
		return nil
	}
	set, err := handler.New(handlerConfigs(a.config))
	if err != nil {
		return usageError{a.config.Locate(err)}
	}
	a.handlers = handler.Envelopes(set.Lookup)
	a.onStop("handlers", func(context.Context) error { set.Close(); return nil })
	return nil
}

func (a *app) openStore(ctx context.Context) (err error) {
	a.search = newSearcher(func(ctx context.Context) (int, error) { return a.store.Search.Update(ctx) }, a.log)
	a.store, err = store.Open(ctx, store.Options{
		Database: sqlite.File{Path: a.db, Relaxed: a.relaxed}, Log: a.log, Redact: redaction(a.config),
		OnCommit: func(changes []job.Change) { // nothing is written before both exist
			a.hub.Changed(changes)
			a.engine.Changed(changes)
			a.search.changed(changes)
		},
	})
	if errors.As(err, new(*db.LockedError)) {
		return usageError{err}
	}
	if err == nil {
		a.onStop("store", func(context.Context) error { return a.store.Close() })
	}
	return err
}

// local reports whether only this machine reaches the dashboard. A socket that
// was handed over is the demo's.
func (a *app) local() bool { return a.listener != nil || isLoopback(a.listen) }

// checkReach refuses to be reached from the network as long as nobody has to
// log in.
func (a *app) checkReach(context.Context) error {
	if a.local() {
		return nil
	}
	return checkListen(a.listen, a.open || a.store.Accounts.Guarded() || a.config.Proxy() != nil)
}

// localURL is where the dashboard is for programs on this machine.
func (a *app) localURL() string {
	tcp, ok := a.address.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d%s", tcp.Port, a.base)
	}
	return a.url()
}

func (a *app) openHub(context.Context) error {
	a.hub = live.New(a.store, live.Options{CheckOrigin: server.CheckOrigin(a.config.Hosts), Log: a.log})
	a.onStop("live pages", func(context.Context) error { a.hub.Close(); return nil })
	return nil
}

// startBulk begins to carry operations on many jobs through.
func (a *app) startBulk(context.Context) error {
	a.bulk = bulk.Start(a.store.Operations, a.log)
	a.onStop("operations", func(context.Context) error { a.bulk.Close(); return nil })
	return nil
}

func (a *app) buildForwarder(context.Context) (err error) {
	a.forward, err = webhook.New(webhook.Options{
		Hooks: webhooks(a.config), Keeps: a.config.DeadLetters, Random: rand.Float64, Log: a.log,
	})
	if err != nil {
		return usageError{a.config.Locate(err)}
	}
	if a.letters == nil {
		a.letters = a.forward
	}
	a.onStop("webhooks", func(context.Context) error { a.forward.Close(); return nil })
	return nil
}

// webhooks hands the webhooks of the file to the package that calls them.
func webhooks(c *config.Config) map[string]webhook.Webhook {
	all := map[string]webhook.Webhook{}
	for _, queue := range c.Queues() {
		if w, ok := c.Webhook(queue); ok {
			all[queue] = webhook.Webhook{URL: w.URL, Secret: w.Secret.Reveal(), Sending: w.Sending}
		}
	}
	return all
}

func (a *app) buildEngine(context.Context) (err error) {
	if a.worker == "" {
		a.worker = workerName()
	}
	a.metrics = server.NewMetrics()
	a.engine, err = engine.New(engine.Options{
		Store: a.store, Handlers: a.handlers, Workers: a.config.Workers, Rules: a.config.Rules().AfterFailure,
		Kept: a.letters.Kept, Deliver: a.letters.Deliver, DeliverWithin: webhook.Deadline,
		UnknownType: a.config.UnknownType, Expired: a.config.Expired, Random: rand.Float64, Name: a.worker,
		Grace: engineGrace, Settled: a.metrics.Settled, Log: a.log,
	})
	return err
}

// workerName tells the workers of several machines and restarts apart.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

func (a *app) buildServer(context.Context) (err error) {
	a.server, err = server.New(server.Options{
		View: view.New(a.store, a.config.Redactor()), Config: a.config, Hub: a.hub, Metrics: a.metrics,
		Engine: web.Engine{
			Worker: a.worker, Running: a.engine.Running, Ready: a.ready, Deliver: a.letters.Deliver,
			Knows:   func(typ string) bool { _, ok := a.handlers(typ); return ok },
			Waiting: a.engine.Waiting, Began: a.engine.Began, Stuck: a.engine.Stuck, Pause: a.pause, Notify: a.bulk.Wake,
		},
		Insecure: a.open && !a.local(), Closed: !a.open && !a.local(), BasePath: a.base, Demo: a.demo, Log: a.log,
	})
	return err
}

// pause ends the claiming of jobs, or begins it again.
func (a *app) pause(on bool) {
	if on {
		a.engine.Pause()
	} else {
		a.engine.Resume()
	}
}

func (a *app) ready() error {
	if !a.running.Load() {
		return errors.New("it is starting or stopping")
	}
	return nil
}

// listenAndServe answers requests from now on: pages can be read while the
// engine still cleans up after a crash, and while it stops.
func (a *app) listenAndServe(ctx context.Context) error {
	if a.listener == nil {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.listen)
		if err != nil {
			return fmt.Errorf("listen on %s: %w; name another address with --listen", a.listen, err)
		}
		a.listener = listener
	}
	a.address = a.listener.Addr()
	if err := a.store.Announce(a.localURL()); err != nil {
		a.log.Warn("The commands user and token will not find this dashboard by its database.", "error", err)
	}
	web := a.server.HTTP()
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := web.Serve(netutil.LimitListener(a.listener, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
			a.fail(fmt.Errorf("serve HTTP: %w", err))
		}
	}()
	a.onStop("web server", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, httpGrace)
		defer cancel()
		err := web.Shutdown(ctx)
		if ctx.Err() != nil { // whoever is not done by now is cut off
			err = web.Close()
		}
		<-served
		return err
	})
	return nil
}

func (a *app) startEngine(ctx context.Context) error {
	if err := a.engine.Start(ctx); err != nil {
		return err
	}
	a.running.Store(true)
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-done:
		case err := <-a.engine.Err():
			a.running.Store(false)
			a.fail(err)
		case <-a.store.Failed():
			a.running.Store(false)
			a.fail(a.store.Problem())
		}
	}()
	a.onStop("engine", func(ctx context.Context) error {
		a.running.Store(false)
		close(done)
		<-watched
		return a.engine.Stop(ctx)
	})
	return nil
}

// inBackground runs a task until the stop.
func (a *app) inBackground(name string, run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	a.onStop(name, func(context.Context) error {
		cancel()
		running.Wait()
		return nil
	})
}

// startPruner begins to remove dead letters that are too old or too many.
func (a *app) startPruner(context.Context) error {
	a.inBackground("pruner", pruner{a.store.Prune, a.config.Retention(), a.log}.run)
	return nil
}

// startReopener begins to open error groups that were ignored until a time that
// has come.
func (a *app) startReopener(context.Context) error {
	a.inBackground("error groups", reopener{a.store.Groups.ReopenDue, a.log}.run)
	return nil
}

// startSearcher begins to make failures searchable.
func (a *app) startSearcher(context.Context) error {
	a.inBackground("search index", a.search.run)
	return nil
}
