package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"redrive/internal/fault"
	"redrive/internal/pause"
	"redrive/internal/server/problem"
	"redrive/internal/store"
	"redrive/internal/store/health"
	"redrive/internal/store/location"
	"redrive/internal/usage"
	"redrive/internal/wire"
)

// takeOverEvery is how often an app that stands by looks whether the database is free.
const takeOverEvery = 500 * time.Millisecond

// waitForDatabase opens the database. While a process on another machine, or another one here,
// works on a database on a server, the app stands by: it says so to load balancers, and takes
// over when that process stops or dies. It waits in the same way for a server that cannot be used
// yet. A file that is in use has to be solved by a person.
func (a *App) waitForDatabase(ctx context.Context, o store.Options) (err error) {
	var waiting *standby
	defer func() { waiting.close() }()

	for {
		a.store, err = store.Open(ctx, o)

		held, locked := errors.AsType[*health.LockedError](err)
		switch {
		case locked && held.Holder == "":
			return usage.Of(err)
		case err == nil || !locked && !a.mayPass(err, waiting != nil):
			return err
		}

		why := err
		if waiting == nil {
			waiting, err = a.standBy(ctx)
			if err != nil {
				return err
			}

			a.stoodBy = true
		}

		if locked {
			err = a.checkReachLater(ctx, waiting.watch)
			if err != nil {
				return err
			}
		}

		waiting.tell(why)

		err = waiting.untilFree(ctx)
		if err != nil {
			return err
		}
	}
}

// mayPass reports whether what keeps the app from its database can end without a person who
// changes how the app is started. A server that refuses this program at its start, or is not trusted,
// was named wrongly; one that begins to while the app stands by is being changed.
func (a *App) mayPass(err error, waits bool) bool {
	switch {
	case !location.Of(a.DB).IsServer():
		return false
	case errors.Is(err, fault.ErrRefused):
		return waits
	}

	return errors.Is(err, fault.ErrBusy) || errors.Is(err, fault.ErrStorageFull) || errors.Is(err, fault.ErrReadOnly)
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

// standby answers requests while the app cannot work on the database.
type standby struct {
	watch  watch
	log    *slog.Logger
	listen string
	told   func(why error) // the caller who started the app

	said   *reason                // what the log has said last; nil: nothing yet
	reason atomic.Pointer[reason] // what requests are answered with
	server *http.Server
	served chan struct{}
}

// reason is why an app stands by.
type reason struct {
	inOrder bool   // nothing is wrong with the database
	holder  string // the process that works on it
	refusal string // the code of what the server refuses

	kind  problem.Kind
	words string // for everyone
	since time.Time
}

// is reports whether another reason is the same one, though not since when.
func (r reason) is(other reason) bool {
	r.since = other.since
	return r == other
}

// watch looks who works on a database, and whether it has users or tokens.
type watch interface {
	Holder(context.Context) (*health.LockedError, error)
	Guarded(context.Context) (bool, error)
	Close() error
}

// standBy begins to answer requests. The port is given back before the dashboard takes it.
func (a *App) standBy(ctx context.Context) (*standby, error) {
	server, _ := location.Of(a.DB).Server() // what is in a file is not waited for

	watch, err := server.Watch()
	if err != nil {
		return nil, err
	}

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another address with --listen", a.Listen, err)
	}

	a.Listen = listener.Addr().String() // also where any free port was asked for

	s := &standby{watch: watch, log: a.Log, listen: a.Listen, told: a.Standby, served: make(chan struct{})}
	s.reason.Store(&reason{inOrder: true, kind: problem.Busy, words: "this process is starting"})
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

// tell says why the app stands by, in the log when that is something new.
func (s *standby) tell(why error) {
	now := reasonOf(why)

	if s.said != nil && s.said.is(now) {
		s.reason.Store(s.said)
		return
	}

	s.said = &now
	s.reason.Store(&now)

	held, ok := errors.AsType[*health.LockedError](why)
	if ok {
		s.log.Info("Standing by: another process works on the database. This one takes over when that stops or dies.",
			"process", held.Holder, "url", addressOf(held), "listen", s.listen)
	} else {
		s.log.Warn("Standing by: the database cannot be used. This process begins to work as soon as it can.",
			"error", why, "listen", s.listen)
	}

	if s.told != nil {
		s.told(why)
	}
}

// reasonOf is why an app stands by, in words for everyone who can reach it: neither the name of
// another machine, nor the address at which that one answers, nor what the server said.
func reasonOf(why error) reason {
	now := reason{since: time.Now().UTC()}

	held, ok := errors.AsType[*health.LockedError](why)
	if ok {
		now.inOrder, now.holder, now.kind = true, held.Holder, problem.Busy
		now.words = fmt.Sprintf("another process works on the database %s, and this one stands by", held.Path)

		return now
	}

	answer := problem.Of(why)
	now.kind, now.words = answer.Kind, answer.Text
	if known, ok := errors.AsType[*health.Fault](why); ok {
		now.words = known.Words
	}

	refused, ok := errors.AsType[refusal](why)
	if ok {
		now.refusal = refused.SQLState()
	}

	return now
}

// refusal is the error of a server of a database, which has a code for each cause.
type refusal interface {
	error
	SQLState() string
}

// takesOver says that the process for which the app stood by works no more. What keeps the app from the
// database is said until it works.
func (s *standby) takesOver() {
	if s.reason.Load().holder == "" {
		return
	}

	s.log.Info("Taking over: no other process works on the database any more.")
	s.reason.Store(&reason{
		inOrder: true, kind: problem.Busy, words: "no other process works on the database any more, and this one takes over",
	})
}

// addressOf is where the process that works answers, empty where that is of no use here.
func addressOf(held *health.LockedError) string {
	here, err := os.Hostname()
	if err != nil || !held.AnswersOn(here) {
		return ""
	}

	return held.URL
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
			s.tell(err)
		case err != nil:
			return nil
		case held == nil:
			s.takesOver()
			return nil
		default:
			s.tell(held)
		}
	}
}

