package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"redrive/internal/store/db"
)

// connector opens connections for package sql.
type connector struct{ config *pgconn.Config }

// Connect opens a connection.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	server, err := pgconn.ConnectConfig(ctx, c.config)
	if err != nil {
		return nil, err
	}

	return &link{wire: &wire{server: server, prepared: map[string]string{}}}, nil
}

// Driver is not used: connections come from the connector.
func (connector) Driver() driver.Driver { return nil }

// link is a connection as package sql drives it. The methods that package sql wants and does
// not call are those of driver.Conn.
type link struct {
	wire *wire
}

// Prepare prepares nothing yet: the wire does so when the statement runs.
func (l *link) Prepare(text string) (driver.Stmt, error) { return &prepared{l, text}, nil }

// Begin is never called: there is BeginTx.
func (l *link) Begin() (driver.Tx, error) { return l.BeginTx(context.Background(), driver.TxOptions{}) }

// Close ends the connection.
func (l *link) Close() error { return l.wire.server.Close(context.Background()) }

// IsValid reports whether the connection can be used again.
func (l *link) IsValid() bool { return !l.wire.server.IsClosed() }

// BeginTx begins a transaction with its first statement. One that reads sees one state of the
// database throughout.
func (l *link) BeginTx(_ context.Context, o driver.TxOptions) (driver.Tx, error) {
	text := "BEGIN"
	if o.ReadOnly {
		text = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	}

	l.wire.later(control(text))

	return transaction{l.wire}, nil
}

// CheckNamedValue lets every argument through: encode reads them.
func (l *link) CheckNamedValue(*driver.NamedValue) error { return nil }

// QueryContext runs a query.
func (l *link) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := newStatement(db.AnyNumber, text, values(args))
	if err != nil {
		return nil, err
	}

	return l.wire.query(ctx, s)
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
type transaction struct{ wire *wire }

// Commit ends the transaction.
func (t transaction) Commit() error { return t.wire.finish("COMMIT") }

// Rollback ends the transaction, which leaves nothing behind.
func (t transaction) Rollback() error { return t.wire.finish("ROLLBACK") }

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
func pool(config *pgconn.Config, most int) *sql.DB {
	pool := sql.OpenDB(connector{config})
	pool.SetMaxOpenConns(most)
	pool.SetMaxIdleConns(most)

	return pool
}
