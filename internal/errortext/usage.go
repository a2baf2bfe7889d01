package errortext

import (
	"regexp"
	"strings"
)

var (
	usageLine = regexp.MustCompile(`^\s*(?:(?i:usage):|Usage of \S+:$|NAME:$|\$ yarn run |\(Did you mean |` +
		`\s+--help\s+Display this help screen|For more information,? try |(?:Run|Try|See|Use) ['"\x60].*--?h(?:elp)?['"\x60])`)
	errorLine = regexp.MustCompile(`^(?:[\w./-]+: )?(?i:(?:usage )?error|fatal|incorrect usage|error\(s\)): ?`)
)

// usage reads what a program says of its arguments or of anything else before it explains
// how it is called, or behind that.
func usage(text string) Error {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !usageLine.MatchString(line) || errorLine.MatchString(line) {
			continue
		}
		for j := i + 1; j < len(lines); j++ {
			if beginsError(lines[j]) || stdLog.MatchString(lines[j]) {
				return Error{Message: withoutLabel(lines[j] + continued(lines[j+1:]))}
			}
		}
		return Error{Message: withoutLabel(errorBefore(lines[:i]))}
	}
	return Error{}
}

// errorBefore is the last error of some lines, or else the last of them that is no heading.
func errorBefore(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		if beginsError(lines[i]) {
			return lines[i] + continued(lines[i+1:])
		}
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if line := lines[i]; line != "" && indent(line) == 0 && !strings.HasSuffix(line, ":") {
			return line + continued(lines[i+1:])
		}
	}
	return ""
}

// beginsError reports whether a line begins as programs begin an error: "Error: …",
// "feeds: error: …".
func beginsError(line string) bool { return errorLine.MatchString(line) }

// withoutLabel is a message without the word that calls it an error, and without what a
// logger wrote before it.
func withoutLabel(message string) string {
	first, rest, _ := strings.Cut(message, "\n")
	if _, said, ok := levelled(first); ok {
		return strings.TrimSpace(said + "\n" + rest)
	}
	message = message[len(stdLog.FindString(message)):]
	return strings.TrimSpace(message[len(errorLine.FindString(message)):])
}
