package lang

import (
	"regexp"
	"strings"

	"redrive/internal/errortext/form"
)

// boxFile is the line above a box: "In ImportCommand.php line 21:".
var boxFile = regexp.MustCompile(`^\s*In \S.* line \d+:$`)

// boxInFile reads the boxes that the consoles of Symfony and Laravel draw below the file of
// an error and of each one that led to it. Blanks fill a box, and the class is there only if the
// user has asked for more words:
//
//	In ImportCommand.php line 21:
//
//	  [App\RateException]
//	  no rate for "XAU"
func boxInFile(lines []string) form.Error {
	var c form.Chain
	for i, line := range lines {
		isBox := i+1 < len(lines) && strings.TrimSpace(lines[i+1]) == ""
		if !isBox || !boxFile.MatchString(strings.TrimRight(line, " ")) {
			continue
		}

		e := box(lines[i+1:])
		if !e.Found() {
			continue
		}

		if !c.Last.Found() {
			c.Last = e
		}

		c.First = e
	}

	return c.Joined()
}

// box is the error in a box: its class, if the console says it, and its message.
func box(lines []string) form.Error {
	start := 0
	for start < len(lines) && strings.TrimSpace(lines[start]) == "" {
		start++
	}

	if start == len(lines) {
		return form.Error{}
	}

	// [RuntimeException]
	class, ok := classInBrackets(lines[start])
	if ok {
		start++
	}

	var said []string
	for _, line := range lines[start:] {
		inside, ok := strings.CutPrefix(line, "  ")
		if !ok || strings.TrimSpace(inside) == "" || len(said) > form.MaxContinued {
			break
		}

		said = append(said, strings.TrimRight(inside, " "))
	}

	return form.Error{Class: class, Message: unwrapped(said)}
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
		// A full line was broken within a word, or behind the blank that fills it.
		case width >= narrowest && length == width:
		// The blank at the end of the line was cut off.
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

	return class, named && form.IsClass(class)
}

// boxOfClass reads what CodeIgniter and older consoles of Symfony write below a class in
// brackets. The last of several led to the first.
//
//	[App\RateException]
//	no rate for "XAU"
//	at APPPATH/Commands/Import.php:21
func boxOfClass(lines []string) form.Error {
	var c form.Chain
	for i, line := range lines {
		class, ok := classInBrackets(line)
		if !ok || i+1 == len(lines) {
			continue
		}

		rest := lines[i+1:]
		if strings.TrimSpace(rest[0]) == "" {
			rest = rest[1:]
		}

		e := form.Error{Class: class, Message: strings.TrimSpace(classMessage(rest))}
		if form.IsBlank(strings.Trim(e.Message, "[]{}(), \n")) { // brackets of another language
			continue
		}

		if !c.Last.Found() {
			c.Last = e
		}

		c.First = e
	}

	return c.Joined()
}

