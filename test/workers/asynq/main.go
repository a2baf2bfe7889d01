// Command asynq is Asynq as the tests drive it: work DIR, enqueue ORDER..., or dead.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/hibiken/asynq"

	"redrive/test/workers/shop"
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

// charge is the payload of an order.
type charge struct {
	Order string `json:"order"`
}

func work(dir string, t *asynq.Task) error {
	var c charge
	if err := json.Unmarshal(t.Payload(), &c); err != nil {
		return err
	}
	return shop.Charge(dir, c.Order)
}

func run(verb string, args []string) error {
	redis, err := asynq.ParseRedisURI(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	switch verb {
	case "work":
		server := asynq.NewServer(redis, asynq.Config{
			Concurrency: 1, Queues: map[string]int{"orders": 1}, DelayedTaskCheckInterval: 200 * time.Millisecond,
			RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return 0 },
		})
		return server.Run(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
			return work(args[0], t)
		}))
	case "enqueue":
		client := asynq.NewClient(redis)
		defer client.Close()
		for _, order := range args {
			payload, err := json.Marshal(charge{order})
			if err != nil {
				return err
			}
			if _, err := client.Enqueue(asynq.NewTask("charge", payload, asynq.Queue("orders"), asynq.MaxRetry(1),
				asynq.Retention(time.Hour))); err != nil {
				return err
			}
		}
		return nil
	case "dead":
		inspector := asynq.NewInspector(redis)
		defer inspector.Close()
		info, err := inspector.GetQueueInfo("orders")
		if err == nil {
			fmt.Println(info.Archived)
		}
		return err
	}
	return fmt.Errorf("unknown verb %q", verb)
}
