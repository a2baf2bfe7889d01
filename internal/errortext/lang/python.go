package lang

import (
	"regexp"
	"strings"

	"redrive/internal/errortext/form"
)

var djangoForm = regexp.MustCompile(`(?m)^Exception Type: (\S+).*\nException Value: (.*)$`)

// django reads the page of DEBUG = True. The settings and the request below the
// traceback are no part of the error.
func django(text string) form.Error {
	if !strings.Contains(text, "Exception Value: ") { // most texts: a search costs far less
		return form.Error{}
	}

	m := djangoForm.FindStringSubmatch(text)
	if m == nil {
		return form.Error{}
	}

	trace, _, _ := strings.Cut(text, "\nRequest information:")
	if i := strings.Index(trace, "\nTraceback"); i >= 0 {
		trace = trace[i+1:]
	}

	return form.Error{Class: m[1], Message: m[2], Trace: trace}
}

// pythonReaders are asked in this order. They never change.
var pythonReaders = [...]func(lines []string) form.Error{
	fatalPython, tracebacks, cutTraceback, argparse, clickBox, djangoCommand, pip,
}

// python reads what the interpreter, the libraries of command lines and pip write.
func python(text string) form.Error {
	lines := strings.Split(text, "\n")
	for _, read := range pythonReaders {
		e := read(lines)
		if e.Found() {
			return e
		}
	}

	return form.Error{}
}

// fatalPython reads why the interpreter itself gave up.
func fatalPython(lines []string) form.Error {
	const class = "Fatal Python error"
	for _, line := range lines {
		message, ok := strings.CutPrefix(line, class+": ")
		if ok {
			return form.Error{Class: class, Message: message}
		}
	}

	return form.Error{}
}

// tracebackHead matches the beginning of a traceback, after what a log or a group writes before it.
const tracebackHead = "Traceback (most recent call last)"

// tracebackLinks are between the traceback of a cause and the one of what it caused.
var tracebackLinks = [...]string{
	"The above exception was the direct cause of the following exception:",
	"During handling of the above exception, another exception occurred:",
}

// tracebackAsides announce a traceback that ended nothing.
var tracebackAsides = [...]string{
	"Exception ignored in", "--- Logging error ---", "Task exception was never retrieved", "Error processing line ",
}

// tracebackReader reads tracebacks one after another. A cause is printed before the error that it
// caused.
type tracebackReader struct {
	lines []string
	own   form.Chain // the last one that may have ended the program
	aside form.Chain // the last one that did not

	current  *form.Chain // the one that a link continues
	above    string      // what was written above the last one
	linkedAt int         // the line of the last link
	asideAt  int         // the line that announced the last aside
}

// tracebacks reads the last chain of tracebacks: the one that ended the program.
func tracebacks(lines []string) form.Error {
	const never = -10

	r := tracebackReader{lines: lines, linkedAt: never, asideAt: never}

	r.current = &r.own
	i := 0
	for i < len(lines) {
		i = r.line(i)
	}

	if r.own.Last.Found() {
		return r.elsewhere(r.own)
	}

	return r.aside.Joined()
}

// elsewhere is the error of a chain that began in another program: one that was run and
// wrote its error above the traceback, one in Java, of which the causes stand below, or a
// task of Ray.
func (r *tracebackReader) elsewhere(c form.Chain) form.Error {
	const rayTask = "ray.exceptions.RayTaskError("
	switch {
	case c.First.Class == "subprocess.CalledProcessError" && r.above != "":
		c.First = form.Error{Message: r.above}
	case strings.HasSuffix(c.First.Class, "Py4JJavaError"):
		cause := form.LastAfter(r.lines, "Caused by: ")
		if cause != "" {
			c.First = form.Error{Message: cause}
		}
	case strings.HasPrefix(c.First.Class, rayTask):
		class := strings.TrimSuffix(strings.TrimPrefix(c.First.Class, rayTask), ")")
		c.First = form.Error{Class: class, Message: form.LastAfter(r.lines, class+": ")}
	}

	return c.Joined()
}

// line reads what begins at a line, and returns the number of the line after it.
func (r *tracebackReader) line(i int) int {
	line := r.lines[i]
	switch {
	case strings.Contains(line, tracebackHead):
		return r.traceback(i)
	case form.ContainsAny(line, tracebackLinks[:]):
		r.linkedAt = i
	case form.ContainsAny(line, tracebackAsides[:]):
		r.asideAt = i
	case strings.HasPrefix(strings.TrimLeft(line, " "), "+-") && i+1 < len(r.lines):
		return r.member(i + 1)
	}

	return i + 1
}

// traceback reads the traceback whose head is at a line.
func (r *tracebackReader) traceback(i int) int {
	before, after, _ := strings.Cut(r.lines[i], tracebackHead)
	prefix, group := strings.CutSuffix(before, "Exception Group ")

	class := strings.TrimSpace(before)
	if !strings.HasPrefix(after, ":") && form.IsClass(class) {
		return r.notebook(i, class)
	}

	e, end := pythonError(r.lines, i+1, prefix)
	if !e.Found() {
		return end
	}

	inside := strings.HasPrefix(strings.TrimLeft(prefix, " "), "|")
	r.add(i, e, group, inside)

	return end
}

