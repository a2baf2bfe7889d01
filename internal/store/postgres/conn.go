package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"redrive/internal/fault"
	"redrive/internal/store/db"
)

// conn is a connection that writes.
type conn struct {
	conn  *sql.Conn
	wire  *wire // of the connection, which package sql holds
	texts map[string]string
}

// newConn takes a connection out of a pool.
func newConn(ctx context.Context, from *sql.DB) (*conn, error) {
	taken, err := from.Conn(ctx)
	if err != nil {
		return nil, err
	}

	c := &conn{conn: taken, texts: map[string]string{}}

	err = taken.Raw(func(l any) error {
		c.wire = l.(*link).wire
		return nil
	})

	return c, err
}

// text is a statement as PostgreSQL reads it.
func (c *conn) text(query string) string {
	text, known := c.texts[query]
	if !known {
		text = translate(query)
		c.texts[query] = text
	}

	return text
}

// begin starts a transaction, and bounds how long its statements wait for locks and run. These
// bounds end with the transaction: a pooler in between gives the session to others.
const begin = `SELECT set_config('lock_timeout', '10s', true), set_config('statement_timeout', '60s', true),
	set_config('idle_in_transaction_session_timeout', '60s', true)`

// Begin waits for the first statement of the transaction, with which it travels.
func (c *conn) Begin(context.Context) error {
	c.wire.waiting = nil
	c.wire.later(statement{text: "BEGIN", want: db.AnyNumber})
	c.wire.later(statement{text: begin, want: db.AnyNumber})

	return nil
}

// Query runs a query, together with what was sent before it.
func (c *conn) Query(query string, each func(*sql.Rows) error, args ...any) error {
	return db.Scan(c.conn.QueryContext(context.Background(), c.text(query), args...))(each)
}

// Exec runs a statement, together with what was sent before it.
func (c *conn) Exec(query string, args ...any) (int64, error) {
	s, err := newStatement(db.AnyNumber, c.text(query), args)
	if err != nil {
		return 0, err
	}

	return c.wire.exec(context.Background(), s)
}

// Send lets a statement wait for the next trip.
func (c *conn) Send(want int, query string, args ...any) error {
	s, err := newStatement(want, c.text(query), args)
	if err == nil {
		c.wire.later(s)
	}

	return err
}

// Commit travels together with what was sent before it. A statement among that which has to
// change so many rows checks that itself: the answer would come after the commit.
func (c *conn) Commit() error {
	for i := range c.wire.waiting {
		c.wire.waiting[i].checkItself()
	}

	_, err := c.wire.exec(context.Background(), statement{text: "COMMIT", want: db.AnyNumber})

	return err
}

// checkItself lets the statement fail when it changes another number of rows than it has to.
// One that inserts rows changes as many as it has, or fails anyway.
func (s *statement) checkItself() {
	if s.want == db.AnyNumber || strings.HasPrefix(s.text, "INSERT") {
		return
	}

	s.text = fmt.Sprintf(`WITH changed AS (%s RETURNING 1) SELECT expect(count(*), %d) FROM changed`, s.text, s.want)
	s.want = db.AnyNumber
}

// Rollback undoes a transaction. The server itself has undone one whose statement failed.
func (c *conn) Rollback(error) error {
	c.wire.waiting = nil

	_, err := c.wire.exec(context.Background(), statement{text: "ROLLBACK", want: db.AnyNumber})
	if err != nil {
		return fmt.Errorf("%w: roll back: %w", fault.ErrBroken, err)
	}

	return nil
}

// Close gives the connection back.
func (c *conn) Close() error { return errors.Join(c.conn.Close()) }
