package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"redrive/internal/store/db"
)

// wire is a connection to the server. Statements whose results are not needed at once wait, and
// travel together with the next one that is: one trip for all of them. One goroutine uses it.
type wire struct {
	server   *pgconn.PgConn
	prepared map[string]string // names of the prepared statements, by their texts and types
	named    int               // names given so far
	waiting  []statement
	trips    int64 // round trips so far
}

// statement is one with its arguments, as they travel.
type statement struct {
	text  string
	types []uint32 // of the arguments
	args  [][]byte // in the format of their types; nil: NULL
	want  int      // rows that it has to change, or [db.AnyNumber]
	plain bool     // it is parsed each time, as what has no plan
}

// control is a statement that begins or ends a transaction.
func control(text string) statement { return statement{text: text, want: db.AnyNumber, plain: true} }

// key names the statement among those that are prepared: a text is prepared again for
// arguments of other types.
func (s *statement) key() string { return s.text + "\x00" + fmt.Sprint(s.types) }

// formats are those in which the arguments travel.
func (s *statement) formats() []int16 {
	formats := make([]int16, len(s.types))
	for i, t := range s.types {
		if t == typeBytes {
			formats[i] = binary
		}
	}

	return formats
}

// newStatement prepares a text and its arguments for the journey.
func newStatement(want int, text string, args []any) (statement, error) {
	s := statement{text: text, want: want, types: make([]uint32, len(args)), args: make([][]byte, len(args))}
	for i, arg := range args {
		var err error

		s.types[i], s.args[i], err = encode(arg)
		if err != nil {
			return s, fmt.Errorf("argument %d of %q: %w", i+1, text, err)
		}
	}

	return s, nil
}

// later lets a statement wait for the next trip.
func (w *wire) later(s statement) { w.waiting = append(w.waiting, s) }

// exec sends everything that waits, followed by a statement, and returns how many rows that
// one changed.
func (w *wire) exec(ctx context.Context, s statement) (int64, error) {
	t, err := w.travel(ctx, s)
	if err != nil {
		return 0, err
	}

	tag, err := t.result.Close()
	if err != nil {
		_ = t.end() // it says again what went wrong
		return 0, err
	}

	return tag.RowsAffected(), t.end()
}

// query sends everything that waits, followed by a query, whose rows are read one by one: no
// other statement can travel until they are closed.
func (w *wire) query(ctx context.Context, s statement) (driver.Rows, error) {
	t, err := w.travel(ctx, s)
	if err != nil {
		return nil, err
	}

	return &rows{trip: t, fields: columnsOf(t.result)}, nil
}

// flush sends everything that waits.
func (w *wire) flush(ctx context.Context) error {
	if len(w.waiting) == 0 {
		return nil
	}

	last := w.waiting[len(w.waiting)-1]
	w.waiting = w.waiting[:len(w.waiting)-1]

	changed, err := w.exec(ctx, last)
	if err == nil {
		err = last.check(changed)
	}

	return err
}

// trip is a round trip whose last result is being read.
type trip struct {
	pipeline *pgconn.Pipeline
	result   *pgconn.ResultReader
}

// end ends the trip when its last result was read.
func (t *trip) end() error { return t.pipeline.Close() }

// travel sends everything that waits, followed by a statement, and reads all results but the
// last. The statements after one that failed are not run.
func (w *wire) travel(ctx context.Context, last statement) (*trip, error) {
	all := append(w.waiting, last)
	w.waiting = nil
	w.trips++

	// Send. A statement is prepared the first time.
	t := &trip{pipeline: w.server.StartPipeline(ctx)}
	fresh := make([]bool, len(all))
	for i := range all {
		s := &all[i]
		if s.plain {
			t.pipeline.SendQueryParams(s.text, nil, nil, nil, nil)
			continue
		}

		name, known := w.prepared[s.key()]
		if !known {
			w.named++
			name = "s" + strconv.Itoa(w.named)
			w.prepared[s.key()], fresh[i] = name, true
			t.pipeline.SendPrepare(name, s.text, s.types)
		}

		t.pipeline.SendQueryPrepared(name, s.args, s.formats(), nil)
	}

	err := t.pipeline.Sync()
	if err != nil {
		w.forget(all, fresh, 0)
		return nil, errors.Join(err, t.end())
	}

	// Receive.
	for i := range all {
		if fresh[i] {
			_, err = t.pipeline.GetResults()
		}

		if err == nil {
			err = t.receive(&all[i], i == len(all)-1)
		}

		if err != nil {
			w.forget(all, fresh, i)
			_ = t.end() // it says again what went wrong

			if i < len(all)-1 {
				err = &earlier{err}
			}

			return nil, err
		}
	}

	return t, nil
}

// earlier is the error of a statement that had waited, met by one that came later.
type earlier struct{ error }

func (e *earlier) Unwrap() error { return e.error }

// receive takes the result of a statement: the last one is left to be read.
func (t *trip) receive(s *statement, last bool) error {
	got, err := t.pipeline.GetResults()
	if err != nil {
		return err
	}

	result, ok := got.(*pgconn.ResultReader)
	if !ok {
		return fmt.Errorf("%q: the server answered with %T", s.text, got)
	}

	t.result = result
	if last {
		return nil
	}

	tag, err := result.Close()
	if err != nil {
		return err
	}

	return s.check(tag.RowsAffected())
}

// forget forgets the statements that were to be prepared behind one that failed, and that one:
// the server has skipped them.
func (w *wire) forget(all []statement, fresh []bool, failed int) {
	for i := failed; i < len(all); i++ {
		if fresh[i] {
			delete(w.prepared, all[i].key())
		}
	}
}

// check says what is wrong with the number of rows that the statement changed.
func (s *statement) check(changed int64) error {
	if s.want == db.AnyNumber || changed == int64(s.want) {
		return nil
	}

	return fmt.Errorf("%w: %d rows changed instead of %d: %s", errMissed, changed, s.want, s.text)
}

// errMissed says that a statement changed another number of rows than it had to: the database
// is not as this process knows it.
var errMissed = errors.New("another program wrote to the database")

// rows are the rows of a query.
type rows struct {
	trip   *trip
	fields []column
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
	if !r.trip.result.NextRow() {
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

	return nil
}

// Close reads past the rows that are left.
func (r *rows) Close() error {
	if r.closed {
		return nil
	}

	r.closed = true

	_, err := r.trip.result.Close()
	if err != nil {
		_ = r.trip.end() // it says again what went wrong
		return err
	}

	return r.trip.end()
}

// script runs statements without arguments, which are sent as they are.
func (w *wire) script(ctx context.Context, text string) error {
	err := w.flush(ctx)
	if err != nil {
		return err
	}

	w.trips++

	return script(ctx, w.server, text)
}

// finish ends a transaction of package sql. One that has not begun yet never does.
func (w *wire) finish(text string) error {
	if w.server.TxStatus() == 'I' {
		w.waiting = nil
		return nil
	}

	return w.script(context.Background(), text)
}
