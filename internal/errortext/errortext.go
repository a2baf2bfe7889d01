// Package errortext finds the error in what frameworks, languages and tools write about
// it: its class, its message and its trace. Whatever an attempt leaves behind goes through
// it, the output of a program as well as the body of an answer or the columns of a source.
//
// [Program] reads what a program wrote before it ended, and [Body] the body of an HTTP
// answer that is no success. What languages and their tools print is read by package lang;
// what JSON objects mean is told by a table of shapes. The first reader or entry that finds
// an error decides, so one that is sure stands before one that guesses. Where none fits,
// [likeliest] picks the line that a person would.
//
// An error that another one caused names that one: the message of "job failed", below which
// a refused connection stands, says both, and the class is that of the error that was
// thrown last, for which rules can ask. See [form.Error.Because].
//
// To teach the package another language, put texts as its programs write them into
// testdata/corpus, with the class, the message and the cause that a person reads out of
// them, and add a reader to package lang.
//
// The package does no input or output. What it returns is taken from its input and no
// longer than that, apart from labels, and it takes time in proportion to its input.
package errortext

import (
	"cmp"
	"redrive/internal/errortext/form"
	"redrive/internal/plaintext"
	"slices"
	"strings"
	"unicode/utf8"
)

// Error is what was found.
type Error = form.Error

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

	e = e.Clean()

	return e, e.Found()
}

// Output finds the error that a reader knows in what a program wrote before it ended. The
// trace is left to the caller, who has the whole output.
func Output(output string) (Error, bool) {
	e := fromText(bounded(output)).Clean()
	e.Trace = ""
	return e, e.Found()
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

// Program finds the error of a program that failed: the one that a reader knows in its
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

	said, runner := withoutRunner(form.Undressed(stderr))
	if form.IsBlank(said) && runner != nil {
		return Error{Message: ofRunner(runner)}
	}

	return Error{Message: likeliest(stderr)}
}

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

	// A trace is read only where it can add something: a cause, or the message that is missing.
	if e.Message != "" && !namesCause(e.Trace) {
		return e.Clean()
	}

	thrown, found := Output(e.Trace)
	switch {
	case !found:
	case e.Message == "" && (e.Class == "" || e.Class == thrown.Class):
		e.Class, e.Message = thrown.Class, thrown.Message
	// The trace has the same message and, behind it, what caused the error.
	case strings.HasPrefix(thrown.Message, e.Message+form.CausedBy):
		e.Message = thrown.Message
	}

	if !e.Found() {
		e.Message = likeliest(e.Trace)
	}

	return e.Clean()
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

	return e.Clean()
}

// classed is an error that one line says, with the class that the line begins with, if it
// does: "App\Declined: no card".
func classed(line string) Error {
	class, message, _ := strings.Cut(line, ": ")
	named := strings.ContainsAny(class, `\.:`) || strings.HasSuffix(class, "Error") || strings.HasSuffix(class, "Exception")
	if message == "" || !named || !form.IsClass(class) {
		return Error{Message: line}
	}

	return Error{Class: class, Message: message}
}
