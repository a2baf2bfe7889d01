package errortext

import (
	"redrive/internal/errortext/form"
	"strings"
	"unicode/utf8"
)

// likeliest is the line of a text that a person would pick as its error: one of those with
// the greatest weight, see [weigh].
//
// Lines that begin as an error begins come in runs, of which the first line says what
// happened and the others what that led to: "ssh: connect to host …: Connection refused"
// stands before "fatal: Could not read from remote repository." A run ends where the program
// goes on, and the last run is what ended it. Of all other lines the last one has the word.
func likeliest(text string) string {
	if said := wholeObject(text); said != "" {
		return said
	}

	lines := weighed(text)
	best := nothing
	for _, l := range lines {
		best = max(best, l.weight)
	}

	chosen := -1
	inRun := false
	for i, l := range lines {
		switch {
		case l.text == "":
		case l.weight == best && (!inRun || !best.inRuns()):
			chosen, inRun = i, true
		case l.weight != best && l.goesOn:
			inRun = false
		}
	}

	if chosen < 0 {
		return ""
	}

	return block(lines, chosen)
}

// heaviest is the weight of the line that says most.
func heaviest(text string) weight {
	most := nothing
	for _, l := range weighed(text) {
		most = max(most, l.weight)
	}

	return most
}

// line is a line of a text, and what it is worth as an answer to what went wrong.
type line struct {
	text     string // without a frame, a stamp of the time and the like
	weight   weight
	framed   bool
	indented bool
	goesOn   bool // the program went on to do something else
}

// weighed splits a text into lines and weighs them: what a line means can depend on those
// before it.
func weighed(text string) []line {
	var all []line
	var s section
	for raw := range strings.SplitSeq(text, "\n") {
		l := weigh(raw)
		s.apply(raw, &l)
		all = append(all, l)
	}

	return all
}

// section is what the lines before a line say about it.
type section struct {
	usage   bool // a usage text, of which all that is indented is no error
	heading bool // a heading that says that the error is the next line
	box     bool // a box that says in its frame that it holds an error
}

func (s *section) apply(raw string, l *line) {
	switch {
	case isErrorFrame(raw):
		s.box = true
		l.weight = nothing
		return
	case isFrame(raw):
		s.box = false
		l.weight = nothing
		return
	case l.weight == nothing:
		return
	}

	// The line after a heading is the error, and so is each line of weight in a box of errors.
	if s.heading || s.box && l.framed && l.weight > aside {
		l.weight = opening
		s.heading = false
		return
	}

	if isHeading(l.text) {
		s.heading = true
		l.weight = aside
		return
	}

	switch {
	// The usage of a program lists options, and the words in their descriptions are no trouble.
	// It ends at a line that is as heavy as one of a log and is not indented.
	case isUsage(l.text):
		s.usage = true
	case l.weight >= logged && !l.indented:
		s.usage = false
	case s.usage && (l.indented || l.weight < trouble):
		l.weight = aside
	}

	// A plain line at the margin shows that the program did something else; see likeliest.
	l.goesOn = l.goesOn || l.weight == plain && !l.indented && !l.framed
}

// block is a line with what belongs to it: what stands below a line that only announces an
// error, and the first sentences below the titles of Terraform and CMake.
func block(lines []line, at int) string {
	head := lines[at]
	below := lines[at+1:]
	if head.weight <= plain || len(below) == 0 {
		return head.text
	}

	title, open := strings.CutSuffix(head.text, ":")
	var said string
	switch {
	// CMake Error at CMakeLists.txt:3 (find_package):
	case open && strings.HasPrefix(title, "CMake Error"):
		said = paragraph(below)
	case open && below[0].indented && !form.IsBlank(below[0].text), strings.HasPrefix(below[0].text, "> "): // "> " of Gradle
		said = strings.TrimLeft(below[0].text, ">* ")
	// "Build failed:" only announces what is said below.
	case open && strings.Count(strings.TrimSpace(title), " ") < fewWords, isNetLevel(head.text):
		said = firstSaid(below)
	case strings.HasPrefix(title, "Error: "):
		said = terraform(head, below)
	}

	if said == "" {
		return head.text
	}

	return strings.TrimRight(title, " .") + ": " + said
}

// fewWords is how many words at most only announce an error.
const fewWords = 4

