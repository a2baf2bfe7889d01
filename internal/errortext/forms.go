package errortext

import (
	"regexp"
	"strings"

	"redrive/internal/plaintext"
)

// form is how a language or a program writes an error.
type form struct {
	name string
	read func(text string) Error
}

// forms are asked in this order. They are no variable, because some of them read the texts
// within a text by all of them.
func forms() []form {
	return []form{
		{"Django's page in plain text", django},
		{"ASP.NET's page in plain text", aspnetText},
		{"Python", python},
		{"PHP", php},
		{"Ruby", ruby},
		{"Elixir", elixir},
		{"Rust", rust},
		{"Go", golang},
		{"Java", jvm},
		{".NET", dotnet},
		{"JavaScript", javascript},
		{"ClickHouse", clickhouse},
		{"any other with a stack", stack},
		{"a usage text", usage},
		{"loggers", logs},
	}
}

// fromText reads a text by its forms; where something ran the program that failed, what
// that wrote about the end is no error as long as the program itself said one.
func fromText(text string) Error {
	text = plaintext.Plain(text)
	said, runner := withoutRunner(undressed(text))

	e := byForm(said)
	if !e.found() && runner != nil {
		e.Message = likeliest(said)
	}

	if e.found() && e.Trace == "" {
		e.Trace = text
	}

	return e
}

// traced is the error in a trace.
func traced(trace string) (Error, bool) {
	e := byForm(undressed(plaintext.Plain(bounded(trace)))).clean()
	return e, e.found()
}

// byForm reads a text by the first form that finds an error in it, as it is or without the
// spaces before its lines.
func byForm(text string) Error {
	const tooMany = 4 // more spaces than a console writes before each line of an error
	bare := unindented(text, tooMany)

	e := ofLanguages(bare)
	if e.found() {
		return e
	}

	flush := unindented(bare, 1)
	if flush == bare {
		return Error{}
	}

	return ofLanguages(flush)
}

// ofLanguages asks one language after the other.
func ofLanguages(text string) Error {
	for _, f := range forms() {
		e := f.read(text)
		if e.found() {
			return e
		}
	}

	return Error{}
}

// maxContinued is how many lines of a message are read after its first one.
const maxContinued = 5

// continued is the rest of a message of several lines: up to an empty line.
func continued(lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		if i == maxContinued || strings.TrimSpace(line) == "" {
			break
		}

		b.WriteString("\n" + line)
	}

	return b.String()
}

var classForm = regexp.MustCompile(`^\\?[A-Za-z_$][\w$]*(?:(?:[.#$\\]|::)[A-Za-z_$][\w$]*)*$`)

// isClass reports whether a text is the name of a type as errors have it: with an
// upper-case letter at its beginning, or in a package.
func isClass(s string) bool {
	return classForm.MatchString(s) && (strings.ContainsAny(s, `.\`) || 'A' <= s[0] && s[0] <= 'Z')
}
