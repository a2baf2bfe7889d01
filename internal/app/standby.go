package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"redrive/internal/fault"
	"redrive/internal/pause"
	"redrive/internal/store"
	"redrive/internal/store/health"
	"redrive/internal/store/location"
	"redrive/internal/usage"
)

// takeOverEvery is how often an app that stands by looks whether the database is free.
const takeOverEvery = 500 * time.Millisecond

// waitForDatabase opens the database. While a process on another machine, or another one here,
// works on a database on a server, the app stands by: it says so to load balancers, and takes
// over when that process stops or dies. A file that is in use has to be solved by a person.
func (a *App) waitForDatabase(ctx context.Context, o store.Options) (err error) {
	var waiting *standby
	defer func() { err = errors.Join(err, waiting.close()) }()

	for {
		a.store, err = store.Open(ctx, o)

		held, locked := errors.AsType[*health.LockedError](err)
		switch {
		case locked && held.Holder == "":
			return usage.Of(err)
		case locked && waiting == nil:
			waiting, err = a.standBy(ctx, held)
			if err != nil {
				return err
			}
		case locked:
			waiting.holder.Store(held)
		case waiting == nil || !errors.Is(err, fault.ErrBusy):
			return err
		}

		// A server that is away for a moment is what a standby is there for.
		err = waiting.untilFree(ctx)
		if err != nil {
			return err
		}
	}
}

// watchLease ends what the app has begun, as soon as another process may work on the database:
// that one begins the same jobs. A stop of the app takes longer.
func (a *App) watchLease(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-a.store.Failed():
	}

	if !errors.Is(a.store.Problem(), fault.ErrTakenOver) {
		return
	}

	atOnce, cancel := context.WithCancel(ctx)
	cancel()

	err := a.engine.Stop(atOnce)
	if err != nil {
		a.Log.Warn("Jobs were interrupted, because another process may run them by now.", "error", err)
	}
}

// standby answers requests while another process works on the database.
type standby struct {
	watch  watch
	holder atomic.Pointer[health.LockedError]
	server *http.Server
	served chan struct{}
}

// watch looks who works on a database.
type watch interface {
	Holder(context.Context) (*health.LockedError, error)
	Close() error
}

// standBy begins to answer requests. The port is given back before the dashboard takes it.
func (a *App) standBy(ctx context.Context, held *health.LockedError) (*standby, error) {
	server, _ := location.Of(a.DB).Server() // a file has no holder with a name

	watch, err := server.Watch()
	if err != nil {
		return nil, err
	}

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another address with --listen", a.Listen, err)
	}

	a.Listen = listener.Addr().String() // also where any free port was asked for
	a.Log.Info("Standing by: another process works on the database. This one takes over when that stops or dies.",
		"process", held.Holder, "url", held.URL, "listen", a.Listen)

	if a.Standby != nil {
		a.Standby(held.Holder)
	}

	s := &standby{watch: watch, served: make(chan struct{})}
	s.holder.Store(held)
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: httpGrace, ReadTimeout: httpGrace, WriteTimeout: httpGrace}

	go func() {
		defer close(s.served)

		err := s.server.Serve(listener)
		if !errors.Is(err, http.ErrServerClosed) {
			a.Log.Warn("A standby cannot answer requests.", "error", err)
		}
	}()

	return s, nil
}

// untilFree waits until no process works on the database, or until looking for it fails in a way
// that opening the database has to explain.
func (s *standby) untilFree(ctx context.Context) error {
	for {
		if !pause.For(ctx, takeOverEvery) {
			return ctx.Err()
		}

		held, err := s.watch.Holder(ctx)
		switch {
		case errors.Is(err, fault.ErrBusy):
		case err != nil || held == nil:
			return nil
		default:
			s.holder.Store(held)
		}
	}
}

// ServeHTTP says that this process lives, and that it takes no requests.
func (s *standby) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")

	if strings.HasSuffix(r.URL.Path, "/healthz") { // below any path
		_, _ = io.WriteString(w, "ok\n")
		return
	}

	held := s.holder.Load()
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)

	where := ""
	if held.URL != "" {
		where = ", and answers at " + held.URL
	}

	_, _ = fmt.Fprintf(w, "standby: the process %s works on the database %s%s\n", held.Holder, held.Path, where)
}

// close ends the answers. The nil standby never began any.
func (s *standby) close() error {
	if s == nil {
		return nil
	}

	err := errors.Join(s.server.Close(), s.watch.Close())
	<-s.served

	return err
}
