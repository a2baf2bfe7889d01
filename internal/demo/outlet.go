package demo

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"time"

	_ "modernc.org/sqlite" // the driver of the outlet's database
)

// Outlet is the shop's outlet, whose queue is not Redrive's: an application in Laravel
// that keeps its jobs in SQLite, and runs them with a worker of its own. Redrive has it
// as a source, like any other, and neither knows of the other.
type Outlet struct {
	world  *World
	db     *sql.DB
	random *rand.Rand
	orders int
}

// The outlet's tables, as Laravel's migrations make them.
const outletTables = `
CREATE TABLE "jobs" ("id" integer not null primary key autoincrement, "queue" varchar not null, "payload" text not null,
	"attempts" integer not null, "reserved_at" integer, "available_at" integer not null, "created_at" integer not null);
CREATE INDEX "jobs_queue_index" on "jobs" ("queue");
CREATE TABLE "failed_jobs" ("id" integer not null primary key autoincrement, "uuid" varchar not null, "connection" text not null,
	"queue" text not null, "payload" text not null, "exception" text not null, "failed_at" datetime default CURRENT_TIMESTAMP not null);
CREATE UNIQUE INDEX "failed_jobs_uuid_unique" on "failed_jobs" ("uuid");`

// The outlet takes an order every four seconds, and looks more often for jobs
// that were put back. Its warehouse has been away for a while when the demo begins.
const (
	outletLooks  = 500 * time.Millisecond
	ordersLook   = 8 // looks between two orders
	outletTries  = 2
	firstOrder   = 7_000
	outletAway   = 24 * time.Minute
	awayFailures = 18
)

// OpenOutlet makes the outlet's database, with what failed before now.
func (w *World) OpenOutlet(ctx context.Context, file string, now time.Time) (*Outlet, error) {
	options := url.Values{"_pragma": {"journal_mode(wal)", "synchronous(off)", "busy_timeout(5000)"}, "_txlock": {"immediate"}}
	address := url.URL{Scheme: "file", Opaque: (&url.URL{Path: file}).EscapedPath(), RawQuery: options.Encode()}

	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return nil, err
	}

	db.SetMaxOpenConns(1)
	o := &Outlet{world: w, db: db, random: rand.New(rand.NewPCG(w.seed, 3)), orders: firstOrder}

	err = o.transact(ctx, func(t *sql.Tx) error {
		if _, err := t.ExecContext(ctx, outletTables); err != nil {
			return err
		}

		// While the warehouse was away, orders failed one after the other, at equal intervals
		// until now.
		for n := range awayFailures {
			at := now.Add(outletAway * time.Duration(n-awayFailures) / awayFailures)
			if err := fail(ctx, t, o.order(at), at); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the outlet's database: %w", err), db.Close())
	}

	return o, nil
}

// Close closes the database.
func (o *Outlet) Close() error { return o.db.Close() }

// Run takes orders and works off what they cause, until ctx ends.
func (o *Outlet) Run(ctx context.Context) error {
	tick := time.NewTicker(outletLooks)
	defer tick.Stop()

	for look := 0; ; look++ {
		if err := o.look(ctx, look%ordersLook == 0); err != nil && ctx.Err() == nil {
			return err
		}

		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look takes an order, when there is one, and runs what is due.
func (o *Outlet) look(ctx context.Context, ordered bool) error {
	if ordered {
		now := time.Now()
		j := o.order(now)

		const push = `INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES (?, ?, 0, ?, ?)`
		if _, err := o.db.ExecContext(ctx, push, j.queue, j.payload, now.Unix(), now.Unix()); err != nil {
			return err
		}
	}

	for {
		j, err := o.reserve(ctx, time.Now())
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}

		if err == nil {
			err = o.work(ctx, j)
		}

		if err != nil {
			return err
		}
	}
}

// outletJob is a row of the outlet's jobs.
type outletJob struct {
	id             int64
	queue, payload string
	attempts       int
}

// order makes the job of the next order: it reserves what was bought.
func (o *Outlet) order(at time.Time) outletJob {
	o.orders++

	// What Laravel writes: JSON that has a serialized PHP object in it.
	const class = `App\Jobs\ReserveStock`
	const object = `O:%d:"%s":6:{s:5:"tries";i:%d;s:5:"order";i:%d;s:3:"sku";s:7:"OUT-%d";s:10:"connection";N;s:5:"queue";N;s:3:"job";N;}`
	command := fmt.Sprintf(object, len(class), class, outletTries, o.orders, 100+o.random.IntN(900))

	payload, err := json.Marshal(map[string]any{
		"uuid": newID(at, o.random), "displayName": class, "job": `Illuminate\Queue\CallQueuedHandler@call`, "maxTries": outletTries,
		"maxExceptions": nil, "failOnTimeout": false, "backoff": nil, "timeout": nil, "retryUntil": nil,
		"data": map[string]any{"commandName": class, "command": command},
	})
	if err != nil {
		panic(err) // unreachable: a map of texts and numbers
	}

	return outletJob{queue: "orders", payload: string(payload), attempts: outletTries}
}

// reserve takes the oldest job that is due.
func (o *Outlet) reserve(ctx context.Context, now time.Time) (j outletJob, err error) {
	const take = `UPDATE jobs SET reserved_at = ?1, attempts = attempts + 1
		WHERE id = (SELECT id FROM jobs WHERE reserved_at IS NULL AND available_at <= ?1 ORDER BY id LIMIT 1)
		RETURNING id, queue, payload, attempts`
	err = o.db.QueryRowContext(ctx, take, now.Unix()).Scan(&j.id, &j.queue, &j.payload, &j.attempts)

	return j, err
}

// work runs a job for a moment. It is deleted when it succeeds, put back when the
// warehouse does not answer, and has failed permanently after its last attempt.
func (o *Outlet) work(ctx context.Context, j outletJob) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(20+o.random.IntN(100)) * time.Millisecond):
	}

	const release = `INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES (?, ?, ?, ?, ?)`
	broken := o.world.broken("warehouse")
	now := time.Now()

	return o.transact(ctx, func(t *sql.Tx) error {
		// A job leaves the table in any case. One that failed comes back with its attempts, or
		// goes to failed_jobs.
		_, err := t.ExecContext(ctx, `DELETE FROM jobs WHERE id = ?`, j.id)
		switch {
		case err != nil || !broken:
			return err
		case j.attempts < outletTries:
			_, err = t.ExecContext(ctx, release, j.queue, j.payload, j.attempts, now.Unix(), now.Unix())
			return err
		}

		return fail(ctx, t, j, now)
	})
}

