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

// lookAgain is how long to wait between two attempts to find out what became of a commit.
const lookAgain = 500 * time.Millisecond

// lost finds out what became of the commit whose answer was lost: it returns nil when the commit
// took place, and the cause when it did not and never will. It tries until it knows, or until
// the store is closed.
func (c *conn) lost(cause error) error {
	ctx := c.lease.running
	before := c.backend

	_ = c.lease.health.Report(c.lease.fault(cause))

	for ctx.Err() == nil {
		committed, err := c.ask(ctx, before)
		switch {
		case err == nil && committed:
			return nil
		case err == nil:
			return cause
		case !isLost(err):
			return fmt.Errorf("%w: whether the last commit took place: %w", fault.ErrBroken, err)
		}

		pause.For(ctx, lookAgain)
	}

	return fmt.Errorf("%w: whether the last commit took place is not known: %w", fault.ErrBroken, cause)
}

// ask asks on a new connection whether the commit took place. The process of the server that had
// the old connection is ended first: it could still be about to commit.
func (c *conn) ask(ctx context.Context, before string) (committed bool, err error) {
	const end = `SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE concat(pid, ' since ', backend_start) = $1) AS ended`
	const ask = `SELECT commits FROM nodes WHERE id = $1`

	err = c.connect(ctx)
	if err != nil {
		return false, err
	}

	left := int64(1)
	for left > 0 {
		err = c.conn.QueryRowContext(ctx, end, before).Scan(&left)
		if err != nil {
			return false, err
		}

		if left > 0 && !pause.For(ctx, lookAgain/50) {
			return false, ctx.Err()
		}
	}

	var newest int64
	err = c.conn.QueryRowContext(ctx, ask, c.lease.node).Scan(&newest)

	return newest > c.commits, err
}
