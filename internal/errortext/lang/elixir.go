package lang

import (
	"redrive/internal/errortext/form"
	"regexp"
	"strings"
)

// elixirForms are asked in this order. They never change.
var elixirForms = [...]func(lines []string) form.Error{elixirThrown, erlangThrown, erlangBoot, erlangReason}

// elixir reads what Elixir, Mix, Erlang and their supervisors write.
func elixir(text string) form.Error {
	lines := strings.Split(text, "\n")
	for _, read := range elixirForms {
		e := read(lines)
		if e.Found() {
			return e
		}
	}

	return form.Error{}
}

var elixirForm = regexp.MustCompile(`^(\s*|.*?[\]:] |.*\d\d:\d\d:\d\d.* )\*\* \(([A-Za-z][\w.]*)(?: from [^)]*)?\)(?: (.*))?$`)

// elixirThrown reads the last error that begins with "** (Class)". Those that are indented
// below it led to it, the innermost at the end.
func elixirThrown(lines []string) form.Error {
	var c form.Chain
	depth := 0 // of the last error that is no cause
	for i, line := range lines {
		if !strings.Contains(line, "** (") {
			continue
		}

		m := elixirForm.FindStringSubmatch(line)
		if m == nil {
			continue
		}

		indent := 0
		if strings.TrimSpace(m[1]) == "" {
			indent = len(m[1])
		}

		e := form.Error{Class: m[2], Message: elixirMessage(strings.TrimSpace(m[3]), lines[i+1:])}
		if c.Last.Found() && indent > depth {
			c.First = e
			continue
		}

		c, depth = form.Chain{Last: e, First: e}, indent
		if indent > 0 && e.Class == "EXIT" && i > 0 {
			c.Last = form.Error{Message: exitedAbove(lines[i-1])}
			depth = 0
		}
	}

	switch {
	case strings.Contains(c.Last.Message, "(errors have been logged)"):
		return c.Last.Because("", saidBefore(lines, "error: "))
	case strings.HasSuffix(c.Last.Message, "due to errors on dependencies"):
		return c.Last.Because("", saidBefore(lines, "the dependency "))
	}

	return exited(c)
}

// wasRaised is all that a process says that ended because of an exception, which follows.
const wasRaised = "an exception was raised:"

// exited is an error of Elixir and what caused it. The reason of an exit has no class, and a
// process that an exception ended has nothing to say of its own.
func exited(c form.Chain) form.Error {
	if c.First == c.Last {
		return c.Last
	}

	if c.Last.Message == wasRaised || c.Last.Message == "" {
		return c.First
	}

	if c.First.Class == "EXIT" {
		c.First.Class = ""
	}

	return c.Last.Because(c.First.Class, c.First.Message)
}

// exitedAbove is what a log says above the reason of an exit.
func exitedAbove(line string) string {
	_, said, ok := strings.Cut(line, "] ")
	if ok {
		return said
	}

	return strings.TrimSpace(line)
}

// elixirMessage is the message that begins with a first line: with what follows at once, or
// with a list of what is wrong, below a line that announces it. A list of other names says
// nothing about the cause.
func elixirMessage(first string, rest []string) string {
	for _, list := range [...]string{". Did you mean", ". This protocol is implemented for"} {
		sentence, _, ok := strings.Cut(first, list)
		if ok {
			return sentence
		}
	}

	switch {
	case strings.HasPrefix(first, "could not perform ") && strings.HasSuffix(first, "because changeset is invalid."):
		return first + changesetErrors(rest)
	case strings.HasSuffix(first, " in query:") && len(rest) > 0:
		return first + form.ContinuedUntil(rest[1:], isElixirEnd)
	case strings.HasSuffix(first, ":") && isElixirList(rest):
		return first + form.ContinuedUntil(rest[1:], isElixirEnd)
	}

	return first + form.ContinuedUntil(rest, isElixirEnd)
}

// isElixirList reports whether some lines begin with a list, below an empty line.
func isElixirList(lines []string) bool {
	return len(lines) > 1 && strings.TrimSpace(lines[0]) == "" && strings.HasPrefix(strings.TrimSpace(lines[1]), "* ")
}

// saidBefore is the first line that begins with some words, as the compiler and Mix write what
// is wrong before they end. The mark of an error is left out.
func saidBefore(lines []string, words string) string {
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, words) {
			return strings.TrimPrefix(line, "error: ")
		}
	}

	return ""
}

