package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"redrive/internal/config"
	"redrive/internal/demo"
	"redrive/internal/store"
	"redrive/internal/store/sqlite"
	"redrive/web/templates"
)

// demoCommand is dashboard demo: it runs the product in a made-up world, on a
// temporary database, reachable from this machine only.
type demoCommand struct {
	Listen   string `help:"Address to listen on (${default})." default:"127.0.0.1:8080" env:"REDRIVE_LISTEN" placeholder:"HOST:PORT"`
	Seed     uint64 `help:"Random seed; the same seed produces the same demo (${default})." default:"1" placeholder:"N"`
	Jobs     int    `help:"Jobs in the day before the demo starts, 2000 to 1000000 (${default})." default:"20000" placeholder:"N"`
	LogLevel string `help:"${level} (${default})." default:"warn" enum:"${levels}" env:"REDRIVE_LOG_LEVEL" placeholder:"LEVEL"`
}

// Fewer jobs than these show too few failures, and more take minutes to write.
const (
	fewestJobs = 2_000
	mostJobs   = 1_000_000
)

// Run runs the demo until a signal, and from the start again after each reset. The
// socket stays open during a reset: a browser that connects meanwhile waits.
func (d *demoCommand) Run(c console) error {
	if !isLoopback(d.Listen) {
		return usage("--listen %s: the demo listens only on this machine, for example on 127.0.0.1:8080", d.Listen)
	}
	if d.Jobs < fewestJobs || d.Jobs > mostJobs {
		return usage("--jobs %d: must be from %d to %d", d.Jobs, fewestJobs, mostJobs)
	}
	log, err := newLog(c.stderr, d.LogLevel, "text")
	if err != nil {
		return err
	}
	socket, err := listenOnce(d.Listen)
	if err != nil {
		return err
	}
	defer socket.Close()
	ctx, signals, release := interrupts()
	defer release()
	for again := true; again && err == nil; {
		again, err = d.tell(ctx, c, socket, signals, log)
	}
	return err
}

// listenOnce opens the demo's socket as a file, from which each start makes a
// listener of its own. The file keeps the socket open between two starts.
func listenOnce(address string) (*os.File, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another address with --listen", address, err)
	}
	defer listener.Close()
	return listener.(*net.TCPListener).File()
}

// tell runs one world, from its history to its end, and deletes its databases. again
// is true after a reset.
func (d *demoCommand) tell(
	ctx context.Context, c console, socket *os.File, signals <-chan os.Signal, log *slog.Logger,
) (again bool, err error) {
	dir, err := os.MkdirTemp("", "redrive-demo-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, elsewhere := filepath.Join(dir, "demo.db"), filepath.Join(dir, "outlet.db")
	settings, err := config.Parse("the demo's configuration", demo.Config(elsewhere))
	if err != nil {
		return false, err
	}
	w := world{demo.New(d.Seed, settings), make(chan struct{}, 1)}
	if err := w.writeHistory(ctx, c, db, d.Jobs, settings.Redactor().Text); err != nil {
		return false, unlessInterrupted(ctx, log, err)
	}
	outlet, err := w.OpenOutlet(ctx, elsewhere, time.Now())
	if err != nil {
		return false, unlessInterrupted(ctx, log, err)
	}
	defer func() { err = errors.Join(err, outlet.Close()) }()
	listener, err := net.FileListener(socket)
	if err != nil {
		return false, err
	}
	// The commits of a database that is thrown away need not wait for the disk.
	a, err := startApp(ctx, parts{
		listener: listener, db: db, relaxed: true, config: settings, log: log,
		handlers: w.Handler, sender: w, demo: w, worker: "shop",
	})
	if err != nil {
		return false, unlessInterrupted(ctx, log, err)
	}
	fmt.Fprintf(c.stdout, "The demo is at %s. Break something, watch it fail, fix it, replay. "+
		"Press Ctrl-C to stop it and delete its database.\n", a.url())
	a.play(w, outlet)
	err = attend(a, signals, log)
	if errors.Is(err, errStartOver) {
		return true, nil
	}
	return false, err
}

// errStartOver ends an app whose demo is reset.
var errStartOver = errors.New("the demo starts over")

// world is the demo's world as the server sees it.
type world struct {
	*demo.World
	reset chan struct{} // one slot: a user asked for a reset
}

// Faults lists the switches for the banner.
func (w world) Faults() []templates.Fault {
	var all []templates.Fault
	for _, f := range w.World.Faults() {
		all = append(all, templates.Fault(f))
	}
	return all
}

// Reset ends this world; the next one begins with a new database.
func (w world) Reset(context.Context) error {
	select {
	case w.reset <- struct{}{}:
	default: // it is under way
	}
	return nil
}

// writeHistory writes what happened in the day before the start, and shows the
// progress.
func (w world) writeHistory(ctx context.Context, c console, db string, jobs int, hide func(string) string) error {
	s, err := store.Open(ctx, store.Options{Database: sqlite.File{Path: db, Relaxed: true}})
	if err != nil {
		return err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // many small things are made and forgotten within seconds
	desk := demo.Desk{Operations: s.Operations, Groups: s.Groups, Hide: hide}
	err = w.History(ctx, s, desk, demo.Day{End: time.Now(), Jobs: jobs}, c.progress("Writing a day of history:"))
	fmt.Fprint(c.stderr, "\r\033[K")
	return errors.Join(err, s.Close())
}

// play lets the world send its jobs to the running app until the app stops, and the outlet
// work beside it, and stops the app when a user asks for a reset.
func (a *app) play(w world, outlet *demo.Outlet) {
	a.inBackground("outlet of the demo", func(ctx context.Context) {
		if err := outlet.Run(ctx); err != nil {
			a.fail(fmt.Errorf("run the demo's outlet: %w", err))
		}
	})
	a.inBackground("demo", func(ctx context.Context) {
		if err := w.Feed(ctx, a.store); err != nil {
			a.fail(fmt.Errorf("feed the demo: %w", err))
		}
	})
	a.inBackground("reset of the demo", func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-w.reset:
			a.fail(errStartOver)
		}
	})
}
