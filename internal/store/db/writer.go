package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"redrive/internal/job"
)

// The bounds of one transaction. What does not fit waits for the next one.
const (
	maxOps    = 256
	maxWeight = 2000 // rows that the operations write, roughly
	heavy     = 250  // an operation that writes so many has a transaction of its own
)

// Participant takes part in every transaction of a writer.
type Participant interface {
	// Begin starts a transaction, and forgets what one that failed left behind.
	Begin()
	// Flush writes what the transaction gathered, just before its commit.
	Flush(t *Tx) error
	// Committed makes known what has become true.
	Committed(t *Tx)
}

// op is one caller's operation in the queue of the writer.
type op struct {
	do      func(*Tx) error // again after a rollback, alone; must then give its result anew
	rows    int             // that it writes, roughly
	refusal error           // its own answer; nothing was written
	done    chan error      // one slot: answered exactly once, after the commit or when there will be none
}

// Write queues an operation and waits for its commit, or for the end of ctx:
// then the operation still happens, unseen. rows is roughly how many rows it
// writes. A caller who left does not look at the result, which the writer may
// still be writing.
func Write[T any](ctx context.Context, w *Writer, rows int, do func(*Tx) (T, error)) (T, error) {
	var result, none T
	o := &op{rows: rows, done: make(chan error, 1), do: func(t *Tx) (err error) {
		result, err = do(t)
		return err
	}}
	if err := w.queue(o); err != nil {
		return none, err
	}
	select {
	case err := <-o.done:
		if err != nil {
			return none, err
		}
		return result, nil
	case <-ctx.Done():
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
	// Refused reports whether an operation looked and, having written nothing,
	// said no: its answer, not a fault.
	Refused func(error) bool
	// Probe writes something that changes nothing, to find out whether that is
	// possible.
	Probe func(*Tx) error
}

// ErrClosed answers calls that come after the writer was stopped.
var ErrClosed = errors.New("the store is closed")

// Writer owns the one connection that writes, and the queue before it.
type Writer struct {
	engine       Engine
	conn         Conn
	health       *Health
	o            Options
	participants []Participant

	mu       sync.Mutex
	waiting  []*op
	tookMuch bool // the newest transaction was a heavy one
	closed   bool
	wake     chan struct{} // one slot: something is waiting
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
	w := &Writer{engine: engine, conn: conn, health: health, o: o, wake: make(chan struct{}, 1)}
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
	if err != nil && !isOne(err, job.ErrStorageFull, job.ErrReadOnly, job.ErrBusy) {
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
	w.mu.Unlock()
	w.stopping()
	w.ended.Wait()
	return w.conn.Close()
}

// Waiting is how many operations are queued.
func (w *Writer) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}

// Probe commits a transaction that takes the database's lock and some room on
// the disk, and changes nothing.
func (w *Writer) Probe(ctx context.Context) error { return w.Do(ctx, 1, w.prove) }

func (w *Writer) prove(t *Tx) error {
	t.Wrote()
	return w.o.Probe(t)
}

// probe does so in the writer's own goroutine.
func (w *Writer) probe() error { return w.commit([]*op{{do: w.prove}}) }

func (w *Writer) queue(o *op) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	w.waiting = append(w.waiting, o)
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return nil
}

// next takes the operations of one transaction, in the order of their arrival: a
// heavy one alone, all others together. While both kinds wait they take turns, so
// that a caller with little to write waits for one heavy operation, not for two.
func (w *Writer) next() (batch []*op, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		return nil, w.closed
	}
	much := isHeavy(w.waiting[0]) && !(w.tookMuch && slices.ContainsFunc(w.waiting, isLight))
	var taken, left []*op
	weight := 0
	for _, o := range w.waiting {
		fits := len(taken) == 0 || !much && len(taken) < maxOps && weight+o.rows <= maxWeight
		if isHeavy(o) == much && fits {
			taken, weight = append(taken, o), weight+o.rows
		} else {
			left = append(left, o)
		}
	}
	w.waiting, w.tookMuch = left, much
	return taken, w.closed
}

func isHeavy(o *op) bool { return o.rows >= heavy }

func isLight(o *op) bool { return !isHeavy(o) }

func (w *Writer) loop() {
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
		case <-w.ctx.Done():
		case <-w.again():
			_ = w.probe() // remembered as the problem
		}
	}
}

// probeEvery is how often the writer tries to write while it cannot.
const probeEvery = time.Second

// again fires when the writer shall look whether it can write again. Without
// trouble, and after the end, it never does.
func (w *Writer) again() <-chan time.Time {
	if w.health.Problem() == nil || w.health.broken() {
		return nil
	}
	return time.After(probeEvery)
}

// process commits a batch and answers it; when that fails for the fault of one
// operation, each is tried alone.
func (w *Writer) process(batch []*op) {
	err := w.commit(batch)
	if err != nil && len(batch) > 1 && !Common(err) {
		for _, o := range batch {
			err := w.commit([]*op{o})
			o.done <- cmp.Or(err, o.refusal)
		}
		return
	}
	for _, o := range batch {
		o.done <- cmp.Or(err, o.refusal)
	}
}

// Common reports whether an error would meet every operation alike.
func Common(err error) bool {
	return isOne(err, job.ErrBusy, job.ErrBroken, job.ErrReadOnly, ErrClosed)
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
		return w.report(errors.Join(err, w.conn.Rollback(err)))
	}
	if t.wrote {
		w.health.wrote()
	}
	rows := 0
	for _, o := range batch {
		rows += o.rows
	}
	w.engine.Committed(rows)
	for _, p := range w.participants {
		p.Committed(t)
	}
	return nil
}

// run runs the operations and then lets the participants write what they
// gathered.
func (w *Writer) run(t *Tx, batch []*op) error {
	for _, p := range w.participants {
		p.Begin()
	}
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
