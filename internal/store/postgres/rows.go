package postgres

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// rows are the rows of a query. The result is always one row ahead of what was read.
type rows struct {
	wire   *wire
	trip   *trip
	fields []column

	asked context.Context // of the caller, who wants no more rows after its end
	alone bool            // the query is in no transaction, which a cancelled one would end

	ended  bool // there are no more rows
	closed bool
}

// Columns are the names of the columns.
func (r *rows) Columns() []string {
	names := make([]string, len(r.fields))
	for i, f := range r.fields {
		names[i] = f.name
	}

	return names
}

// Next reads a row, or returns io.EOF.
func (r *rows) Next(to []driver.Value) error {
	if r.ended {
		err := r.Close()
		if err == nil {
			err = io.EOF
		}

		return err
	}

	for i, value := range r.trip.result.Values() {
		var err error

		to[i], err = r.fields[i].decode(value)
		if err != nil {
			return fmt.Errorf("column %s: %w", r.fields[i].name, err)
		}
	}

	r.step()

	return nil
}

// step reads the next row, or finds the end.
func (r *rows) step() { r.ended = !r.trip.result.NextRow() }

// Close ends the query. Rows that are left are not wanted: the server is asked to stop sending
// them when there are many, because they can be large.
func (r *rows) Close() error {
	if r.closed {
		return nil
	}

	r.closed = true

	for range fewRows {
		if r.ended {
			break
		}

		r.step()
	}

	interrupted := !r.ended && r.alone
	if interrupted {
		interrupt(r.wire.server)
	}

	_, err := r.trip.result.Close()
	if err == nil {
		return r.trip.end()
	}

	_ = r.trip.end() // it says again what went wrong
	if interrupted {
		return nil // what became of rows that are not wanted
	}

	return unlessLeft(r.asked, err)
}

// fewRows are read in less time than it takes to ask the server to stop.
const fewRows = 20

// queryCancelled is the code of the error about a query that was cancelled.
const queryCancelled = "57014"

// unlessLeft is the error of a query, or the end of its context, because of which it was cancelled.
func unlessLeft(asked context.Context, err error) error {
	if codeOf(err) == queryCancelled && asked.Err() != nil {
		return asked.Err()
	}

	return err
}

// obeysWithin is how long the server may take to end a query that is cancelled.
const obeysWithin = 2 * time.Second

// interrupt asks the server to end the query of a connection. When it returns, the request has reached the
// process of the server, so that it cannot meet a later query, or the connection is closed.
func interrupt(server *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), obeysWithin)
	defer cancel()

	err := server.CancelRequest(ctx)
	if err != nil || ctx.Err() != nil { // it does not say that its time was up
		_ = server.Conn().Close()
	}
}

// interruption ends a query whose caller waits no longer. The connection can be used again, unless the
// server does not obey: to connect costs the server a process.
type interruption struct{ server *pgconn.PgConn }

// interrupting is the interruption of the queries of a connection.
func interrupting(server *pgconn.PgConn) ctxwatch.Handler { return interruption{server} }

// HandleCancel is called at the end of the context of a query.
func (i interruption) HandleCancel(context.Context) {
	_ = i.server.Conn().SetDeadline(time.Now().Add(obeysWithin)) // of a connection that is closed: reading says so

	interrupt(i.server)
}

// HandleUnwatchAfterCancel is called when the query has ended, and HandleCancel has.
func (i interruption) HandleUnwatchAfterCancel() { _ = i.server.Conn().SetDeadline(time.Time{}) }
