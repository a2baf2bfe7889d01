package main

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/mikestefanello/backlite"
)

// backliteQueue adds tasks through one client and works them off with another,
// because a client knows its number of workers from the beginning.
type backliteQueue struct {
	db     *sql.DB
	client *backlite.Client
}

// backliteJob is a Job as a task of backlite.
type backliteJob Job

func (backliteJob) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "jobs", MaxAttempts: 5, Backoff: 0, Timeout: time.Minute}
}

func newBacklite(context.Context, string) (System, error) {
	return System{
		Name: "backlite",
		Settings: sqliteSettings + ". `NumWorkers` as the row says, `Backoff` 0. 1,000 at once are one `Add`. " +
			"It does not poll. Finished tasks are deleted (no `Retention`).",
		Open: func(_ context.Context, dir string) (Queue, error) {
			db, err := openSQLite(dir)
			if err != nil {
				return nil, err
			}

			client, err := newBackliteClient(db, 1)
			if err == nil {
				err = client.Install()
			}

			if err != nil {
				return nil, errors.Join(err, db.Close())
			}

			return &backliteQueue{db, client}, nil
		},
	}, nil
}

func newBackliteClient(db *sql.DB, workers int) (*backlite.Client, error) {
	return backlite.NewClient(backlite.ClientConfig{DB: db, NumWorkers: workers, ReleaseAfter: time.Hour})
}

func (b *backliteQueue) Enqueue(ctx context.Context, jobs []Job) error {
	tasks := make([]backlite.Task, len(jobs))
	for i, j := range jobs {
		tasks[i] = backliteJob(j)
	}

	_, err := b.client.Add(tasks...).Ctx(ctx).Save()

	return err
}

// Work stops the hard way, because client.Stop waits forever when a task was fetched
// that no worker takes any more, which happens while tasks are left.
func (b *backliteQueue) Work(ctx context.Context, workers int, handle Handler) (func() error, error) {
	client, err := newBackliteClient(b.db, workers)
	if err != nil {
		return nil, err
	}

	client.Register(backlite.NewQueue(func(_ context.Context, j backliteJob) error { return handle(Job(j)) }))

	ctx, cancel := context.WithCancel(ctx)
	client.Start(ctx)

	return func() error { cancel(); return nil }, nil
}

func (b *backliteQueue) Left(ctx context.Context) (int, error) {
	return count(ctx, b.db, "SELECT count(*) FROM backlite_tasks")
}

func (b *backliteQueue) Close() error { return b.db.Close() }