// changesetErrors is what Ecto found wrong with a changeset. The values follow later.
func changesetErrors(lines []string) string {
	for i, line := range lines {
		if strings.TrimSpace(line) == "Errors" && i+2 < len(lines) {
			return form.ContinuedUntil(lines[i+2:], isElixirEnd)
		}

		if strings.TrimSpace(line) != "" {
			break
		}
	}

	return ""
}

var elixirFrame = regexp.MustCompile(
	`^\s+(?:\([a-z]\w* [\w.+-]+\) |\(\w+\) )?\S+\.(?:exs?|erl|eex|heex):\d+: |` +
		`^\s+\(\w+ [\w.+-]+\) |^\s+:?[\w.]+\(.*\)$|^\s+:\w+\.|^\s+[A-Z]\w*(?:\.[A-Z]\w*)*\.\w+[(/]`)

// isElixirEnd reports whether a line is no part of the message above it: a frame, the cause,
// or what a process tells of itself.
func isElixirEnd(line string) bool {
	return elixirFrame.MatchString(line) || strings.HasPrefix(strings.TrimSpace(line), "** (") ||
		form.BeginsWithAny(line, []string{`{"`, "Kernel pid terminated", "warning: ", "Last message", "State: ", "Function: ",
			"Client ", "Process Label: ", "Initial Call: ", "Queue: ",
			"Start Call: ", "Restart: ", "Shutdown: ", "Ancestors: ", "Type: "})
}

// erlangKinds stand before an error in what the shell, escript and reports of crashes say.
var erlangKinds = [...]string{"exception error: ", "exception exit: ", "exception throw: "}

// erlangThrown reads the last error that Erlang formatted.
func erlangThrown(lines []string) (found form.Error) {
	for i, line := range lines {
		for _, kind := range erlangKinds {
			before, message, ok := strings.Cut(line, kind)
			before = strings.TrimSpace(before)
			if ok && (before == "" || before == "**" || before == "escript:") {
				class := strings.TrimSuffix(strings.TrimPrefix(kind, "exception "), ": ")
				found = form.Error{Class: class, Message: message + form.ContinuedUntil(lines[i+1:], isErlangEnd)}
			}
		}
	}

	return found
}

// isErlangEnd reports whether a line is one of the frames below an error, or what a report
// tells next.
func isErlangEnd(line string) bool {
	line = strings.TrimSpace(line)
	return form.BeginsWithAny(line, []string{"in function ", "in call from ", "ancestors: ", "=", "*** "})
}

// erlangBoots are what the runtime says when it cannot start.
var erlangBoots = [...]string{
	"init terminating in do_boot (", "Runtime terminating during boot (", "Kernel pid terminated (application_controller) (",
}

// erlangBoot reads why the runtime could not start: the reason, without the stack behind it.
func erlangBoot(lines []string) form.Error {
	for _, line := range lines {
		for _, boot := range erlangBoots {
			reason, ok := strings.CutPrefix(line, boot)
			if ok {
				return form.Error{Class: "exit", Message: withoutErlangStack(strings.Trim(strings.TrimSuffix(reason, ")"), `"`))}
			}
		}
	}

	return form.Error{}
}

// withoutErlangStack is a reason without the list of functions that it is in a pair with.
// Of a function that does not exist, that list says which.
func withoutErlangStack(reason string) string {
	inner, stack, ok := strings.Cut(reason, ",[{")
	inner = strings.TrimPrefix(strings.TrimSuffix(inner, ","), "{")
	if !ok {
		if strings.HasSuffix(reason, ",") {
			return inner
		}
		return reason
	}

	function := strings.SplitN(stack, ",", 3)
	if (inner == "undef" || inner == "function_clause") && len(function) == 3 {
		return inner + ": " + function[0] + ":" + function[1]
	}

	return inner
}

// erlangReason reads the last reason for which a process says that it terminates.
func erlangReason(lines []string) (found form.Error) {
	for i, line := range lines {
		_, reason, ok := strings.Cut(line, "** Reason for termination =")
		if !ok {
			continue
		}

		reason = strings.TrimSpace(strings.TrimPrefix(reason, "="))
		if reason == "" && i+1 < len(lines) {
			reason = strings.TrimPrefix(strings.TrimSpace(lines[i+1]), "** ")
		}

		found = form.Error{Class: "exit", Message: withoutErlangStack(reason)}
	}

	return found
}
