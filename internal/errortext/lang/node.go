package lang

import (
	"redrive/internal/errortext/form"
	"regexp"
	"slices"
	"strings"
)

// javascript reads what programs for Node.js, Deno and Bun write, and what compiles and
// tests them.
func javascript(text string) form.Error {
	for _, read := range [...]func(string) form.Error{prisma, jest, nodeFatal, nodeEnd, nodeTrace, nodeWarning, typescript, pnpm, oclif} {
		if e := read(text); e.Found() {
			return e
		}
	}

	return form.Error{}
}

// nodeTraces collects the last error that was printed, with its stack and its causes. The causes follow
// in braces, each indented more than the error that it caused.
type nodeTraces struct {
	last   form.Error
	indent int  // of the error
	open   bool // its braces
	cause  throw
	deep   int // how far the cause is indented
}

// nodeTrace reads the last error with a stack, or with others in braces.
func nodeTrace(text string) form.Error {
	var t nodeTraces
	blocks(text, t.frame, t.block)
	e := unhandled(t.last)
	return e.Because(t.cause.class, t.cause.message)
}

// frame reports whether a line is one of a stack, and notes whether braces begin behind it.
func (t *nodeTraces) frame(line string) bool {
	is := nodeFrame(line)
	t.open = t.open || is && strings.HasSuffix(line, "{")
	return is
}

// block reads the lines before some frames: those of an error, or of one that led to it.
func (t *nodeTraces) block(lines []string, framed bool) {
	var head heads

	// start takes over the error that began at head and ends before the line end.
	start := func(end int) {
		if head.found {
			*t = nodeTraces{last: nodeError(lines[head.line:end]), indent: head.indent}
		}

		head = heads{}
	}

	for i, line := range lines {
		trimmed := strings.TrimSpace(line)

		// The braces behind an error end where a brace is indented no deeper than the error.
		if trimmed == "}" && form.Indent(line) <= t.indent {
			t.open = false
		}

		// An AggregateError lists its errors within its braces.
		if trimmed == "[errors]: [" {
			start(i)

			t.open = true
			continue
		}

		key, said := nodeKey(line)
		found, ok := nodeThrown(said)
		switch {
		case key != "":
			start(i)

			// A cause need not be an error: "[cause]: 'timeout'".
			if key == "[cause]" && !ok {
				found = throw{message: strings.Trim(said, "'")}
			}

			t.led(key, line, found)
		case !ok:
		// An error within the braces of the last one led to it.
		case t.open && t.last.Found() && form.Indent(line) > t.indent && namesError(found.class):
			t.led(key, line, found)
		// Any other error counts only above a stack or with braces: "[Error: no stack] {".
		case framed || strings.HasSuffix(line, "] {"):
			head.add(i, line, found)
		}
	}

	start(len(lines))
}

// nodeError is the error that begins on the first of some lines. In brackets, it is one
// without a stack.
func nodeError(lines []string) form.Error {
	t, _ := nodeThrown(lines[0])
	e := form.Error{Class: t.class, Message: t.message}
	if _, bracketed := inBrackets(lines[0]); bracketed {
		return e
	}

	below := withoutSource(lines[1:])
	e.Message += form.Continued(below)
	if strings.HasSuffix(e.Message, ":") { // what is compared stands below an empty line
		e.Message += form.Continued(afterBlank(below))
	}

	return e
}

// afterBlank returns the lines that follow the first empty ones.
func afterBlank(lines []string) []string {
	blank := false
	for i, line := range lines {
		empty := strings.TrimSpace(line) == ""
		if blank && !empty {
			return lines[i:]
		}

		blank = blank || empty
	}

	return nil
}

// led adds an error from the braces of another one, of which it is a cause.
func (t *nodeTraces) led(key, line string, found throw) {
	deep := form.Indent(line)

	// The deepest error is the nearest to the cause. Of errors behind "Caused by", each goes
	// before the ones above it.
	if t.last.Found() && (deep > t.deep || strings.HasSuffix(key, "aused by")) {
		t.cause, t.deep = found, deep
	}
}

// withoutSource removes what is between a message and the stack: the place where the error was emitted,
// or a line of the source with a mark below it.
func withoutSource(lines []string) []string {
	for i, line := range lines[:min(len(lines), form.MaxContinued+2)] {
		if strings.HasPrefix(line, "Emitted 'error' event ") {
			return lines[:i]
		}

		if i > 0 && pointsAtSource(line) {
			return lines[:i-1]
		}
	}

	return lines
}

// pointsAtSource reports whether a line is nothing but a mark below a line of the source.
func pointsAtSource(line string) bool {
	trimmed := strings.TrimSpace(line)
	return trimmed != "" && strings.Trim(trimmed, "^~") == ""
}

var nodeField = regexp.MustCompile(`^\s+([a-z_]\w*): (?:\[?\w*(?:[Ee]rror|Exception))(?: \[\w+\])?: `)

// nodeKey removes the name of the field that has an error: "[cause]: Error: …", "original: error: …".
func nodeKey(line string) (key, said string) {
	trimmed := strings.TrimLeft(line, " \t")
	for _, key := range [...]string{"[cause]", "caused by", "Caused by"} {
		if said, ok := strings.CutPrefix(trimmed, key+": "); ok {
			return key, said
		}
	}

	if m := nodeField.FindStringSubmatch(line); m != nil {
		return m[1], trimmed[len(m[1])+len(": "):]
	}

	return "", line
}

