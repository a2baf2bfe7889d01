package cli

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

	"redrive/internal/app"
	"redrive/internal/cli/console"
	"redrive/internal/config"
	"redrive/internal/demo"
	"redrive/internal/usage"
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
func (d *demoCommand) Run(c console.Console) error {
	if !app.IsLoopback(d.Listen) {
		return usage.Errorf("--listen %s: the demo listens only on this machine, for example on 127.0.0.1:8080", d.Listen)
	}

	if d.Jobs < fewestJobs || d.Jobs > mostJobs {
		return usage.Errorf("--jobs %d: must be from %d to %d", d.Jobs, fewestJobs, mostJobs)
	}

	log, err := c.Log(d.LogLevel, "text")
	if err != nil {
		return err
	}

	socket, err := listenOnce(d.Listen)
	if err != nil {
		return err
	}
	defer socket.Close()

	ctx, signals, release := c.Interrupts()
	defer release()

	// Every round is a world from its history to a reset or the end.
	again := true
	for again && err == nil {
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
	ctx context.Context, c console.Console, socket *os.File, signals <-chan os.Signal, log *slog.Logger,
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
	defer app.OccupyProcess(settings, log)()

	// What has happened before the start: a day of jobs, and the shop's other database.
	w := app.NewWorld(d.Seed, settings)

	if err := d.writeHistory(ctx, c, w, db); err != nil {
		return false, app.UnlessInterrupted(ctx, log, err)
	}

	outlet, err := w.OpenOutlet(ctx, elsewhere, time.Now())
	if err != nil {
		return false, app.UnlessInterrupted(ctx, log, err)
	}
	defer func() { err = errors.Join(err, outlet.Close()) }()

	listener, err := net.FileListener(socket)
	if err != nil {
		return false, err
	}
	// The commits of a database that is thrown away need not wait for the disk.
	a, err := app.Start(ctx, app.Parts{
		Listener: listener, DB: db, Relaxed: true, Config: settings, Log: log,
		Handlers: w.Handler, Sender: w, Demo: w, Worker: "shop",
	})
	if err != nil {
		return false, app.UnlessInterrupted(ctx, log, err)
	}

	fmt.Fprintf(c.Stdout, "The demo is at %s. Break something, watch it fail, fix it, replay. "+
		"Press Ctrl-C to stop it and delete its database.\n", a.URL())

	a.Play(w, outlet)

	err = a.Attend(signals)
	if errors.Is(err, app.ErrStartOver) {
		return true, nil
	}

	return false, err
}

// writeHistory writes what happened in the day before the start, and shows the progress.
func (d *demoCommand) writeHistory(ctx context.Context, c console.Console, w app.World, db string) error {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // many small things are made and forgotten within seconds

	err := w.WriteHistory(ctx, db, d.Jobs, c.Progress("Writing a day of history:"))
	c.Clear()

	return err
}
