package errortext

import (
	"cmp"
	"strings"
)

// Fields reads an error that comes in parts, any of which can be empty: the columns of a
// source, or the members of an answer. A message that is everything its program printed is
// read as [Output] reads it, and an error names what caused it, as far as its trace tells.
// What the parts say themselves goes before what is read out of them. Of a message that is
// one line, nothing is taken away.
func Fields(class, message, trace string) Error {
	e := Error{Class: class, Message: message, Trace: trace}

	if strings.Contains(strings.TrimSpace(message), "\n") {
		said, found := Output(message)
		if found {
			e = Error{Class: cmp.Or(class, said.Class), Message: said.Message, Trace: cmp.Or(trace, message)}
		}
	}

	thrown, found := Output(e.Trace)
	switch {
	case !found:
	case e.Message == "" && (e.Class == "" || e.Class == thrown.Class):
		e.Class, e.Message = thrown.Class, thrown.Message
	case strings.HasPrefix(thrown.Message, e.Message+causedBy):
		e.Message = thrown.Message
	}

	if !e.found() {
		e.Message = likeliest(e.Trace)
	}
	return e.clean()
}

// Text reads an error that is one text, with everything that its program printed. What
// has more than one line is its trace.
func Text(text string) Error {
	e, found := Output(text)
	if !found {
		e = Error{Message: likeliest(text)}
	}

	if strings.Contains(strings.TrimSpace(text), "\n") {
		e.Trace = text
	}
	return e.clean()
}
