package postgres

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"redrive/internal/store/db"
)

// wire is a connection to the server. Statements whose results are not needed at once wait, and
// travel together with the next one that is: one trip for all of them. One goroutine uses it.
type wire struct {
	endpoint *endpoint
	server   *pgconn.PgConn

	prepared map[string]string // names of the prepared statements, by their texts and types
	order    []string          // in which they were prepared, also those that were not in the end
	named    int               // names given so far

	waiting []statement
	trips   int64 // round trips so far
}

// mostPrepared is how many statements a connection keeps prepared. The server holds a plan of
// each in its memory, and lists whose columns are not of one type are a text of their own for each
// number of rows.
const mostPrepared = 400

// statement is one with its arguments, as they travel.
type statement struct {
	text  string
	types []uint32 // of the arguments
	args  [][]byte // in the format of their types; nil: NULL
	want  int      // rows that it has to change, or [db.AnyNumber]
	plain bool     // it is parsed each time, as what has no plan

	listed bool // its arguments are the columns of a list of rows

	numbers func(int64) // gets the number in each row; nil: its rows are read by others, or it has none
}

// control is a statement of the connection, such as one that begins or ends a transaction.
func control(text string) statement { return statement{text: text, want: db.AnyNumber, plain: true} }

// key names the statement among those that are prepared: a text is prepared again for
// arguments of other types.
func (s *statement) key() string {
	key := make([]byte, 0, len(s.text)+1+4*len(s.types))
	key = append(key, s.text...)
	key = append(key, 0)

	for _, t := range s.types {
		key = binary.BigEndian.AppendUint32(key, t)
	}

	return string(key)
}

