package rules

import (
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
//
// The language itself cannot bound it. Nothing stops its machine while a program runs: it
// looks at no context, and its budget of memory counts the entries of the lists that a
// program makes, neither the bytes of texts nor time. A deadline would have to leave the
// program running, and would answer the same job differently on a busy machine.
const (
	maxCost     = 200 * job.MaxPayload // of an expression
	maxListCost = 5 * maxCost          // of all expressions of a list of rules

	stepCost    = 3  // of each name, value and operator in a loop
	callCost    = 40 // of each call in a loop, beside its cost on the bytes
	copyCost    = 2  // texts are copied, or compared
	seekCost    = 15 // a short text is looked for
	scanCost    = 10 // a value is looked for in a list
	compareCost = 60 // two values are compared entry by entry
	matchCost   = 8  // of each instruction of a pattern
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

// spend counts cost.
func (i *inspector) spend(n ast.Node, bytes, passes int) {
	i.cost += bytes * passes
	if i.cost > maxCost {
		i.refuse(n, "from here on, the expression costs too much for the largest job (%d of %d); "+
			"do less with the whole payload, especially in loops and with matches, string and max", i.cost/job.MaxPayload, maxCost/job.MaxPayload)
	}
}
