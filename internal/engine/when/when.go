// Package when compares times of which the zero time means "never".
package when

import "time"

// Earlier returns the earlier of two times. It returns the zero time only if both are zero.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Reached reports whether t has come. The zero time never comes.
func Reached(t, now time.Time) bool { return !t.IsZero() && !t.After(now) }
