package lang

import (
	"redrive/internal/errortext/form"
	"regexp"
	"slices"
	"strings"
)

// jvm reads what programs in Java, Kotlin, Scala and Groovy write, and those that start
// them.
func jvm(text string) form.Error {
	if strings.Contains(text, "[error] ") { // sbt before each line
		text = strings.ReplaceAll(text, "[error] ", "")
	}

	for _, read := range [...]func(string) form.Error{springBoot, javaLauncher, javaTrace, javaEnd, clojure, javac, gradle, maven} {
		if e := read(text); e.Found() {
			return e
		}
	}

	return form.Error{}
}

// springBoot reads what Spring Boot says in words of an application that cannot start.
func springBoot(text string) form.Error {
	_, report, ok := strings.Cut(text, "\nAPPLICATION FAILED TO START\n")
	if !ok {
		return form.Error{}
	}

	_, report, ok = strings.Cut(report, "\nDescription:\n")
	if !ok {
		return form.Error{}
	}

	description, _, _ := strings.Cut(report, "\nAction:")

	return form.Error{Message: firstLines(description)}
}

// firstLines returns the first lines of a text as a message, without empty ones.
func firstLines(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " \t")
		if line != "" {
			lines = append(lines, line)
		}

		if len(lines) > form.MaxContinued {
			break
		}
	}

	return strings.Join(lines, "\n")
}

// javaTraces gathers the last stack trace of a text: the error, and what caused it.
type javaTraces struct {
	last       form.Error
	cause      throw
	suppressed int // how far an error is indented that came up while another was on its way; -1: none
}

// javaTrace reads the last stack trace.
func javaTrace(text string) form.Error {
	t := javaTraces{suppressed: -1}
	blocks(text, javaFrame, t.block)
	return t.last.Because(t.cause.class, t.cause.message)
}

// block reads the lines before some frames: an error, or what caused the one before.
func (t *javaTraces) block(lines []string, framed bool) {
	chained := false
	var head heads
	for i, line := range lines {
		// "Caused by: java.net.ConnectException: refused"
		mark, name, _ := strings.Cut(strings.TrimLeft(line, " \t"), ": ")
		if framed && (mark == "Suppressed" || mark == "Wrapped by") || mark == "Caused by" && (framed || t.last.Found()) {
			t.chain(mark, withHeading(name, lines[i+1:]), form.Indent(line))

			chained = true
			continue
		}

		// Other lines can have an error only above a stack, and before the first cause.
		if !framed || chained {
			continue
		}

		if found, ok := thrown(withoutThread(line)); ok {
			head.add(i, line, found)
		}
	}

	if head.found {
		message := head.message + form.Continued(lines[head.line+1:])
		*t = javaTraces{last: form.Error{Class: head.class, Message: message}, suppressed: -1}
	}
}

// chain adds an error that is the cause of the one before.
func (t *javaTraces) chain(mark, name string, indent int) {
	if mark == "Suppressed" {
		t.suppressed = indent
		return
	}

	if t.suppressed >= 0 && indent >= t.suppressed {
		return
	}

	t.suppressed = -1

	found, ok := thrown(name)
	switch {
	case !ok || strings.HasPrefix(name, "[CIRCULAR REFERENCE"):
	case mark == "Wrapped by": // the innermost stands first
		if t.cause.class == "" {
			t.cause = throw{class: t.last.Class, message: firstLine(t.last.Message)}
		}

		t.last = form.Error{Class: found.class, Message: found.message}
	case !t.last.Found(): // the beginning is cut off
		t.last = form.Error{Class: found.class, Message: found.message}
	default:
		t.cause = found
	}
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// withHeading returns a line. If the line is only a heading, such as "Configuration validation failed:",
// it adds the next one.
func withHeading(line string, below []string) string {
	line = strings.TrimRight(line, " ")
	if strings.HasSuffix(line, ":") && len(below) > 0 {
		return line + " " + strings.TrimSpace(below[0])
	}

	return line
}

// withoutThread leaves out whose error it is: `Exception in thread "main" `.
func withoutThread(line string) string {
	_, rest, ok := strings.Cut(line, `Exception in thread "`)
	if !ok {
		return line
	}

	_, rest, _ = strings.Cut(rest, `" `)

	return rest
}

// javaFrame reports whether a line is one of a stack trace: "at Type.method(File.java:12)",
// without the "at" as Tomcat writes it, or "... 12 more".
func javaFrame(line string) bool {
	s := strings.TrimLeft(line, " \t")
	if strings.HasPrefix(s, "... ") {
		return strings.Contains(s, " more") || strings.Contains(s, " common frames omitted")
	}

	s, at := strings.CutPrefix(s, "at ")
	if !at && !strings.HasPrefix(line, "\t") {
		return false
	}

	name, rest, ok := strings.Cut(s, "(")
	if !ok || strings.Contains(strings.TrimSuffix(name, " "), " ") {
		return false
	}

	place, _, ok := strings.Cut(rest, ")")

	return ok && javaPlace(place)
}

// javaPlace reports whether a text is how Java names the place of a frame.
func javaPlace(place string) bool {
	file, _, _ := strings.Cut(place, ":")
	if slices.Contains([]string{"Native Method", "Unknown Source", "<generated>", "SourceFile"}, file) {
		return true
	}

	for _, end := range [...]string{".java", ".kt", ".kts", ".scala", ".groovy", ".clj"} {
		if strings.HasSuffix(file, end) {
			return true
		}
	}

	return false
}

// launcherSays are the beginnings of what the program that starts Java says.
var launcherSays = [...]string{
	"Could not find or load main class ", "Unable to access jarfile ", "Unable to initialize main class ", "Main method not found in class ",
	"Could not create the Java Virtual Machine", "Invalid or corrupt jarfile ", "LinkageError occurred while loading main class ",
}

// javaLauncher reads why a program was not started, and what caused that.
func javaLauncher(text string) form.Error {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		said, ok := strings.CutPrefix(line, "Error: ")
		if !ok || !slices.ContainsFunc(launcherSays[:], func(begin string) bool { return strings.HasPrefix(said, begin) }) {
			continue
		}

		e := form.Error{Message: said}
		if i+1 < len(lines) {
			cause, _ := thrown(strings.TrimPrefix(lines[i+1], "Caused by: "))
			e = e.Because(cause.class, cause.message)
		}

		return e
	}

	return form.Error{}
}

