package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"redrive/internal/fault"
)

// The bounds of one transaction. What does not fit waits for the next one.
const (
	maxOps    = 256
	maxWeight = 2000 // rows that the operations write, roughly
	heavy     = 250  // an operation that writes so many has a transaction of its own
)

// maxBytes is what waits at most while the disk is slow: as much as one of the
// largest batches, and as much again of everything else.
const maxBytes = 128 << 20

// Participant takes part in every transaction of a writer. What it gathers of one is in a
// [Slot].
type Participant interface {
	// Flush writes what was gathered of the transaction, just before its commit.
	Flush(t *Tx) error

	// Committed makes known what has become true.
	Committed(t *Tx)
}

// op is one caller's operation in the queue of the writer.
type op struct {
	do      func(*Tx) error // run again, alone, after a rollback; must then give its result again
	size    Size
	refusal error      // its own answer; nothing was written
	done    chan error // one slot: answered exactly once, after the commit or when there will be none
}

// Size is roughly how much an operation writes.
type Size struct {
	Rows  int
	Bytes int // of the texts that it holds while it waits; zero: too few to be counted

	Account string // whose bytes these are; each account has the whole bound for itself
}

// Write runs an operation and waits for its commit, or for the end of ctx. An
// operation that has not begun by then never does; one that has is finished:
// unseen, when it had to queue. rows is roughly how many rows it writes.
func Write[T any](ctx context.Context, w *Writer, rows int, do func(*Tx) (T, error)) (T, error) {
	return WriteLarge(ctx, w, Size{Rows: rows}, do)
}

// WriteLarge is Write for an operation that holds much in memory. While too much
// waits already it is refused at once, with fault.ErrOverloaded.
func WriteLarge[T any](ctx context.Context, w *Writer, size Size, do func(*Tx) (T, error)) (T, error) {
	var result, none T
	o := &op{size: size, done: make(chan error, 1), do: func(t *Tx) (err error) {
		result, err = do(t)
		return err
	}}
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("wait for the database: %w", err)
	}

	leads, err := w.admit(o)
	if err != nil {
		return none, err
	}

	left := ctx.Done()
	if leads {
		w.lead(o)

		left = nil // it is answered
	}

	select {
	case err := <-o.done:
		if err != nil {
			return none, err
		}
		return result, nil
	case <-left:
		w.leave(o)
		return none, fmt.Errorf("wait for the database: %w", ctx.Err())
	}
}

// Do is Write for what gives nothing back.
func (w *Writer) Do(ctx context.Context, rows int, do func(*Tx) error) error {
	_, err := Write(ctx, w, rows, func(t *Tx) (struct{}, error) { return struct{}{}, do(t) })
	return err
}

// Options are what a writer needs to be told.
type Options struct {
	MaxBytes int              // of the operations that wait or are under way; zero: 128 MiB
	Refused  func(error) bool // whether an operation wrote nothing and said no: its answer, not a fault
	Probe    func(*Tx) error  // writes something that changes nothing, to find out whether that is possible

	// CheckEvery is how often a writer that has nothing to do checks the database; zero: each
	// second.
	CheckEvery time.Duration
}

// ErrClosed answers calls that come after the writer was stopped.
var ErrClosed = errors.New("the store is closed")

// Writer owns the one connection that writes, and the queue before it. Who has set
// busy has the connection and the participants to itself.
type Writer struct {
	engine       Engine
	conn         Conn
	health       *Health
	o            Options
	participants []Participant
	unplaced     int // bytes of the largest operation that found no room on the disk; of who has set busy

	mu       sync.Mutex
	waiting  []*op
	bytes    map[string]int // of those that wait and those under way, by account
	busy     bool           // a goroutine has the connection and the participants
	tookMuch bool           // the newest transaction was a heavy one
	shared   bool           // the newest transaction had several operations
	closed   bool
	arrived  chan struct{} // one slot: something is waiting
	ctx      context.Context
	stopping context.CancelFunc
	ended    sync.WaitGroup
}

// NewWriter returns a writer on the engine's connection, which Start starts.
func NewWriter(ctx context.Context, engine Engine, health *Health, o Options) (*Writer, error) {
	conn, err := engine.Writer(ctx)
	if err != nil {
		return nil, err
	}

	o.MaxBytes = cmp.Or(o.MaxBytes, maxBytes)
	o.CheckEvery = cmp.Or(o.CheckEvery, time.Second)
	w := &Writer{engine: engine, conn: conn, health: health, o: o, bytes: map[string]int{}, arrived: make(chan struct{}, 1)}
	w.ctx, w.stopping = context.WithCancel(context.Background())

	return w, nil
}

