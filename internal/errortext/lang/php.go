package lang

import (
	"regexp"
	"slices"
	"strings"

	"redrive/internal/errortext/form"
)

// phpReaders are asked in this order. They never change.
var phpReaders = [...]func(lines []string) form.Error{
	phpEnded, yiiConsole, phpLogged, boxInFile, boxOfClass, bareBox, messenger, collision, laravelLine, symfonyBlock, composer, wordPress,
	phpPrinted,
}

// php reads what the interpreter, the consoles of frameworks and Composer write.
func php(text string) form.Error {
	if strings.Contains(text, "<b>") { // html_errors is on
		text = htmlErrors.Replace(text)
	}

	lines := strings.Split(text, "\n")
	for _, read := range phpReaders {
		e := read(lines)
		if e.Found() {
			return e
		}
	}

	return form.Error{}
}

var htmlErrors = strings.NewReplacer("<br />", "", "<b>", "", "</b>", "")

var phpFatal = regexp.MustCompile(`((?:Recoverable fatal|Catchable fatal|Fatal|Parse|Compile|Core) error): +(.*)$`)

// phpEnded reads the last of the errors that ended a program: an exception that was not
// caught, or another end.
func phpEnded(lines []string) (found form.Error) {
	for i := 0; i < len(lines); i++ {
		if !strings.Contains(lines[i], " error: ") {
			continue
		}

		m := phpFatal.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}

		// PHP Fatal error:  Uncaught RuntimeException: no route in /app/a.php:3
		said, uncaught := strings.CutPrefix(m[2], "Uncaught ")
		if uncaught {
			var c form.Chain
			c, i = phpThrown(lines, i, said)
			found = c.Joined()
			continue
		}

		message, ok := withoutPHPPlace(said)
		if ok {
			found = form.Error{Class: m[1], Message: message}
		}
	}

	return found
}

// phpThrown reads an uncaught exception and those that followed from it, beginning at the line that says
// "Uncaught". It returns the number of the last line that it has read.
func phpThrown(lines []string, i int, said string) (c form.Chain, end int) {
	e, i := phpException(lines, i, said)
	c = form.Chain{Last: e, First: e}
	for end = i; end+1 < len(lines); end++ {
		next := lines[end+1]
		said, ok := strings.CutPrefix(next, "Next ")
		switch {
		case ok:
			c.Last, end = phpException(lines, end+1, said)
			end--
		case strings.HasPrefix(next, "  thrown in "), phpFatal.MatchString(next):
			return c, end
		}
	}

	return c, end
}

// phpPrinted reads an exception that was made a text, as Laravel keeps it: the class begins
// the first line, and the place ends the message.
func phpPrinted(lines []string) form.Error {
	first := 0
	for first < len(lines)-1 && strings.TrimSpace(lines[first]) == "" {
		first++
	}

	class, _, _ := strings.Cut(strings.TrimSuffix(lines[first], " in"), ": ")

	class, _, _ = strings.Cut(class, " in /")
	traced := slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "Stack trace:") })
	if !form.IsClass(class) || !traced && !printedPlace.MatchString(lines[len(lines)-1]) {
		return form.Error{}
	}

	c, _ := phpThrown(lines, first, lines[first])

	return c.Joined()
}

// printedPlace matches the place of an exception, at the end of a text without a stack.
var printedPlace = regexp.MustCompile(` in \S+\.php:\d+$`)

// phpException reads an exception whose class begins a text that ends the line i: its
// message goes on to the place at which it was thrown. It returns the line of that place.
func phpException(lines []string, i int, said string) (form.Error, int) {
	said, quoted := strings.CutPrefix(said, "exception ") // PHP 5
	if quoted {
		class, message, _ := strings.Cut(strings.TrimPrefix(said, "'"), "' with message '")
		said = class + ": " + message
	}

	var message []string
	for ; i < len(lines); i++ {
		text, ok := withoutPHPPlace(said)
		message = append(message, text)

		if ok || i+1 == len(lines) || strings.HasPrefix(lines[i+1], "Stack trace:") {
			break
		}

		said = lines[i+1]
	}

	class, first, _ := strings.Cut(message[0], ": ")
	first, _, _ = strings.Cut(first, ", called in ") // and defined in

	text := first + form.Continued(message[1:])
	if quoted {
		text = strings.TrimSuffix(text, "'")
	}

	return form.Error{Class: strings.TrimSpace(class), Message: text}, i
}