// endsJava are the beginnings of a line with an error that has no stack trace.
var endsJava = [...]string{"java.", "kotlin.", `Exception in thread "`, "Uncaught Kotlin exception: "}

// javaEnd reads what the runtime says without a stack trace.
func javaEnd(text string) form.Error {
	var found form.Error
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		said, ok := strings.CutPrefix(line, "#  ")

		// "#  SIGSEGV (0xb) at pc=…", two lines below the heading
		if ok && i > 1 && strings.Contains(lines[i-2], "A fatal error has been detected by the Java Runtime") {
			return form.Error{Message: said}
		}

		if said, ok := strings.CutPrefix(line, "# There is insufficient memory "); ok {
			return form.Error{Message: "There is insufficient memory " + said}
		}

		// "Terminating due to java.lang.OutOfMemoryError: Java heap space"
		said, ok = strings.CutPrefix(line, "Terminating due to ")
		if !ok && !slices.ContainsFunc(endsJava[:], func(begin string) bool { return strings.HasPrefix(line, begin) }) {
			continue
		}

		if t, is := thrown(withoutThread(said)); is && t.sure {
			found = form.Error{Class: t.class, Message: t.message}
		}
	}

	return found
}

var clojureForm = regexp.MustCompile(`(?m)^(?:Execution|Syntax) error(?: \((\w+)\))?[^\n]* (?:at|compiling at) [^\n]*\.\n(.+)$`)

// clojure reads what Clojure says in place of a stack trace.
func clojure(text string) form.Error {
	if !strings.Contains(text, "Execution error") && !strings.Contains(text, "Syntax error") {
		return form.Error{}
	}

	m := clojureForm.FindStringSubmatch(text)
	if m == nil {
		return form.Error{}
	}

	return form.Error{Class: m[1], Message: m[2]}
}

var javacForm = regexp.MustCompile(`^(?:e: )?\S+\.(?:java|kts?|scala|groovy):\d+(?::\d+)?:? (?:error: )?(.+)$`)

// javac reads the first error of the compilers, with the symbol that is missing.
func javac(text string) form.Error {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		m := javacForm.FindStringSubmatch(line)
		if m == nil || !strings.HasPrefix(line, "e: ") && !strings.Contains(line, ": error: ") {
			continue
		}

		e := form.Error{Message: m[1]}
		for _, below := range lines[i+1 : min(len(lines), i+1+form.MaxContinued)] {
			if strings.HasPrefix(below, "  symbol:") {
				e.Message += "\n" + below
			}
		}

		return e
	}

	return form.Error{}
}

// gradle reads what Gradle says of a build that failed. Each line that begins with ">" is
// the cause of the line before.
func gradle(text string) form.Error {
	i := strings.LastIndex(text, "* What went wrong:\n")
	if i < 0 {
		return form.Error{}
	}

	lines := strings.Split(text[i:], "\n")[1:]
	e := form.Error{Message: lines[0]}

	cause := ""
	for _, line := range lines[1:] {
		if strings.TrimSpace(line) == "" {
			break
		}

		if said, ok := strings.CutPrefix(strings.TrimSpace(line), "> "); ok {
			cause = said
		}
	}

	e.Message = strings.TrimSuffix(e.Message, ".")

	return e.Because("", cause)
}

// maven reads the first error that Maven names of a build that failed, and what it says
// about it on the next lines.
func maven(text string) form.Error {
	_, said, ok := strings.Cut(text, "[ERROR] Failed to execute goal ")
	if !ok {
		return form.Error{}
	}

	lines := strings.Split(said, "\n")
	for i, line := range lines {
		line, marked := strings.CutPrefix(line, "[ERROR] ")
		if i > form.MaxContinued || i > 0 && !marked || strings.HasPrefix(line, "-> [Help") {
			lines = lines[:i]
			break
		}

		// The message ends where Maven refers to its help: " -> [Help 1]".
		before, _, last := strings.Cut(line, " -> [Help")
		lines[i] = before
		if last {
			lines = lines[:i+1]
			break
		}
	}

	return form.Error{Message: "Failed to execute goal " + strings.Join(lines, "\n")}
}
