// Package app is the program without its command line: it builds the store, the engine, the
// sources and the server, puts them together, and stops and reloads them.
//
// An [App] is made of its [Parts]. [Start] builds one step after the other, and each step
// registers at once how it is undone. [App.Stop] runs these undos backwards and joins their
// errors, and so does a start that fails halfway, so that neither leaves anything behind.
// [App.Attend] waits for the end, which is asked for by a signal or comes with a failure.
//
// The engine, the store and the live pages know nothing of each other. This package
// introduces them: it hands the methods of one to the options of another, and is itself
// handed everything else. It reads no flag and hears no signal of its own accord, keeps
// nothing at the level of the package, and so can be started more than once in a process.
// What a process has only once is set by [OccupyProcess], apart from any app.
package app

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

	"redrive/internal/access"
	"redrive/internal/bulk"
	"redrive/internal/config"
	"redrive/internal/engine"
	"redrive/internal/handler"
	"redrive/internal/job"
	"redrive/internal/live"
	"redrive/internal/poll"
	"redrive/internal/resource"
	"redrive/internal/retry"
	"redrive/internal/server"
	"redrive/internal/server/pages"
	"redrive/internal/server/view"
	"redrive/internal/server/web"
	"redrive/internal/store"
	"redrive/internal/store/counters"
	"redrive/internal/store/db"
	"redrive/internal/store/search"
	"redrive/internal/store/sqlite"
	"redrive/internal/usage"
	"redrive/internal/webhook"
)

const (
	engineGrace = 30 * time.Second // how long a graceful stop waits for running jobs
	httpGrace   = 5 * time.Second  // how long it waits for requests
)

// Parts are what an app is made of. Those that may be left out say so.
type Parts struct {
	Listen   string       // the address; port 0 takes a free one
	Listener net.Listener // an open socket, instead of listen
	DB       string       // the database file
	Relaxed  bool         // commits do not wait for the disk
	Open     bool         // reachable from the network although no login is required
	BasePath string       // the path below which everything is
	Config   *config.Config
	Reload   string // the file from which the configuration is read again, which may be missing; empty: there is none
	Log      *slog.Logger
	Handlers func(typ string) (engine.Handler, bool) // default: those of the configuration
	Sender   DeadLetterSender                        // default: the webhooks of the configuration
	Demo     pages.Demo                              // default: none
	Worker   string                                  // the worker's name, default: machine and process
}

// DeadLetterSender knows which queues keep their dead letters and which send them
// to another service, and sends them.
type DeadLetterSender interface {
	Kept(queue string) (job.Delivery, bool)
	Deliver(context.Context, job.Job, job.DeadLetter) job.Delivery
}

// App is everything that runs. Each step of its start registers how it is undone;
// a stop runs these steps backwards, and so does a start that fails halfway.
type App struct {
	Parts
	undo   []undoStep // in the order of the start
	failed chan error // why the app ends on its own; holds one reason

	shares  resource.Shares
	spares  []func()                    // close what is open only in case that it is needed again
	set     atomic.Pointer[handler.Set] // nil: the app was given handlers
	store   *store.Store
	search  searcher
	hub     *live.Hub
	bulk    *bulk.Runner
	sources *poll.Sources
	engine  *engine.Engine
	server  *server.Server

	forwarder *webhook.Forwarder
	reloading sync.Mutex // held while the configuration is read again

	metrics *server.Metrics
	address net.Addr
	key     string      // with which commands on this machine come
	running atomic.Bool // the engine claims jobs: the probe of readiness
}

// undoStep stops one part. When there is no time left, ctx is done.
type undoStep struct {
	name string
	stop func(ctx context.Context) error
}

// Start builds and starts everything. ctx bounds the start only.
//
// The store comes first, because most parts use it, and the engine last but for
// the work in the background: pages can be read before jobs run.
func Start(ctx context.Context, p Parts) (*App, error) {
	a := &App{Parts: p, failed: make(chan error, 1)}

	for _, start := range []func(context.Context) error{
		a.divideDescriptors, a.readHandlers, a.openStore, a.checkReach, a.openHub,
		a.buildForwarder, a.buildEngine, a.startBulk, a.buildServer,
		a.dropStartup, a.listenAndServe, a.takeOver, a.startEngine, a.startSources, a.startBackground,
	} {
		if err := start(ctx); err != nil {
			// What was started until then stops at once.
			atOnce, cancel := context.WithCancel(ctx)
			cancel()
			return nil, errors.Join(err, a.Stop(atOnce))
		}
	}

	return a, nil
}

