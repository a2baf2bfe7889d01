// Package workers counts the workers of each queue, and has the goroutines in which they run
// handlers.
package workers

import (
	"maps"
	"sync"

	"redrive/internal/job"
)

// Counts counts the workers of each queue: how many it has, how many are in use, and how
// many are reserved for jobs that are being claimed. A handler that was given up keeps its
// worker in use until it returns.
type Counts struct {
	ask func(queue string) int // how many workers a queue has

	mu       sync.Mutex
	limits   map[string]int // what ask answered
	busy     map[string]int
	reserved map[string]int
}

// New returns counts of no worker in use. ask says how many workers a queue has.
func New(ask func(queue string) int) *Counts {
	return &Counts{ask: ask, limits: map[string]int{}, busy: map[string]int{}, reserved: map[string]int{}}
}

// Limit is how many workers a queue has.
func (w *Counts) Limit(queue string) int {
	w.mu.Lock()
	defer w.mu.Unlock()

	n, known := w.limits[queue]
	if !known {
		n = w.ask(queue)
		w.limits[queue] = n
	}

	return n
}

// AskAgain forgets how many workers the queues have.
func (w *Counts) AskAgain() {
	w.mu.Lock()
	defer w.mu.Unlock()

	clear(w.limits)
}

// Reserve keeps free workers of a queue for a claim, so many at most; more says that
// others are free.
func (w *Counts) Reserve(queue string, most int) (n int, more bool) {
	limit := w.Limit(queue)

	w.mu.Lock()
	defer w.mu.Unlock()

	free := limit - w.busy[queue] - w.reserved[queue]
	n = max(0, min(free, most))
	if n > 0 {
		w.reserved[queue] += n
	}

	return n, free > most
}

// Release ends the reservations of a claim.
func (w *Counts) Release(c job.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()

	for queue, n := range c.Free {
		subtract(w.reserved, queue, n)
	}
}

// Take takes a worker of a queue if one is free, and if fewer than most are in use or
// reserved in all queues together.
func (w *Counts) Take(queue string, most int) bool {
	limit := w.Limit(queue)

	w.mu.Lock()
	defer w.mu.Unlock()

	if w.busy[queue]+w.reserved[queue] >= limit || total(w.busy)+total(w.reserved) >= most {
		return false
	}

	w.busy[queue]++

	return true
}

// TakeReserved takes a worker that is reserved, and counts as that too until the release.
func (w *Counts) TakeReserved(queue string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.busy[queue]++
}

// Free gives back a worker.
func (w *Counts) Free(queue string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	subtract(w.busy, queue, 1)
}

// TooMany reports whether more workers are in use than the queue has: a reload left it fewer.
func (w *Counts) TooMany(queue string) bool {
	limit := w.Limit(queue)

	w.mu.Lock()
	defer w.mu.Unlock()

	return w.busy[queue] > limit
}

// Taken counts the workers that are in use or reserved, in all queues together.
func (w *Counts) Taken() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return total(w.busy) + total(w.reserved)
}

// Running counts the workers in use, by queue.
func (w *Counts) Running() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.busy)
}

// Idle reports whether no worker is in use.
func (w *Counts) Idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.busy) == 0
}

// subtract lowers a count, and keeps none of zero.
func subtract(counts map[string]int, queue string, n int) {
	counts[queue] -= n
	if counts[queue] == 0 {
		delete(counts, queue)
	}
}

func total(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
