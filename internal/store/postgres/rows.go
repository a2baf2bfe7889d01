package postgres

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
)

// rows are the rows of a query. The result is always one row ahead of what was read.
type rows struct {
	wire   *wire
	trip   *trip
	fields []column
	alone  bool // the query is in no transaction, which a cancelled one would end

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

	cancelled := false
	if !r.ended && r.alone {
		cancelled = r.cancel()
	}

	_, err := r.trip.result.Close()
	if err == nil {
		return r.trip.end()
	}

	_ = r.trip.end() // it says again what went wrong
	if cancelled && codeOf(err) == queryCancelled {
		return nil
	}

	return err
}

// fewRows are read in less time than it takes to ask the server to stop.
const fewRows = 20

// cancel asks the server to stop sending. The request has reached the process of the server when
// CancelRequest returns, so that it cannot meet a later query.
func (r *rows) cancel() bool {
	ctx, cancel := context.WithTimeout(context.Background(), tryFor)
	defer cancel()

	return r.wire.server.CancelRequest(ctx) == nil
}

// queryCancelled is the code of the error about a query that was cancelled.
const queryCancelled = "57014"
