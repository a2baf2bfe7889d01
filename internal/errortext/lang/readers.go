// Package lang reads errors as languages, and the tools and frameworks of each, print them.
//
// A language has a file, and where it has many tools, a second one for these. [Read] asks one
// after the other; to teach the package another, add its reader to the list.
package lang

import (
	"encoding/json"
	"slices"
	"strings"

	"redrive/internal/errortext/form"
)

// readers are asked in this order: one that is sure of its errors stands before one that
// guesses.
var readers = [...]func(text string) form.Error{
	django,     // Django's page in plain text
	aspnetText, // ASP.NET's page in plain text
	python,
	php,
	ruby,
	elixir,
	rust,
	golang,
	jvm,
	dotnet,
	javascript,
	clickhouse,
	stack, // any other language with a stack
}

// Read reads a text by the first language that finds an error in it. What a logger wrote as JSON
// is left to those who read logs: no language printed it, and an error that it quotes may be
// long over.
func Read(text string) form.Error {
	text = withoutObjects(text)
	for _, read := range readers {
		e := read(text)
		if e.Found() {
			return e
		}
	}

	return form.Error{}
}

// withoutObjects is a text in which the lines are empty that a logger wrote as JSON:
//
//	{"level":"info","msg":"the last run","stderr":"PHP Fatal error:  Uncaught …"}
func withoutObjects(text string) string {
	if !strings.HasPrefix(text, "{") && !strings.Contains(text, "\n{") {
		return text
	}

	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if isLoggedObject(line) {
			lines[i] = ""
		}
	}

	return strings.Join(lines, "\n")
}

// levelNames are the members in which loggers write a level. Serilog writes none for information.
var levelNames = []string{"level", "severity", "lvl", "levelname", "log.level", "@l", "@t"}

// isLoggedObject reports whether a line is an object of JSON with a level.
func isLoggedObject(line string) bool {
	if !strings.HasPrefix(line, "{") {
		return false
	}

	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(line), &members) != nil {
		return false
	}

	return slices.ContainsFunc(levelNames, func(name string) bool { return members[name] != nil })
}

// traces are asked in the order of readers. The last three read a trace alone, without what
// their languages print before the trace of an error that ends a program.
var traces = [...]func(string) form.Error{python, php, ruby, elixir, rust, golang, javaTrace, dotnetTrace, nodeTrace}

// Trace reads a trace that a logger wrote in a field of its own. Where no language knows
// it, its first line is the error.
func Trace(trace string) form.Error {
	for _, read := range traces {
		e := read(trace)
		if e.Found() {
			return e
		}
	}

	return form.Error{Message: firstLine(trace)}
}
