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

	cancelled := !r.ended && r.alone && interrupt(r.wire.server)

	_, err := r.trip.result.Close()
	if err == nil {
		return r.trip.end()
	}

	_ = r.trip.end() // it says again what went wrong
	if cancelled && codeOf(err) == queryCancelled {
		return nil
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
const obeysWithin = time.Second

// interrupt asks the server to end the query of a connection. The request has reached the process of the
// server when interrupt returns true, so that it cannot meet a later query.
func interrupt(server *pgconn.PgConn) bool {
	ctx, cancel := context.WithTimeout(context.Background(), obeysWithin)
	defer cancel()

	err := server.CancelRequest(ctx)

	return err == nil && ctx.Err() == nil // it waits no longer than that, and does not say so
}

// interruption ends a query whose caller waits no longer. The connection can be used again, unless the
// server does not obey: to connect costs the server a process.
type interruption struct {
	server  *pgconn.PgConn
	arrived bool // the request to end the query
}

// interrupting is the interruption of the queries of a connection.
func interrupting(server *pgconn.PgConn) ctxwatch.Handler { return &interruption{server: server} }

// HandleCancel is called at the end of the context of a query.
func (i *interruption) HandleCancel(context.Context) {
	_ = i.server.Conn().SetDeadline(time.Now().Add(obeysWithin)) // of a connection that is closed: reading says so
	i.arrived = interrupt(i.server)
}

// HandleUnwatchAfterCancel is called when the query has ended, and HandleCancel has.
func (i *interruption) HandleUnwatchAfterCancel() {
	if !i.arrived {
		_ = i.server.Conn().Close() // the request could meet the next query
		return
	}

	_ = i.server.Conn().SetDeadline(time.Time{})
}
