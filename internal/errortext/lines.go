package errortext

import (
	"strings"
	"unicode"
)

// likeliest is the line of a text that a person would pick as its error.
func likeliest(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	last := ""
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		if strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			return line
		}
		if last == "" {
			last = line
		}
	}
	return last
}
