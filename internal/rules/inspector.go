package rules

import (
	"fmt"
	"maps"
	"reflect"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/wire"
)

// The bounds of the text of one expression; what it costs bounds the time it takes.
const (
	maxSource = 4 << 10 // bytes
	maxNodes  = 250     // names, values and operators
	maxRange  = 1000    // from a to b
	maxSought = 255     // bytes of what is looked for in a text
)

// inspector refuses what an expression may not use, and counts the cost of the
// rest.
type inspector struct {
	roots         map[string][]string
	nodes, cost   int
	loop          int   // bytes of the list that is gone through; 0: none
	payload, meta bool  // are mentioned
	err           error // the first thing that is wrong
}

// wrong is an error about a part of an expression.
func wrong(n ast.Node, format string, args ...any) error {
	return &file.Error{Location: n.Location(), Message: fmt.Sprintf(format, args...)}
}

// refuse keeps the first error.
func (i *inspector) refuse(n ast.Node, format string, args ...any) {
	if i.err == nil {
		i.err = wrong(n, format, args...)
	}
}

// inspect returns the most bytes that the value of a node can have; of a node
// in a loop, those of all its values together. Once something is wrong it looks
// no further.
func (i *inspector) inspect(node ast.Node) (bytes int) {
	i.nodes++
	if i.nodes > maxNodes {
		i.refuse(node, "the expression is too long: more than %d names, values and operators", maxNodes)
	}

	// Outside a loop, i.loop is 0 and a step is free: it happens once.
	i.spend(node, i.loop, stepCost)

	if i.err != nil {
		return 0
	}

	switch n := node.(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
	case *ast.StringNode:
		// In a loop a literal is a value once for each entry, of which there are at most
		// loop/smallest.
		return max(smallest, len(n.Value)) * max(1, i.loop/smallest)
	case *ast.PointerNode:
		// The values of # are the entries of the list: together they are as long as the list.
		return i.loop
	case *ast.IdentifierNode:
		// The names that rules know appear only with a field, as in job.type; see member.
		i.unknown(n)
	case *ast.UnaryNode:
		i.inspect(n.Node)
	case *ast.PredicateNode:
		return i.inspect(n.Node)
	case *ast.ChainNode:
		return i.inspect(n.Node)
	case *ast.BinaryNode:
		return i.binary(n)
	case *ast.MemberNode:
		return i.member(n)
	case *ast.SliceNode:
		sizes := i.all(n.Node, n.From, n.To)
		i.spend(n, i.loop, callCost)
		return sizes[0]
	case *ast.ConditionalNode:
		return slices.Max(i.all(n.Cond, n.Exp1, n.Exp2))
	case *ast.ArrayNode:
		sizes := i.all(n.Nodes...)
		i.spend(n, i.loop, callCost)
		return smallest + sum(sizes)
	case *ast.BuiltinNode:
		return i.builtin(n)
	case *ast.CallNode:
		i.call(n)
	default:
		i.refuse(node, "a rule cannot use let, several statements or mappings")
	}

	return smallest
}

// all inspects the parts of a node, of which the open ends of a slice are nil.
func (i *inspector) all(nodes ...ast.Node) (sizes []int) {
	for _, n := range nodes {
		size := 0
		if n != nil {
			size = i.inspect(n)
		}

		sizes = append(sizes, size)
	}

	return sizes
}

func sum(sizes []int) (all int) {
	for _, size := range sizes {
		all += size
	}
	return all
}

// unknown refuses a name that is no field of a fact.
func (i *inspector) unknown(n *ast.IdentifierNode) {
	if _, ok := i.roots[n.Value]; ok {
		i.refuse(n, "%s alone is not a value; use one of its fields, for example %s.type", n.Value, n.Value)
	}

	known := slices.Sorted(maps.Keys(i.roots))
	i.refuse(n, "%s is unknown here%s; available are %s",
		clip.Text(n.Value, 64), invalid.DidYouMean(n.Value, known), strings.Join(known, ", "))
}

