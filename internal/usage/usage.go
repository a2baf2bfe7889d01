// Package usage marks the errors of the person who gave a command: a wrong flag, a wrong
// value, or a file in which something is wrong. The program ends with an exit status of
// its own for these, because another start does not help before something is changed.
package usage

import "fmt"

// Error is what was asked wrongly.
type Error struct{ error }

func (e Error) Unwrap() error { return e.error }

// Of marks an error as one of usage.
func Of(err error) Error { return Error{err} }

// Errorf returns an error of usage with a formatted text.
func Errorf(format string, args ...any) error { return Error{fmt.Errorf(format, args...)} }
