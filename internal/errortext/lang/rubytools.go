package lang

import (
	"regexp"
	"strings"

	"redrive/internal/errortext/form"
)

// rake reads what rake and the commands of Rails say of an error that aborted them, and the
// last of those that caused it:
//
//	rake aborted!
//	ActiveRecord::StatementInvalid: PG::DuplicateColumn: ERROR: …
//	/app/db/migrate/1_add_rate.rb:3:in 'change'
//
//	Caused by:
//	PG::DuplicateColumn: ERROR: …
//
// Of a command that failed, the line above says why.
func rake(lines []string) form.Error {
	var c form.Chain
	for i, line := range lines[:len(lines)-1] {
		switch {
		case strings.HasSuffix(line, " aborted!") && strings.Count(line, " ") == 1:
			e := rakeSaid(lines[i+1:])
			c = form.Chain{Last: e, First: e}
			if i > 0 && strings.HasPrefix(e.Message, "Command failed with status (") {
				c.First = form.Error{Message: lines[i-1]}
			}
		case c.Last.Found() && line == "Caused by:":
			c.First = rakeSaid(lines[i+1:])
		}
	}

	return c.Joined()
}

// rakeSaid is the error at the beginning of some lines: of a RuntimeError rake leaves out
// the class. That of a migration announces what follows.
func rakeSaid(lines []string) form.Error {
	e := classAndMessage(lines[0])
	e.Message, _, _ = strings.Cut(e.Message, " (See the list of available tasks with ")
	e.Message = strings.TrimSuffix(e.Message, " ("+e.Class+")") // once more, from Ruby 3.4 on
	e.Message = strings.TrimSuffix(e.Message, ":")
	e.Message += form.ContinuedUntil(lines[1:], isRubyEnd)

	return e
}

// classAndMessage is a line that begins with a class, or that is a message as a whole.
func classAndMessage(line string) form.Error {
	class, message, _ := strings.Cut(line, ": ")
	class = strings.TrimSuffix(class, ":")
	if form.IsClass(class) {
		return form.Error{Class: class, Message: message}
	}

	return form.Error{Message: line}
}

// railsRunner reads what "rails runner" says of code that it cannot run, below its advice.
func railsRunner(lines []string) form.Error {
	for i, line := range lines {
		advice := strings.HasPrefix(line, "Please specify a valid ruby command or the path of a script to run")
		if advice && i+3 < len(lines) {
			return form.Error{Message: lines[i+3] + form.ContinuedUntil(lines[i+4:], isRubyEnd)}
		}
	}

	return form.Error{}
}

// rubyLogged reads the last error that a logger wrote: above the frames, or in a sentence.
//
//	F, [2026-11-28T12:00:00 #7] FATAL -- : [4f1c] RuntimeError (no rate for XAU):
//	[4f1c]
//	[4f1c] app/rates.rb:3:in 'RatesController#show'
func rubyLogged(lines []string) form.Error {
	var c form.Chain
	causes := false // in a list of causes, of which the last one stands above the frames
	for i, line := range lines {
		e := gaveUp(line)
		if e.Found() {
			c = form.Chain{Last: e, First: e}
			continue
		}

		// Rails lists the causes of an error between it and its frames.
		if i > 1 && withoutTags(strings.TrimSpace(line)) == "Causes:" && isEmptyLogged(lines[i-1]) {
			e = loggedSaid(lines[i-2])
			c, causes = form.Chain{Last: e, First: e}, e.Found()

			continue
		}

		// Any other error is the line above the first line of a backtrace.
		if i+1 == len(lines) || isRubyFrame(line) || isTemplateCode(line) || !isRubyBacktrace(lines[i+1:]) {
			continue
		}

		cause, isCause := strings.CutPrefix(line, "Caused by: ")

		isCause = isCause || causes || i > 0 && strings.TrimSpace(lines[i-1]) == "Caused by:"
		causes = false

		e = loggedSaid(cause)
		switch {
		case !e.Found():
		case isCause && c.Last.Found():
			c.First = e
		default:
			c = form.Chain{Last: e, First: e}
		}
	}

	return c.Joined()
}

// gaveUpForm is the sentence in which Active Job says that it does not retry a job.
var gaveUpForm = regexp.MustCompile(
	`(?:Discarded|Stopped retrying) \S+ \(Job ID: [^)]*\) due to an? ([A-Z]\w*(?:::\w+)*) \((.*)\)(?:\.$|, which reoccurred on )`)

