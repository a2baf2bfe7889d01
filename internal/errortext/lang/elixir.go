package lang

import (
	"regexp"
	"strings"

	"redrive/internal/errortext/form"
)

// elixirReaders are asked in this order: what names a class comes before what does not.
var elixirReaders = [...]func(lines []string) form.Error{elixirThrown, erlangThrown, erlangBoot, erlangReason}

// elixir reads what Elixir, Mix, Erlang and their supervisors write.
func elixir(text string) form.Error {
	lines := strings.Split(text, "\n")
	for _, read := range elixirReaders {
		e := read(lines)
		if e.Found() {
			return e
		}
	}

	return form.Error{}
}

// elixirHeadline is the first line of an error of Elixir, which may be indented, or stand behind
// what a logger writes before its messages:
//
//	** (KeyError) key :total not found
//	[error] ** (RuntimeError from shell) no connection
//	12:01:07.213 [error] ** (EXIT) killed
var elixirHeadline = regexp.MustCompile(`^(\s*|.*?[\]:] |.*\d\d:\d\d:\d\d.* )\*\* \(([A-Za-z][\w.]*)(?: from [^)]*)?\)(?: (.*))?$`)

// elixirThrown reads the last error that begins with "** (Class)". Errors that are indented
// below it are its causes, the innermost at the end:
//
//	** (EXIT from #PID<0.95.0>) an exception was raised:
//	    ** (RuntimeError) no connection
func elixirThrown(lines []string) form.Error {
	var c form.Chain // Last is the error, First its innermost cause
	depth := 0       // the indent of the error; 0 behind what a logger writes
	for i, line := range lines {
		if !strings.Contains(line, "** (") { // which costs less than the headline
			continue
		}

		m := elixirHeadline.FindStringSubmatch(line)
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

		// A supervisor writes what has ended, and below that why. The line above is the error then:
		//
		//	[error] Task #PID<0.99.0> started from Shop.Orders terminating
		//	    ** (EXIT) time out
		if indent > 0 && e.Class == "EXIT" && i > 0 {
			c.Last = form.Error{Message: exitedAbove(lines[i-1])}
			depth = 0
		}
	}

	// The compiler and Mix have written before what is wrong, and end with an error that only says
	// that they cannot go on.
	switch {
	case strings.Contains(c.Last.Message, "(errors have been logged)"):
		return c.Last.Because("", firstWith(lines, "error: "))
	case strings.HasSuffix(c.Last.Message, "due to errors on dependencies"):
		return c.Last.Because("", firstWith(lines, "the dependency "))
	}

	return joined(c)
}

// wasRaised is what a process says that an exception has ended, at the end of its line. The
// exception is in the next one.
const wasRaised = "an exception was raised:"

// joined is an error of Elixir with its innermost cause. A process that an exception ended has
// nothing to say of its own, and the reason of an exit has no class.
func joined(c form.Chain) form.Error {
	if c.First == c.Last {
		return c.Last
	}

	if strings.HasSuffix(c.Last.Message, wasRaised) || c.Last.Message == "" {
		return c.First
	}

	if c.First.Class == "EXIT" {
		c.First.Class = ""
	}

	return c.Last.Because(c.First.Class, c.First.Message)
}

// exitedAbove is what a log says above the reason of an exit, without the level of the message,
// such as "[error] ".
func exitedAbove(line string) string {
	_, said, ok := strings.Cut(line, "] ")
	if ok {
		return said
	}

	return strings.TrimSpace(line)
}

// elixirMessage is the message that begins with a first line. It goes on in the lines below, up
// to the first frame. A list of what is wrong belongs to it; a list of names that were perhaps
// meant says nothing about the cause.
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
	case strings.HasSuffix(first, " in query:") && len(rest) > 0: // an empty line, and then the query
		return first + form.ContinuedUntil(rest[1:], isElixirEnd)
	case strings.HasSuffix(first, ":") && isElixirList(rest):
		return first + form.ContinuedUntil(rest[1:], isElixirEnd)
	case strings.HasSuffix(first, ":") && isElixirValue(rest):
		value := form.ContinuedUntil(rest[1:], isElixirEnd)
		return first + "\n" + form.Unindented(strings.TrimPrefix(value, "\n"), 1)
	}

	return first + form.ContinuedUntil(rest, isElixirEnd)
}

// isElixirList reports whether some lines begin with a list, below an empty line.
func isElixirList(lines []string) bool {
	return len(lines) > 1 && strings.TrimSpace(lines[0]) == "" && strings.HasPrefix(strings.TrimSpace(lines[1]), "* ")
}

