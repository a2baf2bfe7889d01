package health

import "time"

// Hindrance is what keeps the server of a database from removing the old versions of rows that
// were changed or deleted. They add up, and queries become slower.
type Hindrance struct {
	Kind  string    // one of HindranceKinds
	Name  string    // which one it is, as a sentence begins with it
	Since time.Time // at the latest

	Remedy     string   // what to do, in words
	Statements []string // any of which does it; none where it cannot be done on this server
}

// The kinds of hindrances.
const (
	BySession  = "session"  // whose transaction can still see old rows
	BySlot     = "slot"     // a replication slot, whose replica can
	ByPrepared = "prepared" // a transaction that was prepared, and neither committed nor rolled back
)

// HindranceKinds are all kinds of hindrances.
func HindranceKinds() []string { return []string{BySession, BySlot, ByPrepared} }

// Hindered notes what keeps the server from cleaning up, the oldest first. The engine looks.
func (h *Health) Hindered(by []Hindrance) { h.hindrances.Store(&by) }

// Hindrances are what keeps the server from cleaning up, as far as the last look showed; the
// oldest comes first.
func (h *Health) Hindrances() []Hindrance {
	found := h.hindrances.Load()
	if found == nil {
		return nil
	}

	return *found
}
