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
	"redrive/internal/store/health"
)

// Participant takes part in every transaction of a writer. What it gathers of one is in a
// [Slot].
type Participant interface {
	// Flush writes what was gathered of the transaction, just before its commit.
	Flush(t *Tx) error

	// Committed makes known what has become true.
	Committed(t *Tx)
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

// writerEngine is what a writer needs of an engine.
type writerEngine interface {
	Connections
	Dialect
	Storage
}

// Writer owns the one connection that writes.
type Writer struct {
	engine writerEngine
	health *health.Health
	o      Options

	// The connection and what is used with it belong to the goroutine that has the turn.
	queue        *queue
	conn         Conn
	participants []Participant
	unplaced     int // bytes of the largest operation that found no room on the disk

	// The loop runs until the writer is closed.
	ctx      context.Context
	stopping context.CancelFunc
	ended    sync.WaitGroup
}

// NewWriter returns a writer on the engine's connection, which Start starts.
func NewWriter(ctx context.Context, engine writerEngine, health *health.Health, o Options) (*Writer, error) {
	conn, err := engine.Writer(ctx)
	if err != nil {
		return nil, err
	}

	o.CheckEvery = cmp.Or(o.CheckEvery, time.Second)
	w := &Writer{engine: engine, conn: conn, health: health, o: o, queue: newQueue(cmp.Or(o.MaxBytes, maxBytes))}
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
	w.queue.close()
	w.stopping()
	w.ended.Wait()

	return w.conn.Close()
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

	leads, err := w.queue.admit(o)
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
		w.queue.leave(o)
		return none, fmt.Errorf("wait for the database: %w", ctx.Err())
	}
}

// Do is Write for what gives nothing back.
func (w *Writer) Do(ctx context.Context, rows int, do func(*Tx) error) error {
	_, err := Write(ctx, w, rows, func(t *Tx) (struct{}, error) { return struct{}{}, do(t) })
	return err
}

// Waited reports whether an operation waits for the one that is under way, which
// can end sooner then.
func (w *Writer) Waited() bool { return w.queue.waits() }

// lead commits an operation in its caller's goroutine, which has the turn.
func (w *Writer) lead(o *op) {
	defer w.queue.release()

	w.process([]*op{o})
}

func (w *Writer) loop() {
	for {
		batch, closed := w.queue.next()
		if len(batch) > 0 {
			w.process(batch)
			w.queue.release()
			runtime.Gosched() // who comes again at once shares the next commit: of 50 callers 20 do, and 6 without it
			continue
		}

		if closed {
			return
		}

		select {
		case <-w.queue.arrived:
		case <-w.again():
			w.look()
		}
	}
}

// again fires when the writer has to look after the database. After the end it
// never does.
func (w *Writer) again() <-chan time.Time {
	if w.health.Broken() {
		return nil
	}
	return time.After(w.o.CheckEvery)
}

// look finds out whether the trouble is over, or has begun, which is remembered as
// the problem. While a commit is under way, that commit does so instead.
func (w *Writer) look() {
	if !w.queue.take() {
		return
	}
	defer w.queue.release()

	if w.health.Problem() != nil {
		_ = w.probe()
	} else {
		_ = w.report(w.engine.Check())
	}
}

// Probe commits a transaction that takes the database's lock and some room on
// the disk, and changes nothing.
func (w *Writer) Probe(ctx context.Context) error { return w.Do(ctx, 1, w.prove) }

func (w *Writer) prove(t *Tx) error {
	t.Wrote()
	return w.o.Probe(t)
}

// probe does what Probe does, for a caller that has the turn. Room for a small
// write is not the end of the trouble for a client whose job did not fit.
func (w *Writer) probe() error {
	if w.unplaced > 0 && w.engine.Room(w.unplaced) == nil {
		w.unplaced = 0
	}
	return w.commit([]*op{{do: w.prove}})
}

func (w *Writer) report(err error) error { return w.health.Report(w.engine.Fault(err)) }

// Common reports whether an error would meet every operation alike.
func Common(err error) bool {
	return isOne(err, fault.ErrBusy, fault.ErrBroken, fault.ErrReadOnly, fault.ErrUnsafe, ErrClosed)
}

func isOne(err error, kinds ...error) bool {
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}