// ServeHTTP says that this process lives, and that it takes no requests: to programs in the form
// of the API, and to Prometheus as a metric. A load balancer that asks /healthz tells it from a process that works by its word,
// also while that one is short of something and not ready.
func (s *standby) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")

	if strings.HasSuffix(r.URL.Path, "/healthz") { // below any path
		_, _ = io.WriteString(w, "standby\n") // a process that works says ok
		return
	}

	why := s.reason.Load()

	if strings.HasSuffix(r.URL.Path, "/metrics") {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = io.WriteString(w, why.metric())

		return
	}

	w.Header().Set("Retry-After", "1")

	if strings.Contains(r.URL.Path, "/api/") {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write(problem.New(why.kind, why.words).Encode())

		return
	}

	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, why.String()+"\n")
}

// String is a line for load balancers and people.
func (r reason) String() string {
	if r.inOrder {
		return "standby: " + r.words
	}

	return fmt.Sprintf("%s: %s; that began at %s", r.kind.Code, r.words, wire.FormatTime(r.since))
}

// metric is all that a scrape of a standby gets, in the text format of Prometheus.
func (r reason) metric() string {
	stands := 0
	if r.holder != "" {
		stands = 1
	}

	return fmt.Sprintf("# HELP redrive_standby 1 while another process works on the database and this one stands by, otherwise 0.\n"+
		"# TYPE redrive_standby gauge\nredrive_standby %d\n", stands)
}

// close ends the answers. An error is told and no more: the connection of the watch often ends with
// one when its server has died, which is when this process takes over. The nil standby never began
// any answers.
func (s *standby) close() {
	if s == nil {
		return
	}

	err := errors.Join(s.server.Close(), s.watch.Close())
	<-s.served

	if err != nil {
		s.log.Warn("What a standby leaves behind did not end in order.", "error", err)
	}
}
