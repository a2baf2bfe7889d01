package lang

import (
	"redrive/internal/errortext/form"
	"regexp"
	"strings"
)

var (
	atLine   = regexp.MustCompile(`^\s*at \S|^\t[\w.$/]+\([^()]*\)$`) // Tomcat leaves out the "at"
	headForm = regexp.MustCompile(`^([A-Za-z_$][\w.$]*)(?: \[\w+\])?(?::(?: (.*))?)?$`)
)

// isAtLine reports whether a line is one of a stack. A search for what such a line has costs
// far less than the pattern, which few lines need.
func isAtLine(line string) bool {
	maybe := strings.HasPrefix(line, "\t") || strings.Contains(line, "at ")
	return maybe && atLine.MatchString(line)
}

// stack reads the last stack of lines that begin with "at", of whatever language: above it
// stand the class and the message.
func stack(text string) form.Error {
	var found form.Error
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if isAtLine(line) && (i == 0 || !isAtLine(lines[i-1])) {
			if e := head(lines[:i]); e.Found() {
				found = e
			}
		}
	}

	return found
}

// head is the error that the lines before a stack end with.
func head(before []string) form.Error {
	for i := len(before) - 1; i >= max(0, len(before)-2*form.MaxContinued); i-- {
		if isAtLine(before[i]) {
			break
		}

		if m := headForm.FindStringSubmatch(before[i]); m != nil && form.IsClass(m[1]) {
			return form.Error{Class: m[1], Message: m[2] + form.Continued(before[i+1:])}
		}
	}

	return form.Error{}
}

// blocks calls f for the lines before each run of frames, up to the run before it, and
// for those behind the last one, where framed is false.
func blocks(text string, isFrame func(line string) bool, f func(block []string, framed bool)) {
	lines := strings.Split(text, "\n")
	start := 0
	for i, line := range lines {
		if !isFrame(line) {
			continue
		}

		if i > start {
			f(lines[start:i], true)
		}

		start = i + 1
	}

	f(lines[start:], false)
}

// throw is what a line says of an error that was thrown.
type throw struct {
	class, message string
	sure           bool // the name is one that only errors have
}

// thrown reads the line on which a class and a message stand, be it behind the words of a
// logger or of the runtime: "charge failed: java.lang.IllegalStateException: no rate".
func thrown(line string) (t throw, ok bool) {
	line = strings.TrimSpace(line)
	first := true
	for rest := line; rest != ""; first = false {
		word, behind, _ := strings.Cut(rest, " ")

		class, ends := strings.CutSuffix(word[strings.LastIndexByte(word, '|')+1:], ":")
		numbered := behind
		if !ends {
			numbered = strings.TrimPrefix(withoutNumber(behind), ": ")
			ends = behind == "" || len(numbered) < len(behind)
		}

		sure := namesError(class)
		if ends && form.IsClass(class) && (sure || first) {
			return throw{class, strings.TrimSpace(numbered), sure}, true
		}

		rest = strings.TrimLeft(behind, " ")
	}

	return throw{}, false
}

// withoutNumber leaves out what .NET writes between some classes and the colon, the code
// of the system's error: "SocketException (111): Connection refused". What has none is
// returned as it is.
func withoutNumber(s string) string {
	if !strings.HasPrefix(s, "(") {
		return s
	}

	end := strings.TrimLeft(s[1:], "0123456789abcdefABCDEFx-")
	rest, ok := strings.CutPrefix(end, ")")
	if !ok || rest != "" && !strings.HasPrefix(rest, ": ") {
		return s
	}

	return rest
}

// namesError reports whether the name of a type is one that only errors have.
func namesError(class string) bool {
	class, _, _ = strings.Cut(class, "`") // .NET: the number of type parameters
	for _, end := range [...]string{"Exception", "Error", "Throwable", "Failure", "Fault"} {
		if strings.HasSuffix(class, end) {
			return true
		}
	}

	return false
}

// heads finds the line of some on which an error begins.
type heads struct {
	found  bool
	line   int
	indent int
	throw
}

// add takes over a line if it is a better head than the one before: a name that only
// errors have goes before any other, and further lines of a message are indented.
func (h *heads) add(n int, line string, t throw) {
	indent := form.Indent(line)
	if h.found && (h.sure && !t.sure || h.sure == t.sure && indent > h.indent) {
		return
	}

	*h = heads{true, n, indent, t}
}
