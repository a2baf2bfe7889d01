package errortext

import (
	"regexp"
	"strings"
)

// languages are asked in this order. An array that nobody changes.
var languages = [...]struct {
	name string
	read func(text string) Error
}{
	{"Django's page in plain text", django},
	{"ASP.NET's page in plain text", aspnetText},
	{"Python", python},
	{"PHP", php},
	{"Ruby", ruby},
	{"Elixir", elixir},
	{"Rust", rust},
	{"Go", golang},
	{"Java, JavaScript and .NET", stack},
}

// fromText finds the error in a text as it is, or without what stands before its lines.
func fromText(text string) Error {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	const tooMany = 4 // more spaces than a console writes before each line of an error
	bare := unindented(undressed(text), tooMany)
	e := fromForms(bare)
	if !e.found() {
		flush := unindented(bare, 1)
		if flush != bare {
			e = fromForms(flush)
		}
	}
	if e.found() && e.Trace == "" {
		e.Trace = text
	}
	return e
}

// fromForms asks one language after the other.
func fromForms(text string) Error {
	for _, language := range languages {
		e := language.read(text)
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
