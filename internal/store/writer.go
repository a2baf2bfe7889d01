package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	lib "modernc.org/sqlite/lib"

	"redrive/internal/job"
)

// The bounds of one transaction. What does not fit waits for the next one.
const (
	maxOps    = 256
	maxWeight = 2000 // rows that the operations write, roughly
	heavy     = 250  // one that writes so many has a transaction of its own
)

// op is one caller's operation in the queue of the writer.
type op interface {
	run(*tx) error // again after a rollback, alone; must then give its result anew
	answer(error)  // exactly once, after the commit or when there will be none
	weight() int
}

// call is an op with a result of type T.
type call[T any] struct {
	do    func(*tx) (T, error)
	rows  int
	value T
	no    error // the operation's own refusal; nothing was written
	done  chan result[T]
}

type result[T any] struct {
	value T
	err   error
}

func (c *call[T]) weight() int { return c.rows }

func (c *call[T]) run(t *tx) error {
	var err error
	c.value, err = c.do(t)
	c.no = nil
	if refused(err) {
		c.no, err = err, nil
	}
	return err
}

func (c *call[T]) answer(err error) {
	if err == nil {
		err = c.no
	}
	if err != nil {
		c.done <- result[T]{err: err}
		return
	}
	c.done <- result[T]{value: c.value}
}

// write queues an operation and waits for its commit, or for the end of ctx:
// then the operation still happens, unseen. The result travels through the
// channel, so a caller who left shares no memory with the writer.
func write[T any](ctx context.Context, w *writer, rows int, do func(*tx) (T, error)) (T, error) {
	c := &call[T]{do: do, rows: rows, done: make(chan result[T], 1)}
	if err := w.queue(c); err != nil {
		return c.value, err
	}
	select {
	case r := <-c.done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("wait for the database: %w", ctx.Err())
	}
}

// writer owns the one connection that writes, and the queue before it.
type writer struct {
	store  *Store
	db     *sql.DB
	conn   *sql.Conn
	stmts  map[string]*sql.Stmt
	rollup rollup
	counts sync.RWMutex // for others who read the rollup: queued, letters, opened, groups, fingerprints

	checkpoints *checkpointer

	mu       sync.Mutex
	waiting  []op
	strained bool // the newest transaction was a heavy one
	closed   bool
	tries    atomic.Int64  // at a database that was busy
	wake     chan struct{} // one slot: something is waiting, or the queue was closed
	closing  chan struct{}
	ended    sync.WaitGroup
}

func openWriter(ctx context.Context, s *Store, dsn string, outdated bool) (*writer, error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	w := &writer{
		store: s, db: db, stmts: map[string]*sql.Stmt{},
		wake: make(chan struct{}, 1), closing: make(chan struct{}),
	}
	if outdated {
		if err := migrate(ctx, db); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	if w.conn, err = db.Conn(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return w, nil
}

func (w *writer) start() { w.ended.Go(w.loop) }

// stop refuses new operations and waits until the queued ones are done.
func (w *writer) stop() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	close(w.closing)
	w.ended.Wait()
}

func (w *writer) close() error {
	var errs []error
	for _, stmt := range w.stmts {
		errs = append(errs, stmt.Close())
	}
	w.stmts = nil
	if w.conn != nil {
		errs = append(errs, w.conn.Close())
		w.conn = nil
	}
	return errors.Join(append(errs, w.db.Close())...)
}

func (w *writer) queue(o op) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errClosed
	}
	w.waiting = append(w.waiting, o)
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return nil
}

func weightOf(ops []op) (rows int) {
	for _, o := range ops {
		rows += o.weight()
	}
	return rows
}

// next takes the operations of one transaction, in the order of their arrival: one
// that is heavy alone, all others together. While both kinds wait they take turns,
// so that who has little to write waits for one who writes much, not for two.
func (w *writer) next() (batch []op, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		return nil, w.closed
	}
	much := isHeavy(w.waiting[0]) && !(w.strained && slices.ContainsFunc(w.waiting, isLight))
	var taken, left []op
	weight := 0
	for _, o := range w.waiting {
		fits := len(taken) == 0 || !much && len(taken) < maxOps && weight+o.weight() <= maxWeight
		if isHeavy(o) == much && fits {
			taken, weight = append(taken, o), weight+o.weight()
		} else {
			left = append(left, o)
		}
	}
	w.waiting, w.strained = left, much
	return taken, w.closed
}

