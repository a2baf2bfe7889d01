package lang

import (
	"regexp"
	"strings"

	"redrive/internal/errortext/form"
)

// rustReaders are asked in this order. They never change.
var rustReaders = [...]func(text string) form.Error{rustPanic, eyreReport, rustReport, drawnReport, rustMain, rustAbort, rustc}

// rust reads what programs in Rust write, and those that build them.
func rust(text string) form.Error {
	for _, read := range rustReaders {
		e := read(text)
		if e.Found() {
			return e
		}
	}

	return form.Error{}
}

var (
	rustThread = regexp.MustCompile(`^thread '.*' (?:\(\d+\) )?panicked at (.*)$`)
	rustPlace  = regexp.MustCompile(`^[^'].*:\d+:\d+:$`)        // src/main.rs:4:5:
	oldEnd     = regexp.MustCompile(`', \S[^']*:\d+(?::\d+)?$`) // the end of 'no rate', src/main.rs:4:5
)

// rustPanic reads the last panic:
//
//	thread 'main' panicked at src/main.rs:4:5:
//	index out of bounds: the len is 3 but the index is 7
//	note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
//
// That of a thread which waited for another one, or of a value that was dropped because of a
// panic, was caused by the panic before it.
func rustPanic(text string) form.Error {
	var last, before string
	var rest []string // below the last panic

	aborted := false
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "thread panicked while ") {
			aborted = true
		}

		said, ok := panicked(line, lines[i+1:])
		switch {
		case !ok:
		case strings.HasPrefix(said, "panic in a destructor ") || strings.HasPrefix(said, "panic in a function that cannot unwind"):
			aborted = true
		default:
			last, before, rest = said, last, lines[i+1:]
		}
	}

	if last == "" || returned(rest) {
		return form.Error{}
	}

	e := form.Error{Class: "panic", Message: last}
	if aborted || strings.Contains(last, "Any { .. }") || strings.Contains(last, "PoisonError") {
		e = e.Because("", firstLine(before))
	}

	_, cause := rustCauses(rest)

	return e.Because("", cause)
}

// returned reports whether the function main returned an error with its causes: a panic
// before that ended a thread, and not the program.
func returned(lines []string) bool {
	for i, line := range lines {
		if strings.HasPrefix(line, "Error:") {
			said, _ := rustCauses(lines[i:])
			return said != "" || line == "Error: " || line == "Error:"
		}
	}

	return false
}

// panicked reads what a thread panicked with, if a line says that one did: in quotes
// before its place, or since Rust 1.73 below it.
func panicked(line string, below []string) (said string, ok bool) {
	// color-eyre writes "Message:" with "Location:" below it.
	said, ok = strings.CutPrefix(line, "Message:  ")
	if ok && len(below) > 0 && strings.HasPrefix(below[0], "Location: ") {
		return said, true
	}

	m := rustThread.FindStringSubmatch(line)
	if m == nil {
		return "", false
	}

	// thread 'main' panicked at src/main.rs:4:5:
	if rustPlace.MatchString(m[1]) {
		return strings.TrimPrefix(form.Continued(untilNote(below)), "\n"), true
	}

	// thread 'main' panicked at 'index out of bounds', src/main.rs:4:5
	first, ok := strings.CutPrefix(m[1], "'")
	if !ok {
		return "", false
	}

	lines := append([]string{first}, below[:min(len(below), form.MaxContinued)]...)
	for i, line := range lines {
		end := oldEnd.FindStringIndex(line)
		if end != nil {
			lines[i] = line[:end[0]]
			return strings.Join(lines[:i+1], "\n"), true
		}
	}

	return first, true
}

// untilNote ends before what the runtime says about backtraces and about how it ends.
func untilNote(lines []string) []string {
	for i, line := range lines[:min(len(lines), form.MaxContinued+1)] {
		for _, note := range [...]string{"note: ", "stack backtrace:", "thread ", "fatal runtime error: "} {
			if strings.HasPrefix(line, note) {
				return lines[:i]
			}
		}
	}

	return lines
}

// rustReport reads the last error with its causes, as anyhow, eyre and Cargo write them:
//
//	Error: could not load the feed
//
//	Caused by:
//	    0: could not ask the shop
//	    1: Connection refused (os error 111)
func rustReport(text string) form.Error {
	said, cause := rustCauses(strings.Split(text, "\n"))
	if said == "" {
		return form.Error{}
	}

	return form.Error{Message: said}.Because("", cause)
}

var numbered = regexp.MustCompile(`^\s+\d+: (.*)$`)

