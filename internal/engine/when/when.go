// Package when compares moments that may never come: a zero time means never.
package when

import "time"

// Earlier returns the earlier of two moments.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Reached reports whether a moment has come.
func Reached(t, now time.Time) bool { return !t.IsZero() && !t.After(now) }
