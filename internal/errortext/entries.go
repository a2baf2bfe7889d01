package errortext

import (
	"encoding/json"
	"redrive/internal/errortext/form"
	"strconv"
	"strings"
)

// levels are the weights of the levels of logs, in small letters. What is below an error
// says that the program went on.
var levels = map[string]weight{
	"trace": aside, "trce": aside, "debug": aside, "dbug": aside, "dbg": aside, "verbose": aside,
	"info": aside, "information": aside, "inf": aside, "notice": aside, "warn": aside, "warning": aside, "wrn": aside,
	"error": logged, "err": logged, "eror": logged, "severe": logged, "failure": logged,
	"fatal": opening, "ftl": opening, "critical": opening, "crit": opening, "crt": opening, "panic": opening, "dpanic": opening,
	"alert": opening, "emerg": opening, "emergency": opening,
	"10": aside, "20": aside, "30": aside, "40": aside, "50": logged, "60": opening, // of pino and bunyan
}

// logEntry reads a line of a log: JSON, names with values, the form of klog, or a stamp and a
// level before a text.
func logEntry(s string) (line, bool) {
	var text string
	var w weight
	switch {
	case s[0] == '{':
		text, w = jsonEntry(s)
	case isKlog(s):
		text, w = klogEntry(s)
	case strings.Contains(s, "level=") || strings.Contains(s, "lvl=") || strings.Contains(s, "severity="):
		text, w = namedEntry(s)
	default:
		text, w = stampedEntry(s)
	}

	return line{text: text, weight: w, goesOn: w == aside}, text != ""
}

// The names that loggers give to a level, a message and an error.
var (
	levelNames   = []string{"level", "severity", "levelname", "lvl", "log.level", "@l", "level_name"}
	messageNames = []string{"msg", "message", "@m", "event", "short_message", "@mt"}
	errorNames   = []string{"error", "err", "exception", "exc_info", "@x", "cause", "reason"}
)

// jsonEntry reads an object: its level, its message and its error.
func jsonEntry(s string) (string, weight) {
	var o object
	if json.Unmarshal([]byte(s), &o) != nil {
		return "", nothing
	}

	level := strings.ToLower(o.first(levelNames...))

	// {"level": 50, "msg": "no rate"}
	if number, ok := o["level"].(float64); ok {
		level = strconv.FormatFloat(number, 'f', -1, 64)
	}

	w, known := levels[level]
	said := entryText(o.first(messageNames...), errorText(o))

	// An object with neither a level nor an error is not an entry of a log.
	if said == "" || !known && level == "" && errorText(o) == "" {
		return fromJSON(s).String(), logged
	}

	// An unknown level says nothing, but an error does.
	if !known {
		w = plain
		if errorText(o) != "" {
			w = logged
		}
	}

	return said, w
}

// errorText is the error of an entry: a text, or an object with a message.
func errorText(o object) string {
	for _, name := range errorNames {
		switch v := o[name].(type) {
		case string:
			first, _, _ := strings.Cut(strings.TrimSpace(v), "\n")
			if first != "" {
				return first
			}
		case map[string]any:
			if said := object(v).first(messageNames...); said != "" {
				return said
			}
		}
	}

	return ""
}

// entryText is the message of an entry and its error, once if they say the same.
func entryText(message, cause string) string {
	message, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	switch {
	case message == "" || strings.Contains(cause, message):
		return cause
	case cause == "" || strings.Contains(message, cause):
		return message
	}

	return message + ": " + cause
}

// isKlog reports whether a line has the form of the logs of Kubernetes, which begin with a
// letter for the level and the date: "E1127 23:53:54.094132   16644 memcache.go:265] …".
func isKlog(s string) bool {
	return len(s) > len("E1127 ") && strings.IndexByte("IWEF", s[0]) >= 0 && isNumber(s[1:5]) && s[5] == ' ' && strings.Contains(s, "] ")
}

// klogEntry reads an error of klog as noted: kubectl logs some before it says what is wrong.
func klogEntry(s string) (string, weight) {
	_, text, _ := strings.Cut(s, "] ")
	if said, ok := quotedText(text); ok {
		text = entryText(said, namedValue(text, "err"))
	}

	switch s[0] {
	case 'E':
		return text, noted
	case 'F':
		return text, opening
	}

	return text, aside
}

