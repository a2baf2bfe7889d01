package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"redrive/internal/fault"
	"redrive/internal/pause"
	"redrive/internal/store/db"
)

// isLost reports whether an error says that a connection is lost. What the server says in an
// error of its own is known, unless it ends the connection with it.
func isLost(err error) bool {
	if err == nil || errors.Is(err, errMissed) || errors.Is(err, sql.ErrNoRows) {
		return false
	}

	said, ok := errors.AsType[*pgconn.PgError](err)

	return !ok || said.SeverityUnlocalized == "FATAL" || said.SeverityUnlocalized == "PANIC"
}

const (
	// lookAgain is how long to wait between two attempts to find out what became of a commit.
	lookAgain = 500 * time.Millisecond

	// reconnectWithin bounds what such an attempt asks of the server, which can have fallen silent
	// again.
	reconnectWithin = 5 * time.Second
)

// lost finds out what became of the commit whose answer was lost: it returns nil when the commit
// took place, and the cause when it did not and never will. It tries until it knows, or until
// the lease is over, or the store is being closed, when it looks only once: the commit is not
// known then, and the store writes no more.
func (c *conn) lost(cause error) error {
	_ = c.lease.health.Report(c.lease.fault(cause))

	for looked := false; !looked || c.asked.Err() == nil; looked = true {
		err := c.lease.check()
		if err != nil {
			return err
		}

		committed, err := c.ask(context.WithoutCancel(c.asked))
		switch {
		case err == nil && committed:
			return nil
		case err == nil:
			return cause
		case errors.Is(err, fault.ErrBroken):
			return err
		case !isLost(err) && codeOf(err) != readOnly: // a server that takes no writes can begin to again
			return fmt.Errorf("%w: whether the last commit took place: %w", fault.ErrBroken, err)
		}

		pause.For(c.asked, lookAgain)
	}

	return fmt.Errorf("%w: whether the last commit took place is not known: %w", fault.ErrBroken, cause)
}

// ask asks on a new connection whether the commit took place. The process of the server that had
// the old connection has ended by then: it could still be about to commit.
func (c *conn) ask(ctx context.Context) (committed bool, err error) {
	err = c.connect(ctx)
	if err != nil {
		return false, err
	}

	newest, err := c.newest(ctx)
	if err != nil || newest == c.lease.acknowledged.Load() {
		return false, err
	}

	return true, c.awaitReplica(ctx)
}

// awaitReplica waits until a replica has what the server has committed, where commits wait for one:
// the end of a connection ends that wait, and the commit is on the server alone. The commit of
// this statement waits for all that was committed before it.
func (c *conn) awaitReplica(ctx context.Context) error {
	const touch = `UPDATE nodes SET commits = commits WHERE id = $1`

	s, err := newStatement(db.AnyNumber, touch, []any{c.lease.node})
	if err != nil {
		return err
	}

	asked, cancel := context.WithTimeout(ctx, reconnectWithin)
	defer cancel()

	_, err = c.wire.exec(asked, s)

	return silentOf(ctx, err)
}

// reconnect connects again in place of a connection that was lost outside of a commit. Not one
// of the commits may be missing.
func (c *conn) reconnect(ctx context.Context) error {
	err := c.connect(ctx)
	if err == nil && c.numbered {
		_, err = c.newest(ctx)
	}

	return err
}

// newest is the number of this process's newest commit that the server has. A server that has
// fewer than it acknowledged ends this process.
func (c *conn) newest(ctx context.Context) (int64, error) {
	const ask = `SELECT coalesce((SELECT commits FROM nodes WHERE id = $1), 0)`

	asked, cancel := context.WithTimeout(ctx, reconnectWithin)
	defer cancel()

	var newest int64
	err := c.conn.QueryRowContext(asked, ask, c.lease.node).Scan(&newest)
	if err != nil {
		return 0, silentOf(ctx, err)
	}

	acknowledged := c.lease.acknowledged.Load()
	if newest < acknowledged {
		return 0, c.lease.forgotten(acknowledged, newest)
	}

	return newest, nil
}

// endFormer ends the session of the connection that was lost, which can have locks, and waits
// until it has ended. Behind a pooler the session can serve another program by now, whose name it
// has then.
func (c *conn) endFormer(ctx context.Context) error {
	const end = `SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE concat(pid, ' since ', backend_start) = $1 AND application_name = current_setting('application_name')) AS ended`

	left := int64(1)
	for left > 0 {
		err := c.conn.QueryRowContext(ctx, end, c.former).Scan(&left)
		if err != nil {
			return err
		}

		if left > 0 && !pause.For(ctx, lookAgain/50) {
			return ctx.Err()
		}
	}

	c.former = ""

	return nil
}
