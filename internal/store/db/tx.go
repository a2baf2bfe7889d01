package db

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Tx is one transaction of the writer.
//
// It owns what its participants gather while it is under way (see [Slot]).
type Tx struct {
	conn     Conn
	waiting  func(*Tx) error // writes rows before the next statement; nil: none wait
	gathered []gathered
	undone   []func() // called when the transaction has failed

	wrote   bool
	touched bool
	grew    int
}

// Undone lets do be called if the transaction fails, after the rollback. It is also called
// when a panic keeps a commit from being made known.
func (t *Tx) Undone(do func()) { t.undone = append(t.undone, do) }

// rolledBack makes known that the transaction has failed.
func (t *Tx) rolledBack() {
	for _, do := range t.undone {
		do()
	}

	t.free()
}

// free gives back what was gathered.
func (t *Tx) free() {
	for _, g := range t.gathered {
		g.free()
	}

	t.gathered = nil
}

// Transact runs do in one transaction on a connection beside the writer's.
func Transact(ctx context.Context, c Conn, do func(*Tx) error) error {
	if err := c.Begin(ctx); err != nil {
		return err
	}

	err := do(&Tx{conn: c})
	if err == nil {
		err = c.Commit()
	}

	if err != nil {
		return errors.Join(err, c.Rollback(err))
	}

	return nil
}

// Later lets write run before the next statement, so that rows that come one
// after the other are written together and every statement sees them all the same.
func (t *Tx) Later(write func(*Tx) error) { t.waiting = write }

// writeWaiting writes the rows that wait.
func (t *Tx) writeWaiting() error {
	write := t.waiting
	if write == nil {
		return nil
	}

	t.waiting = nil

	return write(t)
}

// Exec runs a statement at once and returns the number of rows that it changed. Only what
// needs that number calls it: see Run and ExecExactly. Texts among the arguments are
// cleaned, as those of all statements.
func (t *Tx) Exec(query string, args ...any) (int64, error) {
	if err := t.writeWaiting(); err != nil {
		return 0, err
	}

	return t.conn.Exec(query, clean(args)...)
}

// Query calls each for every row.
func (t *Tx) Query(query string, each func(*sql.Rows) error, args ...any) error {
	if err := t.writeWaiting(); err != nil {
		return err
	}
	return t.Written().Query(query, each, args...)
}

// Written is a source that sees what is written, and not the rows that wait (see
// Later).
func (t *Tx) Written() Source { return written{t.conn} }

type written struct{ conn Conn }

func (w written) Query(query string, each func(*sql.Rows) error, args ...any) error {
	return w.conn.Query(query, each, clean(args)...)
}

// Run runs a statement, however many rows it changes. It may run later, as [Conn.Send]
// says.
func (t *Tx) Run(query string, args ...any) error { return t.send(AnyNumber, query, args) }

// ExecExactly runs a statement that has to change exactly n rows. It may run later, as
// [Conn.Send] says.
func (t *Tx) ExecExactly(n int, query string, args ...any) error { return t.send(n, query, args) }

func (t *Tx) send(want int, query string, args []any) error {
	if err := t.writeWaiting(); err != nil {
		return err
	}
	return t.conn.Send(want, query, clean(args)...)
}

// Grew notes that an operation writes so many rows more than it said, roughly.
func (t *Tx) Grew(rows int) { t.grew += rows }

// Wrote notes that the transaction proves that the disk can be written.
func (t *Tx) Wrote() { t.wrote = true }

// Touch notes that something changed that pages show, although no job moved.
func (t *Tx) Touch() { t.touched = true }

// Touched reports whether Touch was called.
func (t *Tx) Touched() bool { return t.touched }

// Batch gathers rows for one statement with a list of VALUES, which takes half the
// time of one statement for each row. Its placeholders have no numbers, because
// the driver would look each of them up by its name.
type Batch struct {
	head, row, tail string
	columns         int
	common          int // how many of the arguments come before the rows
	args            []any
}

// batchRows is how many rows wait at most.
const batchRows = 64

// NewBatch returns a batch for the statement with a list of VALUES between head
// and tail.
func NewBatch(columns int, head, tail string) Batch {
	return Batch{head: head, row: "(" + strings.Repeat("?, ", columns-1) + "?)", tail: tail, columns: columns}
}

// Common gives the values of the placeholders in the head, while no row waits.
func (b *Batch) Common(values ...any) {
	b.Reset()
	b.common = len(values)
	b.args = append(b.args, values...)
}

// Add gathers a row, and writes the rows that wait once there are enough.
func (b *Batch) Add(t *Tx, values ...any) error {
	b.args = append(b.args, values...)
	if b.rows() < batchRows {
		return nil
	}

	return b.Flush(t)
}

// rows is how many rows wait.
func (b *Batch) rows() int { return (len(b.args) - b.common) / b.columns }

// Flush writes the rows that wait. Every one of them has to be written.
func (b *Batch) Flush(t *Tx) error {
	waiting := b.rows()
	if waiting == 0 {
		return nil
	}

	query := b.head + strings.Repeat(b.row+", ", waiting-1) + b.row + b.tail
	err := t.ExecExactly(waiting, query, b.args...)
	b.cut(b.common)

	return err
}

// Reset forgets the rows that wait, and the texts in them: they can be large, and
// the next rows may come much later.
func (b *Batch) Reset() {
	b.cut(0)
	b.common = 0
}

func (b *Batch) cut(n int) {
	clear(b.args[n:])
	b.args = b.args[:n]
}

// AddSums writes a row for each sum, in the order of the rows' first columns:
// several writers would otherwise wait for one another in a circle. For a sum
// that needs none, row returns nil.
func AddSums[K comparable, V any](t *Tx, to Batch, sums map[K]V, row func(K, V) []any) error {
	if len(sums) == 0 {
		return nil
	}

	rows := make([][]any, 0, len(sums))
	for k, sum := range sums {
		if values := row(k, sum); values != nil {
			rows = append(rows, values)
		}
	}

	slices.SortFunc(rows, compareRows)

	for _, values := range rows {
		if err := to.Add(t, values...); err != nil {
			return err
		}
	}

	return to.Flush(t)
}

// compareRows orders rows by their numbers and texts, from the first column on.
func compareRows(a, b []any) int {
	for i := range a {
		order := 0
		switch value := a[i].(type) {
		case int64:
			order = cmp.Compare(value, b[i].(int64))
		case string:
			order = cmp.Compare(value, b[i].(string))
		}

		if order != 0 {
			return order
		}
	}

	return 0
}

// Exactly is a step that runs a statement, which has to change n rows.
func Exactly(n int, query string, args ...any) func(*Tx) error {
	return func(t *Tx) error { return t.ExecExactly(n, query, args...) }
}

// Any is a step that runs a statement, however many rows it changes.
func Any(query string, args ...any) func(*Tx) error {
	return func(t *Tx) error { return t.Run(query, args...) }
}

// Steps takes steps one after the other, until one fails.
func Steps[T any](with T, steps ...func(T) error) error {
	for _, step := range steps {
		if err := step(with); err != nil {
			return err
		}
	}

	return nil
}

// Wrap says what failed, if anything did.
func Wrap(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)
}