// onStop registers the stop of a part that was started.
func (a *App) onStop(name string, stop func(context.Context) error) {
	a.undo = append(a.undo, undoStep{name, stop})
}

// onClose registers the stop of a part that takes no context and cannot fail.
func (a *App) onClose(name string, stop func()) {
	a.onStop(name, func(context.Context) error { stop(); return nil })
}

// Stop stops what was started, in the opposite order. When ctx ends, whatever
// still runs is stopped at once. A second call does nothing.
func (a *App) Stop(ctx context.Context) error {
	undo := a.undo
	a.undo = nil

	var all error
	for _, s := range slices.Backward(undo) {
		if err := s.stop(ctx); err != nil {
			all = errors.Join(all, fmt.Errorf("stop the %s: %w", s.name, err))
		}
	}

	return all
}

// URL is the address of the dashboard, with the port that was taken when the flags
// left it open.
func (a *App) URL() string { return "http://" + a.address.String() + a.BasePath }

// Store is the database of the app.
func (a *App) Store() *store.Store { return a.store }

// Gets are the routes of the server that only read.
func (a *App) Gets() []string { return a.server.Gets() }

// fail ends the app: attend receives the reason and stops the parts. Later reasons
// are dropped, because they mostly follow from the first.
func (a *App) fail(err error) {
	select {
	case a.failed <- err:
	default:
	}
}

// readHandlers makes the handlers of the configuration, unless the app was given
// its own. Either way a handler is added that reads envelopes again that could not
// be read when they came.
func (a *App) readHandlers(context.Context) error {
	if a.Handlers != nil {
		a.Handlers = handler.Envelopes(a.Handlers)
		return nil
	}

	set, err := handler.New(a.Config.Handlers, a.Config.Redactor().TextFrom)
	if err != nil {
		return usage.Of(a.Config.Locate(err))
	}

	a.set.Store(set)
	a.Handlers = handler.Envelopes(func(typ string) (engine.Handler, bool) { return a.set.Load().Lookup(typ) })
	a.spares = append(a.spares, set.CloseIdle)
	a.onClose("handlers", func() { a.set.Load().Close() })

	return nil
}

// openStore opens the database. The parts that hear of its commits are built
// later, but before anything is written.
func (a *App) openStore(ctx context.Context) (err error) {
	a.search = newSearcher(
		func(ctx context.Context) (int, error) { return a.store.Search.Sweep(ctx) },
		func(ctx context.Context) error { return a.store.Search.Merge(ctx) }, a.Log)
	a.attachSources()

	a.store, err = store.Open(ctx, store.Options{
		Database: sqlite.File{Path: a.DB, Relaxed: a.Relaxed}, Log: a.Log, Redact: Redaction(a.Config),
		MaxBytes: a.Config.Limits().WriteBytes, Statements: a.Config.Limits().Statements,
		Limits: counters.Limits{Queues: a.Config.Limits().Queues, Types: a.Config.Limits().Types, Reserved: a.Config.NamedQueues()},
		Groups: a.Config.Limits().Groups,
		OnCommit: func(changes []job.Change) {
			a.hub.Changed(changes)
			a.engine.Changed(changes)
			a.search.changed(changes)
			a.sources.Changed(changes)
		},
		CheckSource: a.sources.Check,
		Attached:    a.sources.Attached,
	})
	if errors.As(err, new(*db.LockedError)) {
		return usage.Of(err)
	}

	if err == nil {
		a.onStop("store", func(context.Context) error { return a.closeStore() })
	}

	return err
}

// closeStore leaves no new database behind after a start that failed before a client
// could send a request.
func (a *App) closeStore() error {
	if a.address != nil || !a.store.Made() {
		return a.store.Close()
	}

	err := a.store.Abandon()
	if err == nil {
		a.Log.Info("Removed the new database, because Redrive did not start.", "path", a.DB)
	}

	return err
}

