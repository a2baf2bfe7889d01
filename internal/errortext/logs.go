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
			rest = rest[len(value):]
			value, _ = strconv.Unquote(value)
		} else {
			value, rest, _ = strings.Cut(rest, " ")
		}
		fields[name] = value
		line = rest
	}
	return fields
}

var (
	stdLog    = regexp.MustCompile(`^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)? (?:[\w.-]+\.go:\d+: )?`)
	levelLine = regexp.MustCompile(`^(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d\S*|\d\d?:\d\d[AP]M)?\s*([A-Z]{3,8})(?:\[\d+\]|:)?\s+(?:\w+(?:::\w+)*[\]:]\s+|[\w/.-]+\.go:\d+:?\s+)?(\S.*)$`)
	attribute = regexp.MustCompile(`\s[\w.]+=|\t\{`)
)

// wordsLine reads words behind a time, or behind a time and a level. Further lines of the
// message follow it.
func wordsLine(line string, below []string) Error {
	rest := line[len(stdLog.FindString(line)):]
	m := levelLine.FindStringSubmatch(rest)
	switch {
	case m != nil && isLevel(m[1]) && (len(rest) < len(line) || m[1] != "ERR"):
		rest = m[2]
	case m != nil && slices.Contains([]string{"INFO", "WARN", "WARNING", "DEBUG", "DEBU", "INF", "WRN", "DBG"}, m[1]), len(rest) == len(line):
		return Error{}
	}

	said, fields := rest, ""
	if at := attribute.FindStringIndex(rest); at != nil && m != nil {
		said, fields = strings.TrimSpace(rest[:at[0]]), rest[at[0]:]
	}
	all := logFields(fields)
	cause := all["err"] + all["error"]
	var zap object
	if json.Unmarshal([]byte(fields), &zap) == nil {
		cause = zap.first("error", "err")
	}
	said, _, stack := strings.Cut(said+continued(below), "\ngoroutine ")
	_ = stack
	return Error{Message: said}.because("", cause)
}
