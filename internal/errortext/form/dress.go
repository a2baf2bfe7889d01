package form

import (
	"regexp"
	"strings"
)

// dressForm is what Docker, Kubernetes, a process manager or the system's log write before
// each line of a program: its name and a bar, or the time.
var dressForm = regexp.MustCompile(
	`^(?:(?:\d\d:\d\d:\d\d )?[\w.-]+ +\| |\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S* |[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ \S+: )`)

// levelForm is the level with which a logger goes on behind the time.
var levelForm = regexp.MustCompile(`^ *\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)[ \]]`)

// Undressed is a text without what was written before most of its lines.
func Undressed(text string) string {
	first := strings.TrimLeft(text, "\n")
	prefix := dressForm.FindString(first)
	if prefix == "" || levelForm.MatchString(first[len(prefix):]) { // the time belongs to a line of a log
		return text
	}

	lines := strings.Split(text, "\n")
	dressed := 0
	for i, line := range lines {
		bare, ok := WithoutPrefix(line+" ", prefix) // an empty line has lost its last space
		if ok {
			lines[i] = strings.TrimSuffix(bare, " ")
			dressed++
		}
	}

	if dressed < 2 || dressed*2 <= len(lines) {
		return text
	}

	return strings.Join(lines, "\n")
}

// Unindented is a text without the spaces that all of its lines begin with, if there are as
// many as given.
func Unindented(text string, fewest int) string {
	lines := strings.Split(text, "\n")
	indent := -1
	for _, line := range lines {
		spaces := len(line) - len(strings.TrimLeft(line, " \t"))
		if spaces < len(line) && (indent < 0 || spaces < indent) {
			indent = spaces
		}
	}

	if indent < fewest {
		return text
	}

	for i, line := range lines {
		lines[i] = line[min(indent, len(line)):]
	}

	return strings.Join(lines, "\n")
}

// WithoutPrefix is a line without what stands before each line of a log or of a group, and
// whether it stands there. Times differ from line to line, and a group begins with "+".
func WithoutPrefix(line, prefix string) (string, bool) {
	if len(line) < len(prefix) {
		return line, strings.TrimSpace(line) == "" && strings.TrimSpace(prefix) == ""
	}

	for i := range len(prefix) {
		a, b := line[i], prefix[i]
		digits := '0' <= a && a <= '9' && '0' <= b && b <= '9'
		if a != b && !digits && !(a == '|' && b == '+') {
			return line, false
		}
	}

	return line[len(prefix):], true
}
