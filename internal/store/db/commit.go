package db

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"redrive/internal/fault"
	"redrive/internal/pause"
)

// process commits a batch and answers it; when that fails for the fault of one
// operation, each is tried alone.
//
// A panic goes on to the caller of the operation, or ends the program when the operation had
// queued. It ends the writer either way: a caller may survive it, and what it has left in
// memory would be part of the next transaction.
func (w *Writer) process(batch []*op) {
	answered := 0
	defer func() {
		p := recover()
		if p == nil {
			return
		}

		err := w.report(fmt.Errorf("%w: panic: %v", fault.ErrBroken, p))
		for _, o := range batch[answered:] {
			w.queue.answer(o, err)
		}

		panic(p)
	}()

	err := w.commitTrying(batch)
	alone := err != nil && len(batch) > 1 && !Common(err)
	for _, o := range batch {
		if alone {
			err = w.commitTrying([]*op{o})
		}

		w.queue.answer(o, cmp.Or(err, o.refusal))

		answered++
	}
}

// How often, and how fast, a transaction is run again.
const (
	mostTries = 10
	firstWait = 10 * time.Millisecond
	maxWait   = 500 * time.Millisecond
)

// commitTrying is commit, which is tried again as long as the engine says that this can help.
func (w *Writer) commitTrying(batch []*op) error {
	wait := firstWait
	for try := 1; ; try++ {
		err := w.commit(batch)
		if err == nil || try == mostTries || !w.engine.Again(err) {
			return err
		}

		// Spread by chance, so that two transactions do not meet again.
		if !pause.For(w.ctx, wait/2+rand.N(wait/2)) {
			return err
		}

		wait = min(2*wait, maxWait)
	}
}

// commit runs the operations in one transaction and makes it known.
func (w *Writer) commit(batch []*op) error {
	if w.health.Broken() {
		return w.health.Problem()
	}

	if err := w.conn.Begin(w.ctx); err != nil {
		return w.report(err)
	}

	t := &Tx{conn: w.conn}

	// Participants that wait for the end of the transaction are told, also when a panic is the
	// end.
	madeKnown := false
	defer func() {
		if !madeKnown {
			t.rolledBack()
		}
	}()

	err := w.report(commitOrRollBack(w.conn, func() error { return w.run(t, batch) }))
	if err != nil {
		if len(batch) == 1 && errors.Is(err, fault.ErrStorageFull) {
			w.unplaced = max(w.unplaced, batch[0].size.Bytes)
		}

		return err
	}

	w.written(t, batch)

	for _, p := range w.participants {
		p.Committed(t)
	}

	madeKnown = true

	t.free()

	return nil
}

// run runs the operations and then lets the participants write what they
// gathered.
func (w *Writer) run(t *Tx, batch []*op) error {
	for _, o := range batch {
		err := o.do(t)

		// A refusal is the answer to its caller. It has written nothing, so the others go on.
		o.refusal = nil
		if err != nil && w.o.Refused(err) {
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

// written notes what a commit says of the database: it can be written again, if as much as
// failed before found room, and its log has grown.
func (w *Writer) written(t *Tx, batch []*op) {
	rows, bytes := t.grew, 0
	for _, o := range batch {
		rows += o.size.Rows
		bytes += o.size.Bytes
	}

	if t.wrote && bytes >= w.unplaced {
		w.unplaced = 0
		w.health.Wrote()
	}

	w.engine.Committed(rows)
}
