package db

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// Reader runs queries beside the writer, on the engine's pool.
type Reader struct {
	engine   Engine
	health   *Health
	prepared sync.Map // text of a query to its *sql.Stmt, for every connection of the pool
}

// NewReader returns a reader of the engine.
func NewReader(engine Engine, health *Health) *Reader { return &Reader{engine: engine, health: health} }

// In returns a source whose queries end with ctx.
func (r *Reader) In(ctx context.Context) Source { return reading{ctx: ctx, reader: r} }

// Consistently runs do within one read transaction: all its queries see the same
// commit.
func (r *Reader) Consistently(ctx context.Context, do func(Source) error) (err error) {
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

func (r *Reader) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt, ok := r.prepared.Load(query); ok {
		return stmt.(*sql.Stmt), nil
	}
	stmt, err := r.engine.Reads().PrepareContext(ctx, r.engine.Text(query))
	if err != nil {
		return nil, err
	}
	if first, loaded := r.prepared.LoadOrStore(query, stmt); loaded {
		return first.(*sql.Stmt), stmt.Close()
	}
	return stmt, nil
}

// reading is a source for one caller, on the pool or inside one transaction.
type reading struct {
	ctx    context.Context
	reader *Reader
	tx     *sql.Tx
}

func (r reading) Query(query string, each func(*sql.Rows) error, args ...any) error {
	stmt, err := r.reader.prepare(r.ctx, query)
	if err != nil {
		return r.reader.report(err)
	}
	if r.tx != nil {
		stmt = r.tx.StmtContext(r.ctx, stmt)
	}
	return r.reader.report(Scan(stmt.QueryContext(r.ctx, args...))(each))
}
