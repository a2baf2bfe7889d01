// Package errortext finds the error in what frameworks, languages and tools write about
// it: its class, its message and its trace. Whatever an attempt leaves behind goes through
// it, the output of a program as well as the body of an answer or the columns of a source.
//
// [Program] reads what a program wrote before it ended, and [Body] the body of an HTTP
// answer that is no success. What text means is told by a table of forms, one file for each
// language or family of tools; what JSON objects mean by a table of shapes. The first entry
// of a table that finds an error has the word, so an entry that is sure stands before one
// that guesses. Where no form fits, [likeliest] picks the line that a person would.
//
// An error that another one caused names that one: the message of "job failed", below which
// a refused connection stands, says both, and the class is that of the error that was
// thrown last, for which rules can ask. See [Error.because].
//
// To teach the package another language, put texts as its programs write them into
// testdata/corpus, with the class, the message and the cause that a person reads out of
// them, and add a form.
//
// The package does no input or output. What it returns is taken from its input and no
// longer than that, apart from labels, and it takes time in proportion to its input.
package errortext

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

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

func (e Error) found() bool { return e.Class != "" || e.Message != "" }

// clean is an error whose texts are plain, and begin and end with something that can be seen.
func (e Error) clean() Error {
	return Error{
		Class:   strings.TrimSpace(plaintext.Plain(e.Class)),
		Message: strings.TrimSpace(plaintext.Plain(e.Message)),
		Trace:   strings.Trim(plaintext.Plain(e.Trace), "\r\n"),
	}
}

// Body finds the error in the body of an HTTP answer, as [plaintext.Decode] returns it. It finds none
// in plain text without a traceback.
func Body(body string) (Error, bool) {
	if !utf8.ValidString(body) {
		return Error{}, false
	}

	body = strings.TrimSpace(body)
	var e Error
	switch {
	case strings.HasPrefix(body, "{"), strings.HasPrefix(body, "["):
		e = fromJSON(body)
		e = Fields(e.Class, e.Message, e.Trace)
	case strings.HasPrefix(body, "<"):
		e = fromMarkup(body)
	default:
		e = fromText(body)
	}

	e = e.clean()

	return e, e.found()
}

// Output finds the error that a form knows in what a program wrote before it ended. The
// trace is left to the caller, who has the whole output.
func Output(output string) (Error, bool) {
	e := fromText(bounded(output)).clean()
	e.Trace = ""
	return e, e.found()
}

// maxRead is how much of a text is read: errors stand at its beginning or at its end.
const maxRead = 256 << 10

// bounded is the beginning and the end of a text, in whole lines, if all of it is too long.
func bounded(text string) string {
	if len(text) <= maxRead {
		return text
	}

	head, tail := text[:maxRead/2], text[len(text)-maxRead/2:]
	head = head[:strings.LastIndexByte(head, '\n')+1]
	_, tail, _ = strings.Cut(tail, "\n")

	return head + tail
}

// Program finds the error of a program that failed: the one that a form knows in its
// standard error or else in its standard output, where PHP prints its errors by default, or
// else the likeliest line of its standard error. A standard output has
// the word if its line is an error beyond doubt, and the standard error says nothing more
// than hints and that something failed.
func Program(stderr, stdout string) Error {
	stderr = plaintext.Plain(strings.TrimPrefix(stderr, plaintext.CutBeginning))
	stdout = plaintext.Plain(strings.TrimPrefix(stdout, plaintext.CutBeginning))
	for _, output := range []string{stderr, stdout} {
		e, found := Output(output)
		if found {
			return e
		}
	}

	if heaviest(stderr) <= summary && heaviest(stdout) >= logged {
		return Error{Message: likeliest(stdout)}
	}

	said, runner := withoutRunner(undressed(stderr))
	if isBlank(said) && runner != nil {
		return Error{Message: ofRunner(runner)}
	}

	return Error{Message: likeliest(stderr)}
}

// because says of an error what caused it in the end, unless its message says so already.
func (e Error) because(class, message string) Error {
	cause := Error{Class: class, Message: strings.TrimSpace(message)}
	if !cause.found() || cause.Message != "" && strings.Contains(e.Message, cause.Message) || strings.Contains(e.Message, cause.String()) {
		return e
	}

	if e.Message == "" {
		e.Message = strings.TrimPrefix(causedBy, "; ") + cause.String()
		return e
	}

	e.Message += causedBy + cause.String()

	return e
}

// causedBy stands between an error and what caused it.
const causedBy = "; caused by "

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

	if e.Message != "" && !namesCause(e.Trace) {
		return e.clean()
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

// causeMarks stand in a trace before what caused an error.
var causeMarks = [...]string{
	"aused by", "\nNext ", "bove exception", "---> ", "[cause]", "(EXIT", "nested exception", "rescue in ",
}

// namesCause reports whether a trace may name what caused its error: to read the trace for
// that takes longer than all else that is done with a record of a source.
func namesCause(trace string) bool {
	return slices.ContainsFunc(causeMarks[:], func(mark string) bool { return strings.Contains(trace, mark) })
}

// Text reads an error that is one text, with everything that its program printed. What
// has more than one line is its trace.
func Text(text string) Error {
	e, found := Output(text)
	if !found {
		e = classed(likeliest(text))
	}

	if strings.Contains(strings.TrimSpace(text), "\n") {
		e.Trace = text
	}

	return e.clean()
}

// classed is an error that one line says, with the class that the line begins with, if it
// does: "App\Declined: no card".
func classed(line string) Error {
	class, message, _ := strings.Cut(line, ": ")
	named := strings.ContainsAny(class, `\.:`) || strings.HasSuffix(class, "Error") || strings.HasSuffix(class, "Exception")
	if message == "" || !named || !isClass(class) {
		return Error{Message: line}
	}

	return Error{Class: class, Message: message}
}
