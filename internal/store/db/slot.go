package db

import "sync"

// Slot is what one participant gathers of each transaction. What is gathered belongs to the
// transaction, and is thrown away when that ends: nothing has to be reset after a rollback,
// and what several transactions gather at a time does not mix. What a participant begins with,
// such as the number of the newest row, is as of the last commit: that is right as long as one
// of them writes at a time.
type Slot[T any] struct {
	fresh func() *T
	reset func(*T) // makes what was gathered empty again; nil: it is not used again
	used  sync.Pool
}

// NewSlot returns a slot for what fresh makes.
func NewSlot[T any](fresh func() *T) *Slot[T] { return &Slot[T]{fresh: fresh} }

// NewReusedSlot is NewSlot for what is large: reset empties it for another transaction.
func NewReusedSlot[T any](fresh func() *T, reset func(*T)) *Slot[T] {
	return &Slot[T]{fresh: fresh, reset: reset}
}

// In returns what was gathered of a transaction so far. It begins empty.
func (s *Slot[T]) In(t *Tx) *T {
	for i := range t.gathered {
		if t.gathered[i].slot == any(s) {
			return t.gathered[i].what.(*T)
		}
	}

	what, ok := s.used.Get().(*T)
	if !ok {
		what = s.fresh()
	}

	t.gathered = append(t.gathered, gathered{slot: s, what: what, free: func() { s.free(what) }})

	return what
}

// free keeps what was gathered for another transaction.
func (s *Slot[T]) free(what *T) {
	if s.reset == nil {
		return
	}

	s.reset(what)
	s.used.Put(what)
}

// gathered is what one participant has gathered of a transaction.
type gathered struct {
	slot any // a *Slot[T]
	what any // a *T
	free func()
}
