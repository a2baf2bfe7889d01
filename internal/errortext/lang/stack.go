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

// isAtLine reports whether a line is a frame of a stack. It first searches for what each frame has,
// which is far cheaper than the pattern, and excludes most lines.
func isAtLine(line string) bool {
	maybe := strings.HasPrefix(line, "\t") || strings.Contains(line, "at ")
	return maybe && atLine.MatchString(line)
}

// stack reads the error of the last stack whose frames begin with "at", in any language. The class and
// the message are above the frames.
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

// head reads the error that is at the end of the lines before a stack.
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

// blocks calls f for each block of lines between frames. framed is true if frames follow the block, and
// false for the lines after the last frame.
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
	sure           bool // only errors have such a name of a class
}

// thrown reads a line with a class and a message, which can be preceded by the words of a logger or of
// the runtime: "charge failed: java.lang.IllegalStateException: no rate".
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

// withoutNumber removes the number at the beginning of a text. After some classes, .NET writes the code
// of a system error: "SocketException (111): Connection refused". A text without one is returned
// unchanged.
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

// namesError reports whether the name of a type is one that only errors have, such as TypeError.
func namesError(class string) bool {
	class, _, _ = strings.Cut(class, "`") // .NET: the number of type parameters
	for _, end := range [...]string{"Exception", "Error", "Throwable", "Failure", "Fault"} {
		if strings.HasSuffix(class, end) {
			return true
		}
	}

	return false
}

// heads finds the line on which an error begins, among several that could be.
type heads struct {
	found  bool
	line   int
	indent int
	throw
}

// add considers the line with the number n, and takes it if it is a better choice than the one found
// before: a name that only errors have is better than any other, and a line that is indented less is
// better, because the further lines of a message are indented.
func (h *heads) add(n int, line string, t throw) {
	indent := form.Indent(line)
	if h.found && (h.sure && !t.sure || h.sure == t.sure && indent > h.indent) {
		return
	}

	*h = heads{true, n, indent, t}
}
