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
// handed everything else. It reads no flag and waits for no signal of its own accord, keeps
// nothing at the level of the package, and so can be started more than once in a process.
// What a process has only once is set by [OccupyProcess], apart from any app.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redrive/internal/bulk"
	"redrive/internal/config"
	"redrive/internal/engine"
	"redrive/internal/handler"
	"redrive/internal/job"
	"redrive/internal/live"
	"redrive/internal/poll"
	"redrive/internal/resource"
	"redrive/internal/server"
	"redrive/internal/server/pages"
	"redrive/internal/store"
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
	DB       string       // the database: a file, or the address of a server of PostgreSQL
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

	// Standby is called when the app begins to wait for its database, and when that is for another
	// reason: a *health.LockedError while another process works on it. Default: none is told.
	Standby func(why error)
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
	stoodBy   bool       // before the app began to work

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
		a.dropStartup, a.listenAndServe, a.readAfterStandby, a.takeOver, a.startEngine, a.startSources, a.startBackground,
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

	if a.store != nil {
		a.store.Hasten()
	}

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

// Pause ends the claiming of jobs, or resumes it.
func (a *App) Pause(on bool) {
	if on {
		a.engine.Pause()
	} else {
		a.engine.Resume()
	}
}

// startEngine begins to run jobs. A failure of the engine or of the store ends the
// app.
func (a *App) startEngine(ctx context.Context) error {
	if err := a.engine.Start(ctx); err != nil {
		return err
	}

	a.running.Store(true)
	a.inBackground("watch of the lease", a.watchLease) // until the engine has ended
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
	a.inBackground("pruner", newPruner(a.store.Sweep, a.Config.Retention, a.Log).run)
	a.inBackground("error groups", func(ctx context.Context) { everyMinute(ctx, a.reopenGroups) })
	a.inBackground("search index", a.search.run)
	a.inBackground("notices", a.watchNotices)

	return nil
}