func isHeavy(o op) bool { return o.weight() >= heavy }

func isLight(o op) bool { return !isHeavy(o) }

func (w *writer) loop() {
	for {
		batch, closed := w.next()
		if len(batch) > 0 {
			w.process(batch)
			continue
		}
		if closed {
			return
		}
		select {
		case <-w.wake:
		case <-w.closing:
		case <-w.again():
			_ = w.try() // remembered as the store's problem
		}
	}
}

// process commits a batch and answers it; when that fails for the fault of one
// operation, each is tried alone.
func (w *writer) process(batch []op) {
	err := w.commit(batch)
	if err != nil && len(batch) > 1 && !common(err) {
		for _, o := range batch {
			o.answer(w.commit([]op{o}))
		}
		return
	}
	for _, o := range batch {
		o.answer(err)
	}
}

// common reports whether an error would meet every operation alike.
func common(err error) bool {
	return errors.Is(err, job.ErrBusy) || errors.Is(err, job.ErrBroken) || errors.Is(err, job.ErrReadOnly)
}

// commit runs the operations in one transaction and makes it known.
func (w *writer) commit(batch []op) error {
	if w.store.isBroken() {
		return w.store.Problem()
	}
	if err := w.begin(); err != nil {
		return w.store.examine(err)
	}
	t := newTx(w)
	err := t.runAll(batch)
	if err == nil {
		err = w.exec("COMMIT")
	}
	if err != nil {
		return w.store.examine(errors.Join(err, w.rollback(err)))
	}
	if t.proven || len(t.changes) > 0 {
		w.store.wrote()
	}
	w.checkpoints.wrote(weightOf(batch))
	t.committed()
	return nil
}

// exec runs a statement that is no operation's own.
func (w *writer) exec(query string) error {
	stmt, err := w.stmt(query)
	if err == nil {
		_, err = stmt.ExecContext(context.Background())
	}
	return err
}

// stmt returns a statement prepared on the writer's connection.
func (w *writer) stmt(query string) (*sql.Stmt, error) {
	if stmt, ok := w.stmts[query]; ok {
		return stmt, nil
	}
	stmt, err := w.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", query, err)
	}
	w.stmts[query] = stmt
	return stmt, nil
}

// The patience with a database that another process keeps busy.
const (
	maxTries  = 10
	firstWait = 5 * time.Millisecond
	maxWait   = 500 * time.Millisecond
)

// begin takes the write lock at once, so that no statement after it can find
// the database busy.
func (w *writer) begin() error {
	for try := 1; ; try++ {
		err := w.exec("BEGIN IMMEDIATE")
		if busy(err) {
			w.tries.Add(1)
		}
		if !busy(err) || try == maxTries || !w.pause(try) {
			return err
		}
	}
}

// pause waits before the next try: twice as long each time, spread by chance
// between half and all of it. It reports false when the store is closing.
func (w *writer) pause(try int) bool {
	wait := min(firstWait<<(try-1), maxWait)
	timer := time.NewTimer(wait/2 + rand.N(wait/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.closing:
		return false
	}
}

// rollback undoes a failed transaction. SQLite has already done so after some
// errors; anything else that keeps it from working breaks the store, because
// the next operation would become part of this transaction.
func (w *writer) rollback(cause error) error {
	err := w.exec("ROLLBACK")
	if err == nil || code(err) == lib.SQLITE_ERROR && endsTransaction(cause) {
		return nil
	}
	return fmt.Errorf("%w: roll back: %w", job.ErrBroken, err)
}

// endsTransaction reports whether SQLite itself may roll back after the error.
func endsTransaction(err error) bool {
	switch primary(err) {
	case lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_NOMEM, lib.SQLITE_BUSY, lib.SQLITE_INTERRUPT:
		return true
	}
	return false
}
