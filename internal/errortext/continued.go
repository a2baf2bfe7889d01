package errortext

import "regexp"

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
	`^(?:[DIWEF], )?\[?(?:\d{4}[-/]\d\d[-/]\d\d(?:T|,? )\d\d:\d\d|\d\d:\d\d:\d\d\b|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |(?:DEBUG|INFO|NOTICE|WARN|WARNING|warning)\b)`)

// isLogged reports whether a line is one of a log.
func isLogged(line string) bool { return loggedForm.MatchString(line) }

// runnersForm is a line with which make, npm, a container or a build ends.
var runnersForm = regexp.MustCompile(
	`^(?:make(?:\[\d+\])?: |npm |error Command failed|error: [Rr]ecipe |Command exited |command terminated |##\[error\]|Error: Process completed )` +
		`|exited with (?:code|status|exit code) \d+$`)

// isRunners reports whether a line was written by what ran the program.
func isRunners(line string) bool { return runnersForm.MatchString(line) }