// classMessage is the message below a class, up to the place of the error.
func classMessage(lines []string) string {
	var said []string
	for _, line := range lines {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "at ") || len(said) > form.MaxContinued {
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

// bareBox reads such a refusal. What the command expects stands below it:
//
//	  Not enough arguments (missing: "feed").
//
//	import <feed>
func bareBox(lines []string) form.Error {
	for i, line := range lines[:len(lines)-1] {
		if strings.TrimSpace(line) != "" {
			continue
		}

		message, ok := strings.CutPrefix(lines[i+1], "  ")
		if ok && form.BeginsWithAny(message, refusals[:]) {
			return box(lines[i+1:])
		}
	}

	return form.Error{}
}

// messenger reads why a worker of Symfony could not handle a message:
//
//	… Error thrown while handling message App\Mail. Removing from transport after 3 retries. Error: "no such user" ["class" => …
func messenger(lines []string) (found form.Error) {
	for _, line := range lines {
		_, said, ok := strings.Cut(line, "Error thrown while handling message ")
		if !ok {
			continue
		}

		_, message, ok := strings.Cut(said, ` Error: "`)
		if ok {
			message, _, _ = strings.Cut(message, `" [`)
			message, _, _ = strings.Cut(message, `" {`)
			found = form.Error{Message: strings.TrimSuffix(message, `"`)}
		}
	}

	return found
}

// collisionPlace is the place below the message: "  at app/Jobs/Charge.php:30".
var collisionPlace = regexp.MustCompile(`^  at \S.*:\d+(?: in \S+)?$`)

// collision reads the last error as Laravel's console, and Poetry's, draw it: the class, the
// message and the place, each in a paragraph.
//
//	 App\CardException
//
//	the card was declined
//
//	at app/Jobs/Charge.php:30
func collision(lines []string) (found form.Error) {
	const longest = form.MaxContinued + 6 // lines from the class to the place
	for i, line := range lines {
		if !collisionPlace.MatchString(strings.TrimRight(line, " ")) {
			continue
		}

		for j := i - 1; j >= max(0, i-longest); j-- {
			class, message, _ := strings.Cut(strings.TrimSpace(lines[j]), " : ")
			class = strings.TrimSpace(class)
			if !strings.HasPrefix(lines[j], "  ") || !form.IsClass(class) {
				continue
			}

			if message == "" && j+2 < i {
				message = classMessage(lines[j+2 : i])
			}

			found = form.Error{Class: class, Message: strings.TrimSpace(message)}

			break
		}
	}

	return found
}

// laravelLine reads the last line that Laravel's console marks as an error:
//
//	ERROR  There are no commands defined in the "feeds" namespace.
func laravelLine(lines []string) (found form.Error) {
	for _, line := range lines {
		message, ok := strings.CutPrefix(line, "   ERROR  ")
		if ok {
			found = form.Error{Message: strings.TrimSpace(message)}
		}
	}

	return found
}

// symfonyBlock reads the last block that a command of Symfony marks as an error. Its lines
// are broken between words:
//
//	[ERROR] The feed of the shop could not be loaded, because the shop did not
//	        answer
func symfonyBlock(lines []string) (found form.Error) {
	for i, line := range lines {
		mark, message, ok := strings.Cut(strings.TrimSpace(line), " ")
		marked := ok && strings.EqualFold(mark, "[ERROR]") // Drush writes it small
		if !marked || !strings.HasPrefix(line, " ") {
			continue
		}

		found = form.Error{Message: strings.TrimSpace(message)}
		for _, line := range lines[i+1 : min(len(lines), i+1+form.MaxContinued)] {
			if strings.TrimSpace(line) == "" || line[0] != ' ' {
				break
			}

			found.Message += " " + strings.TrimSpace(line)
		}
	}

	return found
}

// composer reads why Composer cannot install what is required: its first problem.
func composer(lines []string) form.Error {
	const sentence = "Your requirements could not be resolved to an installable set of packages."
	for i, line := range lines {
		if strings.TrimSpace(line) != sentence {
			continue
		}

		for _, line := range lines[i+1:] {
			problem, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
			if ok {
				return form.Error{Message: strings.TrimSuffix(sentence, ".")}.Because("", problem)
			}
		}

		return form.Error{Message: sentence}
	}

	return form.Error{}
}

// wordPressMarks are in what the command line of WordPress says of an error, or of a plugin
// before it.
var wordPressMarks = [...]string{"WordPress", "wp-content/", "wp-config", "wp-includes/", "'wp ", "`wp ", "registered wp command"}

// wordPress reads the last error of the command line of WordPress.
func wordPress(lines []string) (found form.Error) {
	marked := false
	for _, line := range lines {
		message, ok := strings.CutPrefix(line, "Error: ")
		if ok {
			found = form.Error{Message: message}
		}

		marked = marked || form.ContainsAny(line, wordPressMarks[:])
	}

	if !marked {
		return form.Error{}
	}

	return found
}
