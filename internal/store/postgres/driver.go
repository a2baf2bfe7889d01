package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"redrive/internal/store/db"
)

// connector opens connections for package sql.
type connector struct {
	endpoint *endpoint
	reads    bool // all that runs on them reads
}

// Connect opens a connection.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	l := &link{endpoint: c.endpoint, reads: c.reads}

	err := l.connect(ctx)
	if err != nil {
		return nil, err
	}

	return l, nil
}

// Driver is not used: connections come from the connector.
func (connector) Driver() driver.Driver { return nil }

// link is a connection as package sql drives it. The methods that package sql wants and does
// not call are those of driver.Conn.
type link struct {
	endpoint *endpoint
	reads    bool

	wire       *wire
	generation int64 // of the endpoint when it was connected
}

func (l *link) connect(ctx context.Context) error {
	l.generation = l.endpoint.generation.Load()

	server, err := l.endpoint.connect(ctx, l.reads)
	if err != nil {
		return err
	}

	l.wire = &wire{endpoint: l.endpoint, server: server, prepared: map[string]string{}}

	return nil
}

// Prepare prepares nothing yet: the wire does so when the statement runs.
func (l *link) Prepare(text string) (driver.Stmt, error) { return &prepared{l, text}, nil }

// Begin is never called: there is BeginTx.
func (l *link) Begin() (driver.Tx, error) { return l.BeginTx(context.Background(), driver.TxOptions{}) }

// Close ends the connection.
func (l *link) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), tryFor)
	defer cancel()

	return l.wire.server.Close(ctx)
}

// IsValid reports whether the connection can be used again.
func (l *link) IsValid() bool {
	return !l.wire.server.IsClosed() && l.generation == l.endpoint.generation.Load()
}

// ResetSession refuses a connection that cannot be used again.
func (l *link) ResetSession(context.Context) error {
	if !l.IsValid() {
		return driver.ErrBadConn
	}

	return nil
}

// BeginTx begins a transaction with its first statement. One that reads sees one state of the
// database throughout.
func (l *link) BeginTx(_ context.Context, o driver.TxOptions) (driver.Tx, error) {
	if !o.ReadOnly {
		l.wire.later(control("BEGIN"))
		return transaction{l}, nil
	}

	// A replica does not begin what may write: a pooler can have led the connection to one.
	l.wire.later(control("BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE"))
	l.wire.later(control("SET TRANSACTION READ ONLY"))

	return transaction{l}, nil
}

// CheckNamedValue lets every argument through: encode reads them.
func (l *link) CheckNamedValue(*driver.NamedValue) error { return nil }

// QueryContext runs a query.
func (l *link) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := newStatement(db.AnyNumber, text, values(args))
	if err != nil {
		return nil, err
	}

	begins := l.wire.isIdle()
	before := l.wire.waiting

	rows, err := l.wire.query(ctx, s)
	if err == nil || !l.reads || !begins {
		return rows, err
	}

	err = l.leave(err)
	if !l.wire.server.IsClosed() || ctx.Err() != nil {
		return nil, err
	}

	// That the server has ended a connection is only seen when it is used. What reads does no harm
	// when it runs again, as long as it is the first query of its transaction.
	err = l.connect(ctx)
	if err != nil {
		return nil, err
	}

	l.wire.waiting = before

	return l.wire.query(ctx, s)
}

// leave ends the connection when its server turned out to be a replica as a transaction began, and
// lets all others look again where they lead.
func (l *link) leave(err error) error {
	early, ok := errors.AsType[*earlier](err)
	if !ok {
		return err
	}

	err = asReadOnly(early.error)
	if codeOf(err) == readOnly {
		l.endpoint.giveUp()
		_ = l.Close()
	}

	return err
}

// ExecContext runs a statement at once. Several statements in one text have no arguments.
func (l *link) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) == 0 {
		return driver.RowsAffected(0), l.wire.script(ctx, text)
	}

	s, err := newStatement(db.AnyNumber, text, values(args))
	if err != nil {
		return nil, err
	}

	n, err := l.wire.exec(ctx, s)

	return driver.RowsAffected(n), err
}

func values(args []driver.NamedValue) []any {
	all := make([]any, len(args))
	for i, a := range args {
		all[i] = a.Value
	}

	return all
}

// transaction is one that package sql began.
type transaction struct{ link *link }

// Commit ends the transaction.
func (t transaction) Commit() error { return t.link.wire.finish("COMMIT") }

// Rollback ends the transaction, which leaves nothing behind.
func (t transaction) Rollback() error { return t.link.wire.finish("ROLLBACK") }

// prepared is a statement of package sql.
type prepared struct {
	link *link
	text string
}

// Close closes nothing: the wire keeps what is prepared.
func (*prepared) Close() error { return nil }

// NumInput is unknown: the server counts the arguments.
func (*prepared) NumInput() int { return -1 }

// Exec is never called: there is ExecContext.
func (*prepared) Exec([]driver.Value) (driver.Result, error) { return nil, errors.ErrUnsupported }

// Query is never called: there is QueryContext.
func (*prepared) Query([]driver.Value) (driver.Rows, error) { return nil, errors.ErrUnsupported }

// QueryContext runs the query.
func (p *prepared) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return p.link.QueryContext(ctx, p.text, args)
}

// ExecContext runs the statement.
func (p *prepared) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return p.link.ExecContext(ctx, p.text, args)
}

// pool returns connections for package sql, at most so many.
func pool(c connector, most int) *sql.DB {
	pool := sql.OpenDB(c)
	pool.SetMaxOpenConns(most)
	pool.SetMaxIdleConns(most)

	return pool
}
