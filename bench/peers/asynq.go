package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const (
	asynqPoll    = 10 * time.Millisecond // between looks for jobs when there were none
	asynqForward = 20 * time.Millisecond // between looks for retries that are due; with 1 ms, failures are slower by a quarter
	asynqConns   = 100
)

// asynqQueue is a queue in a Redis that has nothing else.
type asynqQueue struct {
	redis     asynq.RedisClientOpt
	client    *asynq.Client
	inspector *asynq.Inspector
}

func newAsynq(ctx context.Context, dir string) (System, error) {
	server, err := startRedis(ctx, dir)
	if err != nil {
		return System{}, err
	}

	return System{
		Name: "asynq",
		Settings: fmt.Sprintf("%s on loopback, `appendonly yes`, `appendfsync always`, no snapshots; a pool of %d connections, "+
			"`TaskCheckInterval` %v, `DelayedTaskCheckInterval` %v, `RetryDelayFunc` 0. It has no call for many jobs. Finished tasks are deleted.",
			server.version, asynqConns, asynqPoll, asynqForward),
		Single: true,
		Open: func(ctx context.Context, _ string) (Queue, error) {
			admin := redis.NewClient(&redis.Options{Addr: server.address})
			if err := errors.Join(admin.FlushAll(ctx).Err(), admin.Close()); err != nil {
				return nil, err
			}

			opt := asynq.RedisClientOpt{Addr: server.address, PoolSize: asynqConns}

			return &asynqQueue{opt, asynq.NewClient(opt), asynq.NewInspector(opt)}, nil
		},
		Close: server.stop,
	}, nil
}

func (a *asynqQueue) Enqueue(ctx context.Context, jobs []Job) error {
	for _, j := range jobs {
		payload, err := encode(j)
		if err == nil {
			_, err = a.client.EnqueueContext(ctx, asynq.NewTask("job", payload), asynq.MaxRetry(5))
		}

		if err != nil {
			return err
		}
	}

	return nil
}

func (a *asynqQueue) Work(_ context.Context, workers int, handle Handler) (func() error, error) {
	server := asynq.NewServer(a.redis, asynq.Config{
		Concurrency: workers, TaskCheckInterval: asynqPoll, DelayedTaskCheckInterval: asynqForward, LogLevel: asynq.FatalLevel,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return 0 },
	})
	run := decoding(handle)

	err := server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error { return run(t.Payload()) }))
	if err != nil {
		return nil, err
	}

	return func() error { server.Shutdown(); return nil }, nil
}

func (a *asynqQueue) Left(context.Context) (int, error) {
	info, err := a.inspector.GetQueueInfo("default")
	if err != nil {
		return 0, err
	}

	return info.Size, nil
}

func (a *asynqQueue) Close() error { return errors.Join(a.client.Close(), a.inspector.Close()) }
