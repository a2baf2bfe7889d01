package errortext

import "strings"

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

// withoutCauses ends before what .NET says of the errors that led to one.
func withoutCauses(lines []string) []string {
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "---> ") {
			return lines[:i]
		}
	}
	return lines
}
