package errortext

import (
	"regexp"
	"strings"
)

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
