// Package form is what the readers of all languages share: the error that they find, how it
// names its cause, and what lines of texts look like that belong to an error or to none.
package form

import (
	"strings"

	"redrive/internal/plaintext"
)

// Error is what was found. Any field can be empty, but not both of class and message.
type Error struct {
	Class   string // the type that the program gave it, for example ValueError
	Message string
	Trace   string // where it happened, in the words of the language
}

// String is the class and the message, as most languages print them.
func (e Error) String() string {
	switch {
	case e.Class == "":
		return e.Message
	case e.Message == "":
		return e.Class
	}

	return e.Class + ": " + e.Message
}

// Found reports whether there is an error at all.
func (e Error) Found() bool { return e.Class != "" || e.Message != "" }

// Clean is an error whose texts are plain, and begin and end with something that can be seen.
func (e Error) Clean() Error {
	return Error{
		Class:   strings.TrimSpace(plaintext.Plain(e.Class)),
		Message: strings.TrimSpace(plaintext.Plain(e.Message)),
		Trace:   strings.Trim(plaintext.Plain(e.Trace), "\r\n"),
	}
}

// Because says of an error what caused it in the end, unless its message says so already.
func (e Error) Because(class, message string) Error {
	cause := Error{Class: class, Message: strings.TrimSpace(message)}
	if !cause.Found() || cause.Message != "" && strings.Contains(e.Message, cause.Message) || strings.Contains(e.Message, cause.String()) {
		return e
	}

	if e.Message == "" {
		e.Message = strings.TrimPrefix(CausedBy, "; ") + cause.String()
		return e
	}

	e.Message += CausedBy + cause.String()

	return e
}

// CausedBy stands between an error and what caused it.
const CausedBy = "; caused by "
