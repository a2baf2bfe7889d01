// Package errortext finds the error in what frameworks and languages write about
// it: its class, its message and its trace.
//
// [Body] reads the body of an HTTP answer that is no success. What JSON objects
// mean is told by a table of shapes, one for each family of frameworks; pages and
// plain text are searched for a traceback. [Output] reads the standard error of a
// program, by a table of languages. The first entry of a table that finds an error
// has the word, so an entry that is sure stands before one that guesses.
//
// To teach the package another framework, put a body as the framework writes it
// into testdata, and add a line to a table.
//
// The package does no input or output. What it returns is taken from its input and
// no longer than that, apart from labels.
package errortext

import (
	"strings"
	"unicode/utf8"
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

func (e Error) found() bool { return e.Class != "" || e.Message != "" }

// clean is an error whose texts begin and end with something that can be seen.
func (e Error) clean() Error {
	return Error{strings.TrimSpace(e.Class), strings.TrimSpace(e.Message), strings.Trim(e.Trace, "\r\n")}
}

// Body finds the error in the body of an HTTP answer. It finds none in binary data,
// and none in plain text without a traceback.
func Body(body string) (Error, bool) {
	if !utf8.ValidString(body) {
		return Error{}, false
	}
	body = strings.TrimSpace(body)
	var e Error
	switch {
	case strings.HasPrefix(body, "{"), strings.HasPrefix(body, "["):
		e = fromJSON(body)
	case strings.HasPrefix(body, "<"):
		e = fromPage(body)
	default:
		e = fromText(body)
	}
	e = e.clean()
	return e, e.found()
}

// Output finds the error in what a program wrote before it ended. The trace is
// left to the caller, who has the whole output.
func Output(output string) (Error, bool) {
	e := fromText(output).clean()
	e.Trace = ""
	return e, e.found()
}