// formats are those in which the arguments travel.
func (s *statement) formats() []int16 {
	formats := make([]int16, len(s.types))
	for i, t := range s.types {
		formats[i] = formatOf(t)
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
func (w *wire) exec(ctx context.Context, s statement) (changed int64, err error) {
	err = w.run(s, func(all []statement) error {
		t, err := w.travel(ctx, all)
		if err != nil {
			return err
		}

		changed, err = s.read(t.result)
		if err != nil {
			_ = t.end() // it says again what went wrong
			return err
		}

		return t.end()
	})

	return changed, err
}

// query sends everything that waits, followed by a query, whose rows are read one by one: no
// other statement can travel until they are closed.
func (w *wire) query(ctx context.Context, s statement) (found driver.Rows, err error) {
	alone := w.isIdle() && len(w.waiting) == 0

	err = w.run(s, func(all []statement) error {
		t, err := w.travel(ctx, all)
		if err != nil {
			return err
		}

		// What is wrong with the query, or with the connection, often comes in place of the first row.
		r := &rows{wire: w, trip: t, fields: columnsOf(t.result), asked: ctx, alone: alone}
		found = r
		r.step()

		if r.ended {
			return r.Close()
		}

		return nil
	})
	if err != nil {
		return nil, unlessLeft(ctx, err)
	}

	return found, nil
}

// run lets a trip of everything that waits and of a statement take place. When it turns out that
// the names of statements mean nothing here, the trip is made again without names, unless a
// transaction had begun before, which is lost.
func (w *wire) run(last statement, trip func(all []statement) error) error {
	all := append(w.waiting, last)
	w.waiting = nil
	began := !w.isIdle()

	err := trip(all)
	if !isUnprepared(err) {
		return err
	}

	w.endpoint.parses.Store(true)
	if began {
		return err
	}

	if !w.isIdle() {
		_, err = w.exec(context.Background(), control("ROLLBACK"))
		if err != nil {
			return err
		}
	}

	return trip(all)
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

// travel sends statements, and reads all results but the last. The statements after one that
// failed are not run.
func (w *wire) travel(ctx context.Context, all []statement) (*trip, error) {
	w.trips++

	t := &trip{pipeline: w.server.StartPipeline(ctx)}
	asked := w.send(t.pipeline, all)

	err := t.pipeline.Sync()
	if err != nil {
		w.forget(asked)
		return nil, errors.Join(err, t.end())
	}

	for i := range all {
		err = t.receive(&all[i], &asked[i], i == len(all)-1)
		if err == nil {
			continue
		}

		w.forget(asked)
		_ = t.end() // it says again what went wrong

		if all[i].text == beginWriting {
			err = asReadOnly(err)
		}

		if i < len(all)-1 {
			err = &earlier{err}
		}

		return nil, err
	}

	return t, nil
}

// preparation is what has to be answered before the result of a statement.
type preparation struct {
	key     string // of the statement that is prepared; empty: it is not, or that was answered
	forgets bool   // the server is told to forget another one before
}

// send puts statements into the pipeline, and returns what is asked before each of them.
func (w *wire) send(to *pgconn.Pipeline, all []statement) []preparation {
	asked := make([]preparation, len(all))
	for i := range all {
		s := &all[i]
		if s.plain || w.endpoint.parses.Load() {
			to.SendQueryParams(s.text, s.args, s.types, s.formats(), nil)
			continue
		}

		key := s.key()
		name, known := w.prepared[key]
		if !known {
			asked[i].forgets = w.forgetOldest(to)
			asked[i].key = key

			w.named++
			name = "s" + strconv.Itoa(w.named)
			w.prepared[key] = name
			w.order = append(w.order, key)
			to.SendPrepare(name, s.text, s.types)
		}

		to.SendQueryPrepared(name, s.args, s.formats(), nil)
	}

	return asked
}

// forgetOldest makes room for another statement. It reports whether the server is told to forget
// one for that.
func (w *wire) forgetOldest(to *pgconn.Pipeline) bool {
	for len(w.prepared) >= mostPrepared {
		oldest := w.order[0]
		w.order = w.order[1:]

		name, known := w.prepared[oldest]
		if !known { // it was never prepared
			continue
		}

		delete(w.prepared, oldest)
		to.SendDeallocate(name)

		return true
	}

	return false
}

// earlier is the error of a statement that had waited, met by one that came later.
type earlier struct{ error }

func (e *earlier) Unwrap() error { return e.error }

// receive takes what was asked before a statement, and its result. The result of the last one is
// left to be read.
func (t *trip) receive(s *statement, asked *preparation, last bool) error {
	for _, waits := range []bool{asked.forgets, asked.key != ""} {
		if !waits {
			continue
		}

		_, err := t.pipeline.GetResults()
		if err != nil {
			return err
		}
	}

	asked.key = ""

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

	changed, err := s.read(result)
	if err != nil {
		return err
	}

	return s.check(changed)
}

// read reads a result to its end, and returns how many rows the statement changed.
func (s *statement) read(result *pgconn.ResultReader) (changed int64, err error) {
	for s.numbers != nil && result.NextRow() {
		n, err := strconv.ParseInt(string(result.Values()[0]), 10, 64)
		if err != nil {
			_, end := result.Close()
			return 0, errors.Join(err, end)
		}

		s.numbers(n)
	}

	tag, err := result.Close()

	return tag.RowsAffected(), err
}

// forget forgets the statements that were not prepared: the server has skipped them.
func (w *wire) forget(asked []preparation) {
	for _, p := range asked {
		delete(w.prepared, p.key)
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

// script runs statements without arguments, which are sent as they are.
func (w *wire) script(ctx context.Context, text string) error {
	err := w.flush(ctx)
	if err != nil {
		return err
	}

	w.trips++

	return script(ctx, w.server, text)
}

// isIdle reports whether no transaction has begun on the server.
func (w *wire) isIdle() bool { return w.server.TxStatus() == 'I' }

// finish ends a transaction of package sql. One that has not begun yet never does.
func (w *wire) finish(text string) error {
	if w.isIdle() {
		w.waiting = nil
		return nil
	}

	return w.script(context.Background(), text)
}
