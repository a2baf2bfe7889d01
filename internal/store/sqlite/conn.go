package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	lib "modernc.org/sqlite/lib"

	"redrive/internal/fault"
	"redrive/internal/pause"
	"redrive/internal/store/db"
)

// conn is the connection that writes.
type conn struct {
	*session
	engine *engine
}

// session is a connection with a prepared statement for each text. Statements that
// give no rows go to the driver itself: package sql takes a tenth of the time of an
// insert, and half of its allocations.
type session struct {
	conn *sql.Conn

	// The prepared statements, by their texts.
	queries map[string]*sql.Stmt
	execs   map[string]driver.Stmt

	values []driver.NamedValue // of the statement that runs; used again by the next one
}

func newSession(c *sql.Conn) *session {
	return &session{conn: c, queries: map[string]*sql.Stmt{}, execs: map[string]driver.Stmt{}}
}

// query returns the prepared statement of a query.
func (c *session) query(text string) (*sql.Stmt, error) {
	if stmt, ok := c.queries[text]; ok {
		return stmt, nil
	}

	stmt, err := c.conn.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", text, err)
	}

	c.queries[text] = stmt

	return stmt, nil
}

func (c *session) Query(query string, each func(*sql.Rows) error, args ...any) error {
	stmt, err := c.query(query)
	if err != nil {
		return err
	}

	return db.Scan(stmt.QueryContext(context.Background(), args...))(each)
}

func (c *session) Exec(query string, args ...any) (changed int64, err error) {
	err = c.conn.Raw(func(conn any) error {
		changed, err = c.exec(conn.(driver.Conn), query, args)
		return err
	})

	return changed, err
}

// Send runs the statement at once. All that this connection does not write is there as it
// was when it was read: another number of rows means that another program changed the database.
func (c *session) Send(s db.Statement) error {
	if s.Numbers != nil {
		return c.Query(s.Query, func(rows *sql.Rows) error {
			var n int64
			err := rows.Scan(&n)
			if err == nil {
				s.Numbers(n)
			}

			return err
		}, s.Args...)
	}

	changed, err := c.Exec(s.Query, s.Args...)
	if err == nil && s.Want != db.AnyNumber && changed != int64(s.Want) {
		err = fmt.Errorf("%w: %d rows changed instead of %d: another program wrote to the file", fault.ErrBroken, changed, s.Want)
	}

	return err
}

func (c *session) exec(conn driver.Conn, query string, args []any) (int64, error) {
	stmt, ok := c.execs[query]
	if !ok {
		var err error

		stmt, err = conn.Prepare(query)
		if err != nil {
			return 0, fmt.Errorf("prepare %q: %w", query, err)
		}

		c.execs[query] = stmt
	}
	defer func() { clear(c.values) }() // texts can be large

	c.values = c.values[:0]
	for i, arg := range args {
		value, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return 0, err
		}

		c.values = append(c.values, driver.NamedValue{Ordinal: i + 1, Value: value})
	}

	result, err := stmt.(driver.StmtExecContext).ExecContext(context.Background(), c.values)
	if err != nil {
		return 0, err
	}

	return result.RowsAffected()
}

// How long the writer waits for a database that another process keeps busy.
const (
	maxTries  = 10
	firstWait = 5 * time.Millisecond
	maxWait   = 500 * time.Millisecond
)

// Begin takes the write lock at once, so that no statement after it can find the
// database busy.
func (c *conn) Begin(ctx context.Context) error {
	if err := c.engine.Check(); err != nil {
		return err
	}

	for try := 1; ; try++ {
		_, err := c.Exec("BEGIN IMMEDIATE")
		if busy(err) && try < maxTries && backOff(ctx, try) {
			continue
		}

		if err == nil {
			c.engine.locks.main.remember()
		}

		return err
	}
}

// backOff waits before the next try: twice as long each time, spread by chance
// between half and all of it. It reports false once ctx has ended.
func backOff(ctx context.Context, try int) bool {
	wait := min(firstWait<<(try-1), maxWait)
	return pause.For(ctx, wait/2+rand.N(wait/2))
}

// moveLog moves everything from the log into the main file. It reports whether it could.
func (c *conn) moveLog() (done bool, err error) { return c.checkpoint(`PRAGMA wal_checkpoint(FULL)`) }

// emptyLog does the same, and cuts the log to nothing. It reports whether it could: a
// reader may still need the log.
func (c *conn) emptyLog() (done bool, err error) {
	return c.checkpoint(`PRAGMA wal_checkpoint(TRUNCATE)`)
}

func (c *conn) checkpoint(query string) (done bool, err error) {
	var busy, pages, moved int
	_, err = db.Row(c, query, []any{&busy, &pages, &moved})
	return err == nil && busy == 0 && pages == moved, c.engine.Fault(err)
}

func (c *session) Commit() error {
	_, err := c.Exec("COMMIT")
	return err
}

// Rollback undoes a failed transaction. SQLite has already done so after some
// errors; anything else that keeps it from working breaks the connection,
// because the next operation would become part of this transaction.
func (c *session) Rollback(cause error) error {
	_, err := c.Exec("ROLLBACK")
	if err == nil || code(err) == lib.SQLITE_ERROR && endsTransaction(cause) {
		return nil
	}

	return fmt.Errorf("%w: roll back: %w", fault.ErrBroken, err)
}

// endsTransaction reports whether SQLite itself may roll back after the error.
func endsTransaction(err error) bool {
	own := []int{lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_NOMEM, lib.SQLITE_BUSY, lib.SQLITE_INTERRUPT}
	return slices.Contains(own, primary(err))
}

func (c *session) Close() error {
	var errs []error
	for _, stmt := range c.queries {
		errs = append(errs, stmt.Close())
	}

	errs = append(errs, c.conn.Raw(func(any) error {
		var errs []error
		for _, stmt := range c.execs {
			errs = append(errs, stmt.Close())
		}

		return errors.Join(errs...)
	}))

	return errors.Join(append(errs, c.conn.Close())...)
}