// Register adds a participant, before Start. Participants are told in the order
// in which they were registered.
func (w *Writer) Register(p Participant) { w.participants = append(w.participants, p) }

// Start begins to take operations. It finds out first whether the database can
// be written. Trouble that can end is remembered and no reason not to start.
func (w *Writer) Start() error {
	err := w.probe()
	if err != nil && !isOne(err, fault.ErrStorageFull, fault.ErrReadOnly, fault.ErrBusy) {
		return err
	}

	w.ended.Go(w.loop)

	return nil
}

// Close refuses new operations, waits until the queued ones are done, and closes
// the connection.
func (w *Writer) Close() error {
	w.mu.Lock()
	w.closed = true
	w.wake()
	w.mu.Unlock()
	w.stopping()
	w.ended.Wait()

	return w.conn.Close()
}

// Probe commits a transaction that takes the database's lock and some room on
// the disk, and changes nothing.
func (w *Writer) Probe(ctx context.Context) error { return w.Do(ctx, 1, w.prove) }

func (w *Writer) prove(t *Tx) error {
	t.Wrote()
	return w.o.Probe(t)
}

// probe does what Probe does, for a caller that has the connection. Room for a small
// write is not the end of the trouble for a client whose job did not fit.
func (w *Writer) probe() error {
	if w.unplaced > 0 && w.engine.Room(w.unplaced) == nil {
		w.unplaced = 0
	}
	return w.commit([]*op{{do: w.prove}})
}

// admit lets an operation lead, or puts it into the queue. One that finds the writer
// idle leads: to wake the loop and to be woken by it would take a quarter of the time
// of a commit. Where many callers come at a time they queue, to share commits.
func (w *Writer) admit(o *op) (leads bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	switch {
	case w.closed:
		return false, ErrClosed
	case !w.hasRoom(o.size):
		return false, fmt.Errorf("%w: %d bytes wait already", fault.ErrOverloaded, w.bytes[o.size.Account])
	}

	w.bytes[o.size.Account] += o.size.Bytes
	if !w.busy && !w.shared && len(w.waiting) == 0 {
		w.busy, w.tookMuch = true, isHeavy(o)
		return true, nil
	}

	w.waiting = append(w.waiting, o)
	w.wake()

	return false, nil
}

// lead commits an operation in its caller's goroutine. A panic in it ends the
// writer: the caller's goroutine may survive it, and what the operation left
// behind would be part of the next transaction.
func (w *Writer) lead(o *op) {
	defer w.release()
	defer func() {
		if p := recover(); p != nil {
			_ = w.report(fmt.Errorf("%w: panic: %v", fault.ErrBroken, p)) // remembered as the problem
			panic(p)
		}
	}()

	w.process([]*op{o})
}

// release lets others have the connection.
func (w *Writer) release() {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.busy = false
	if len(w.waiting) > 0 || w.closed {
		w.wake()
	}
}

// wake lets the loop look what there is to do.
func (w *Writer) wake() {
	select {
	case w.arrived <- struct{}{}:
	default:
	}
}

// Waited reports whether an operation waits for the one that is under way, which
// can end sooner then.
func (w *Writer) Waited() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) > 0
}

// leave takes an operation out of the queue when its caller no longer waits for it.
// One that is under way keeps its place until it has ended.
func (w *Writer) leave(o *op) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if i := slices.Index(w.waiting, o); i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
		w.free(o)
	}
}

// hasRoom reports whether an operation may wait beside those of its account. One alone
// always may. The caller holds the mutex.
func (w *Writer) hasRoom(size Size) bool {
	waiting := w.bytes[size.Account]
	return size.Bytes == 0 || waiting == 0 || waiting+size.Bytes <= w.o.MaxBytes
}

// free gives the bytes of an operation free. The caller holds the mutex.
func (w *Writer) free(o *op) {
	w.bytes[o.size.Account] -= o.size.Bytes
	if w.bytes[o.size.Account] == 0 {
		delete(w.bytes, o.size.Account)
	}
}

// answer ends an operation that was under way, and gives its place free.
func (w *Writer) answer(o *op, err error) {
	w.mu.Lock()
	w.free(o)
	w.mu.Unlock()

	o.done <- err
}