// Redaction removes what the configuration hides from the texts of the search.
func Redaction(c *config.Config) search.Redaction {
	hide := c.Redactor()
	return search.Redaction{
		Data: func(typ string, data []byte) []byte { return hide.For(typ).Payload(data) }, Text: hide.Text, Fingerprint: hide.Fingerprint(),
	}
}

// local reports whether the dashboard can be reached from this machine only. An
// open socket that was handed over is the demo's, which is local.
func (a *App) local() bool { return a.Listener != nil || IsLoopback(a.Listen) }

// checkReach refuses an address that can be reached from the network as long as no
// login is required.
func (a *App) checkReach(context.Context) error {
	if a.local() {
		return nil
	}
	return CheckListen(a.Listen, a.Open || a.store.Accounts.Guarded() || a.Config.Proxy() != nil)
}

// localURL is the address of the dashboard for programs on this machine.
func (a *App) localURL() string {
	tcp, ok := a.address.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d%s", tcp.Port, a.BasePath)
	}

	return a.URL()
}

// openHub makes the hub that tells browsers what changes.
func (a *App) openHub(context.Context) error {
	a.hub = live.New(a.store, live.Options{
		CheckOrigin: server.CheckOrigin(a.Config), MaxPerIP: a.Config.Limits().Websockets, Log: a.Log,
	})
	a.onClose("live pages", a.hub.Close)

	return nil
}

// startBulk begins to carry out operations on many jobs, also those that were
// under way when the process ended.
func (a *App) startBulk(context.Context) error {
	a.bulk = bulk.Start(a.store.Operations, a.Log)
	a.onClose("operations", a.bulk.Close)
	return nil
}

// buildForwarder makes the sender of dead letters to webhooks.
func (a *App) buildForwarder(context.Context) error {
	forwarder, err := webhook.New(webhook.Options{
		Hooks: webhooks(a.Config), Keeps: a.Config.DeadLetters, Random: rand.Float64, Log: a.Log,
	})
	if err != nil {
		return usage.Of(a.Config.Locate(err))
	}

	if a.Sender == nil {
		a.Sender = forwarder
	}

	a.forwarder = forwarder
	a.spares = append(a.spares, forwarder.CloseIdle)
	a.onClose("webhooks", forwarder.Close)

	return nil
}

// webhooks lists the webhooks of the configuration by queue.
func webhooks(c *config.Config) map[string]webhook.Webhook {
	all := map[string]webhook.Webhook{}
	for _, queue := range c.Queues() {
		if w, ok := c.Webhook(queue); ok {
			all[queue] = webhook.Webhook{URL: w.URL, Secret: w.Secret.Reveal(), Sending: w.Sending}
		}
	}

	return all
}

// buildEngine makes the worker engine, which does nothing before its start, and the
// metrics that it raises.
func (a *App) buildEngine(context.Context) (err error) {
	if a.Worker == "" {
		a.Worker = workerName()
	}

	a.metrics = server.NewMetrics(a.store.Counters.Label)
	letters := &letterLog{log: a.Log}
	a.inBackground("log of dead letters", letters.run)
	a.engine, err = engine.New(engine.Options{
		Store: a.store, Queues: a.store, Handlers: a.Handlers, Workers: a.Config.Workers, Hide: a.Config.Redactor().Text,
		Rules: func(j job.Job, end job.Ending) (*retry.Ruling, string) { return a.Config.Rules().AfterFailure(j, end) },
		Kept:  a.Sender.Kept, Deliver: a.Sender.Deliver, DeliverWithin: webhook.Deadline,
		UnknownType: a.Config.UnknownType, Expired: a.Config.Expired, Random: rand.Float64, Name: a.Worker,
		MaxRunning: a.shares.Executions, Probe: a.probe, Grace: engineGrace, Log: a.Log,
		Settled: func(j job.Job, s job.Settlement) {
			a.metrics.Settled(j, s)
			letters.settled(j, s)
		},
	})

	return err
}

// workerName is a name that differs between machines and between restarts.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}

	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// buildServer makes the web server: pages, actions, API and metrics.
