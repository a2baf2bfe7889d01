package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"

	"redrive/internal/access"
	"redrive/internal/bulk"
	"redrive/internal/config"
	"redrive/internal/engine"
	"redrive/internal/handler"
	"redrive/internal/job"
	"redrive/internal/live"
	"redrive/internal/retry"
	"redrive/internal/server"
	"redrive/internal/server/view"
	"redrive/internal/server/web"
	"redrive/internal/store"
	"redrive/internal/store/counters"
	"redrive/internal/store/location"
	"redrive/internal/store/search"
	"redrive/internal/usage"
	"redrive/internal/webhook"
)

// readHandlers makes the handlers of the configuration, unless the app was given
// its own. Either way a handler is added that reads envelopes again that could not
// be read when they came.
func (a *App) readHandlers(context.Context) error {
	if a.Handlers != nil {
		a.Handlers = handler.Envelopes(a.Handlers)
		return nil
	}

	set, err := handler.New(a.Config.Handlers, a.Config.Redactor().TextFrom)
	if err != nil {
		return usage.Of(a.Config.Locate(err))
	}

	a.set.Store(set)
	a.Handlers = handler.Envelopes(func(typ string) (engine.Handler, bool) { return a.set.Load().Lookup(typ) })
	a.spares = append(a.spares, set.CloseIdle)
	a.onClose("handlers", func() { a.set.Load().Close() })

	return nil
}

// openStore opens the database. The parts that are told of its commits are built
// later, but before anything is written.
func (a *App) openStore(ctx context.Context) (err error) {
	// The searcher and the sources are made before the store, which tells them of its commits.
	// The functions of the searcher look for a.store only when they run.
	a.search = newSearcher(
		func(ctx context.Context) (int, error) { return a.store.Search.Sweep(ctx) },
		func(ctx context.Context) error { return a.store.Search.Merge(ctx) }, a.Log)
	a.attachSources()

	err = a.waitForDatabase(ctx, store.Options{
		Database: location.Of(a.DB).Database(a.Relaxed), Log: a.Log, Redact: Redaction(a.Config),
		MaxBytes: a.Config.Limits().WriteBytes, Statements: a.Config.Limits().Statements,
		Limits: counters.Limits{Queues: a.Config.Limits().Queues, Types: a.Config.Limits().Types, Reserved: a.Config.NamedQueues()},
		Groups: a.Config.Limits().Groups,
		OnCommit: func(changes []job.Change) {
			a.hub.Changed(changes)
			a.engine.Changed(changes)
			a.search.changed(changes)
			a.sources.Changed(changes)
		},
		CheckSource: a.sources.Check,
		Attached:    a.sources.Attached,
	})

	if err == nil {
		a.onStop("store", func(context.Context) error { return a.closeStore() })
	}

	return err
}

// closeStore leaves no new database behind after a start that failed before a client
// could send a request. What was made on a server stays there.
func (a *App) closeStore() error {
	if a.address != nil || !a.store.Made() {
		return a.store.Close()
	}

	err := a.store.Abandon()
	if err != nil {
		return err
	}

	where := location.Of(a.DB)
	if where.IsServer() {
		a.Log.Info("Left the new tables in the database, which have no jobs, because Redrive did not start.", "database", where)
	} else {
		a.Log.Info("Removed the new database, because Redrive did not start.", "path", where)
	}

	return nil
}

// Redaction removes what the configuration hides from the texts of the search.
func Redaction(c *config.Config) search.Redaction {
	hide := c.Redactor()
	return search.Redaction{
		Data: func(typ string, data []byte) []byte { return hide.For(typ).Payload(data) }, Text: hide.Text, Fingerprint: hide.Fingerprint(),
	}
}

// openHub makes the hub that tells browsers what changes.
func (a *App) openHub(context.Context) error {
	a.hub = live.New(a.store, live.Options{
		CheckOrigin: server.CheckOrigin(a.Config), MaxPerIP: a.Config.Limits().Websockets, Log: a.Log,
	})
	a.onClose("live pages", a.hub.Close)

	return nil
}

