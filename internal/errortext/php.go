package errortext

import (
	"regexp"
	"slices"
	"strings"
)

// phpForms are asked in this order. They never change.
var phpForms = [...]func(lines []string) Error{
	phpEnded, yiiConsole, phpLogged, boxInFile, boxOfClass, bareBox, messenger, collision, laravelLine, symfonyBlock, composer, wordPress,
	phpPrinted,
}

// php reads what the interpreter, the consoles of frameworks and Composer write.
func php(text string) Error {
	if strings.Contains(text, "<b>") { // html_errors is on
		text = htmlErrors.Replace(text)
	}

	lines := strings.Split(text, "\n")
	for _, read := range phpForms {
		e := read(lines)
		if e.found() {
			return e
		}
	}

	return Error{}
}

var htmlErrors = strings.NewReplacer("<br />", "", "<b>", "", "</b>", "")

var phpFatal = regexp.MustCompile(`((?:Recoverable fatal|Catchable fatal|Fatal|Parse|Compile|Core) error): +(.*)$`)

// phpEnded reads the last of the errors that ended a program: an exception that was not
// caught, or another end.
func phpEnded(lines []string) (found Error) {
	for i := 0; i < len(lines); i++ {
		if !strings.Contains(lines[i], " error: ") {
			continue
		}

		m := phpFatal.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}

		said, uncaught := strings.CutPrefix(m[2], "Uncaught ")
		if uncaught {
			var c chain
			c, i = phpThrown(lines, i, said)
			found = c.error()
			continue
		}

		message, ok := withoutPHPPlace(said)
		if ok {
			found = Error{Class: m[1], Message: message}
		}
	}

	return found
}

// phpThrown reads an exception and those that it led to, from the line on which the first
// is said to be uncaught. It returns the last line that it read.
func phpThrown(lines []string, i int, said string) (c chain, end int) {
	e, i := phpException(lines, i, said)
	c = chain{last: e, first: e}
	for end = i; end+1 < len(lines); end++ {
		next := lines[end+1]
		said, ok := strings.CutPrefix(next, "Next ")
		switch {
		case ok:
			c.last, end = phpException(lines, end+1, said)
			end--
		case strings.HasPrefix(next, "  thrown in "), phpFatal.MatchString(next):
			return c, end
		}
	}

	return c, end
}

// phpPrinted reads an exception that was made a text, as Laravel keeps it: the class begins
// the first line, and the place ends the message.
func phpPrinted(lines []string) Error {
	first := 0
	for first < len(lines)-1 && strings.TrimSpace(lines[first]) == "" {
		first++
	}

	class, _, _ := strings.Cut(strings.TrimSuffix(lines[first], " in"), ": ")

	class, _, _ = strings.Cut(class, " in /")
	traced := slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "Stack trace:") })
	if !isClass(class) || !traced && !printedPlace.MatchString(lines[len(lines)-1]) {
		return Error{}
	}

	c, _ := phpThrown(lines, first, lines[first])

	return c.error()
}

// printedPlace is where an exception was thrown, at the end of a text without its stack.
var printedPlace = regexp.MustCompile(` in \S+\.php:\d+$`)

// phpException reads an exception whose class begins a text that ends the line i: its
// message goes on to the place at which it was thrown. It returns the line of that place.
func phpException(lines []string, i int, said string) (Error, int) {
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

	text := first + continued(message[1:])
	if quoted {
		text = strings.TrimSuffix(text, "'")
	}

	return Error{Class: strings.TrimSpace(class), Message: text}, i
}

var phpPlace = regexp.MustCompile(`^\S.*(?::\d+| on line \d+)$`)

// withoutPHPPlace is a text without the place of an error that it ends with.
func withoutPHPPlace(said string) (string, bool) {
	i := strings.LastIndex(said, " in ")
	if i < 0 || !phpPlace.MatchString(said[i+len(" in "):]) {
		return said, false
	}

	return said[:i], true
}

// yiiConsole reads what Yii prints: "Exception 'yii\db\Exception' with message '…'", and
// what caused it below.
func yiiConsole(lines []string) Error {
	var c chain
	for i, line := range lines {
		before, message, ok := strings.Cut(line, "' with message '")
		if !ok {
			continue
		}

		class := before[strings.LastIndexByte(before, '\'')+1:]

		message, _, inPlace := strings.Cut(message, "' in /")
		if !inPlace {
			message += continuedUntil(lines[i+1:], isPHPFrame)
		}

		message, _, _ = strings.Cut(message, "\nThe SQL being executed was: ")

		e := Error{Class: class, Message: strings.TrimSuffix(message, "'")}
		if c.last.found() && strings.HasPrefix(strings.TrimSpace(line), "Caused by: ") {
			c.first = e
			continue
		}

		c = chain{last: e, first: e}
	}

	return c.error()
}