var phpPlace = regexp.MustCompile(`^\S.*(?::\d+| on line \d+)$`)

// withoutPHPPlace removes the place of an error from the end of a text.
func withoutPHPPlace(said string) (string, bool) {
	i := strings.LastIndex(said, " in ")
	if i < 0 || !phpPlace.MatchString(said[i+len(" in "):]) {
		return said, false
	}

	return said[:i], true
}

// yiiConsole reads what Yii prints: "Exception 'yii\db\Exception' with message '…'", and
// what caused it below.
func yiiConsole(lines []string) form.Error {
	var c form.Chain
	for i, line := range lines {
		before, message, ok := strings.Cut(line, "' with message '")
		if !ok {
			continue
		}

		class := before[strings.LastIndexByte(before, '\'')+1:]

		// The message ends before its place, or goes on up to the first frame.
		message, _, inPlace := strings.Cut(message, "' in /")
		if !inPlace {
			message += form.ContinuedUntil(lines[i+1:], isPHPFrame)
		}

		message, _, _ = strings.Cut(message, "\nThe SQL being executed was: ")

		e := form.Error{Class: class, Message: strings.TrimSuffix(message, "'")}
		if c.Last.Found() && strings.HasPrefix(strings.TrimSpace(line), "Caused by: ") {
			c.First = e
			continue
		}

		c = form.Chain{Last: e, First: e}
	}

	return c.Joined()
}

// isPHPFrame reports whether a line is a place or a frame of a trace.
func isPHPFrame(line string) bool {
	return strings.HasPrefix(line, "#0 ") || strings.HasPrefix(line, "Stack trace:") || strings.HasPrefix(line, "in /")
}

var phpObject = regexp.MustCompile(`\[object\] \(([\w\\]+)\(code: [^)]*\): (.*)$`)

// fromMonolog undoes the escapes with which Monolog writes the texts of an exception into a JSON
// string.
var fromMonolog = strings.NewReplacer(`\\`, `\`, `\"`, `"`)

// thrownAt is where an exception was thrown, behind its message: " at /app/a.php:3)", or on
// Windows ` at C:\\app\\a.php:3)`.
var thrownAt = regexp.MustCompile(` at (?:/|[A-Za-z]:\\)`)

// phpLogged reads the last exception that Monolog wrote, and the one that led to it:
//
//	[2026-11-28 12:00:00] local.ERROR: no rate {"exception":"[object] (App\\RateException(code: 0): no rate at /app/a.php:3)
//	[stacktrace]
//	…
//	[previous exception] [object] (RuntimeException(code: 0): connection refused at /app/b.php:9)
func phpLogged(lines []string) form.Error {
	var c form.Chain
	for i, line := range lines {
		if !strings.Contains(line, "[object] (") {
			continue
		}

		m := phpObject.FindStringSubmatch(line)
		if m == nil {
			continue
		}

		// A message of several lines goes on below, up to its place or the trace.
		message := m[2]
		if !thrownAt.MatchString(message) {
			message += form.ContinuedUntil(lines[i+1:], func(line string) bool { return strings.HasPrefix(line, "[stacktrace]") })
		}

		places := thrownAt.FindAllStringIndex(message, -1)
		if places != nil {
			message = message[:places[len(places)-1][0]]
		}

		e := form.Error{Class: fromMonolog.Replace(m[1]), Message: fromMonolog.Replace(message)}
		if c.Last.Found() && strings.HasPrefix(line, "[previous exception] ") {
			c.First = e
			continue
		}

		c = form.Chain{Last: e, First: e}
	}

	return c.Joined()
}