// startBulk begins to carry out operations on many jobs, also those that were
// under way when the process ended.
func (a *App) startBulk(context.Context) error {
	a.bulk = bulk.Start(a.store.Operations, a.Log)
	a.onClose("operations", a.bulk.Close)
	return nil
}

// buildForwarder makes the sender of dead letters to webhooks.
func (a *App) buildForwarder(context.Context) error {
	forwarder, err := webhook.New(webhook.Options{
		Hooks: webhooks(a.Config), Keeps: a.Config.DeadLetters, Random: rand.Float64, Log: a.Log,
	})
	if err != nil {
		return usage.Of(a.Config.Locate(err))
	}

	if a.Sender == nil {
		a.Sender = forwarder
	}

	a.forwarder = forwarder
	a.spares = append(a.spares, forwarder.CloseIdle)
	a.onClose("webhooks", forwarder.Close)

	return nil
}

// webhooks lists the webhooks of the configuration by queue.
func webhooks(c *config.Config) map[string]webhook.Webhook {
	all := map[string]webhook.Webhook{}
	for _, queue := range c.Queues() {
		if w, ok := c.Webhook(queue); ok {
			all[queue] = webhook.Webhook{URL: w.URL, Secret: w.Secret.Reveal(), Sending: w.Sending}
		}
	}

	return all
}

// buildEngine makes the worker engine, which does nothing before its start, and the
// metrics that it raises.
func (a *App) buildEngine(context.Context) (err error) {
	if a.Worker == "" {
		a.Worker = workerName()
	}

	a.metrics = server.NewMetrics(a.store.Counters.Label)
	deadLetters := newDeadLetterLog(a.Log)
	a.onClose("log of dead letters", deadLetters.limit.Flush)

	// The configuration can be read again while the engine runs, so the rules are looked up at
	// each failure.
	a.engine, err = engine.New(engine.Options{
		Store: a.store, Queues: a.store, Handlers: a.Handlers, Workers: a.Config.Workers, Hide: a.Config.Redactor().Text,
		Rules: func(j job.Job, end job.Ending) (*retry.Ruling, string) { return a.Config.Rules().AfterFailure(j, end) },
		Kept:  a.Sender.Kept, Deliver: a.Sender.Deliver, DeliverWithin: webhook.Deadline,
		UnknownType: a.Config.UnknownType, Expired: a.Config.Expired, Random: rand.Float64, Name: a.Worker,
		MaxRunning: a.shares.Executions, Probe: a.probe, Grace: engineGrace, Log: a.Log,
		Settled: func(j job.Job, s job.Settlement) {
			a.metrics.Settled(j, s)
			deadLetters.settled(j, s)
		},
	})

	return err
}

// workerName is a name that differs between machines and between restarts.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}

	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// buildServer makes the web server: pages, actions, API and metrics.
func (a *App) buildServer(context.Context) (err error) {
	var local access.Token
	local.ID, a.key, local.Hash = access.NewToken()
	a.server, err = server.New(server.Options{
		View: view.New(a.store, a.Config.Redactor()), Config: a.Config, Hub: a.hub, Metrics: a.metrics,
		Engine: web.Engine{
			Worker: a.Worker, Running: a.engine.Running, Ready: a.ready, Deliver: a.Sender.Deliver,
			Knows:       func(typ string) bool { _, ok := a.Handlers(typ); return ok },
			OpenBreaker: a.engine.OpenBreaker, Shortages: a.engine.Shortages, Waiting: a.engine.Waiting, Began: a.engine.Began,
			Stuck: a.engine.Stuck, Pause: a.Pause, Notify: a.bulk.Notify, Sources: a.sources.Health,
			Reload: a.readAgain,
		},
		Local: local, Insecure: a.Open && !a.local(), Closed: !a.Open && !a.local(), BasePath: a.BasePath, Demo: a.Demo, Log: a.Log,
		Connections: a.shares.Visitors,
	})

	return err
}