// member reads the member of a group that begins at a line without a traceback.
func (r *tracebackReader) member(i int) int {
	line := r.lines[i]
	bar := strings.Index(line, "| ")
	if bar < 0 || strings.TrimSpace(line[:bar]) != "" || strings.Contains(line, tracebackHead) {
		return i
	}

	e, end := pythonError(r.lines, i, line[:bar+2])
	if e.Found() {
		r.add(i, e, strings.HasSuffix(e.Class, "ExceptionGroup"), true)
	}

	return end
}

// notebook reads the traceback of IPython below a line that begins with its class: its
// frames are not indented.
func (r *tracebackReader) notebook(head int, class string) int {
	for i := head + 1; i < len(r.lines); i++ {
		line := r.lines[i]
		if strings.Contains(line, tracebackHead) {
			return i
		}

		if line == class || strings.HasPrefix(line, class+": ") {
			e, end := pythonError(r.lines, i, "")
			r.add(head, e, false, false)
			return end
		}
	}

	return len(r.lines)
}

// add takes over the error of a traceback whose head is at a line. A group is not the cause
// of anything: the first of its members is, and that of what stands inside a group ends no
// chain.
func (r *tracebackReader) add(head int, e form.Error, group, inside bool) {
	const near = 3 // lines from a link or an aside to the traceback that it speaks of
	linked := head-r.linkedAt <= near
	if !linked && !inside {
		r.current = &r.own
		if head-r.asideAt <= near {
			r.current = &r.aside
		}

		*r.current = form.Chain{}
		r.above = r.lineAbove(head)
	}

	if !group && !r.current.First.Found() {
		r.current.First = e
	}

	if !inside || !r.current.Last.Found() {
		r.current.Last = e
	}
}

// pythonAnnounced is what a logger or a thread writes above a traceback.
var pythonAnnounced = regexp.MustCompile(`^(?:ERROR|CRITICAL):\S|^Exception in `)

// lineAbove is the line above a traceback, unless a log or another error wrote it.
func (r *tracebackReader) lineAbove(head int) string {
	if head == 0 || r.linkedAt == head-2 {
		return ""
	}

	above := r.lines[head-1]
	if form.IsLogged(above) || isPythonFrame(above) || pythonAnnounced.MatchString(above) {
		return ""
	}

	return above
}

// pythonError reads the error below the frames that begin at a line: it is on the first
// line that is not indented, behind what stands before each line. It returns the line
// behind it.
func pythonError(lines []string, from int, prefix string) (form.Error, int) {
	for i := from; i < len(lines); i++ {
		line, prefixed := form.WithoutPrefix(lines[i], prefix)

		// Another traceback begins before this one named its error.
		if strings.Contains(line, tracebackHead) {
			return form.Error{}, i
		}

		if isPythonFrame(line) {
			continue
		}

		class, first, _ := strings.Cut(line, ": ")
		class = strings.TrimSuffix(class, ":")
		if !isPythonClass(class) {
			return form.Error{}, i
		}

		// Without the prefix on this line, the lines of the message below have none either.
		if !prefixed {
			prefix = ""
		}

		first = subExceptions.ReplaceAllString(first, "")

		return form.Error{Class: class, Message: first + pythonContinued(lines[i+1:], prefix)}, i + 1
	}

	return form.Error{}, len(lines)
}

// subExceptions are how many members a group has, which says nothing about the cause.
var subExceptions = regexp.MustCompile(` \(\d+ sub-exceptions?\)$`)

// isPythonFrame reports whether a line is one above the error of a traceback.
func isPythonFrame(line string) bool {
	return line == "" || line[0] == ' ' || line[0] == '\t' || strings.HasPrefix(line, "│") || strings.HasPrefix(line, "╰")
}

// isPythonClass reports whether a text is the name of a class: also of one in a function,
// and of one that stands for another, like RayTaskError(ValueError).
func isPythonClass(s string) bool {
	s = strings.ReplaceAll(s, ".<locals>", "")
	name, inside, ok := strings.Cut(s, "(")
	if ok && strings.HasSuffix(inside, ")") {
		s = name
	}

	return form.IsClass(s)
}

// pythonEnds are how lines begin that follow a message and are no part of it: what
// SQLAlchemy, multiprocessing, asyncio and others add.
var pythonEnds = [...]string{
	"[SQL: ", `File "`, "(Background on this error at: ", `"""`, "[end of output]", "Exception ignored in", "Unclosed ", "Task was destroyed",
	"Task exception was never retrieved", "at ", "Sentry is attempting to send ", "--- Logging error ---", "Call stack:", "+---",
}

var pythonWarning = regexp.MustCompile(`^\S+:\d+: \w*Warning: `)

// pythonContinued is the rest of a message of several lines, each of them behind a prefix.
// The links that pydantic adds are left out.
func pythonContinued(lines []string, prefix string) string {
	var rest []string
	for _, line := range lines {
		line, prefixed := form.WithoutPrefix(line, prefix)
		if len(rest) == form.MaxContinued || !prefixed || strings.TrimSpace(line) == "" {
			break
		}

		if !strings.HasPrefix(strings.TrimSpace(line), "For further information visit ") {
			rest = append(rest, line)
		}
	}

	return form.ContinuedUntil(rest, func(line string) bool {
		return form.BeginsWithAny(strings.TrimSpace(line), pythonEnds[:]) || pythonWarning.MatchString(line)
	})
}
