package errortext

import (
	"encoding/json"
	"redrive/internal/errortext/form"
	"strings"
	"unicode"
)

// weight is how much a line says about why a program failed.
type weight int

// The weights, the least first.
const (
	nothing weight = iota // no letter and no digit
	aside                 // hints, links, usage texts, warnings, progress
	summary               // that something failed, but not what
	plain                 // anything else that is said
	noted                 // an error by its form, as libraries log it before the program speaks
	trouble               // a sentence with a word of trouble
	logged                // a line of a log whose level is that of an error
	opening               // a line that begins as an error begins
)

// inRuns reports whether of some such lines the first one says most.
func (w weight) inRuns() bool { return w == opening || w == noted || w == summary }

// maxWeighed is how much of a line is read to weigh it.
const maxWeighed = 600

// weigh says what a line is worth on its own.
func weigh(raw string) line {
	text, framed := unframed(withoutService(raw))
	l := line{text: text, framed: framed, indented: strings.HasPrefix(raw, " ") || strings.HasPrefix(raw, "\t")}
	if form.IsBlank(text) {
		return l
	}

	if entry, ok := logEntry(text); ok {
		entry.framed, entry.indented = framed, l.indented
		return entry
	}

	l.text = strings.TrimPrefix(withoutProgress(text), ";; ") // of dig
	if question, ok := strings.CutSuffix(l.text, "?."); ok {
		l.text = question + "?" // as older versions of Docker end it
	}

	judged := strings.TrimPrefix(l.text, "remote: ")
	judged = strings.ToLower(judged[:min(len(judged), maxWeighed)])
	if isLayer(judged) {
		l.weight = aside
		return l
	}

	l.weight = weightOf(judged, l.indented)
	if l.weight >= plain && isNamed(l.text) {
		l.weight = opening
	}

	if place := perlPlace(l.text); place > 0 && l.weight > summary {
		l.text, l.weight = l.text[:place], opening
	}

	l.text = withoutResult(l.text)

	return l
}

// withoutResult is a line without the values around the message in the result of a task of
// Ansible: `fatal: [web1]: FAILED! => {"changed": false, "msg": "…"}`.
func withoutResult(s string) string {
	task, result, ok := strings.Cut(s, "! => {")
	if !ok {
		return s
	}

	var o object
	if json.Unmarshal([]byte("{"+result), &o) != nil || o.text("msg") == "" {
		return s
	}

	return task + "! => " + entryText(o.text("msg"), lastLine(o.first("stderr", "module_stderr")))
}

// lastLine is the last line of the output of a command within the result of a task.
func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// weightOf weighs a line in small letters. Programs do not indent their own names.
func weightOf(s string, indented bool) weight {
	for _, rule := range rules {
		if rule.fits(s) {
			return rule.weight
		}
	}

	switch {
	case !tellsTrouble(s):
		return plain
	case isProgram(s) && !indented, isComponent(s):
		return opening
	}

	return trouble
}

// tellsTrouble reports whether a line in small letters has a word of trouble.
func tellsTrouble(s string) bool {
	words := strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' })
	for word := range words {
		if troubles[word] || strings.HasSuffix(word, "n't") || strings.HasSuffix(word, "n’t") {
			return true
		}
	}

	return false
}

// isProgram reports whether a line in small letters begins with the name of a program or a
// file, as in "cp: cannot stat …".
func isProgram(s string) bool {
	const longest = 120
	name, _, ok := strings.Cut(s[:min(len(s), longest)], ": ")
	name = strings.TrimSuffix(name, " (child)")
	return ok && name != "" && !strings.ContainsAny(name, " \"'<>{}=,|")
}

// layerStates are what Docker says of a layer that it pulls or pushes, in small letters.
var layerStates = [...]string{
	"already exists", "pulling fs layer", "waiting", "downloading", "verifying checksum", "download complete", "extracting", "pull complete",
	"retrying in", "preparing", "layer already exists", "mounted from", "pushing", "pushed", "unavailable",
}

// isLayer reports whether a line in small letters tells how a layer of an image is going:
// "a2abf6c4d29d: already exists".
func isLayer(s string) bool {
	const digits = 12
	id, state, ok := strings.Cut(s, ": ")
	if !ok || len(id) != digits || strings.Trim(id, "0123456789abcdef") != "" {
		return false
	}

	for _, known := range layerStates {
		if strings.HasPrefix(state, known) {
			return true
		}
	}

	return false
}

// isComponent reports whether a line begins as those of FFmpeg do that a part of it writes:
// "[mov,mp4 @ 0x5592c0cd9840] moov atom not found".
func isComponent(s string) bool {
	component, _, ok := strings.Cut(s, "] ")
	return ok && strings.HasPrefix(component, "[") && strings.Contains(component, " @ 0x")
}

// isNamed reports whether a line begins with the class of an error.
func isNamed(s string) bool {
	class, _, _ := strings.Cut(s[:min(len(s), maxWeighed)], ": ")
	return (strings.HasSuffix(class, "Error") || strings.HasSuffix(class, "Exception")) && form.IsClass(class)
}

// withoutService is a line without the name of the service that Docker Compose writes before
// it: "worker-1  | Error: …".
func withoutService(s string) string {
	name, rest, ok := strings.Cut(s, "  | ")
	name = strings.TrimRight(name, " ")
	if !ok || name == "" || strings.ContainsAny(name, " \t:") || isNumber(name) {
		return s
	}

	return rest
}

// withoutProgress is a line without what shows progress before it: the meter of curl, which
// has no line end, and the steps and seconds of Docker's builds.
func withoutProgress(s string) string {
	if at := strings.Index(s, "curl: ("); at > 0 && strings.Trim(s[:at], "0123456789 :-.kMG") == "" {
		return s[at:]
	}

	if step, rest, ok := strings.Cut(s, " "); ok && strings.HasPrefix(step, "#") && isNumber(step[1:]) && !form.IsBlank(rest) {
		s = rest
	}

	seconds, rest, ok := strings.Cut(s, " ")
	whole, fraction, hasPoint := strings.Cut(seconds, ".")
	if ok && hasPoint && isNumber(whole) && len(fraction) <= len("123") && isNumber(fraction) && !form.IsBlank(rest) {
		return strings.TrimSpace(rest)
	}

	return s
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// perlPlace is the length of a line up to the place that Perl appends: "… at a.pl line 3.",
// "… at a.pl line 3, <STDIN> line 17." It is 0 without such a place.
func perlPlace(s string) int {
	said, ok := strings.CutSuffix(s, ".")
	at := strings.LastIndex(said, " at ")
	if !ok || at <= 0 {
		return 0
	}

	_, number, ok := strings.Cut(said[at+len(" at "):], " line ")
	number, _, _ = strings.Cut(number, ", <")
	if !ok || !isNumber(number) {
		return 0
	}

	if searched := strings.Index(s[:at], " (@INC "); searched > 0 {
		return searched
	}

	return at
}