var nodeCode = regexp.MustCompile(`^ \[[\w ]+\]`)

// nodeThrown reads the line on which a class and a message stand: "TypeError: fetch
// failed", "Error [ERR_X]: …", "[Error: …] {", "error: Uncaught (in promise) Error: …".
func nodeThrown(line string) (t throw, ok bool) {
	line = strings.TrimSpace(line)
	for _, prefix := range [...]string{"error: Uncaught (in promise) ", "error: Uncaught ", "Uncaught (in promise) ", "Uncaught "} {
		line = strings.TrimPrefix(line, prefix)
	}

	if inside, ok := inBrackets(line); ok {
		line = inside
	}

	if said, is := strings.CutPrefix(line, "error: "); is { // Bun, and PostgreSQL's driver
		return throw{"error", said, false}, true
	}

	name := wordOf(line)
	if code := nodeCode.FindString(line[len(name):]); code != "" && form.IsClass(name) { // its code is one of its fields as well
		line = name + line[len(name)+len(code):]
	}

	return thrown(line)
}

// inBrackets is the error within a line such as "[Error: no stack] {".
func inBrackets(line string) (inside string, ok bool) {
	end := strings.LastIndexByte(line, ']')
	if end < 0 || line[0] != '[' {
		return "", false
	}

	inside = line[1:end]
	name := wordOf(inside)

	return inside, namesError(name) || name != "Object" && form.IsClass(name) && strings.HasPrefix(inside[len(name):], ": ")
}

// wordOf is the name that a line begins with.
func wordOf(line string) string {
	end := strings.IndexFunc(line, func(r rune) bool {
		return r != '_' && r != '$' && r != '.' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if end < 0 {
		return line
	}

	return line[:end]
}

// unhandled names the reason with which a promise was rejected in place of what Node.js
// says about that.
func unhandled(e form.Error) form.Error {
	_, reason, ok := strings.Cut(e.Message, `The promise rejected with the reason "`)
	if ok {
		e.Message = strings.TrimSuffix(reason, `".`)
	}

	return e
}

var nodePlace = regexp.MustCompile(`:\d+:\d+\)?$|\((?:<anonymous>|native|native code|index \d+|unknown)\)$`)

// nodeFrame reports whether a line is one of a stack: "at send (/app/a.js:2:25)", "at
// /app/a.js:2:25", "at async Promise.all (index 0)".
func nodeFrame(line string) bool {
	s := strings.TrimLeft(line, " \t")
	if len(s) == len(line) {
		return false
	}

	if strings.HasPrefix(s, "... ") {
		return strings.Contains(s, " lines matching cause stack trace ")
	}

	if !strings.HasPrefix(s, "at ") && !strings.HasPrefix(s, "❯ ") {
		return false
	}

	return nodePlace.MatchString(strings.TrimRight(s, " {},]"))
}

// nodeFatal reads why the engine ended the program.
func nodeFatal(text string) form.Error {
	_, said, ok := strings.Cut("\n"+text, "\nFATAL ERROR: ")
	if !ok {
		return form.Error{}
	}

	return form.Error{Class: "FATAL ERROR", Message: firstLine(said)}
}

// nodeEnd reads what Node.js prints of what was thrown without a stack: below the source,
// of which it points at the place, or below a heading.
func nodeEnd(text string) form.Error {
	lines := strings.Split(text, "\n")
	for i, line := range slices.Backward(lines) {
		if line == "Uncaught:" || i > 1 && pointsAtSource(line) && sourcePlace.MatchString(lines[i-2]) {
			return nodeSaid(lines[i+1:])
		}
	}

	return form.Error{}
}

// nodeWarning reads the reason with which a promise was rejected, as Node.js warned of it
// before version 15.
func nodeWarning(text string) form.Error {
	_, said, ok := strings.Cut(text, " UnhandledPromiseRejectionWarning: ")
	if !ok {
		return form.Error{}
	}

	return form.Error{Class: "UnhandledPromiseRejectionWarning", Message: firstLine(said)}
}

// sourcePlace is the line above a line of the source.
var sourcePlace = regexp.MustCompile(`^\S.*:\d+$`)

// nodeSaid is what stands below the source, up to the footer, unless a stack does.
func nodeSaid(lines []string) form.Error {
	var said []string
	for _, line := range lines {
		if strings.HasPrefix(line, "Node.js v") || strings.HasPrefix(line, "(Use `node ") || len(said) > form.MaxContinued {
			break
		}

		if nodeFrame(line) {
			return form.Error{}
		}

		if strings.TrimSpace(line) != "" {
			said = append(said, line)
		}
	}

	if len(said) == 0 {
		return form.Error{}
	}

	// Anything can be thrown: an error, or a text that only looks like one.
	t, ok := nodeThrown(said[0])
	if ok && (t.sure || strings.HasPrefix(said[0], "[")) {
		return unhandled(nodeError(said))
	}

	return form.Error{Message: strings.Trim(strings.Join(said, "\n"), "'")}
}
