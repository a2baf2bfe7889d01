package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"redrive/internal/engine"
	"redrive/internal/job"
	"redrive/internal/live"
	"redrive/internal/retry"
	"redrive/internal/server"
	"redrive/internal/store"
	"redrive/internal/store/db"
	pgstore "redrive/internal/store/postgres"
	"redrive/internal/store/sqlite"
)

// When internal/app makes failures searchable: searchPause after one at the
// least, and for a tenth of the time at most, until searchPeriod.
const (
	searchPause  = 200 * time.Millisecond
	searchPeriod = 2 * time.Second
	searchShare  = 10
)

// redriveQueue has what runs in the product while jobs do: the store with its
// projections, the search index, the hub of live pages, the metrics and the engine.
type redriveQueue struct {
	store   *store.Store
	hub     *live.Hub
	metrics *server.Metrics
	engine  atomic.Pointer[engine.Engine]

	stopSearch context.CancelFunc
	searching  sync.WaitGroup
	searchErr  error // read when searching is over
	failed     chan struct{}

	drop func() error // removes the database
}

func newRedrive(context.Context, string) (System, error) {
	return System{
		Name: "Redrive",
		Settings: "`modernc.org/sqlite`, `synchronous=FULL`, the store with groups, counters and search index, live updates and metrics on, " +
			"as the program puts them together. 1,000 at once are one `Enqueue`. Jobs and the history of their attempts are kept.",
		Open: func(ctx context.Context, dir string) (Queue, error) {
			return openRedrive(ctx, sqlite.File{Path: filepath.Join(dir, "redrive.db")}, func() error { return nil })
		},
	}, nil
}

// newRedrivePostgres is the same on the server on which River is measured.
func newRedrivePostgres(ctx context.Context, dir string) (System, error) {
	server, err := sharedPostgres(ctx, dir)
	if err != nil {
		return System{}, err
	}

	return System{
		Name:     "Redrive on PostgreSQL",
		Settings: fmt.Sprintf("as Redrive, on %s on loopback, %s.", server.version, postgresWords),
		Open: func(ctx context.Context, _ string) (Queue, error) {
			const name = "redrive"
			if err := server.exec(ctx, "CREATE DATABASE "+name+" ENCODING 'UTF8' TEMPLATE template0"); err != nil {
				return nil, err
			}

			drop := func() error { return server.exec(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)") }
			q, err := openRedrive(ctx, pgstore.Server{DSN: server.url(name)}, drop)
			if err != nil {
				return nil, errors.Join(err, drop())
			}

			return q, nil
		},
		Close: server.release,
	}, nil
}

// openRedrive opens a store. drop removes its database after it was closed.
func openRedrive(ctx context.Context, database db.Database, drop func() error) (Queue, error) {
	r := &redriveQueue{failed: make(chan struct{}, 1), drop: drop}

	opened, err := store.Open(ctx, store.Options{Database: database, OnCommit: r.committed})
	if err != nil {
		return nil, err
	}

	r.store = opened
	r.hub = live.New(opened, live.Options{})
	r.metrics = server.NewMetrics(opened.Counters.Label)

	// The search index follows beside the jobs, until Close.
	ctx, r.stopSearch = context.WithCancel(context.WithoutCancel(ctx))
	r.searching.Go(func() { r.searchErr = r.search(ctx) })

	return r, nil
}

// committed tells the hub and the engine what a commit did.
func (r *redriveQueue) committed(changes []job.Change) {
	r.hub.Changed(changes)

	if e := r.engine.Load(); e != nil {
		e.Changed(changes)
	}

	// A failure is to become searchable.
	for _, c := range changes {
		if c.Failed {
			select {
			case r.failed <- struct{}{}:
			default: // it is awake
			}

			return
		}
	}
}

// search makes failures searchable, as internal/app does. The index is not put in
// order, which waits there for a second without a failure.
func (r *redriveQueue) search(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.failed:
		}

		begin := time.Now()

		if _, err := r.store.Search.Sweep(ctx); err != nil && ctx.Err() == nil {
			return err
		}

		// Not again at once, and not for more than a part of the time.
		next := begin.Add(min(searchShare*time.Since(begin), searchPeriod))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(searchPause, time.Until(next))):
		}
	}
}

func (r *redriveQueue) Enqueue(ctx context.Context, jobs []Job) error {
	policy := retry.Default()
	policy.Strategy = retry.Immediate

	all := make([]job.Job, len(jobs))
	for i, j := range jobs {
		payload, err := encode(j)
		if err != nil {
			return err
		}

		all[i] = job.Job{Type: "job", Queue: "default", Payload: payload, Policy: policy}
	}

	_, err := r.store.Enqueue(ctx, time.Now(), all)

	return err
}

func (r *redriveQueue) Work(ctx context.Context, workers int, handle Handler) (func() error, error) {
	run := decoding(handle)
	execute := func(_ context.Context, j job.Job) error { return run(j.Payload) }

	e, err := engine.New(engine.Options{
		Store: r.store, Queues: r.store, Name: "bench", Random: rand.Float64, Settled: r.metrics.Settled,
		Handlers: func(string) (engine.Handler, bool) { return execute, true },
		Workers:  func(string) int { return workers },
	})
	if err != nil {
		return nil, err
	}

	r.engine.Store(e)

	if err := e.Start(ctx); err != nil {
		return nil, err
	}

	return func() error { return e.Stop(ctx) }, nil
}

// Left counts from memory, which is changed after each commit.
func (r *redriveQueue) Left(context.Context) (int, error) {
	depths := r.store.Snapshot().Depths
	return int(depths.Jobs() - depths[job.Status(job.Completed)]), nil
}

func (r *redriveQueue) Close() error {
	r.stopSearch()
	r.searching.Wait()
	r.hub.Close()
	return errors.Join(r.searchErr, r.store.Close(), r.drop())
}