// gaveUp reads a sentence in which a queue says why it does not retry a job:
//
//	Charge FAILED (2 prior attempts) with RuntimeError: no route
//	Discarded Charge (Job ID: b4) due to a RuntimeError (no route).
func gaveUp(line string) form.Error {
	_, said, ok := strings.Cut(line, " prior attempts) with ") // Delayed Job
	if ok {
		return classAndMessage(said)
	}

	if !strings.Contains(line, " due to a") { // which costs less than the form
		return form.Error{}
	}

	m := gaveUpForm.FindStringSubmatch(line)
	if m == nil {
		return form.Error{}
	}

	return form.Error{Class: m[1], Message: m[2]}
}

// isRubyBacktrace reports whether some lines begin with a frame, after the code of a template
// and an empty line or two.
func isRubyBacktrace(lines []string) bool {
	const empty, code = 2, 8

	first := 0
	for first < min(len(lines), code) && isTemplateCode(lines[first]) {
		first++
	}

	for _, line := range lines[first:min(len(lines), first+empty+1)] {
		if !isEmptyLogged(line) {
			return isRubyFrame(line)
		}
	}

	return false
}

// templateCode is a line of a template with its number: "    2: <%= metal.rate %>".
var templateCode = regexp.MustCompile(`^\s*\d+: `)

// isTemplateCode reports whether a line shows the code of a template, which Rails writes below an
// error.
func isTemplateCode(line string) bool { return templateCode.MatchString(withoutTags(line)) }

// isEmptyLogged reports whether a line is empty, behind what a log writes before it.
func isEmptyLogged(line string) bool {
	_, said, logged := strings.Cut(line, " -- :")
	if !logged {
		said = line
	}

	return withoutTags(strings.TrimSpace(said)) == ""
}

// withoutTags is what a line says behind its tags: "[4f1c] [mail] no route".
func withoutTags(said string) string {
	for strings.HasPrefix(said, "[") {
		_, rest, ok := strings.Cut(said, "] ")
		if !ok && !strings.HasSuffix(said, "]") {
			break
		}

		said = rest // empty behind the last tag of a line that has nothing else
	}

	return said
}

// rubyJavaFrame is a frame of JRuby: "  perform at /app/job.rb:3".
var rubyJavaFrame = regexp.MustCompile(`^\s+\S.* at \S+\.rb:\d+$`)

// isRubyFrame reports whether a line is a frame and no more, behind what a log writes
// before it.
func isRubyFrame(line string) bool {
	if rubyJavaFrame.MatchString(line) {
		return true
	}

	i := strings.LastIndex(line, ":in ")
	if i <= 0 || line[i-1] < '0' || line[i-1] > '9' {
		return false
	}

	name := line[i+len(":in "):]

	return name != "" && (name[0] == '`' || name[0] == '\'') && (name[len(name)-1] == '\'')
}

// rubyMarks stand before an error in a line of a log.
var rubyMarks = [...]string{" -- : ", "WARN: ", "ERROR: ", "FATAL: ", "ms: ", "] "}

// loggedSaid reads an error as loggers format it: "message (Class)", "Class (message):" or
// "Class: message".
func loggedSaid(line string) form.Error {
	for _, mark := range rubyMarks {
		i := strings.Index(line, mark)
		if i < 0 {
			continue
		}

		e := errorOfLogger(strings.TrimSpace(line[i+len(mark):]))
		if e.Found() {
			return e
		}
	}

	return errorOfLogger(strings.TrimSpace(line))
}

// errorOfLogger is an error in one of those formats, without what stands before it.
func errorOfLogger(said string) form.Error {
	said = withoutTags(said)

	// The class stands in parentheses at the end: "no route (RuntimeError)"
	m := rubyClass.FindAllStringSubmatchIndex(said, -1)
	if m != nil && m[len(m)-1][1] == len(said) {
		return rubySaid(said)
	}

	// The message stands in parentheses: "RuntimeError (no route):"
	class, rest, ok := strings.Cut(said, " (")
	message, closed := strings.CutSuffix(strings.TrimSuffix(rest, ":"), ")")
	if ok && closed && form.IsClass(class) {
		return form.Error{Class: class, Message: message}
	}

	e := classAndMessage(said)
	if e.Class == "" {
		return form.Error{}
	}

	return e
}

// bundlerAdvice stands below what is missing.
var bundlerAdvice = [...]string{
	"Run `bundle install` to install missing gems", "Install missing gem executables with `bundle install`",
}

// bundler reads which gem is missing, above the advice to install it:
//
//	Could not find gem 'redis' in locally installed gems.
//	Run `bundle install` to install missing gems.
func bundler(lines []string) form.Error {
	for i, line := range lines {
		if i > 0 && form.BeginsWithAny(line, bundlerAdvice[:]) {
			return form.Error{Message: lines[i-1]}
		}
	}

	return form.Error{}
}