// member is a field of the facts, or an entry of some value.
func (i *inspector) member(n *ast.MemberNode) int {
	root, ok := n.Node.(*ast.IdentifierNode)
	if !ok {
		// An entry of another value, for example [0] of job.payload[0].
		sizes := i.all(n.Node, n.Property)
		i.spend(n, sizes[1], copyCost)
		return sizes[0]
	}

	fields, known := i.roots[root.Value]
	if !known {
		i.unknown(root)
	}

	name, ok := n.Property.(*ast.StringNode)
	if !ok || !slices.Contains(fields, name.Value) {
		meant := ""
		if ok {
			meant = invalid.DidYouMean(name.Value, fields)
		}

		i.refuse(n.Property, "%s has no such field%s; its fields are %s", root.Value, meant, strings.Join(fields, ", "))

		return 0
	}

	i.nodes++

	path := root.Value + "." + name.Value
	i.payload, i.meta = i.payload || path == "job.payload", i.meta || path == "job.meta"
	if i.loop > 0 {
		i.refuse(n, "%s cannot be used inside a loop: use only the entry and literal values there", path)
	}

	return sizeOf(path)
}

// call is a call of a function that the language does not have: only seconds is
// one.
func (i *inspector) call(n *ast.CallNode) {
	if callee, ok := n.Callee.(*ast.IdentifierNode); !ok || callee.Value != "seconds" {
		i.refuse(n, "there is no such function in a rule; available are %s, seconds and %s", names(functions[:]), names(loops[:]))
	}

	i.all(n.Arguments...)
	i.spend(n, i.loop, callCost)
}

// builtin is a call of a function of the language, of which few are allowed:
// what each does takes time linear in its first argument.
func (i *inspector) builtin(n *ast.BuiltinNode) int {
	if loop, ok := find(loops[:], n.Name); ok {
		return i.through(n, loop)
	}

	f, ok := find(functions[:], n.Name)
	if !ok {
		i.refuse(n, "%s cannot be used in a rule", n.Name)
	} else if i.loop > 0 && (n.Name == "first" || n.Name == "last") { // slow where there is none
		i.refuse(n, "%s cannot be used inside a loop; write #[0] or #[-1]", n.Name)
	}

	sizes := i.all(n.Arguments...)
	if len(sizes) == 0 {
		return 0
	}

	// A duration that is written out is checked before the rule runs.
	if s, ok := n.Arguments[0].(*ast.StringNode); ok && n.Name == "duration" {
		if _, err := wire.ParseDuration(s.Value); err != nil {
			i.refuse(s, "%v", err)
		}
	}

	i.spend(n, i.loop, callCost)

	bytes := sizes[0]
	switch n.Name {
	case "min", "max":
		bytes = sum(sizes)
	case "trim", "trimPrefix", "trimSuffix", "indexOf", "lastIndexOf", "hasPrefix", "hasSuffix":
		for k, size := range sizes[1:] {
			i.sought(n.Arguments[k+1], size)
		}
	}

	i.spend(n, bytes, f.cost)

	return max(smallest, bytes*f.grows)
}

// sought refuses to look for what may be long: together with a long text that
// would be worse than linear.
func (i *inspector) sought(n ast.Node, size int) {
	if s, ok := n.(*ast.StringNode); ok {
		size = len(s.Value)
	} else if i.loop > 0 {
		i.refuse(n, "inside a loop, the text to look for must be a quoted literal")
	}

	if size > maxSought {
		i.refuse(n, "the text to look for must have at most %d bytes and must not come from the payload, the meta or the message", maxSought)
	}
}

