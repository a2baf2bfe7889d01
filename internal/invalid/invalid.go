// Package invalid is the error that every part of the product returns for bad
// input: a request, a configuration file, a filter, a policy. It names the
// field, so that the API can answer 400 with it and a form can show it in place.
package invalid

import "fmt"

// Error says which field of some input is wrong, and why. Field is the
// name that the person wrote: "initial_interval", "jobs[3].payload".
type Error struct{ Field, Problem string }

func (e *Error) Error() string { return e.Field + ": " + e.Problem }

// Errorf returns an *Error about a field, whose problem is formatted.
func Errorf(field, format string, args ...any) error {
	return &Error{field, fmt.Sprintf(format, args...)}
}
