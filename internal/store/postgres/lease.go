package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"redrive/internal/fault"
	"redrive/internal/job"
	"redrive/internal/store/health"
)

// The lease of the process that works on the database. A process that dies is followed by
// another one after at most leaseLength; one that stops gives the lease back.
const (
	leaseLength = 10 * time.Second
	renewEvery  = 3 * time.Second
)

// lease lets one process at a time work on the database. Every commit checks it (see [conn]), so
// that a process which slept through the end of its lease writes nothing.
type lease struct {
	config *pgconn.Config
	health *health.Health
	fault  func(error) error
	node   string // the id of this start of the program

	running context.Context // until the lease is given back
	stop    context.CancelFunc
	ended   sync.WaitGroup
}

// take takes the lease and begins to renew it. It returns a *health.LockedError while another
// process has it.
func take(ctx context.Context, e *engine) (*lease, error) {
	const old = `DELETE FROM nodes WHERE started_at < now() - interval '30 days' AND id NOT IN (SELECT holder FROM leases)`
	const node = `INSERT INTO nodes (id, name, url, started_at, commits) VALUES ($1, $2, '', now(), 0)`
	const take = `INSERT INTO leases (name, holder, until) VALUES ('main', $1, now() + make_interval(secs => $2))
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
		WHERE leases.holder = '' OR leases.until < now()`

	l := &lease{config: e.config, health: e.health, fault: e.Fault, node: job.NewID()}

	server, err := pgconn.ConnectConfig(ctx, e.config)
	if err != nil {
		return nil, err
	}
	defer func() { _ = server.Close(context.Background()) }()

	name, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read the name of this machine: %w", err)
	}

	_, err = run(ctx, server, old)
	if err != nil {
		return nil, fmt.Errorf("forget old processes: %w", err)
	}

	_, err = run(ctx, server, node, l.node, fmt.Sprintf("%s:%d", name, os.Getpid()))
	if err != nil {
		return nil, fmt.Errorf("write down that this process has started: %w", err)
	}

	taken, err := run(ctx, server, take, l.node, leaseLength.Seconds())
	if err != nil {
		return nil, fmt.Errorf("take the lease of the database: %w", err)
	}

	if taken == 0 {
		return nil, l.held(ctx, server)
	}

	l.running, l.stop = context.WithCancel(context.Background())
	l.ended.Go(func() { l.renew(l.running) })

	return l, nil
}

// held says who has the lease.
func (l *lease) held(ctx context.Context, server *pgconn.PgConn) error {
	const holder = `SELECT n.name, n.url FROM leases AS l JOIN nodes AS n ON n.id = l.holder WHERE l.name = 'main'`
	const forget = `DELETE FROM nodes WHERE id = $1`

	found := server.ExecParams(ctx, holder, nil, nil, nil, nil).Read()
	_, err := run(ctx, server, forget, l.node)
	err = errors.Join(found.Err, err)
	if err != nil {
		return fmt.Errorf("read who works on the database: %w", err)
	}

	locked := &health.LockedError{Path: l.config.Database}
	if len(found.Rows) > 0 {
		locked.Holder, locked.URL = string(found.Rows[0][0]), string(found.Rows[0][1])
	}

	return locked
}

// renew renews the lease until the context ends.
func (l *lease) renew(ctx context.Context) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()

	var server *pgconn.PgConn
	for {
		select {
		case <-ctx.Done():
			if server != nil {
				_ = server.Close(context.Background())
			}

			return
		case <-tick.C:
		}

		server = l.renewOnce(ctx, server)
	}
}

// renewOnce renews the lease on a connection that it opens where there is none, and returns the
// connection as long as that can be used. Another process that has the lease ends this one. While
// the server does not answer, no other process can take the lease either.
func (l *lease) renewOnce(ctx context.Context, server *pgconn.PgConn) *pgconn.PgConn {
	const renew = `UPDATE leases SET until = now() + make_interval(secs => $2) WHERE name = 'main' AND holder = $1`

	ctx, cancel := context.WithTimeout(ctx, leaseLength)
	defer cancel()

	if server == nil {
		var err error

		server, err = pgconn.ConnectConfig(ctx, l.config)
		if err != nil {
			return nil
		}
	}

	renewed, err := run(ctx, server, renew, l.node, leaseLength.Seconds())
	if err != nil {
		_ = server.Close(context.Background())
		return nil
	}

	if renewed == 0 {
		_ = l.health.Report(l.fault(errLeaseLost))
	}

	return server
}

// errLeaseLost says that another process works on the database by now.
var errLeaseLost = fmt.Errorf("%w: another process has taken over, because this one did not answer for a while", fault.ErrBroken)

// giveBack ends the renewal, and lets another process take the lease at once.
func (l *lease) giveBack() error {
	const back = `UPDATE leases SET holder = '', until = now() WHERE name = 'main' AND holder = $1`
	const forget = `DELETE FROM nodes WHERE id = $1`

	l.stop()
	l.ended.Wait()

	ctx, cancel := context.WithTimeout(context.Background(), leaseLength)
	defer cancel()

	server, err := pgconn.ConnectConfig(ctx, l.config)
	if err != nil {
		return fmt.Errorf("give the lease of the database back: %w", err)
	}

	_, err = run(ctx, server, back, l.node)
	if err == nil {
		_, err = run(ctx, server, forget, l.node)
	}

	return errors.Join(err, server.Close(context.Background()))
}

// announce leaves word of where this process answers requests.
func (l *lease) announce(url string) error {
	const note = `UPDATE nodes SET url = $2 WHERE id = $1`

	ctx, cancel := context.WithTimeout(context.Background(), leaseLength)
	defer cancel()

	server, err := pgconn.ConnectConfig(ctx, l.config)
	if err != nil {
		return err
	}

	_, err = run(ctx, server, note, l.node, url)

	return errors.Join(err, server.Close(context.Background()))
}

// run runs one statement on a connection without a wire, and returns how many rows it changed.
func run(ctx context.Context, server *pgconn.PgConn, text string, args ...any) (int64, error) {
	s, err := newStatement(0, text, args)
	if err != nil {
		return 0, err
	}

	done := server.ExecParams(ctx, text, s.args, s.types, s.formats(), nil).Read()

	return done.CommandTag.RowsAffected(), done.Err
}
