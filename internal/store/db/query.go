package db

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"redrive/internal/store/health"
)

// readerEngine is what a reader needs of an engine.
type readerEngine interface {
	Connections
	Dialect
	Search() Search
}

// Reader runs queries beside the writer, on the engine's pool.
type Reader struct {
	engine   readerEngine
	health   *health.Health
	prepared *statements   // for every connection of the pool
	snapshot chan struct{} // one place for each transaction that reads
}

// NewReader returns a reader of the engine that keeps so many texts of queries
// prepared.
func NewReader(engine readerEngine, health *health.Health, texts int) *Reader {
	// A query in a snapshot has one connection of the pool and may need another to
	// be prepared, so one is left to that.
	snapshots := max(1, engine.Reads().Stats().MaxOpenConnections-1)
	return &Reader{engine: engine, health: health, prepared: newStatements(texts), snapshot: make(chan struct{}, snapshots)}
}

// InWindows reports whether lists are read window by window ([Dialect]).
func (r *Reader) InWindows() bool { return r.engine.ReadsInWindows() }

// In returns a source whose queries end with ctx.
func (r *Reader) In(ctx context.Context) Source { return reading{ctx: ctx, reader: r} }

// Consistently runs do within one read transaction: all its queries see the same
// commit.
func (r *Reader) Consistently(ctx context.Context, do func(Source) error) (err error) {
	select {
	case r.snapshot <- struct{}{}:
		defer func() { <-r.snapshot }()
	case <-ctx.Done():
		return ctx.Err()
	}

	tx, err := r.engine.Reads().BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return r.report(err)
	}

	defer func() {
		if end := tx.Rollback(); end != nil && !errors.Is(end, sql.ErrTxDone) {
			err = errors.Join(err, end)
		}
	}()

	return do(reading{ctx: ctx, reader: r, tx: tx})
}

func (r *Reader) report(err error) error { return r.health.Report(r.engine.Fault(err)) }

// reportOf is report for an error of a query. What is wrong with the index is no
// trouble of the database.
func (r *Reader) reportOf(query string, err error) error {
	if err == nil {
		return nil
	}

	if fault, ok := r.engine.Search().Fault(query, err); ok {
		return fault
	}

	return r.report(err)
}

func (r *Reader) prepare(ctx context.Context, query string) (*statement, error) {
	return r.prepared.use(query, func() (*sql.Stmt, error) { return r.engine.Reads().PrepareContext(ctx, r.engine.Text(query)) })
}

// reading is a source for one caller, on the pool or inside one transaction.
type reading struct {
	ctx    context.Context
	reader *Reader
	tx     *sql.Tx
}

func (r reading) Query(query string, each func(*sql.Rows) error, args ...any) (err error) {
	prepared, err := r.reader.prepare(r.ctx, query)
	if err != nil {
		return r.reader.reportOf(query, err)
	}
	defer func() { err = cmp.Or(err, r.reader.report(r.reader.prepared.done(prepared))) }()

	stmt := prepared.Stmt
	if r.tx != nil {
		stmt = r.tx.StmtContext(r.ctx, stmt)
	}

	return r.reader.reportOf(query, Scan(stmt.QueryContext(r.ctx, clean(args)...))(each))
}

// All reads a value from each row. fields are the places in a value to which the
// columns go.
func All[T any](src Source, query string, fields func(*T) []any, args ...any) (all []T, err error) {
	err = src.Query(query, func(rows *sql.Rows) error {
		all = append(all, *new(T)) // in place: a value of its own would cost each row an allocation
		last := len(all) - 1

		err := rows.Scan(fields(&all[last])...)
		if err != nil {
			all = all[:last]
		}

		return err
	}, args...)

	return all, err
}

// Row reads the only row of a query, and reports whether there is one.
func Row(src Source, query string, fields []any, args ...any) (found bool, err error) {
	err = src.Query(query, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(fields...)
	}, args...)

	return found, err
}

// Value reads the only value of a query; the zero value when there is none.
func Value[T any](src Source, query string, args ...any) (v T, err error) {
	_, err = Row(src, query, []any{&v}, args...)
	return v, err
}

// Map reads keys and their values, the two columns of a query.
func Map[K comparable, V any](src Source, query string, args ...any) (map[K]V, error) {
	all := map[K]V{}
	err := src.Query(query, func(rows *sql.Rows) error {
		var k K
		var v V
		if err := rows.Scan(&k, &v); err != nil {
			return err
		}

		all[k] = v

		return nil
	}, args...)

	return all, err
}

// Scan takes what a query returned and gives each row to a function.
func Scan(rows *sql.Rows, err error) func(func(*sql.Rows) error) error {
	return func(each func(*sql.Rows) error) error {
		if err != nil {
			return err
		}

		defer rows.Close() // also when each panics: the connection could not be closed otherwise

		for rows.Next() {
			err := each(rows)
			if errors.Is(err, ErrEnough) {
				return rows.Close()
			}

			if err != nil {
				return errors.Join(err, rows.Close())
			}
		}

		return errors.Join(rows.Err(), rows.Close())
	}
}

// ErrEnough is returned for a row to end a query of which enough was read. The
// query has no error then.
var ErrEnough = errors.New("enough was read")

// Patience is how long a list may search, which could be the whole table. Only tests
// change it.
var Patience = 2 * time.Second

// Window is how many jobs one query looks at of a list that is read window by window. Only tests change
// it.
var Window = 10_000

// finishWithin is how long it may take to finish what has begun when the time of a list is over. It takes
// milliseconds unless the database is in trouble.
const finishWithin = 5 * time.Second

// Finishing is a context in which a small query of a list is finished although its deadline comes
// meanwhile. When ctx is cancelled, it ends at once.
func Finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}

	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(0, time.Until(deadline))+finishWithin)
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})

	return longer, func() { stop(); cancel() }
}

// TimedOut tells the end of a deadline from other errors.
func TimedOut(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("search: %w", ctx.Err())
	}
	return err
}
