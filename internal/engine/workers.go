package engine

import (
	"maps"
	"sync"

	"redrive/internal/job"
)

// workers counts the workers of each queue: how many it has, how many are in use, and how
// many are reserved for jobs that are being claimed. A handler that was given up keeps its
// worker in use until it returns.
type workers struct {
	ask func(queue string) int // how many workers a queue has

	mu       sync.Mutex
	limits   map[string]int // what ask answered
	busy     map[string]int
	reserved map[string]int
}

func newWorkers(ask func(queue string) int) *workers {
	return &workers{ask: ask, limits: map[string]int{}, busy: map[string]int{}, reserved: map[string]int{}}
}

// limit is how many workers a queue has.
func (w *workers) limit(queue string) int {
	w.mu.Lock()
	defer w.mu.Unlock()

	n, known := w.limits[queue]
	if !known {
		n = w.ask(queue)
		w.limits[queue] = n
	}

	return n
}

// askAgain forgets how many workers the queues have.
func (w *workers) askAgain() {
	w.mu.Lock()
	defer w.mu.Unlock()

	clear(w.limits)
}

// reserve keeps free workers of a queue for a claim, so many at most; more says that
// others are free.
func (w *workers) reserve(queue string, most int) (n int, more bool) {
	limit := w.limit(queue)

	w.mu.Lock()
	defer w.mu.Unlock()

	free := limit - w.busy[queue] - w.reserved[queue]
	n = max(0, min(free, most))
	if n > 0 {
		w.reserved[queue] += n
	}

	return n, free > most
}

// release ends the reservations of a claim.
func (w *workers) release(c job.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()

	for queue, n := range c.Free {
		subtract(w.reserved, queue, n)
	}
}

// take takes a worker of a queue if one is free, and if fewer than most are in use or
// reserved in all queues together.
func (w *workers) take(queue string, most int) bool {
	limit := w.limit(queue)

	w.mu.Lock()
	defer w.mu.Unlock()

	if w.busy[queue]+w.reserved[queue] >= limit || total(w.busy)+total(w.reserved) >= most {
		return false
	}

	w.busy[queue]++

	return true
}

// takeReserved takes a worker that is reserved, and counts as that too until the release.
func (w *workers) takeReserved(queue string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.busy[queue]++
}

// free gives back a worker.
func (w *workers) free(queue string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	subtract(w.busy, queue, 1)
}

// tooMany reports whether more workers are in use than the queue has: a reload left it fewer.
func (w *workers) tooMany(queue string) bool {
	limit := w.limit(queue)

	w.mu.Lock()
	defer w.mu.Unlock()

	return w.busy[queue] > limit
}

// taken counts the workers that are in use or reserved, in all queues together.
func (w *workers) taken() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return total(w.busy) + total(w.reserved)
}

// running counts the workers in use, by queue.
func (w *workers) running() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.busy)
}

// idle reports whether no worker is in use.
func (w *workers) idle() bool {
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