// through is a loop.
func (i *inspector) through(n *ast.BuiltinNode, f function) int {
	if i.loop > 0 {
		i.refuse(n, "%s is inside another loop; loops cannot be nested", n.Name)
	}

	if len(n.Arguments) == 0 {
		i.refuse(n, "%s needs a list; write %s(job.payload.items, …)", n.Name, n.Name)
		return 0
	}

	bytes := i.inspect(n.Arguments[0])
	i.spend(n, bytes, f.cost)

	// What is done for each entry costs as much as the whole list is long.
	i.loop = bytes
	i.all(n.Arguments[1:]...)
	i.loop = 0

	return max(smallest, bytes*f.grows)
}

// binary is an operator and its operands. What compares or copies texts is paid
// by their length, what computes with numbers by the step alone.
func (i *inspector) binary(n *ast.BinaryNode) int {
	if n.Operator == ".." {
		return i.span(n)
	}

	sizes := i.all(n.Left, n.Right)
	left, right := sizes[0], sizes[1]
	switch n.Operator {
	case "and", "&&", "or", "||", "-", "*", "/", "%", "**", "^":
	case "+":
		i.spend(n, left+right, copyCost)
		i.spend(n, i.loop, callCost)
		return left + right
	case "??":
		return max(left, right)
	case "==", "!=":
		i.compare(n, left, right)
	case "<", "<=", ">", ">=", "startsWith", "endsWith":
		// A comparison of texts ends where the shorter one ends.
		i.spend(n, min(left, right), copyCost)
	case "in":
		i.compare(n, left, right)
		i.spend(n, right, scanCost)
	case "contains":
		i.sought(n.Right, right)
		i.spend(n, left, seekCost)
	case "matches":
		i.match(n, left)
	default:
		i.refuse(n, "the operator %s cannot be used in a rule", n.Operator)
	}

	return smallest
}

// compare is the cost of a comparison. With a written value it ends after as
// many steps as that has.
func (i *inspector) compare(n *ast.BinaryNode, left, right int) {
	if !written(n.Left) && !written(n.Right) {
		i.spend(n, min(left, right), compareCost)
	}
}

// written reports whether a value is written out.
func written(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode:
		return true
	case *ast.UnaryNode:
		return written(n.Node)
	case *ast.ArrayNode:
		return !slices.ContainsFunc(n.Nodes, func(entry ast.Node) bool { return !written(entry) })
	}

	return false
}

// match is the cost of a match with a pattern.
func (i *inspector) match(n *ast.BinaryNode, bytes int) {
	pattern, ok := n.Right.(*ast.StringNode)
	if !ok {
		i.refuse(n.Right, "a pattern must be a quoted literal")
		return
	}

	var compiled *syntax.Prog

	parsed, err := syntax.Parse(pattern.Value, syntax.Perl)
	if err == nil {
		compiled, err = syntax.Compile(parsed.Simplify())
	}

	if err != nil {
		i.refuse(n.Right, "%v", err)
		return
	}

	i.spend(n.Right, i.loop, callCost)
	i.spend(n.Right, bytes, matchCost*len(compiled.Inst))
}

// span is a range.
func (i *inspector) span(n *ast.BinaryNode) int {
	from, ok1 := n.Left.(*ast.IntegerNode)
	to, ok2 := n.Right.(*ast.IntegerNode)
	if !ok1 || !ok2 || to.Value < from.Value || uint(to.Value)-uint(from.Value) > maxRange {
		i.refuse(n, "a range goes from one literal number up to another and has at most %d entries", maxRange)
		return 0
	}

	if i.loop > 0 {
		i.refuse(n, "a range cannot be used inside a loop; compare with both of its ends")
	}

	i.nodes += 2

	return smallest * (to.Value - from.Value + 1)
}

// fieldsOf lists the names under which a struct's fields are seen, and of the
// structs in it.
func fieldsOf(t reflect.Type) map[string][]string {
	all := map[string][]string{}
	for root := range t.Fields() {
		inner := root.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}

		for f := range inner.Fields() {
			if name, ok := f.Tag.Lookup("expr"); ok {
				all[root.Tag.Get("expr")] = append(all[root.Tag.Get("expr")], name)
			}
		}
	}

	return all
}