// isElixirValue reports whether some lines begin with a value that stands below an empty line, as
// Elixir writes it from 1.18 on:
//
//	** (MatchError) no match of right hand side value:
//
//	    {:error, :econnrefused}
func isElixirValue(lines []string) bool {
	return len(lines) > 1 && strings.TrimSpace(lines[0]) == "" && strings.HasPrefix(lines[1], "    ") && !isElixirEnd(lines[1])
}

// firstWith is the first line that begins with some words, without the mark of an error.
func firstWith(lines []string, words string) string {
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, words) {
			return strings.TrimPrefix(line, "error: ")
		}
	}

	return ""
}

// changesetErrors is what Ecto found wrong with a changeset, which it writes below a headline. The
// changes and parameters follow under headlines of their own:
//
//	Errors
//
//	    %{email: [{"has already been taken", []}]}
//
//	Applied changes
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

// elixirFrame is a frame of a trace:
//
//	(ecto 3.11.2) lib/ecto/repo.ex:42: Ecto.Repo.get!/3
//	nofile:1: (file)
//	(stdlib 5.2) :lists.foreach/2
//	:erlang.binary_to_integer("x")
//	:gen_server.call/3
//	Shop.Orders.charge/1
var elixirFrame = regexp.MustCompile(
	`^\s+(?:\([a-z]\w* [\w.+-]+\) |\(\w+\) )?(?:\S+\.(?:exs?|erl|eex|heex)|nofile|iex):\d+: |` +
		`^\s+\(\w+ [\w.+-]+\) |^\s+:?[\w.]+\(.*\)$|^\s+:\w+\.|^\s+[A-Z]\w*(?:\.[A-Z]\w*)*\.\w+[(/]`)

// isElixirEnd reports whether a line is no part of the message above it: a frame, the cause,
// or what a report tells next of the process, its queue or its client.
func isElixirEnd(line string) bool {
	return elixirFrame.MatchString(line) || strings.HasPrefix(strings.TrimSpace(line), "** (") ||
		form.BeginsWithAny(line, []string{`{"`, "Kernel pid terminated", "warning: ", "Last message", "State: ", "Function: ",
			"Client ", "Process Label: ", "Initial Call: ", "Queue: ",
			"Start Call: ", "Restart: ", "Shutdown: ", "Ancestors: ", "Type: "})
}

// erlangKinds are written before an error by the shell, by escript and in crash reports. The
// second word is its class.
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

// isErlangEnd reports whether a line is one of the frames below an error, the next report
// ("=ERROR REPORT====", "*** …") or what a report tells next.
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
			if !ok {
				continue
			}

			// Runtime terminating during boot ({badarg,[{erlang,…}]})
			reason = strings.Trim(strings.TrimSuffix(reason, ")"), `"`)

			return form.Error{Class: "exit", Message: withoutErlangStack(reason)}
		}
	}

	return form.Error{}
}

// withoutErlangStack is a reason without the stack that is written in a pair with it:
//
//	{badarg,[{erlang,binary_to_integer,…    badarg
//	{undef,[{shop,charge,[],[]},…           undef: shop:charge
//
// A function that does not exist, or has no clause for its arguments, is the first of the stack.
func withoutErlangStack(reason string) string {
	inner, stack, ok := strings.Cut(reason, ",[{")
	inner = strings.TrimPrefix(strings.TrimSuffix(inner, ","), "{")
	if !ok {
		if strings.HasSuffix(reason, ",") { // the line was cut before the stack
			return inner
		}
		return reason
	}

	// Module, function, and the rest.
	function := strings.SplitN(stack, ",", 3)
	if (inner == "undef" || inner == "function_clause") && len(function) == 3 {
		return inner + ": " + function[0] + ":" + function[1]
	}

	return inner
}

// erlangReason reads the last reason for which a process says that it terminates, or that the
// runtime gives for its end. It stands behind these words or in the next line:
//
//	** Reason for termination == {badarg,[{shop,rate,…
//	Error in process <0.9.0> with exit value:
//	{badarith,[{shop,rate,…
func erlangReason(lines []string) (found form.Error) {
	for i, line := range lines {
		_, reason, ok := strings.Cut(line, "** Reason for termination =")
		if !ok && strings.Contains(line, "Error in process <") {
			_, reason, ok = strings.Cut(line, " with exit value:")
		}

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
