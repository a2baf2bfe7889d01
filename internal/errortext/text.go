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

func fromText(text string) Error {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for _, language := range languages {
		if e := language.read(text); e.found() {
			if e.Trace == "" {
				e.Trace = text
			}
			return e
		}
	}
	return Error{}
}

// maxContinued is how many lines of a message are read after its first one.
const maxContinued = 5

var djangoForm = regexp.MustCompile(`(?m)^Exception Type: (\S+).*\nException Value: (.*)$`)

// django reads the page of DEBUG = True. The settings and the request below the
// traceback are no part of the error.
func django(text string) Error {
	m := djangoForm.FindStringSubmatch(text)
	if m == nil {
		return Error{}
	}
	trace, _, _ := strings.Cut(text, "\nRequest information:")
	if i := strings.Index(trace, "\nTraceback"); i >= 0 {
		trace = trace[i+1:]
	}
	return Error{m[1], m[2], trace}
}

// aspnetText reads the developer's exception page. The headers below the stack are
// no part of the error.
func aspnetText(text string) Error {
	trace, _, ok := strings.Cut(text, "\nHEADERS\n=======\n")
	if !ok {
		return Error{}
	}
	e := stack(trace)
	e.Trace = trace
	return e
}

// python reads the last traceback: the one that ended the program. Its error is on
// the first line that is not indented.
func python(text string) Error {
	i := strings.LastIndex(text, "Traceback (most recent call last):\n")
	if i < 0 {
		return Error{}
	}
	lines := strings.Split(text[i:], "\n")[1:]
	for i, line := range lines {
		if line == "" || line[0] == ' ' || line[0] == '\t' {
			continue
		}
		class, first, _ := strings.Cut(line, ": ")
		if !isClass(class) {
			return Error{}
		}
		return Error{Class: class, Message: first + continued(lines[i+1:])}
	}
	return Error{}
}

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

var (
	phpThrown = regexp.MustCompile(`(?s)(?:Uncaught |\n\nNext )(\\?[A-Za-z_][\w\\]*)(?:: (.*?))? in (\S+):\d+\nStack trace:`)
	phpFatal  = regexp.MustCompile(`(?m)^(?:PHP )?((?:Fatal|Parse|Compile) error): +(.*) in \S+ on line \d+$`)
)

// php reads what PHP says of an exception that nobody caught, the outermost of
// those that led to each other, or of another end.
func php(text string) Error {
	if all := phpThrown.FindAllStringSubmatch(text, -1); all != nil {
		last := all[len(all)-1]
		return Error{Class: last[1], Message: last[2]}
	}
	if m := phpFatal.FindStringSubmatch(text); m != nil {
		return Error{Class: m[1], Message: m[2]}
	}
	return Error{}
}

var rubyForm = regexp.MustCompile("(?m)^\\S.*?:\\d+:in [`'\"].*?['\"]: (.*) \\(([A-Z]\\w*(?:::\\w+)*)\\)$")

func ruby(text string) Error {
	if m := rubyForm.FindStringSubmatch(text); m != nil {
		return Error{Class: m[2], Message: m[1]}
	}
	return Error{}
}

var elixirForm = regexp.MustCompile(`(?m)^\s*\*\* \(([A-Za-z][\w.]*)\) (.*)$`)

func elixir(text string) Error {
	if m := elixirForm.FindStringSubmatch(text); m != nil {
		return Error{Class: m[1], Message: m[2]}
	}
	return Error{}
}

var rustForm = regexp.MustCompile(`(?m)^thread '.*?' (?:\(\d+\) )?panicked at \S+:\d+:\d+:\n(.*)$`)

func rust(text string) Error {
	if m := rustForm.FindStringSubmatch(text); m != nil {
		return Error{Class: "panic", Message: m[1]}
	}
	return Error{}
}

var goForm = regexp.MustCompile(`(?m)^(panic|fatal error): (.*?)(?: \[recovered.*\])?$`)

func golang(text string) Error {
	m := goForm.FindStringSubmatch(text)
	if m == nil || !strings.Contains(text, "\ngoroutine ") {
		return Error{}
	}
	return Error{Class: m[1], Message: m[2]}
}

var (
	atLine   = regexp.MustCompile(`^\s*at \S|^\t[\w.$/]+\([^()]*\)$`) // Tomcat leaves out the "at"
	headForm = regexp.MustCompile(
		`^(?:Unhandled [Ee]xception[.:] |Uncaught |Exception in thread ".*?" )?` + `([A-Za-z_$][\w.$]*)(?: \[\w+\])?(?::(?: (.*))?)?$`)
)

// stack reads the last stack of lines that begin with "at": above it stand the class
// and the message. What is said to have caused the error is left to the trace.
func stack(text string) Error {
	var found Error
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if atLine.MatchString(line) && (i == 0 || !atLine.MatchString(lines[i-1])) {
			if e := head(lines[:i]); e.found() {
				found = e
			}
		}
	}
	return found
}

// head is the error that the lines before a stack end with.
func head(before []string) Error {
	for i := len(before) - 1; i >= max(0, len(before)-2*maxContinued); i-- {
		if atLine.MatchString(before[i]) {
			break
		}
		if m := headForm.FindStringSubmatch(before[i]); m != nil && isClass(m[1]) {
			return Error{Class: m[1], Message: m[2] + continued(withoutCauses(before[i+1:]))}
		}
	}
	return Error{}
}

// withoutCauses ends before what .NET says of the errors that led to one.
func withoutCauses(lines []string) []string {
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "---> ") {
			return lines[:i]
		}
	}
	return lines
}

var classForm = regexp.MustCompile(`^\\?[A-Za-z_$][\w$]*(?:(?:[.#$\\]|::)[A-Za-z_$][\w$]*)*$`)

// isClass reports whether a text is the name of a type as errors have it: with an
// upper-case letter at its beginning, or in a package.
func isClass(s string) bool {
	return classForm.MatchString(s) && (strings.ContainsAny(s, `.\`) || 'A' <= s[0] && s[0] <= 'Z')
}
