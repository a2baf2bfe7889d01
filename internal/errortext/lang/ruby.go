package lang

import (
	"regexp"
	"strings"

	"redrive/internal/errortext/form"
)

// rubyReaders are asked in this order. They never change.
var rubyReaders = [...]func(lines []string) form.Error{
	rake, rubyUncaught, rubySyntax, railsRunner, rubyLogged, bundler,
}

// ruby reads what the interpreter, rake, Rails, Bundler and the loggers of jobs write.
func ruby(text string) form.Error {
	lines := strings.Split(text, "\n")
	for _, read := range rubyReaders {
		e := read(lines)
		if e.Found() {
			return e
		}
	}

	return form.Error{}
}

var (
	rubyPlace = regexp.MustCompile("^\\S.*?:\\d+:in [`'\"][^'\"]*['\"]") // /app/job.rb:3:in 'Integer#/'
	rubyFrom  = regexp.MustCompile(`^\s+(?:\d+: )?from \S`)              // a frame, with its number where the trace is turned around
	rubyMain  = regexp.MustCompile("in [`']<main>'")                     // the file with which the program began
	rubyClass = regexp.MustCompile(` \(([A-Z]\w*(?:::\w+)*)\)`)          // divided by 0 (ZeroDivisionError)
)

// rubyUncaught reads an error that ended the program: its place, its message and its class
// on one line. What caused it stands below its frames:
//
//	/app/job.rb:5:in 'rescue in run': charge failed (ChargeError)
//		from /app/job.rb:9:in '<main>'
//	/app/job.rb:3:in 'run': connection refused (Errno::ECONNREFUSED)
//		from /app/job.rb:9:in '<main>'
//
// Ruby 2.5 to 2.7 turns all this around on a terminal.
func rubyUncaught(lines []string) form.Error {
	var r rubyTrace
	for i, line := range lines {
		e, ok := rubyHead(lines, i)
		switch {
		case ok:
			r.add(e, r.thread && isRubyMain(lines, i))
		case strings.Contains(line, "from ") && rubyFrom.MatchString(line):
			r.frames = true
			r.reversed = r.reversed || strings.Contains(line, ": from ")
		case strings.Contains(line, "terminated with exception (report_on_exception is true)"):
			r = rubyTrace{thread: true}
		case line == tracebackHead+":":
			r = rubyTrace{}
		case form.IsLogged(line):
			r.frames = false
		}
	}

	return r.chain.Joined()
}

// rubyTrace is what rubyUncaught has read so far: an error and what caused it.
type rubyTrace struct {
	chain    form.Chain
	thread   bool // the chain is that of a thread, and the program went on
	frames   bool // frames stand above the line
	reversed bool // the frames stand above their error, and what caused it does, too
}

// add takes over the error of a line: the next in the chain if frames stand between the two.
func (r *rubyTrace) add(e form.Error, main bool) {
	joined := r.chain.Last.Found() && r.frames && !(r.thread && main)
	switch {
	case !joined:
		r.chain = form.Chain{Last: e, First: e}
		r.thread = r.thread && !main
	case r.reversed:
		r.chain.Last = e
	default:
		r.chain.First = e
	}

	r.frames = false
}

// isRubyMain reports whether the error on a line, or the last of its frames, is in the
// program's own file, which is true of no thread.
func isRubyMain(lines []string, i int) bool {
	if rubyMain.MatchString(lines[i]) {
		return true
	}

	for _, line := range lines[i+1:] {
		if rubyPlace.MatchString(line) {
			return false
		}

		if rubyFrom.MatchString(line) && rubyMain.MatchString(line) {
			return true
		}
	}

	return false
}

// rubyHead reads the error whose place is at the beginning of a line.
func rubyHead(lines []string, i int) (form.Error, bool) {
	line := lines[i]
	place := ""
	if strings.Contains(line, ":in ") { // few lines: a search costs far less
		place = rubyPlace.FindString(line)
	}

	said, ok := strings.CutPrefix(line[len(place):], ": ")
	if place == "" {
		said, ok = withoutRubyMethod(line)
	}

	if !ok {
		return form.Error{}, false
	}

	e := rubySaid(said)
	if !e.Found() {
		return form.Error{}, false
	}

	if e.Message != "unhandled exception" {
		e.Message += form.ContinuedUntil(lines[i+1:], isRubyEnd)
	}

	return e, true
}

// withoutRubyMethod is what a line says whose place names no method: the interpreter cannot
// read a file, or cannot find it.
//
//	job.rb:1: syntax errors found (SyntaxError)
//	ruby: No such file or directory -- job.rb (LoadError)
func withoutRubyMethod(line string) (said string, ok bool) {
	said, ok = strings.CutPrefix(line, "ruby: ")
	if ok {
		return said, rubyClass.MatchString(said)
	}

	place, said, ok := strings.Cut(line, ": ")
	said = strings.TrimPrefix(said, place+": ")
	digits := place[strings.LastIndexByte(place, ':')+1:]
	isLine := ok && digits != "" && strings.Trim(digits, "0123456789") == ""
	isFile := strings.Contains(place, ".r") && !strings.Contains(place, " ")

	return said, isLine && isFile && strings.HasSuffix(said, ")") && rubyClass.MatchString(said)
}

// rubySaid is an error as the interpreter says it: the class is in parentheses, behind which
// a message of its own may go on, or alone.
func rubySaid(said string) form.Error {
	if said == "unhandled exception" {
		return form.Error{Class: "RuntimeError", Message: said}
	}

	all := rubyClass.FindAllStringSubmatchIndex(said, -1)
	if all == nil {
		if form.IsClass(said) {
			return form.Error{Class: said}
		}
		return form.Error{}
	}

	m := all[len(all)-1]

	class, message := said[m[2]:m[3]], said[:m[0]]+said[m[1]:]
	if message == class {
		message = ""
	}

	return form.Error{Class: class, Message: message}
}

// isRubyEnd reports whether a line is no part of the message above it.
func isRubyEnd(line string) bool {
	return rubyFrom.MatchString(line) || rubyPlace.MatchString(strings.TrimSpace(line)) || strings.Contains(line, ": warning: ") ||
		form.BeginsWithAny(line, []string{"Did you mean?", "Tasks: TOP => ", "(See full trace "})
}

var rubySyntaxForm = regexp.MustCompile(`^\S+:\d+: (syntax error.*?)(?: \(SyntaxError\))?$`)

// rubySyntax reads the first error of a file that cannot be parsed:
//
//	job.rb:3: syntax error, unexpected end-of-input (SyntaxError)
func rubySyntax(lines []string) form.Error {
	for _, line := range lines {
		m := rubySyntaxForm.FindStringSubmatch(line)
		if m != nil {
			return form.Error{Class: "SyntaxError", Message: m[1]}
		}
	}

	return form.Error{}
}
