package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
	return commitOrRollBack(c, func() error { return do(&Tx{conn: c}) })
}

// commitOrRollBack commits what do writes in the transaction of a connection. What fails is
// rolled back, also by a panic: the connection is never left in the transaction.
func commitOrRollBack(c Conn, do func() error) (err error) {
	panics := true
	defer func() {
		if panics {
			_ = c.Rollback(nil) // the panic says what is wrong
		}
	}()

	err = do()
	if err == nil {
		err = c.Commit()
	}

	panics = false

	if err != nil {
		err = errors.Join(err, c.Rollback(err))
	}

	return err
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
func (t *Tx) Run(query string, args ...any) error {
	return t.send(Statement{Query: query, Args: args, Want: AnyNumber})
}

// ExecExactly runs a statement that has to change exactly n rows. It may run later, as
// [Conn.Send] says.
func (t *Tx) ExecExactly(n int, query string, args ...any) error {
	return t.send(Statement{Query: query, Args: args, Want: n})
}

// Ask calls each for the number in every row of a query, not later than the commit: only what
// becomes known after the commit (see [Participant]) can depend on it. Nothing waits for the
// answer, unlike that of Query.
func (t *Tx) Ask(query string, each func(n int64), args ...any) error {
	return t.send(Statement{Query: query, Args: args, Want: AnyNumber, Numbers: each})
}

func (t *Tx) send(s Statement) error {
	if err := t.writeWaiting(); err != nil {
		return err
	}

	s.Args = clean(s.Args)

	return t.conn.Send(s)
}

// Grew notes that an operation writes so many rows more than it said, roughly.
func (t *Tx) Grew(rows int) { t.grew += rows }

// Wrote notes that the transaction proves that the disk can be written.
func (t *Tx) Wrote() { t.wrote = true }

// Touch notes that something changed that pages show, although no job moved.
func (t *Tx) Touch() { t.touched = true }

// Touched reports whether Touch was called.
func (t *Tx) Touched() bool { return t.touched }

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
