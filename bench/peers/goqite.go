package main

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
	"maragu.dev/goqite"
)

// goqiteQueue works with goqite's own calls: Receive, then Delete, or Extend by
// nothing after a failure. Its jobs.Runner cannot give a job back before the
// job's timeout.
type goqiteQueue struct {
	db *sql.DB
	q  *goqite.Queue
}

// goqitePoll is how often each of so many workers looks for a job when there was
// none: 5,000 times a second in all, since their looks delay the others' commits.
func goqitePoll(workers int) time.Duration { return time.Duration(workers) * 200 * time.Microsecond }

func newGoqite(context.Context, string) (System, error) {
	return System{
		Name: "goqite",
		Settings: sqliteSettings + ". Each worker is a loop of `ReceiveAndWait` (idle workers poll 5,000 times a second in all), then " +
			"`Delete`; after a failure `Extend` by 0. " +
			"1,000 at once are `SendTx` in one transaction. Finished jobs are deleted.",
		Open: func(ctx context.Context, dir string) (Queue, error) {
			db, err := openSQLite(dir)
			if err != nil {
				return nil, err
			}

			if _, err := db.ExecContext(ctx, goqiteSchema); err != nil {
				return nil, errors.Join(err, db.Close())
			}

			return &goqiteQueue{db, goqite.New(goqite.NewOpts{DB: db, Name: "jobs", MaxReceive: 10, Timeout: time.Minute})}, nil
		},
	}, nil
}

func (g *goqiteQueue) Enqueue(ctx context.Context, jobs []Job) error {
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}

	for _, j := range jobs {
		body, err := encode(j)
		if err == nil {
			err = g.q.SendTx(ctx, tx, goqite.Message{Body: body})
		}

		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}

	return tx.Commit()
}

func (g *goqiteQueue) Work(ctx context.Context, workers int, handle Handler) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)

	run, poll := decoding(handle), goqitePoll(workers)
	var all errgroup.Group
	for range workers {
		all.Go(func() error {
			for {
				if err := g.next(ctx, poll, run); ctx.Err() != nil {
					return nil
				} else if err != nil {
					return err
				}
			}
		})
	}

	return func() error { cancel(); return all.Wait() }, nil
}

// next runs one job.
func (g *goqiteQueue) next(ctx context.Context, poll time.Duration, run func([]byte) error) error {
	m, err := g.q.ReceiveAndWait(ctx, poll)
	if err != nil {
		return err
	}

	if run(m.Body) != nil {
		return g.q.Extend(ctx, m.ID, 0)
	}

	return g.q.Delete(ctx, m.ID)
}

func (g *goqiteQueue) Left(ctx context.Context) (int, error) {
	return count(ctx, g.db, "SELECT count(*) FROM goqite")
}

func (g *goqiteQueue) Close() error { return g.db.Close() }

// goqiteSchema is the schema_sqlite.sql that goqite asks its users to copy.
const goqiteSchema = `
create table goqite (
  id text primary key default ('m_' || lower(hex(randomblob(16)))),
  created text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
  updated text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
  queue text not null,
  body blob not null,
  timeout text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
  received integer not null default 0,
  priority integer not null default 0
) strict;

create trigger goqite_updated_timestamp after update on goqite begin
  update goqite set updated = strftime('%Y-%m-%dT%H:%M:%fZ') where id = old.id;
end;

create index goqite_queue_priority_created_idx on goqite (queue, priority desc, created);
`
