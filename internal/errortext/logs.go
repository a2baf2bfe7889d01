package errortext

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// logs reads the last line on which a logger wrote an error: an object of JSON, fields
// such as level=ERROR, or words behind a time and a level.
func logs(text string) Error {
	lines := strings.Split(text, "\n")
	for i, line := range slices.Backward(lines) {
		if beginsError(line) && !levelLine.MatchString(line) { // said by no logger
			return Error{}
		}
		for _, read := range [...]func(line string, below []string) Error{jsonLine, fieldsLine, wordsLine} {
			if e := read(strings.TrimSpace(line), lines[i+1:]); e.found() {
				return e
			}
		}
	}
	return Error{}
}

// isLevel reports whether a word is the level of an error.
func isLevel(word string) bool {
	return slices.Contains([]string{
		"error", "erro", "err", "eror", "severe", "fatal", "fata", "ftl", "panic", "dpanic", "pnc", "critical", "crit", "alert", "emergency",
	}, strings.ToLower(word))
}

// jsonLine reads an object of JSON: of slog, zap, zerolog, pino, Bunyan, winston,
// Logback, Serilog, or of a service of a cloud.
func jsonLine(line string, _ []string) Error {
	if !strings.HasPrefix(line, "{") {
		return Error{}
	}
	var o object
	if json.Unmarshal([]byte(line), &o) != nil {
		return Error{}
	}
	number, _ := o["level"].(float64)
	if number < 50 && !isLevel(o.first("level", "severity", "lvl", "@l", "levelname", "log.level")) { // pino counts in tens
		return Error{}
	}

	e := Error{Message: o.first("msg", "message", "@m", "@mt", "event")}
	for _, name := range [...]string{"err", "error", "exception", "@x", "stack_trace", "exc_info"} {
		cause := loggedError(o, name)
		if cause.found() {
			e.Class = cause.Class
			e = e.because("", cause.Message)
		}
	}
	return e
}

// loggedError is a field with an error: a text, a stack trace, or an object.
func loggedError(o object, name string) Error {
	if inner, ok := o[name].(map[string]any); ok {
		o = inner
		return Error{Class: o.first("type", "name", "class"), Message: o.first("message", "msg")}
	}
	text := o.text(name)
	if !strings.Contains(text, "\n") {
		return Error{Message: text}
	}
	for _, read := range [...]func(string) Error{python, javaTrace, dotnetTrace, nodeTrace} {
		if e := read(text); e.found() {
			return e
		}
	}
	return Error{Message: firstLine(text)}
}

// fieldsLine reads fields that say their names: level=ERROR msg="charge failed" err=….
func fieldsLine(line string, _ []string) Error {
	if !strings.Contains(line, "level=") && !strings.Contains(line, "lvl=") {
		return Error{}
	}
	fields := logFields(line)
	if !isLevel(fields["level"] + fields["lvl"]) {
		return Error{}
	}
	e := Error{Message: fields["msg"] + fields["message"]}
	return e.because("", fields["err"]+fields["error"])
}

// logFields are the fields of a line by their names.
func logFields(line string) map[string]string {
	fields := map[string]string{}
	for line != "" {
		name, rest, ok := strings.Cut(line, "=")
		if !ok {
			break
		}
		name = name[strings.LastIndexByte(name, ' ')+1:]
		value, err := strconv.QuotedPrefix(rest)
		if err == nil {
			line = rest[len(value):]
			value, _ = strconv.Unquote(value)
		} else {
			value, line = unquoted(rest)
		}
		fields[name] = value
	}
	return fields
}

// unquoted is a value without quotes, up to the next field.
func unquoted(s string) (value, rest string) {
	end := strings.IndexByte(s, '=')
	if end < 0 {
		return s, ""
	}
	end = strings.LastIndexByte(s[:end], ' ')
	if end < 0 {
		return "", s
	}
	return s[:end], s[end:]
}

var (
	stdLog    = regexp.MustCompile(`^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)? (?:[\w.-]+\.go:\d+: )?`)
	levelLine = regexp.MustCompile(`^(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d\S*|\d\d?:\d\d[AP]M)?\s*([A-Z]{3,8})(?:\[\d+\]|:)?\s+(?:\w+(?:::\w+)*[\]:]\s+|[\w/.-]+\.go:\d+:?\s+)?(\S.*)$`)
	klogForm  = regexp.MustCompile(`^[EF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.-]+:\d+\] (.+)$`)
	attribute = regexp.MustCompile(`\s[\w.]+=|\t\{`)
)

// wordsLine reads words behind a time, or behind a time and a level. Further lines of the
// message follow it.
func wordsLine(line string, below []string) Error {
	if m := klogForm.FindStringSubmatch(line); m != nil {
		return withFields(m[1], nil)
	}
	rest := line[len(stdLog.FindString(line)):]
	timed := len(rest) < len(line)
	m := levelLine.FindStringSubmatch(rest)
	switch {
	case m != nil && isLevel(m[1]):
		return withFields(m[2], below)
	case m != nil && slices.Contains(harmless, m[1]), !timed:
		return Error{}
	}
	return Error{Message: rest + continued(withoutStack(below))}
}

// harmless are levels of what is no error.
var harmless = []string{"INFO", "WARN", "WARNING", "DEBUG", "DEBU", "TRACE", "INF", "WRN", "DBG", "TRC"}

// withFields reads a message, and fields behind it or an object of JSON.
func withFields(said string, below []string) Error {
	fields := ""
	at := attribute.FindStringIndex(said)
	if at != nil && strings.Count(said[:at[0]], "[") == strings.Count(said[:at[0]], "]") {
		said, fields = strings.TrimSpace(said[:at[0]]), said[at[0]:]
	}
	said = said[strings.LastIndexByte(said, '\t')+1:]
	if whole, err := strconv.Unquote(said); err == nil {
		said = whole
	}

	var o object
	cause := ""
	if json.Unmarshal([]byte(fields), &o) == nil {
		cause = o.first("error", "err")
	} else {
		all := logFields(fields)
		cause = all["err"] + all["error"]
	}
	return Error{Message: said + continued(withoutStack(below))}.because("", cause)
}

// withoutStack ends before the stack of a goroutine, or of the place of the logger.
func withoutStack(lines []string) []string {
	for i, line := range lines[:min(len(lines), maxContinued)] {
		if strings.HasPrefix(line, "goroutine ") || i+1 < len(lines) && isGoPlace(lines[i+1]) {
			return lines[:i]
		}
	}
	return lines
}
