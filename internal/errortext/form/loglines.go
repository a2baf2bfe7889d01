package form

import (
	"regexp"
	"strings"
)

// loggedForm is how a line of a log begins: with a time, with a level, or with both.
var loggedForm = regexp.MustCompile(
	`^(?:[DIWEF], )?\[?(?:\d{4}[-/]\d\d[-/]\d\d(?:T|,? )\d\d:\d\d|\d\d:\d\d:\d\d\b|` +
		`[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |(?:DEBUG|INFO|NOTICE|WARN|WARNING|warning)\b)`)

// IsLogged reports whether a line is one of a log.
func IsLogged(line string) bool { return loggedForm.MatchString(line) }

// runnersForm is a line with which make, npm, a container or a build ends.
var runnersForm = regexp.MustCompile(
	`^(?:make(?:\[\d+\])?: |npm |error Command failed|error: [Rr]ecipe |Command exited |` +
		`command terminated |##\[error\]|Error: Process completed )` +
		`|exited with (?:code|status|exit code) \d+$`)

// isRunners reports whether a line was written by what ran the program.
func isRunners(line string) bool { return runnersForm.MatchString(line) }

// StdLogTime is the time, and the place, that loggers of Go write before a message.
func StdLogTime(line string) string { return stdLog.FindString(line) }

var (
	stdLog = regexp.MustCompile(`^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)? (?:[\w.-]+\.go:\d+: )?`)

	// logTime is the time before a line, or the seconds behind its level.
	logTime = regexp.MustCompile(`^(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d\S*\s+(?:[+-]\d\d:\d\d )?|` +
		`\d\d?:\d\d[AP]M |\[\d\d:\d\d:\d\d )`)
	logLevel  = regexp.MustCompile(`^(?:\w+\.)?\[?([A-Z]{3,8}|[a-z]{3,8}[:\]])(?:\[\d+\]|[:\]])?\s+`)
	inSeconds = regexp.MustCompile(`^[A-Z]{4}\[\d+\]`)

	// logPlace is the logger, the thread or the line of the source before a message.
	logPlace = regexp.MustCompile(`^(?:\d+ --- (?:\[[^\]]*\] )+\S+\s+: |\[[^\]]*\] [\w.$]+ +- |` +
		`\w+(?:::\w+)+: |[\w:]+\] |[\w/.-]+\.go:\d+:?\s+)`)
)

// Levelled reads a line with a time and a level.
func Levelled(line string) (level, said string, ok bool) {
	rest := line[len(logTime.FindString(line)):]
	m := logLevel.FindStringSubmatch(rest)
	if m == nil || len(rest) == len(line) && !inSeconds.MatchString(line) {
		return "", "", false
	}

	said = rest[len(m[0]):]

	return strings.Trim(m[1], ":]"), said[len(logPlace.FindString(said)):], true
}