func (a *App) buildServer(context.Context) (err error) {
	var local access.Token
	local.ID, a.key, local.Hash = access.NewToken()
	a.server, err = server.New(server.Options{
		View: view.New(a.store, a.Config.Redactor()), Config: a.Config, Hub: a.hub, Metrics: a.metrics,
		Engine: web.Engine{
			Worker: a.Worker, Running: a.engine.Running, Ready: a.ready, Deliver: a.Sender.Deliver,
			Knows: func(typ string) bool { _, ok := a.Handlers(typ); return ok },
			Held:  a.engine.OpenBreaker, Shortages: a.engine.Shortages, Waiting: a.engine.Waiting, Began: a.engine.Began,
			Stuck: a.engine.Stuck, Pause: a.Pause, Notify: a.bulk.Notify, Sources: a.sources.Health,
			Reload: a.readAgain,
		},
		Local: local, Insecure: a.Open && !a.local(), Closed: !a.Open && !a.local(), BasePath: a.BasePath, Demo: a.Demo, Log: a.Log,
		Connections: a.shares.Visitors,
	})

	return err
}

// Pause ends the claiming of jobs, or resumes it.
func (a *App) Pause(on bool) {
	if on {
		a.engine.Pause()
	} else {
		a.engine.Resume()
	}
}

// listenAndServe begins to answer requests: pages can be read while the engine
// still cleans up after a crash, and while it stops.
func (a *App) listenAndServe(ctx context.Context) error {
	if a.Listener == nil {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.Listen)
		if err != nil {
			return fmt.Errorf("listen on %s: %w; choose another address with --listen", a.Listen, err)
		}

		a.Listener = listener
	}

	a.address = a.Listener.Addr()
	// Commands that name the database find the dashboard that has it open.
	if err := a.store.Announce(a.localURL(), a.key); err != nil {
		a.Log.Warn("Commands on this machine cannot find this dashboard by its database file.", "error", err)
	}

	web := a.server.HTTP()
	served := make(chan struct{})
	go func() {
		defer close(served)

		if err := web.Serve(a.server.Listen(a.Listener)); !errors.Is(err, http.ErrServerClosed) {
			a.fail(fmt.Errorf("serve HTTP: %w", err))
		}
	}()

	a.onStop("web server", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, httpGrace)
		defer cancel()

		err := web.Shutdown(ctx)
		if ctx.Err() != nil { // requests that are not done by now are cut off
			err = web.Close()
		}

		<-served

		return err
	})

	return nil
}

// takeOver ends the programs that a dead process left running, before any job of
// theirs can be claimed. The pages are there meanwhile.
func (a *App) takeOver(ctx context.Context) error {
	set := a.set.Load()
	if set == nil {
		return nil
	}

	return set.TakeOver(ctx, a.DB, a.Log)
}

// startEngine begins to run jobs. A failure of the engine or of the store ends the
// app.
func (a *App) startEngine(ctx context.Context) error {
	if err := a.engine.Start(ctx); err != nil {
		return err
	}

	a.running.Store(true)
	a.onStop("engine", a.engine.Stop)
	a.inBackground("observer of the engine", func(ctx context.Context) {
		defer a.running.Store(false)

		select {
		case <-ctx.Done():
		case err := <-a.engine.Err():
			a.fail(err)
		case <-a.store.Failed():
			a.fail(a.store.Problem())
		}
	})

	return nil
}

// inBackground runs a task in a goroutine of its own. The stop ends the task's
// context and waits until the task has returned.
func (a *App) inBackground(name string, run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	a.onClose(name, func() { cancel(); running.Wait() })
}

// startBackground begins the work that the product does automatically: it prunes
// dead letters, opens error groups and makes failures searchable. Each of them
// tries again after an error, so none of them can end the app.
func (a *App) startBackground(context.Context) error {
	a.inBackground("pruner", newPruner(a.store, a.Config.Retention, a.Log).run)
	a.inBackground("error groups", func(ctx context.Context) { everyMinute(ctx, a.reopenGroups) })
	a.inBackground("search index", a.search.run)
	a.inBackground("notices", a.watchNotices)

	return nil
}