// rustCauses finds the last list of causes, below "Caused by:": what it explains, and the
// innermost one. Each may have a list of its own.
func rustCauses(lines []string) (said, cause string) {
	open := false
	for i, line := range lines {
		switch {
		case line == "Location:" || line == "Stack backtrace:":
			before := paragraphBefore(lines[:i])
			if !open && form.BeginsError(before) {
				said, cause = before, ""
			}

			open = false
		case line == "Caused by:" || strings.HasPrefix(line, "Caused by the") && strings.HasSuffix(line, ":"):
			if !open {
				said = paragraphBefore(lines[:i])
			}

			open = true

			if i+1 < len(lines) {
				cause = withoutOrdinal(lines[i+1])
			}
		case said != "" && strings.HasPrefix(line, "Error: "): // a later one, so far without causes
			said, cause, open = line, "", false
		case line == "" || !open:
		case line[0] != ' ' && line[0] != '\t':
			open = false
		case numbered.MatchString(line):
			cause = withoutOrdinal(line)
		}
	}

	return form.WithoutLabel(said), cause
}

// withoutOrdinal is a cause without its place in the list.
func withoutOrdinal(line string) string {
	m := numbered.FindStringSubmatch(line)
	if m != nil {
		return m[1]
	}
	return strings.TrimSpace(line)
}

// paragraphBefore is the last paragraph of some lines, from the last line that begins as
// an error does.
func paragraphBefore(lines []string) string {
	end := len(lines)
	for end > 0 && strings.TrimSpace(lines[end-1]) == "" {
		end--
	}

	start := end
	for start > 0 && end-start <= form.MaxContinued && strings.TrimSpace(lines[start-1]) != "" {
		start--
		if form.BeginsError(lines[start]) {
			break
		}
	}

	return strings.Join(lines[start:end], "\n")
}

// eyreReport reads a list of errors below "Error:", of which the last is the cause:
//
//	Error:
//	   0: could not load the feed
//	   1: Connection refused (os error 111)
func eyreReport(text string) form.Error {
	i := strings.LastIndex("\n"+text, "\nError:")
	if i < 0 {
		return form.Error{}
	}

	lines := strings.Split(text[i:], "\n")[1:]

	var e form.Error
	cause := ""
	for _, line := range lines {
		m := numbered.FindStringSubmatch(line)

		// The list begins right below "Error:" and ends at an empty line.
		if m == nil && (!e.Found() || strings.TrimSpace(line) == "") {
			break
		}

		if m != nil && !e.Found() {
			e.Message = m[1]
		} else if m != nil {
			cause = m[1]
		}
	}

	return e.Because("", cause)
}

// drawnReport reads an error and its causes behind drawn arrows, as miette and error-stack
// write them:
//
//	× could not load the feed            Error: could not load the feed
//	├─▶ could not ask the shop           ├╴at src/main.rs:3:4
//	╰─▶ Connection refused               ╰─▶ Connection refused
func drawnReport(text string) form.Error {
	var e form.Error
	cause, before := "", ""
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(strings.TrimPrefix(line, "Error: "))
		said, begins := strings.CutPrefix(trimmed, "× ")

		// error-stack writes the place below the error.
		if !begins && strings.HasPrefix(line, "├╴at ") {
			said, begins = before, true
		}

		if begins {
			e, cause = form.Error{Message: said}, ""
		}

		for _, arrow := range [...]string{"├─▶ ", "╰─▶ "} {
			said, ok := strings.CutPrefix(trimmed, arrow)
			if ok {
				cause = said
			}
		}

		before = trimmed
	}

	if cause == "" && !strings.Contains("\n"+text, "\nError:") { // others draw crosses as well
		return form.Error{}
	}

	return e.Because("", cause)
}

// rustValue is an error that the function main returned, as it is printed for a programmer:
// a structure, a case of an enumeration, a text.
var rustValue = regexp.MustCompile(`^Error: ([A-Z]\w*(?: \{.*\}|\(.*\))|".*")$`)

// rustMain reads the error that the function main returned.
func rustMain(text string) form.Error {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")

	m := rustValue.FindStringSubmatch(lines[len(lines)-1])
	if m == nil {
		return form.Error{}
	}

	return form.Error{Message: strings.Trim(m[1], `"`)}
}

var rustEnd = regexp.MustCompile(`^(?:thread '.*' (?:\(\d+\) )?has overflowed its stack|memory allocation of \d+ bytes failed|` +
	`\S+ had a problem and crashed\b.*)$`)

// rustAbort reads what the runtime says before it ends a program without a panic.
func rustAbort(text string) form.Error {
	for line := range strings.SplitSeq(text, "\n") {
		if rustEnd.MatchString(line) {
			said, _, _ := strings.Cut(line, ". ")
			return form.Error{Message: said}
		}
	}

	return form.Error{}
}

var rustcForm = regexp.MustCompile(`^error(?:\[(E\d+)\])?: (.+)$`)

// rustc reads the first error of the compiler. A place follows it:
//
//	error[E0425]: cannot find value `rate` in this scope
//	 --> src/main.rs:2:5
func rustc(text string) form.Error {
	var before string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "--> ") {
			m := rustcForm.FindStringSubmatch(before)
			if m != nil {
				return form.Error{Class: m[1], Message: m[2]}
			}
		}

		before = line
	}

	return form.Error{}
}