// paragraph is the text up to an empty line, as one line.
func paragraph(lines []line) string {
	var said []string
	for _, l := range lines[:min(len(lines), form.MaxContinued)] {
		if form.IsBlank(l.text) {
			break
		}

		said = append(said, l.text)
	}

	return strings.Join(said, " ")
}

// firstSaid is the first line that says something, if it is near.
func firstSaid(lines []line) string {
	for _, l := range lines[:min(len(lines), form.MaxContinued)] {
		if l.weight > aside {
			return l.text
		}
	}

	return ""
}

// terraform is what Terraform says below the title of an error, and below the place in its
// files. Without a frame around them the place tells that it is Terraform's, or a sentence of
// trouble behind an empty line.
func terraform(head line, below []line) string {
	placed := head.framed
	for i, l := range below {
		switch {
		case isPlace(l.text):
			placed = true
		case form.IsBlank(l.text) && l.framed == head.framed, isSnippet(l.text), placed && l.weight == aside:
			continue
		case strings.HasPrefix(l.text, "Error message: "):
			return l.text
		case l.framed == head.framed && (placed || i > 0 && l.weight >= trouble):
			return paragraph(below[i:])
		default:
			return ""
		}
	}

	return ""
}

// isNetLevel reports whether a line is the level and the category of an entry of .NET, below
// which the text stands: "fail: Shop.Orders[0]".
func isNetLevel(s string) bool {
	level, category, _ := strings.Cut(s, ": ")
	return (level == "fail" || level == "crit") && strings.HasSuffix(category, "]") && !strings.Contains(category, " ")
}

// isHeading reports whether a line says that the error is the next one: "In Feed.php line 31:"
// of Symfony's console, "* What went wrong:" of Gradle.
func isHeading(s string) bool {
	if s == "* What went wrong:" {
		return true
	}

	place, ok := strings.CutPrefix(s, "In ")

	return ok && strings.HasSuffix(place, ":") && strings.Contains(place, " line ") && strings.Count(place, " ") == 2
}

// usages are the titles in a usage text, in small letters.
var usages = [...]string{
	"usage:", "usage of ", "flags:", "options:", "commands:", "available commands:", "global flags:", "global options:", "arguments:",
	"examples:", "aliases:", "subcommands:", "positional arguments:", "optional arguments:",
}

// isUsage reports whether a usage text or a part of one begins with a line.
func isUsage(s string) bool {
	const longest = 20

	beginning := strings.ToLower(s[:min(len(s), longest)])
	for _, title := range usages {
		if strings.HasPrefix(beginning, title) {
			return true
		}
	}

	return false
}

// isPlace reports whether a line says where in its files Terraform found an error.
func isPlace(s string) bool {
	return strings.HasPrefix(s, "on ") && strings.Contains(s, " line ") || strings.HasPrefix(s, "with ") && strings.HasSuffix(s, ",")
}

// isSnippet reports whether a line is one of a file, with its number before it.
func isSnippet(s string) bool {
	number, _, ok := strings.Cut(s, ":")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// frames are the characters of which boxes are drawn.
const frames = "│┃║╷╵╭╮╰╯┌┐└┘├┤─━═╔╗╚╝"

// unframed is a line without the sides of a box around it.
func unframed(s string) (inside string, framed bool) {
	inside = strings.TrimSpace(s)
	if inside == "" || !strings.ContainsRune(frames, firstRune(inside)) {
		return inside, false
	}

	return strings.TrimSpace(strings.Trim(inside, frames+" ")), true
}

// firstRune is no character of a frame if there is none.
func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// isFrame reports whether a line is the upper or the lower side of a box.
func isFrame(s string) bool {
	s = strings.TrimSpace(s)
	last, _ := utf8.DecodeLastRuneInString(s)
	return strings.ContainsRune("╷╵╭╰┌└╔╚", firstRune(s)) && strings.ContainsRune(frames, last)
}

// isErrorFrame reports whether a line is the upper side of a box with an error in it.
func isErrorFrame(s string) bool {
	if !isFrame(s) || !strings.ContainsAny(s, "╭┌╔") {
		return false
	}

	title := strings.ToLower(strings.Trim(s, frames+" "))

	return strings.HasPrefix(title, "error") || strings.HasSuffix(title, "error") || strings.HasSuffix(title, "exception")
}
