package rules

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"

	"redrive/internal/clip"
	"redrive/internal/wire"
)

// The bounds of the text of one expression; work.go bounds the time it takes.
const (
	maxSource = 4 << 10 // bytes
	maxNodes  = 250     // names, values and operators
	maxRange  = 1000    // from a to b
	maxSought = 255     // bytes of what is looked for in a text
)

// inspector refuses what an expression may not use, and counts the work of the
// rest.
type inspector struct {
	roots         map[string][]string
	nodes, work   int
	loop          int  // bytes of the list that is gone through; 0: none
	payload, meta bool // are mentioned
}

func wrong(n ast.Node, format string, args ...any) error {
	return &file.Error{Location: n.Location(), Message: fmt.Sprintf(format, args...)}
}

// inspect returns the most bytes that the value of a node can have; of a node
// in a loop, those of all its values together.
func (i *inspector) inspect(node ast.Node) (bytes int, err error) {
	if i.nodes++; i.nodes > maxNodes {
		return 0, wrong(node, "the expression is too long: more than %d names, values and operators", maxNodes)
	}
	if err := i.spend(node, i.loop, stepWork); err != nil {
		return 0, err
	}
	switch n := node.(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return smallest, nil
	case *ast.StringNode:
		return max(smallest, len(n.Value)) * max(1, i.entries()), nil
	case *ast.PointerNode:
		return i.loop, nil
	case *ast.IdentifierNode:
		return 0, i.identifier(n)
	case *ast.UnaryNode:
		_, err := i.inspect(n.Node)
		return smallest, err
	case *ast.BinaryNode:
		return i.binary(n)
	case *ast.PredicateNode:
		return i.inspect(n.Node)
	case *ast.ChainNode:
		return i.inspect(n.Node)
	case *ast.MemberNode:
		return i.member(n)
	case *ast.SliceNode:
		return i.slice(n)
	case *ast.ConditionalNode:
		sizes, err := i.all(n.Cond, n.Exp1, n.Exp2)
		return slices.Max(sizes), err
	case *ast.ArrayNode:
		return i.list(n)
	case *ast.BuiltinNode:
		return i.builtin(n)
	case *ast.CallNode:
		return i.call(n)
	}
	return 0, wrong(node, "neither let, nor several statements, nor mappings can be used in a rule")
}

// all inspects the parts of a node. It returns as many sizes.
func (i *inspector) all(nodes ...ast.Node) ([]int, error) {
	sizes := make([]int, len(nodes))
	for k, n := range nodes {
		var err error
		if n == nil { // the open end of a slice
			continue
		}
		if sizes[k], err = i.inspect(n); err != nil {
			return sizes, err
		}
	}
	return sizes, nil
}

func (i *inspector) identifier(n *ast.IdentifierNode) error {
	if _, ok := i.roots[n.Value]; ok {
		return wrong(n, "%s alone is no value; write a field of it, as %s.type", n.Value, n.Value)
	}
	known := make([]string, 0, len(i.roots))
	for name := range i.roots {
		known = append(known, name)
	}
	slices.Sort(known)
	return wrong(n, "%s is unknown here; known are %s", clip.Text(n.Value, 64), strings.Join(known, ", "))
}

// member is a field of the facts, or an entry of some value.
func (i *inspector) member(n *ast.MemberNode) (int, error) {
	root, ok := n.Node.(*ast.IdentifierNode)
	if !ok {
		sizes, err := i.all(n.Node, n.Property)
		if err != nil {
			return 0, err
		}
		return sizes[0], i.spend(n, sizes[1], copyWork)
	}
	fields, known := i.roots[root.Value]
	if !known {
		return 0, i.identifier(root)
	}
	name, ok := n.Property.(*ast.StringNode)
	if !ok || !slices.Contains(fields, name.Value) {
		return 0, wrong(n.Property, "%s has no such field; it has %s", root.Value, strings.Join(fields, ", "))
	}
	i.nodes++
	path := root.Value + "." + name.Value
	i.payload, i.meta = i.payload || path == "job.payload", i.meta || path == "job.meta"
	if i.loop > 0 {
		return 0, wrong(n, "%s cannot be used inside a loop: there, only the entry and written values can", path)
	}
	return sizeOf(path), nil
}

