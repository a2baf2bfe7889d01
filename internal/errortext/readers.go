package errortext

import (
	"redrive/internal/errortext/form"
	"redrive/internal/errortext/lang"
	"redrive/internal/plaintext"
)

// fromText reads a text by the readers; where something ran the program that failed, what
// that wrote about the end is no error as long as the program itself said one.
func fromText(text string) Error {
	text = plaintext.Plain(text)
	said, runner := withoutRunner(form.Undressed(text))

	e := fromBare(said)
	if !e.Found() && runner != nil {
		e.Message = likeliest(said)
	}

	if e.Found() && e.Trace == "" {
		e.Trace = text
	}

	return e
}

// traced is the error in a trace.
func traced(trace string) (Error, bool) {
	e := fromBare(form.Undressed(plaintext.Plain(bounded(trace)))).Clean()
	return e, e.Found()
}

// fromBare reads a text by the first reader that finds an error in it, as it is or without the
// spaces before its lines.
func fromBare(text string) Error {
	const tooMany = 4 // more spaces than a console writes before each line of an error
	bare := form.Unindented(text, tooMany)

	e := firstFound(bare)
	if e.Found() {
		return e
	}

	flush := form.Unindented(bare, 1)
	if flush == bare {
		return Error{}
	}

	return firstFound(flush)
}

// firstFound asks one reader after the other: those of the languages, and then those of what
// programs of any language write.
func firstFound(text string) Error {
	e := lang.Read(text)
	if !e.Found() {
		e = usage(text)
	}

	if !e.Found() {
		e = logs(text)
	}

	return e
}