// fail writes down that a job has failed permanently.
func fail(ctx context.Context, t *sql.Tx, j outletJob, at time.Time) error {
	const insert = `INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at)
		VALUES (?, 'database', ?, ?, ?, ?)`

	// Laravel names a failed job by the uuid in its payload.
	var payload struct{ UUID string }
	if err := json.Unmarshal([]byte(j.payload), &payload); err != nil {
		return err
	}

	_, err := t.ExecContext(ctx, insert, payload.UUID, j.queue, j.payload, outletException, at.UTC().Format(time.DateTime))

	return err
}

// outletException is what PHP writes of a warehouse that does not answer.
const outletException = `App\Warehouse\Unavailable: POST https://warehouse.example/reservations: 503 Service Unavailable` +
	` in /srv/outlet/app/Warehouse/Client.php:57
Stack trace:
#0 /srv/outlet/app/Jobs/ReserveStock.php(31): App\Warehouse\Client->reserve()
#1 /srv/outlet/vendor/laravel/framework/src/Illuminate/Container/BoundMethod.php(36): App\Jobs\ReserveStock->handle()
#2 /srv/outlet/vendor/laravel/framework/src/Illuminate/Bus/Dispatcher.php(128): Illuminate\Container\Container->call()
#3 /srv/outlet/vendor/laravel/framework/src/Illuminate/Queue/CallQueuedHandler.php(124): Illuminate\Bus\Dispatcher->dispatchNow()
#4 /srv/outlet/vendor/laravel/framework/src/Illuminate/Queue/Jobs/Job.php(102): Illuminate\Queue\CallQueuedHandler->call()
#5 /srv/outlet/vendor/laravel/framework/src/Illuminate/Queue/Worker.php(439): Illuminate\Queue\Jobs\Job->fire()
#6 /srv/outlet/artisan(3): Illuminate\Foundation\Console\Kernel->handle()
#7 {main}`

// transact runs do in one transaction.
func (o *Outlet) transact(ctx context.Context, do func(*sql.Tx) error) error {
	t, err := o.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}

	if err := do(t); err != nil {
		return errors.Join(err, t.Rollback())
	}

	return t.Commit()
}
