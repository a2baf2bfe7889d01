package form

import (
	"strings"
	"unicode"
)

// ContinuedUntil is the rest of a message of several lines, like that of [Continued]. It also
// ends before a line of a log or of what ran the program, and before a line that the language
// knows as no part of a message.
func ContinuedUntil(lines []string, ends func(line string) bool) string {
	for i, line := range lines {
		if i == MaxContinued || IsLogged(line) || isRunners(line) || ends(line) {
			lines = lines[:i]
			break
		}
	}

	return Continued(lines)
}

// ContainsAny reports whether one of some texts is in a line.
func ContainsAny(line string, texts []string) bool {
	for _, text := range texts {
		if strings.Contains(line, text) {
			return true
		}
	}

	return false
}

// BeginsWithAny reports whether a line begins with one of some texts.
func BeginsWithAny(line string, texts []string) bool {
	for _, text := range texts {
		if strings.HasPrefix(line, text) {
			return true
		}
	}

	return false
}

// LastAfter is what follows some words at the beginning of the last line that begins with
// them.
func LastAfter(lines []string, words string) (last string) {
	for _, line := range lines {
		after, ok := strings.CutPrefix(line, words)
		if ok {
			last = after
		}
	}

	return last
}

// MaxContinued is how many lines of a message are read after its first one.
const MaxContinued = 5

// Continued is the rest of a message of several lines: up to an empty line.
func Continued(lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		if i == MaxContinued || strings.TrimSpace(line) == "" {
			break
		}

		b.WriteString("\n" + line)
	}

	return b.String()
}

// IsBlank reports whether a text says nothing: it has no letter and no digit.
func IsBlank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// Indent is how many blanks a line begins with.
func Indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
