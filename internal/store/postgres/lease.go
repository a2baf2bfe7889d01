package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"redrive/internal/fault"
	"redrive/internal/job"
	"redrive/internal/store/health"
)

// The lease of the process that works on the database. A process that dies is followed by
// another one after at most leaseLength; one that stops gives the lease back.
const (
	leaseLength = 8 * time.Second
	renewEvery  = 2 * time.Second
)

// lease lets one process at a time work on the database. Every commit checks it (see [conn]), so
// that a process which slept through the end of its lease writes nothing.
type lease struct {
	health *health.Health
	fault  func(error) error
	node   string // the id of this start of the program
	name   string // machine and process

	desk desk

	running context.Context // until the lease is given back
	stop    context.CancelFunc
	ended   sync.WaitGroup
}

// take takes the lease and begins to renew it. It returns a *health.LockedError while another
// process has it.
func take(ctx context.Context, e *engine) (*lease, error) {
	const old = `DELETE FROM nodes WHERE started_at < now() - interval '30 days' AND id NOT IN (SELECT holder FROM leases)`
	const node = `INSERT INTO nodes (id, name, url, started_at, commits) VALUES ($1, $2, '', now(), 0) ON CONFLICT DO NOTHING`
	const take = `INSERT INTO leases (name, holder, until) VALUES ('main', $1, now() + make_interval(secs => $2))
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
		WHERE leases.holder IN ('', excluded.holder) OR leases.until < now()`

	l := &lease{health: e.health, fault: e.Fault, node: job.NewID(), desk: desk{config: e.endpoint.config}}

	machine, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read the name of this machine: %w", err)
	}

	l.name = fmt.Sprintf("%s:%d", machine, os.Getpid())

	_, err = l.desk.run(ctx, old)
	if err == nil {
		_, err = l.desk.run(ctx, node, l.node, l.name)
	}

	if err != nil {
		return nil, errors.Join(fmt.Errorf("write down that this process has started: %w", err), l.desk.close())
	}

	taken, err := l.desk.run(ctx, take, l.node, leaseLength.Seconds())
	if err == nil && taken.changed == 0 {
		err = l.held(ctx)
	}

	if err != nil {
		return nil, errors.Join(fmt.Errorf("take the lease of the database: %w", err), l.desk.close())
	}

	l.running, l.stop = context.WithCancel(context.Background())
	l.ended.Go(func() { l.renew(l.running) })

	return l, nil
}

// forgetNode removes this start of the program from those that are known.
const forgetNode = `DELETE FROM nodes WHERE id = $1`

// held says who has the lease.
func (l *lease) held(ctx context.Context) error {
	const holder = `SELECT n.name, n.url FROM leases AS l JOIN nodes AS n ON n.id = l.holder WHERE l.name = 'main'`

	found, err := l.desk.run(ctx, holder)
	if err == nil {
		_, err = l.desk.run(ctx, forgetNode, l.node)
	}

	if err != nil {
		return fmt.Errorf("read who has it: %w", err)
	}

	// The holder may have given the lease back since.
	locked := &health.LockedError{Path: l.desk.config.Database, Holder: "that is about to stop"}
	if len(found.rows) > 0 {
		locked.Holder, locked.URL = string(found.rows[0][0]), string(found.rows[0][1])
	}

	if locked.Holder == l.name {
		locked.PID = os.Getpid()
	}

	return locked
}

// renew renews the lease until the context ends. Another process that has the lease ends this
// one. A process that is cut off from the server learns of the other one when it reaches the
// server again: until then, it can write nothing, but its handlers go on.
func (l *lease) renew(ctx context.Context) {
	const renew = `UPDATE leases SET until = now() + make_interval(secs => $2) WHERE name = 'main' AND holder = $1`

	tick := time.NewTicker(renewEvery)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}

		renewed, err := l.desk.run(ctx, renew, l.node, leaseLength.Seconds())
		if err == nil && renewed.changed == 0 {
			_ = l.health.Report(l.fault(errLeaseLost))
		}
	}
}

// errLeaseLost says that another process works on the database by now.
var errLeaseLost = fmt.Errorf("%w: another process has taken over, because this one did not answer for a while", fault.ErrBroken)

// giveBack ends the renewal, and lets another process take the lease at once.
func (l *lease) giveBack() error {
	const back = `UPDATE leases SET holder = '', until = now() WHERE name = 'main' AND holder = $1`

	l.stop()
	l.ended.Wait()

	_, err := l.desk.run(context.Background(), back, l.node)
	if err == nil {
		_, err = l.desk.run(context.Background(), forgetNode, l.node)
	}

	if err != nil {
		err = fmt.Errorf("give the lease of the database back: %w", err)
	}

	return errors.Join(err, l.desk.close())
}

// announce leaves word of where this process answers requests.
func (l *lease) announce(url string) error {
	const note = `UPDATE nodes SET url = $2 WHERE id = $1`

	_, err := l.desk.run(context.Background(), note, l.node, url)

	return err
}
