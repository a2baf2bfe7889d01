package rig

import (
	"net/http"
	"sync"
)

// Holding is a real service that can hold back its answers.
type Holding struct {
	mu    sync.Mutex
	Held  map[string]bool // by job
	Full  chan struct{}   // closed when want requests are held
	want  int
	Open  chan struct{} // closed: requests are answered
	Calls map[string]int
}

// NewHolding is a service that says by full when it holds so many requests.
func NewHolding(want int) *Holding {
	return &Holding{Held: map[string]bool{}, Full: make(chan struct{}), want: want, Open: make(chan struct{}), Calls: map[string]int{}}
}

// ServeHTTP answers once the service is open.
func (s *Holding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	id := r.Header.Get("Redrive-Job-Id")
	s.Calls[id]++
	select {
	case <-s.Open:
	default:
		if s.Held[id] = true; len(s.Held) == s.want {
			close(s.Full)
		}
	}
	s.mu.Unlock()
	select {
	case <-s.Open:
	case <-r.Context().Done():
	}
}
