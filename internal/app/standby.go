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
		if !pause.For(ctx, takeOverEvery) {
			return ctx.Err()
		}
	}
}

// standby answers requests while another process works on the database.
type standby struct {
	holder atomic.Pointer[health.LockedError]
	server *http.Server
	served chan struct{}
}

// standBy begins to answer requests. The port is given back before the dashboard takes it.
func (a *App) standBy(ctx context.Context, held *health.LockedError) (*standby, error) {
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

	s := &standby{served: make(chan struct{})}
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

	err := s.server.Close()
	<-s.served

	return err
}
