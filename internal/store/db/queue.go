package db

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"redrive/internal/fault"
)

// The bounds of one transaction. What does not fit waits for the next one.
const (
	maxOps    = 256
	maxWeight = 2000 // rows that the operations write, roughly
	heavy     = 250  // an operation that writes so many has a transaction of its own (see [Size])
)

// maxBytes is what waits at most while the disk is slow: as much as one of the
// largest batches, and as much again of everything else.
const maxBytes = 128 << 20

// ErrClosed answers calls that come after the writer was stopped.
var ErrClosed = errors.New("the store is closed")

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

	Alone   bool   // it has a transaction of its own, however few rows these are
	Account string // whose bytes these are; each account has the whole bound for itself
}

// queue is what waits for the one connection that writes. It says whose turn it is: a
// goroutine that has taken the turn has the connection and the participants to itself until
// it releases them.
type queue struct {
	maxBytes int
	arrived  chan struct{} // one slot: the loop has to look

	mu      sync.Mutex
	waiting []*op
	bytes   map[string]int // of those that wait and those under way, by account
	busy    bool           // a goroutine has the turn
	closed  bool

	// What the newest transaction was decides what the next one takes.
	tookHeavy bool
	shared    bool // it had several operations
}

func newQueue(maxBytes int) *queue {
	return &queue{maxBytes: maxBytes, bytes: map[string]int{}, arrived: make(chan struct{}, 1)}
}

// admit lets an operation lead, or puts it into the queue. One that finds the writer
// idle leads: to wake the loop and to be woken by it would take a quarter of the time
// of a commit. Where many callers come at a time they queue, to share commits.
func (q *queue) admit(o *op) (leads bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()

	switch {
	case q.closed:
		return false, ErrClosed
	case !q.hasRoom(o.size):
		return false, fmt.Errorf("%w: %d bytes wait already", fault.ErrOverloaded, q.bytes[o.size.Account])
	}

	q.bytes[o.size.Account] += o.size.Bytes
	if !q.busy && !q.shared && len(q.waiting) == 0 {
		q.busy, q.tookHeavy = true, isHeavy(o)
		return true, nil
	}

	q.waiting = append(q.waiting, o)
	q.wake()

	return false, nil
}

// next takes the turn and the operations of one transaction, in the order of their
// arrival: a heavy one alone, all others together. While both kinds wait they take
// turns. It reports closed when none will come any more.
func (q *queue) next() (batch []*op, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.busy || len(q.waiting) == 0 {
		return nil, q.closed && !q.busy
	}

	takesHeavy := isHeavy(q.waiting[0]) && !(q.tookHeavy && slices.ContainsFunc(q.waiting, isLight))

	var taken, left []*op
	weight := 0
	for _, o := range q.waiting {
		fits := len(taken) == 0 || !takesHeavy && len(taken) < maxOps && weight+o.size.Rows <= maxWeight
		if isHeavy(o) == takesHeavy && fits {
			taken, weight = append(taken, o), weight+o.size.Rows
		} else {
			left = append(left, o)
		}
	}

	q.waiting, q.busy = left, true
	q.tookHeavy, q.shared = takesHeavy, len(taken) > 1

	return taken, false
}

func isHeavy(o *op) bool { return o.size.Alone || o.size.Rows >= heavy }

func isLight(o *op) bool { return !isHeavy(o) }

// take takes the turn for the writer itself, unless a goroutine has it.
func (q *queue) take() bool {
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.busy {
		return false
	}

	q.busy = true

	return true
}

// release gives the turn back.
func (q *queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.busy = false
	if len(q.waiting) > 0 || q.closed {
		q.wake()
	}
}

// close refuses new operations.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.closed = true
	q.wake()
}

// wake lets the loop look what there is to do.
func (q *queue) wake() {
	select {
	case q.arrived <- struct{}{}:
	default:
	}
}

// waits reports whether an operation waits for the one that is under way.
func (q *queue) waits() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) > 0
}

// leave takes an operation out of the queue when its caller no longer waits for it.
// One that is under way keeps its place until it has ended.
func (q *queue) leave(o *op) {
	q.mu.Lock()
	defer q.mu.Unlock()

	if i := slices.Index(q.waiting, o); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.free(o)
	}
}

// answer ends an operation that was under way, and gives its place free.
func (q *queue) answer(o *op, err error) {
	q.mu.Lock()
	q.free(o)
	q.mu.Unlock()

	o.done <- err
}

// hasRoom reports whether an operation may wait beside those of its account. One alone
// always may. The caller holds the mutex.
func (q *queue) hasRoom(size Size) bool {
	waiting := q.bytes[size.Account]
	return size.Bytes == 0 || waiting == 0 || waiting+size.Bytes <= q.maxBytes
}

// free gives the bytes of an operation free. The caller holds the mutex.
func (q *queue) free(o *op) {
	q.bytes[o.size.Account] -= o.size.Bytes
	if q.bytes[o.size.Account] == 0 {
		delete(q.bytes, o.size.Account)
	}
}
