package errortext

import (
	"encoding/json"
	"redrive/internal/errortext/form"
	"redrive/internal/errortext/lang"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// logs reads the last line on which a logger wrote an error: an object of JSON, fields
// such as level=ERROR, or words behind a time and a level. What stands below a line that is
// no error was said by no logger, and goes before all of them.
func logs(text string) Error {
	lines := strings.Split(text, "\n")
	plain := false
	for i, line := range slices.Backward(lines) {
		logged := ofLogger(line)
		if plain && isKlog(line) { // kubectl logs before it says what is wrong
			return Error{}
		}

		for _, read := range [...]func(line string, below []string) Error{jsonLine, fieldsLine, wordsLine} {
			if e := read(strings.TrimSpace(line), lines[i+1:]); e.Found() {
				return e
			}
		}

		if form.BeginsError(line) || plain && logged {
			return Error{}
		}

		plain = plain || !logged && line != "" && form.Indent(line) == 0
	}

	return Error{}
}

// ofLogger reports whether a line is one of a logger.
func ofLogger(line string) bool {
	_, _, ok := form.Levelled(line)
	return ok || isKlog(line) || strings.HasPrefix(line, "{") || strings.Contains(line, "level=") || form.StdLogTime(line) != ""
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
		if e.Class == "" {
			e.Class = cause.Class
		}

		e = e.Because("", cause.Message)
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

	return lang.Trace(text)
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

	return e.Because("", fields["err"]+fields["error"])
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
		} else {
			value, line = unquoted(rest)
		}

		fields[name] = withoutQuotes(value)
	}

	return fields
}

// withoutQuotes is what a text in quotes stands for, and any other text.
func withoutQuotes(s string) string {
	inside, err := strconv.Unquote(s)
	if err != nil {
		return s
	}

	return strings.ToValidUTF8(inside, "\uFFFD")
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
	klogForm  = regexp.MustCompile(`^[EF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.-]+:\d+\] (.+)$`)
	attribute = regexp.MustCompile(`\s[\w.]+=|\t\{`)
)

// wordsLine reads words behind a time, or behind a time and a level. Further lines of the
// message follow it.
func wordsLine(line string, below []string) Error {
	if m := klogForm.FindStringSubmatch(line); m != nil {
		return withFields(m[1], nil)
	}

	if level, said, ok := form.Levelled(line); ok && (isLevel(level) || slices.Contains(harmless, level)) {
		if !isLevel(level) {
			return Error{}
		}
		return withFields(said, below)
	}

	if time := form.StdLogTime(line); time != "" {
		return Error{Message: line[len(time):] + form.Continued(withoutStack(below))}
	}

	return Error{}
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
	said = withoutQuotes(said)

	var o object
	cause := ""
	if json.Unmarshal([]byte(fields), &o) == nil {
		cause = o.first("error", "err")
	} else {
		all := logFields(fields)
		cause = all["err"] + all["error"]
	}

	return Error{Message: said + form.Continued(withoutStack(below))}.Because("", cause)
}

// withoutStack ends before the next line of a logger, before the stack of a goroutine, and
// before that of the place of the logger.
func withoutStack(lines []string) []string {
	for i, line := range lines[:min(len(lines), form.MaxContinued)] {
		stack := strings.HasPrefix(line, "goroutine ") || i+1 < len(lines) && lang.IsGoPlace(lines[i+1])
		if stack || ofLogger(line) {
			return lines[:i]
		}
	}

	return lines
}
