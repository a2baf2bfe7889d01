package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
)

const (
	riverInterval = time.Millisecond // the least that it allows; with 20 ms, failures are slower by a third
	riverConns    = 50               // to PostgreSQL

	riverSettings = "`FetchCooldown` and `FetchPollInterval` 1 ms (the least that it allows), `MaxWorkers` as the row says, " +
		"a retry policy that says now. 1,000 at once are `InsertManyFast`. Finished jobs are kept for a day."
	riverLeft = "SELECT count(*) FROM river_job WHERE state <> 'completed'"
)

// riverQueue inserts through one client and works with another, because a client
// that has workers starts with them. TTx is the driver's transaction.
type riverQueue[TTx any] struct {
	driver riverdriver.Driver[TTx]
	client *river.Client[TTx]
	left   func(context.Context) (int, error)
	close  func() error
}

// riverJob is a Job as the arguments of a job of River.
type riverJob Job

func (riverJob) Kind() string { return "job" }

// atOnce is the retry policy.
type atOnce struct{}

func (atOnce) NextRetry(*rivertype.JobRow) time.Time { return time.Now() }

func newRiverSQLite(context.Context, string) (System, error) {
	return System{
		Name:     "River on SQLite",
		Settings: sqliteSettings + ". " + riverSettings,
		Open: func(ctx context.Context, dir string) (Queue, error) {
			db, err := openSQLite(dir)
			if err != nil {
				return nil, err
			}

			driver := riversqlite.New(db)
			if err := migrateRiver(ctx, driver); err != nil {
				return nil, errors.Join(err, db.Close())
			}

			return newRiverQueue(&riverQueue[*sql.Tx]{
				driver: driver, close: db.Close,
				left: func(ctx context.Context) (int, error) { return count(ctx, db, riverLeft) },
			})
		},
	}, nil
}

func newRiverPostgres(ctx context.Context, dir string) (System, error) {
	server, err := sharedPostgres(ctx, dir)
	if err != nil {
		return System{}, err
	}

	if err := server.makeTemplate(ctx); err != nil {
		return System{}, errors.Join(err, server.release())
	}

	return System{
		Name:     "River on PostgreSQL",
		Settings: fmt.Sprintf("%s on loopback, %s; a pool of %d connections. %s", server.version, postgresWords, riverConns, riverSettings),
		Open: func(ctx context.Context, _ string) (Queue, error) {
			pool, drop, err := server.create(ctx)
			if err != nil {
				return nil, err
			}

			return newRiverQueue(&riverQueue[pgx.Tx]{
				driver: riverpgxv5.New(pool), close: drop,
				left: func(ctx context.Context) (n int, err error) {
					err = pool.QueryRow(ctx, riverLeft).Scan(&n)
					return n, err
				},
			})
		},
		Close: server.release,
	}, nil
}

// makeTemplate makes the database with River's tables that the others are copies
// of.
func (p *postgres) makeTemplate(ctx context.Context) error {
	if err := p.exec(ctx, "CREATE DATABASE river"); err != nil {
		return err
	}

	pool, err := pgxpool.New(ctx, p.url("river"))
	if err != nil {
		return err
	}
	defer pool.Close()

	return migrateRiver(ctx, riverpgxv5.New(pool))
}

// create makes a database with River's tables, and opens it. Drop closes and
// removes it, so that no vacuum of it runs beside the next measurement.
func (p *postgres) create(ctx context.Context) (pool *pgxpool.Pool, drop func() error, err error) {
	const name = "jobs"
	if err := p.exec(ctx, "CREATE DATABASE "+name+" TEMPLATE river"); err != nil {
		return nil, nil, err
	}

	config, err := pgxpool.ParseConfig(p.url(name))
	if err != nil {
		return nil, nil, err
	}

	config.MaxConns = riverConns

	pool, err = pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}

	return pool, func() error {
		pool.Close()
		return p.exec(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)")
	}, nil
}

func migrateRiver[TTx any](ctx context.Context, driver riverdriver.Driver[TTx]) error {
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}

	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)

	return err
}

// newRiverQueue adds the client that inserts.
func newRiverQueue[TTx any](r *riverQueue[TTx]) (Queue, error) {
	client, err := river.NewClient(r.driver, &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, errors.Join(err, r.close())
	}

	r.client = client

	return r, nil
}

func (r *riverQueue[TTx]) Enqueue(ctx context.Context, jobs []Job) error {
	if len(jobs) == 1 {
		_, err := r.client.Insert(ctx, riverJob(jobs[0]), nil)
		return err
	}

	params := make([]river.InsertManyParams, len(jobs))
	for i, j := range jobs {
		params[i].Args = riverJob(j)
	}

	_, err := r.client.InsertManyFast(ctx, params)

	return err
}

func (r *riverQueue[TTx]) Work(ctx context.Context, workers int, handle Handler) (func() error, error) {
	known := river.NewWorkers()
	river.AddWorker(known, river.WorkFunc(func(_ context.Context, j *river.Job[riverJob]) error { return handle(Job(j.Args)) }))

	client, err := river.NewClient(r.driver, &river.Config{
		Logger: slog.New(slog.DiscardHandler), Workers: known, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		FetchCooldown: riverInterval, FetchPollInterval: riverInterval, RetryPolicy: atOnce{},
	})
	if err != nil {
		return nil, err
	}

	if err := client.Start(ctx); err != nil {
		return nil, err
	}

	return func() error { return client.Stop(ctx) }, nil
}

func (r *riverQueue[TTx]) Left(ctx context.Context) (int, error) { return r.left(ctx) }

func (r *riverQueue[TTx]) Close() error { return r.close() }
