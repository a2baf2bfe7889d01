// Command river is River as the tests drive it: work DIR, enqueue ORDER..., or dead.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"redrive/test/workers/shop"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2:]); err != nil {
		stop()
		log.Fatal(err)
	}
}

// charge is the job of an order.
type charge struct {
	Order string `json:"order"`
}

func (charge) Kind() string { return "charge" }

// worker charges in the shop whose folder it is.
type worker struct {
	river.WorkerDefaults[charge]
	dir string
}

func (w worker) Work(_ context.Context, j *river.Job[charge]) error {
	return shop.Charge(w.dir, j.Args.Order)
}

func (worker) NextRetry(*river.Job[charge]) time.Time { return time.Now() }

func run(ctx context.Context, verb string, args []string) error {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrate(ctx, pool); err != nil {
		return err
	}
	config := &river.Config{}
	if verb == "work" {
		config.Queues = map[string]river.QueueConfig{"orders": {MaxWorkers: 1}}
		config.Workers = river.NewWorkers()
		river.AddWorker(config.Workers, worker{dir: args[0]})
	}
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		return err
	}
	switch verb {
	case "work":
		if err := client.Start(ctx); err != nil {
			return err
		}
		<-client.Stopped()
		return nil
	case "enqueue":
		return enqueue(ctx, client, args)
	case "dead":
		list, err := client.JobList(ctx, river.NewJobListParams().States(rivertype.JobStateDiscarded))
		if err == nil {
			fmt.Println(len(list.Jobs))
		}
		return err
	}
	return fmt.Errorf("unknown verb %q", verb)
}

func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

func enqueue(ctx context.Context, client *river.Client[pgx.Tx], orders []string) error {
	for _, order := range orders {
		if _, err := client.Insert(ctx, charge{order}, &river.InsertOpts{Queue: "orders", MaxAttempts: 2}); err != nil {
			return err
		}
	}
	return nil
}