// next takes the connection and the operations of one transaction, in the order of
// their arrival: a heavy one alone, all others together. While both kinds wait they
// take turns. It reports closed when none will come any more.
func (w *Writer) next() (batch []*op, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.busy || len(w.waiting) == 0 {
		return nil, w.closed && !w.busy
	}

	much := isHeavy(w.waiting[0]) && !(w.tookMuch && slices.ContainsFunc(w.waiting, isLight))

	var taken, left []*op
	weight := 0
	for _, o := range w.waiting {
		fits := len(taken) == 0 || !much && len(taken) < maxOps && weight+o.size.Rows <= maxWeight
		if isHeavy(o) == much && fits {
			taken, weight = append(taken, o), weight+o.size.Rows
		} else {
			left = append(left, o)
		}
	}

	w.waiting, w.busy = left, true
	w.tookMuch, w.shared = much, len(taken) > 1

	return taken, false
}

func isHeavy(o *op) bool { return o.size.Rows >= heavy }

func isLight(o *op) bool { return !isHeavy(o) }

func (w *Writer) loop() {
	for {
		batch, closed := w.next()
		if len(batch) > 0 {
			w.process(batch)
			w.release()
			runtime.Gosched() // who comes again at once shares the next commit: of 50 callers 20 do, and 6 without it
			continue
		}

		if closed {
			return
		}

		select {
		case <-w.arrived:
		case <-w.again():
			w.look()
		}
	}
}

// again fires when the writer has to look after the database. After the end it
// never does.
func (w *Writer) again() <-chan time.Time {
	if w.health.broken() {
		return nil
	}
	return time.After(w.o.CheckEvery)
}

// look finds out whether the trouble is over, or has begun, which is remembered as
// the problem. While a commit is under way, that commit does so instead.
func (w *Writer) look() {
	w.mu.Lock()
	if w.busy {
		w.mu.Unlock()
		return
	}

	w.busy = true
	w.mu.Unlock()
	defer w.release()

	if w.health.Problem() != nil {
		_ = w.probe()
	} else {
		_ = w.report(w.engine.Check())
	}
}

// process commits a batch and answers it; when that fails for the fault of one
// operation, each is tried alone.
func (w *Writer) process(batch []*op) {
	err := w.commit(batch)
	alone := err != nil && len(batch) > 1 && !Common(err)
	for _, o := range batch {
		if alone {
			err = w.commit([]*op{o})
		}

		w.answer(o, cmp.Or(err, o.refusal))
	}
}

// Common reports whether an error would meet every operation alike.
func Common(err error) bool {
	return isOne(err, fault.ErrBusy, fault.ErrBroken, fault.ErrReadOnly, fault.ErrUnsafe, ErrClosed)
}

func isOne(err error, kinds ...error) bool {
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

// commit runs the operations in one transaction and makes it known.
func (w *Writer) commit(batch []*op) error {
	if w.health.broken() {
		return w.health.Problem()
	}

	if err := w.conn.Begin(w.ctx); err != nil {
		return w.report(err)
	}

	t := &Tx{conn: w.conn}

	err := w.run(t, batch)
	if err == nil {
		err = w.conn.Commit()
	}

	if err != nil {
		err = w.report(errors.Join(err, w.conn.Rollback(err)))
		if len(batch) == 1 && errors.Is(err, fault.ErrStorageFull) {
			w.unplaced = max(w.unplaced, batch[0].size.Bytes)
		}

		t.rolledBack()

		return err
	}

	rows, bytes := t.grew, 0
	for _, o := range batch {
		rows += o.size.Rows
		bytes += o.size.Bytes
	}

	if t.wrote && bytes >= w.unplaced {
		w.unplaced = 0
		w.health.wrote()
	}

	w.engine.Committed(rows)

	for _, p := range w.participants {
		p.Committed(t)
	}

	t.free()

	return nil
}

// run runs the operations and then lets the participants write what they
// gathered.
func (w *Writer) run(t *Tx, batch []*op) error {
	for _, o := range batch {
		err := o.do(t)
		if o.refusal = nil; err != nil && w.o.Refused(err) {
			o.refusal, err = err, nil
		}

		if err != nil {
			return err
		}
	}

	for _, p := range w.participants {
		if err := p.Flush(t); err != nil {
			return err
		}
	}

	return nil
}

func (w *Writer) report(err error) error { return w.health.Report(w.engine.Fault(err)) }
