package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
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
		case !isLost(err) && !passes(err):
			return fmt.Errorf("%w: whether the last commit took place: %w", fault.ErrBroken, err)
		}

		_ = c.lease.health.Report(c.lease.fault(err)) // it can be another reason than the first one
		pause.For(c.asked, lookAgain)
	}

	return fmt.Errorf("%w: whether the last commit took place is not known: %w", fault.ErrBroken, cause)
}

// passes reports whether a server that cannot write now may be able to in a while.
func passes(err error) bool {
	switch kindOf(err) {
	case fault.ErrReadOnly, fault.ErrStorageFull, fault.ErrStarved, fault.ErrBusy, fault.ErrUnreachable:
		return true
	}

	return false
}

// ask asks on a new connection whether the commit took place. The process of the server that had
// the old connection has ended by then: it could still be about to commit.
func (c *conn) ask(ctx context.Context) (committed bool, err error) {
	err = c.connect(ctx)
	if err != nil {
		return false, err
	}

	newest, err := c.newest(ctx)

	return newest != c.lease.acknowledged.Load(), err
}

// endsWait notes the notice with which a server gives up its wait for a replica, as when a person
// cancels it: the commit that it acknowledges then is on the server alone.
func endsWait(server *pgconn.PgConn, said *pgconn.Notice) {
	const routine, words = "SyncRepWaitForLSN", "canceling wait for synchronous replication"

	if said.Routine == routine || strings.HasPrefix(said.Message, words) {
		server.CustomData()[unreplicated] = said.Message
	}
}

// unreplicated names what endsWait notes.
const unreplicated = "unreplicated"

// unreplicated is the error about a commit that was acknowledged although a replica that has to have
// it may not.
func (w *wire) unreplicated() error { return replicated(w.server) }

// replicated returns the error about a commit for which the server gave up its wait for a replica. The
// connection ends with it: what was noted on it stays.
func replicated(server *pgconn.PgConn) error {
	said, noted := server.CustomData()[unreplicated]
	if !noted {
		return nil
	}

	return errors.Join(&silent{fmt.Errorf("the server gave up its wait for a replica: %s", said)}, closeSoon(server))
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
//
// It asks by a write, in a transaction like all others. A server that takes no writes does not answer:
// it can be a replica that has yet to learn of the commit. And where commits wait for a replica, this one waits until the replica
// has everything that was committed before it: the end of a connection ends that wait, and the commit
// is on the server alone.
func (c *conn) newest(ctx context.Context) (newest int64, err error) {
	const touch = `UPDATE nodes SET commits = commits WHERE id = $1 RETURNING commits`

	s, err := newStatement(db.AnyNumber, touch, []any{c.lease.node})
	if err != nil {
		return 0, err
	}

	s.numbers = func(n int64) { newest = n } // without a row, this process has committed nothing

	asked, cancel := context.WithTimeout(ctx, reconnectWithin)
	defer cancel()

	c.laterBegin()
	c.wire.later(s)

	_, err = c.wire.exec(asked, control("COMMIT"))
	if err == nil {
		err = c.wire.unreplicated()
	}

	if err != nil {
		err = silentOf(ctx, c.remember(err))
		c.failed = nil // that was no statement of a caller

		return 0, errors.Join(err, c.Rollback(err))
	}

	acknowledged := c.lease.acknowledged.Load()
	if newest < acknowledged {
		return 0, c.lease.forgotten(acknowledged, newest)
	}

	return newest, nil
}

// endFormer ends the session of the connection that was lost, which can have locks, and waits
// until it has ended. Behind a pooler the session can serve another program by now, whose name it
// has then. A replica knows nothing of the session, which can go on elsewhere: it is ended later.
func (c *conn) endFormer(ctx context.Context) error {
	const end = `SELECT pg_is_in_recovery(), count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE concat(pid, ' since ', backend_start) = $1 AND application_name = current_setting('application_name')) AS ended`

	left, replica := int64(1), false
	for left > 0 {
		err := c.conn.QueryRowContext(ctx, end, c.former).Scan(&replica, &left)
		if err != nil {
			return err
		}

		if left > 0 && !pause.For(ctx, lookAgain/50) {
			return ctx.Err()
		}
	}

	if !replica {
		c.former = ""
	}

	return nil
}
