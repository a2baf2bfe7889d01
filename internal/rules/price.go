package rules

import (
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// What an expression costs is counted when it is compiled: for each thing that
// it does, the passes that this takes over the bytes of its operand, if the
// operand were as large as it can be. A pass over a byte takes about a
// nanosecond at the worst input that there is; for a condition in a loop, that
// is a list of numbers with one digit. Nothing is allowed that is worse than
// linear, so that the sum bounds the time.
const (
	maxWork     = 200 * job.MaxPayload // of an expression
	maxListWork = 5 * maxWork          // of all expressions of a list of rules

	stepWork    = 3  // of each name, value and operator in a loop
	callWork    = 40 // of each call in a loop, beside its work on the bytes
	copyWork    = 2  // texts are copied, or compared
	seekWork    = 15 // a short text is looked for
	scanWork    = 10 // a value is looked for in a list
	compareWork = 60 // two values are compared entry by entry
	matchWork   = 8  // of each instruction of a pattern
)

// smallest are the bytes of the smallest entry of a list with what divides it
// from the next.
const smallest = 2

// sizeOf is the most bytes that a fact can have.
func sizeOf(path string) int {
	switch path {
	case "job.payload":
		return job.MaxPayload
	case "job.meta":
		return job.MaxMeta
	case "error.message":
		return job.MaxErrorMessage
	}
	return max(job.MaxType, retry.MaxErrorType)
}

// spend counts work.
func (i *inspector) spend(n ast.Node, bytes, passes int) {
	if i.work += bytes * passes; i.work > maxWork {
		i.refuse(n, "here the expression becomes too much work for the largest job (%d of %d); "+
			"do less with all of the payload, above all in loops, with matches, string and max", i.work/job.MaxPayload, maxWork/job.MaxPayload)
	}
}

// function is what a function does with its first argument.
type function struct {
	name  string
	work  int
	grows int // bytes that it gives for each byte; 0: a number, a bool, a word
}

// loops go through a list. They never stand inside one another.
var loops = [...]function{
	{"all", 10, 0}, {"any", 10, 0}, {"none", 10, 0}, {"one", 10, 0}, {"count", 10, 0}, {"find", 10, 1}, {"findIndex", 10, 0},
	{"filter", 20, 1}, {"sum", 20, 0},
}

// functions are all that can be called, with seconds.
var functions = [...]function{
	{"len", copyWork, 0}, {"lower", 15, 1}, {"upper", 15, 1}, {"trim", 30, 1}, {"trimPrefix", copyWork, 1}, {"trimSuffix", copyWork, 1},
	{"indexOf", seekWork, 0}, {"lastIndexOf", seekWork, 0}, {"hasPrefix", copyWork, 0}, {"hasSuffix", copyWork, 0},
	{"string", 90, 2}, {"int", 20, 0}, {"float", 20, 0}, {"abs", 0, 0}, {"ceil", 0, 0}, {"floor", 0, 0}, {"round", 0, 0},
	{"min", 60, 1}, {"max", 60, 1}, {"first", copyWork, 1}, {"last", copyWork, 1}, {"type", 0, 0}, {"duration", 60, 0},
}

func find(all []function, name string) (function, bool) {
	k := slices.IndexFunc(all, func(f function) bool { return f.name == name })
	if k < 0 {
		return function{}, false
	}
	return all[k], true
}

func names(all []function) string {
	list := make([]string, len(all))
	for k, f := range all {
		list[k] = f.name
	}
	return strings.Join(list, ", ")
}