// isPHPFrame reports whether a line is a place or a frame of a trace.
func isPHPFrame(line string) bool {
	return strings.HasPrefix(line, "#0 ") || strings.HasPrefix(line, "Stack trace:") || strings.HasPrefix(line, "in /")
}

var phpObject = regexp.MustCompile(`\[object\] \(([\w\\]+)\(code: [^)]*\): (.*)$`)

// fromMonolog undoes how Monolog writes the texts of an exception, which stand in a string
// of JSON.
var fromMonolog = strings.NewReplacer(`\\`, `\`, `\"`, `"`)

// phpLogged reads the last exception that Monolog wrote, and the one that led to it.
func phpLogged(lines []string) Error {
	const placeAfter = " at /" // where the exception was thrown
	var c chain
	for i, line := range lines {
		if !strings.Contains(line, "[object] (") {
			continue
		}

		m := phpObject.FindStringSubmatch(line)
		if m == nil {
			continue
		}

		message := m[2]
		if !strings.Contains(message, placeAfter) {
			message += continuedUntil(lines[i+1:], func(line string) bool { return strings.HasPrefix(line, "[stacktrace]") })
		}

		at := strings.LastIndex(message, placeAfter)
		if at >= 0 {
			message = message[:at]
		}

		e := Error{Class: fromMonolog.Replace(m[1]), Message: fromMonolog.Replace(message)}
		if c.last.found() && strings.HasPrefix(line, "[previous exception] ") {
			c.first = e
			continue
		}

		c = chain{last: e, first: e}
	}

	return c.error()
}

var boxFile = regexp.MustCompile(`^\s*In \S.* line \d+:$`)

// boxInFile reads the boxes that the consoles of Symfony and Laravel draw below the file of
// an error and of each one that led to it.
func boxInFile(lines []string) Error {
	var c chain
	for i, line := range lines {
		isBox := i+1 < len(lines) && strings.TrimSpace(lines[i+1]) == ""
		if !isBox || !boxFile.MatchString(strings.TrimRight(line, " ")) {
			continue
		}

		e := box(lines[i+1:])
		if !e.found() {
			continue
		}

		if !c.last.found() {
			c.last = e
		}

		c.first = e
	}

	return c.error()
}

// box is the error in a box: its class, if the console says it, and its message.
func box(lines []string) Error {
	start := 0
	for start < len(lines) && strings.TrimSpace(lines[start]) == "" {
		start++
	}

	if start == len(lines) {
		return Error{}
	}

	class, ok := classInBrackets(lines[start])
	if ok {
		start++
	}

	var said []string
	for _, line := range lines[start:] {
		inside, ok := strings.CutPrefix(line, "  ")
		if !ok || strings.TrimSpace(inside) == "" || len(said) > maxContinued {
			break
		}

		said = append(said, strings.TrimRight(inside, " "))
	}

	return Error{Class: class, Message: unwrapped(said)}
}

// unwrapped is the text of a box: the console breaks lines where the terminal ends, within
// words, so that all but the last are of one width.
func unwrapped(lines []string) string {
	const narrowest = 70

	width := 0
	for _, line := range lines {
		width = max(width, len([]rune(line)))
	}

	var b strings.Builder
	for i, line := range lines {
		b.WriteString(line)

		length := len([]rune(line))
		switch {
		case i+1 == len(lines):
		case width >= narrowest && length == width:
		case width >= narrowest && length == width-1:
			b.WriteByte(' ')
		default:
			b.WriteByte('\n')
		}
	}

	return b.String()
}

// classInBrackets is the class on a line that holds nothing else, as consoles write it,
// maybe with a code: "[App\FeedException (5)]".
func classInBrackets(line string) (string, bool) {
	inside, ok := strings.CutPrefix(strings.TrimSpace(line), "[")
	if !ok || !strings.HasSuffix(inside, "]") {
		return "", false
	}

	class, _, _ := strings.Cut(strings.TrimSuffix(inside, "]"), " (")
	named := strings.Contains(class, `\`) || strings.HasSuffix(class, "Exception") || strings.HasSuffix(class, "Error")

	return class, named && isClass(class)
}

// boxOfClass reads what CodeIgniter and older consoles of Symfony write below a class in
// brackets. The last of several led to the first.
func boxOfClass(lines []string) Error {
	var c chain
	for i, line := range lines {
		class, ok := classInBrackets(line)
		if !ok || i+1 == len(lines) {
			continue
		}

		rest := lines[i+1:]
		if strings.TrimSpace(rest[0]) == "" {
			rest = rest[1:]
		}

		e := Error{Class: class, Message: strings.TrimSpace(classMessage(rest))}
		if isBlank(strings.Trim(e.Message, "[]{}(), \n")) { // brackets of another language
			continue
		}

		if !c.last.found() {
			c.last = e
		}

		c.first = e
	}

	return c.error()
}

// classMessage is the message below a class, up to the place of the error.
func classMessage(lines []string) string {
	var said []string
	for _, line := range lines {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "at ") || len(said) > maxContinued {
			break
		}

		said = append(said, trimmed)
	}

	return unwrapped(said)
}

// refusals are how the console of Symfony begins to say that it cannot run a command, in a
// box that names no file and no class.
var refusals = [...]string{
	"Not enough arguments (missing: ", "Too many arguments", "No arguments expected ", `The "--`, `The "-`, `Command "`,
	"There are no commands defined in the ",
}

