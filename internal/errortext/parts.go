package errortext

import (
	"regexp"
	"strings"
)

// chain is an error and what caused it.
type chain struct{ last, first Error }

// error says both.
func (c chain) error() Error {
	if c.first == c.last {
		return c.last
	}
	return c.last.because(c.first.Class, c.first.Message)
}

// continuedUntil is the rest of a message of several lines, like that of [continued]. It also
// ends before a line of a log or of what ran the program, and before a line that the language
// knows as no part of a message.
func continuedUntil(lines []string, ends func(line string) bool) string {
	for i, line := range lines {
		if i == maxContinued || isLogged(line) || isRunners(line) || ends(line) {
			lines = lines[:i]
			break
		}
	}

	return continued(lines)
}

// loggedForm is how a line of a log begins: with a time, with a level, or with both.
var loggedForm = regexp.MustCompile(
	`^(?:[DIWEF], )?\[?(?:\d{4}[-/]\d\d[-/]\d\d(?:T|,? )\d\d:\d\d|\d\d:\d\d:\d\d\b|` +
		`[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |(?:DEBUG|INFO|NOTICE|WARN|WARNING|warning)\b)`)

// isLogged reports whether a line is one of a log.
func isLogged(line string) bool { return loggedForm.MatchString(line) }

// runnersForm is a line with which make, npm, a container or a build ends.
var runnersForm = regexp.MustCompile(
	`^(?:make(?:\[\d+\])?: |npm |error Command failed|error: [Rr]ecipe |Command exited |` +
		`command terminated |##\[error\]|Error: Process completed )` +
		`|exited with (?:code|status|exit code) \d+$`)

// isRunners reports whether a line was written by what ran the program.
func isRunners(line string) bool { return runnersForm.MatchString(line) }

// containsAny reports whether one of some texts is in a line.
func containsAny(line string, texts []string) bool {
	for _, text := range texts {
		if strings.Contains(line, text) {
			return true
		}
	}

	return false
}

// beginsWithAny reports whether a line begins with one of some texts.
func beginsWithAny(line string, texts []string) bool {
	for _, text := range texts {
		if strings.HasPrefix(line, text) {
			return true
		}
	}

	return false
}

// lastAfter is what follows some words at the beginning of the last line that begins with
// them.
func lastAfter(lines []string, words string) (last string) {
	for _, line := range lines {
		after, ok := strings.CutPrefix(line, words)
		if ok {
			last = after
		}
	}

	return last
}