func (i *inspector) slice(n *ast.SliceNode) (int, error) {
	sizes, err := i.all(n.Node, n.From, n.To)
	if err != nil {
		return 0, err
	}
	return sizes[0], i.spend(n, i.loop, callWork)
}

// list is a list that is written out.
func (i *inspector) list(n *ast.ArrayNode) (int, error) {
	sizes, err := i.all(n.Nodes...)
	if err != nil {
		return 0, err
	}
	bytes := smallest
	for _, size := range sizes {
		bytes += size
	}
	return bytes, i.spend(n, i.loop, callWork)
}

func (i *inspector) call(n *ast.CallNode) (int, error) {
	callee, ok := n.Callee.(*ast.IdentifierNode)
	if !ok || callee.Value != "seconds" {
		return 0, wrong(n, "there is no such function in a rule; there are %s, seconds and %s", names(functions[:]), names(loops[:]))
	}
	_, err := i.all(n.Arguments...)
	if err != nil {
		return 0, err
	}
	return smallest, i.spend(n, i.loop, callWork)
}

func (i *inspector) builtin(n *ast.BuiltinNode) (int, error) {
	if loop, ok := find(loops[:], n.Name); ok {
		return i.through(n, loop)
	}
	f, ok := find(functions[:], n.Name)
	switch {
	case !ok:
		return 0, wrong(n, "%s cannot be used in a rule", n.Name)
	case i.loop > 0 && (n.Name == "first" || n.Name == "last"): // slow where there is none
		return 0, wrong(n, "%s cannot be used inside a loop; write #[0] or #[-1]", n.Name)
	}
	sizes, err := i.all(n.Arguments...)
	if err != nil || len(sizes) == 0 {
		return 0, err
	}
	if s, ok := n.Arguments[0].(*ast.StringNode); ok && n.Name == "duration" {
		if _, err := wire.ParseGoDuration(s.Value); err != nil {
			return 0, wrong(s, "%v", err)
		}
	}
	if err := i.spend(n, i.loop, callWork); err != nil {
		return 0, err
	}
	bytes := sizes[0]
	switch n.Name {
	case "min", "max":
		for _, more := range sizes[1:] {
			bytes += more
		}
	case "trim", "trimPrefix", "trimSuffix", "indexOf", "lastIndexOf", "hasPrefix", "hasSuffix":
		for k := 1; k < len(sizes); k++ {
			if err := i.sought(n.Arguments[k], sizes[k]); err != nil {
				return 0, err
			}
		}
	}
	return max(smallest, bytes*f.grows), i.spend(n, bytes, f.work)
}

// sought refuses to look for what may be long: together with a long text that
// would be worse than linear.
func (i *inspector) sought(n ast.Node, size int) error {
	if s, ok := n.(*ast.StringNode); ok {
		size = len(s.Value)
	} else if i.loop > 0 {
		return wrong(n, "what is looked for inside a loop must be written out, in quotes")
	}
	if size > maxSought {
		return wrong(n, "what is looked for must be a text of at most %d bytes, neither of the payload, nor the meta, nor the message", maxSought)
	}
	return nil
}

// through is a loop.
func (i *inspector) through(n *ast.BuiltinNode, f function) (int, error) {
	if i.loop > 0 {
		return 0, wrong(n, "%s stands inside another loop; a rule goes through a list once", n.Name)
	}
	if len(n.Arguments) == 0 {
		return 0, wrong(n, "%s goes through a list; write %s(job.payload.items, …)", n.Name, n.Name)
	}
	bytes, err := i.inspect(n.Arguments[0])
	if err == nil {
		err = i.spend(n, bytes, f.work)
	}
	if err != nil {
		return 0, err
	}
	i.loop = bytes
	defer func() { i.loop = 0 }()
	if _, err := i.all(n.Arguments[1:]...); err != nil {
		return 0, err
	}
	return max(smallest, bytes*f.grows), nil
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
