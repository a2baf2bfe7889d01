package form

import (
	"regexp"
	"strings"
)

// errorLine is the beginning of a line on which a program says that it is an error.
var errorLine = regexp.MustCompile(`^(?:[\w./-]+: )?(?i:(?:usage )?error|fatal|incorrect usage|error\(s\)): ?`)

// BeginsError reports whether a line begins as programs begin an error: "Error: …",
// "feeds: error: …".
func BeginsError(line string) bool { return errorLine.MatchString(line) }

// WithoutLabel is a message without the word that calls it an error, and without what a
// logger wrote before it.
func WithoutLabel(message string) string {
	first, rest, _ := strings.Cut(message, "\n")
	if _, said, ok := Levelled(first); ok {
		return strings.TrimSpace(said + "\n" + rest)
	}

	message = message[len(StdLogTime(message)):]

	return strings.TrimSpace(message[len(errorLine.FindString(message)):])
}
