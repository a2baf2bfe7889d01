package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"

	"redrive/internal/store/db"
	"redrive/internal/store/health"
)

// take takes the lease and begins to renew it. It returns a *health.LockedError while another
// process has it.
func take(ctx context.Context, e *engine) (*lease, error) {
	l := newLease(e)

	err := db.Wrap(l.enter(ctx), "write down that this process has started")
	if err == nil {
		err = db.Wrap(l.acquire(ctx), "take the lease of the database")
	}

	if err != nil {
		l.stop()
		return nil, errors.Join(err, l.desk.close())
	}

	l.begin()

	return l, nil
}

// enter adds this start of the program to those that are known, and removes old ones.
func (l *lease) enter(ctx context.Context) error {
	const old = `DELETE FROM nodes WHERE started_at < now() - interval '30 days' AND id NOT IN (SELECT holder FROM leases)`
	const node = `INSERT INTO nodes (id, name, url, started_at, commits) VALUES ($1, $2, '', now(), 0) ON CONFLICT DO NOTHING`
	const none = `INSERT INTO leases (name, holder, until) VALUES ('main', '', now()) ON CONFLICT DO NOTHING`

	machine, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read the name of this machine: %w", err)
	}

	l.name = fmt.Sprintf("%s:%d", machine, os.Getpid())

	_, err = l.desk.run(ctx, old)
	if err == nil {
		_, err = l.desk.run(ctx, node, l.node, l.name)
	}

	if err == nil {
		_, err = l.desk.run(ctx, none)
	}

	return err
}

// forgetNode removes this start of the program from those that are known.
const forgetNode = `DELETE FROM nodes WHERE id = $1`

// acquire takes the lease, which waits for the commits of its former holder.
func (l *lease) acquire(ctx context.Context) error {
	const dead = `SELECT holder FROM leases WHERE name = 'main' AND until < now() AND holder NOT IN ('', $1)`
	const take = `WITH free AS (
			SELECT name FROM leases WHERE name = 'main' AND (holder IN ('', $1) OR until < now()) FOR UPDATE
		) UPDATE leases AS l SET holder = $1, until = now() + make_interval(secs => $2) FROM free WHERE l.name = free.name`

	former, err := l.desk.run(ctx, dead, l.node)
	if err != nil {
		return err
	}

	l.endSessions(ctx, former)

	sent := l.now()

	taken, err := l.desk.run(ctx, take, l.node, leaseLength.Seconds())
	if err == nil && taken.changed == 0 {
		err = l.held(ctx)
	}

	if err != nil {
		return err
	}

	l.renewed.Store(int64(sent))
	l.endSessions(ctx, former) // it could have connected again until now

	return nil
}

// endSessions ends the sessions of processes whose lease is over. Such a process writes nothing
// more, but the transaction in whose middle it was frozen has locks. Where that fails for want
// of rights, the server ends the transaction after a minute.
func (l *lease) endSessions(ctx context.Context, former answer) {
	const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND usename = current_user AND application_name LIKE '% ' || $1`

	for _, row := range former.rows {
		_, _ = l.desk.run(ctx, end, string(row[0]))
	}
}

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
	locked := &health.LockedError{Path: l.database, Holder: "that is about to stop"}
	if len(found.rows) > 0 {
		locked.Holder, locked.URL = found.text(0), found.text(1)
	}

	if locked.Holder == l.name {
		locked.PID = os.Getpid()
	}

	return locked
}