// bareBox reads such a refusal. What the command expects stands below it.
func bareBox(lines []string) Error {
	for i, line := range lines[:len(lines)-1] {
		if strings.TrimSpace(line) != "" {
			continue
		}

		message, ok := strings.CutPrefix(lines[i+1], "  ")
		if ok && beginsWithAny(message, refusals[:]) {
			return box(lines[i+1:])
		}
	}

	return Error{}
}

// messenger reads why a worker of Symfony could not handle a message.
func messenger(lines []string) (found Error) {
	for _, line := range lines {
		_, said, ok := strings.Cut(line, "Error thrown while handling message ")
		if !ok {
			continue
		}

		_, message, ok := strings.Cut(said, ` Error: "`)
		if ok {
			message, _, _ = strings.Cut(message, `" [`)
			message, _, _ = strings.Cut(message, `" {`)
			found = Error{Message: strings.TrimSuffix(message, `"`)}
		}
	}

	return found
}

var collisionPlace = regexp.MustCompile(`^  at \S.*:\d+(?: in \S+)?$`)

// collision reads the last error as Laravel's console, and Poetry's, draw it: the class, the
// message and the place, each in a paragraph.
func collision(lines []string) (found Error) {
	const longest = maxContinued + 6 // lines from the class to the place
	for i, line := range lines {
		if !collisionPlace.MatchString(strings.TrimRight(line, " ")) {
			continue
		}

		for j := i - 1; j >= max(0, i-longest); j-- {
			class, message, _ := strings.Cut(strings.TrimSpace(lines[j]), " : ")
			class = strings.TrimSpace(class)
			if !strings.HasPrefix(lines[j], "  ") || !isClass(class) {
				continue
			}

			if message == "" && j+2 < i {
				message = classMessage(lines[j+2 : i])
			}

			found = Error{Class: class, Message: strings.TrimSpace(message)}

			break
		}
	}

	return found
}

// laravelLine reads the last line that Laravel's console marks as an error.
func laravelLine(lines []string) (found Error) {
	for _, line := range lines {
		message, ok := strings.CutPrefix(line, "   ERROR  ")
		if ok {
			found = Error{Message: strings.TrimSpace(message)}
		}
	}

	return found
}

// symfonyBlock reads the last block that a command of Symfony marks as an error. Its lines
// are broken between words.
func symfonyBlock(lines []string) (found Error) {
	for i, line := range lines {
		mark, message, ok := strings.Cut(strings.TrimSpace(line), " ")
		marked := ok && strings.EqualFold(mark, "[ERROR]") // Drush writes it small
		if !marked || !strings.HasPrefix(line, " ") {
			continue
		}

		found = Error{Message: strings.TrimSpace(message)}
		for _, line := range lines[i+1 : min(len(lines), i+1+maxContinued)] {
			if strings.TrimSpace(line) == "" || line[0] != ' ' {
				break
			}

			found.Message += " " + strings.TrimSpace(line)
		}
	}

	return found
}

// composer reads why Composer cannot install what is required: its first problem.
func composer(lines []string) Error {
	const sentence = "Your requirements could not be resolved to an installable set of packages."
	for i, line := range lines {
		if strings.TrimSpace(line) != sentence {
			continue
		}

		for _, line := range lines[i+1:] {
			problem, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
			if ok {
				return Error{Message: strings.TrimSuffix(sentence, ".")}.because("", problem)
			}
		}

		return Error{Message: sentence}
	}

	return Error{}
}

// wordPressMarks are in what the command line of WordPress says of an error, or of a plugin
// before it.
var wordPressMarks = [...]string{"WordPress", "wp-content/", "wp-config", "wp-includes/", "'wp ", "`wp ", "registered wp command"}

// wordPress reads the last error of the command line of WordPress.
func wordPress(lines []string) (found Error) {
	marked := false
	for _, line := range lines {
		message, ok := strings.CutPrefix(line, "Error: ")
		if ok {
			found = Error{Message: message}
		}

		marked = marked || containsAny(line, wordPressMarks[:])
	}

	if !marked {
		return Error{}
	}

	return found
}