// namedEntry reads names with values: time=… level=error msg="…" err="…".
func namedEntry(s string) (string, weight) {
	level := ""
	for _, name := range levelNames {
		if level == "" {
			level = strings.ToLower(namedValue(s, name))
		}
	}

	w, known := levels[level]

	message := namedValue(s, "msg")
	if message == "" {
		message = namedValue(s, "message")
	}

	cause := namedValue(s, "error")
	if cause == "" {
		cause = namedValue(s, "err")
	}

	said := entryText(message, cause)
	if !known || said == "" {
		return "", nothing
	}

	return said, w
}

// namedValue is the value behind a name and "=", without its quotes.
func namedValue(s, name string) string {
	at := strings.Index(" "+s, " "+name+"=")
	if at < 0 {
		return ""
	}

	value := s[at+len(name)+1:]
	if said, ok := quotedText(value); ok {
		return said
	}

	value, _, _ = strings.Cut(value, " ")

	return value
}

// quotedText is the text in quotes with which s begins.
func quotedText(s string) (string, bool) {
	if !strings.HasPrefix(s, `"`) {
		return "", false
	}

	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return strings.ReplaceAll(s[1:i], `\"`, `"`), true
		}
	}

	return "", false
}

// maxStamp is how many words before a text can hold the time, the process and the level.
const maxStamp = 7

// stampedEntry reads a line in which a level stands before the text, behind the time or
// the name of a channel. "Error: …" without a stamp is the text itself.
func stampedEntry(s string) (string, weight) {
	if text, w := channelEntry(s); w > nothing {
		return text, w
	}

	// "2026-03-04 05:06:07 [worker] ERROR no rate"
	rest, stamped := strings.ReplaceAll(s, "\t", " "), false
	for range maxStamp {
		word, after, _ := strings.Cut(rest, " ")
		if w, ok := wordLevel(word, stamped); ok && after != "" {
			text := strings.TrimLeft(after, " -:|]")
			if form.IsBlank(text) {
				return "", nothing
			}

			return text, w
		}

		if !isStamp(word) {
			return "", nothing
		}

		rest, stamped = strings.TrimLeft(after, " "), true
	}

	return "", nothing
}

// channelEntry reads "ERROR:shop.feeds:the feed has no prices", as Python's logging writes it.
func channelEntry(s string) (string, weight) {
	level, rest, _ := strings.Cut(s, ":")
	channel, text, ok := strings.Cut(rest, ":")
	w, known := levels[strings.ToLower(level)]

	isLevel := known && level == strings.ToUpper(level) && !isNumber(level)
	if !ok || !isLevel || channel == "" || strings.Contains(channel, " ") || form.IsBlank(text) {
		return "", nothing
	}

	return text, w
}

// wordLevel is the level that a word means: ERROR, [error], app.ERROR:, "ERROR/MainProcess]".
// In small letters it needs a mark, and without a stamp before it the word has to name the
// channel.
func wordLevel(word string, stamped bool) (weight, bool) {
	name := strings.Trim(word, "[]():|<>")
	if !stamped && !strings.Contains(name, ".") {
		return nothing, false
	}

	name, _, _ = strings.Cut(name, "/")
	if at := strings.LastIndexByte(name, '.'); at >= 0 {
		name = name[at+1:]
	}

	w, ok := levels[strings.ToLower(name)]

	return w, ok && !isNumber(name) && (name == strings.ToUpper(name) || strings.ContainsAny(word, "[]:|<>"))
}

// isStamp reports whether a word belongs to what loggers write before the level: times, the
// number of a process, names in brackets.
func isStamp(word string) bool {
	if word == "" || word == "-" || word == "|" || word == "--" {
		return true
	}

	if strings.HasPrefix(word, "[") || strings.HasSuffix(word, "]") || strings.HasSuffix(word, "],") || word == "E," || word == "F," {
		return true
	}

	digits := strings.IndexAny(word, "0123456789")

	return digits >= 0 && strings.Trim(word, "0123456789-:/.,TZ+#*()[]") == ""
}

// wholeObject is the error in a text that is one JSON object over several lines.
func wholeObject(text string) string {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") || !strings.Contains(text, "\n") || !json.Valid([]byte(text)) {
		return ""
	}

	return fromJSON(text).String()
}
