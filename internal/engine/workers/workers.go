// Package workers counts the workers of each queue (Counts), and has the goroutines in which handlers
// run (Pool).
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
	limits   map[string]int // what ask returned for each queue
	busy     map[string]int // workers in use
	reserved map[string]int // workers that are reserved for claims
}

// New returns counts with no worker in use. ask returns how many workers a queue has.
func New(ask func(queue string) int) *Counts {
	return &Counts{ask: ask, limits: map[string]int{}, busy: map[string]int{}, reserved: map[string]int{}}
}

// Limit returns how many workers a queue has.
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

// AskAgain makes Limit ask again how many workers each queue has.
func (w *Counts) AskAgain() {
	w.mu.Lock()
	defer w.mu.Unlock()

	clear(w.limits)
}

// Reserve reserves the free workers of a queue for a claim, but at most most of them. It returns how
// many it has reserved, and whether more were free.
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

// Release ends the reservations of a claim. It is called after the jobs of the claim have started.
func (w *Counts) Release(c job.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()

	for queue, n := range c.Free {
		subtract(w.reserved, queue, n)
	}
}

// Take takes a worker of a queue into use, and returns true, if one is free and if fewer than most
// workers of all queues together are in use or reserved.
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

// TakeReserved takes a reserved worker into use. It still counts as reserved until Release.
func (w *Counts) TakeReserved(queue string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.busy[queue]++
}

// Free gives back a worker that was in use.
func (w *Counts) Free(queue string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	subtract(w.busy, queue, 1)
}

// TooMany reports whether more workers of a queue are in use than it has, because a reload gave it
// fewer.
func (w *Counts) TooMany(queue string) bool {
	limit := w.Limit(queue)

	w.mu.Lock()
	defer w.mu.Unlock()

	return w.busy[queue] > limit
}

// Taken returns how many workers are in use or reserved, in all queues together.
func (w *Counts) Taken() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return total(w.busy) + total(w.reserved)
}

// Running returns how many workers are in use, by queue.
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

// subtract lowers a count, and deletes it if it is zero then.
func subtract(counts map[string]int, queue string, n int) {
	counts[queue] -= n
	if counts[queue] == 0 {
		delete(counts, queue)
	}
}

// total returns the sum of the counts.
func total(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
