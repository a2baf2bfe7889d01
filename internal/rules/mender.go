package rules

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	listType     = reflect.TypeFor[[]any]()
)

// mender changes a tree where the language would surprise, and refuses what the
// language would find out only while it runs. To the language a duration times a
// fraction is a fraction, and a comparison of that with a duration is an error
// or false; and it goes through a text as if that were a list of bytes.
type mender struct{ wrong error }

// options are what a mended tree needs.
func (m *mender) options() []expr.Option {
	return []expr.Option{
		expr.Patch(m),
		expr.Function("scaled", scaled, new(func(time.Duration, any) time.Duration)),
		expr.Function("divided", divided, new(func(time.Duration, any) time.Duration)),
		expr.Function("list", loopList, new(func(any) []any)),
	}
}

// Visit implements [ast.Visitor]: it sees the parts of a node before the node.
func (m *mender) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.BinaryNode:
		m.binary(node, n)
	case *ast.BuiltinNode:
		if _, ok := find(loops[:], n.Name); ok {
			m.through(n)
		}
	}
}

// through lets a loop go through a list only.
func (m *mender) through(n *ast.BuiltinNode) {
	if t := n.Arguments[0].Type(); t == nil || t.Kind() == reflect.Interface {
		replace(&n.Arguments[0], "list", listType, n.Arguments[0])
	}
}

// binary replaces products and quotients of durations, and refuses what no
// duration can be compared or added with.
func (m *mender) binary(node *ast.Node, n *ast.BinaryNode) {
	left, right := n.Left.Type() == durationType, n.Right.Type() == durationType
	if !left && !right {
		return
	}

	switch n.Operator {
	case "*":
		if left && right {
			m.refuse(n, "a duration cannot be multiplied by a duration")
		} else if left {
			// seconds(2) * 1.5, and below 1.5 * seconds(2)
			replace(node, "scaled", durationType, n.Left, n.Right)
		} else {
			replace(node, "scaled", durationType, n.Right, n.Left)
		}
	case "/":
		if left && !right {
			replace(node, "divided", durationType, n.Left, n.Right)
		}
	case "==", "!=", "<", "<=", ">", ">=", "+", "-":
		if !left || !right {
			m.refuse(n, `a duration can be combined only with a duration, for example duration("30s") or seconds(30)`)
		}
	case "in":
		if list, ok := n.Right.(*ast.ArrayNode); !ok || !durations(list.Nodes) {
			m.refuse(n, `a duration can only be in a literal list of durations, for example [duration("30s")]`)
		}
	}
}

// durations reports whether all entries of a list are durations.
func durations(nodes []ast.Node) bool {
	return !slices.ContainsFunc(nodes, func(n ast.Node) bool { return n.Type() != durationType })
}

// refuse keeps the first error.
func (m *mender) refuse(n ast.Node, format string, args ...any) {
	if m.wrong == nil {
		m.wrong = wrong(n, format, args...)
	}
}

// replace puts a call in the place of a node.
func replace(node *ast.Node, function string, gives reflect.Type, arguments ...ast.Node) {
	call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: function}, Arguments: arguments}
	call.SetType(gives)
	ast.Patch(node, call)
}

// scaled is a duration times a number.
func scaled(args ...any) (any, error) {
	by, err := numberOf(args[1])
	return bounded(float64(args[0].(time.Duration)) * by), err
}

// divided is a duration divided by a number.
func divided(args ...any) (any, error) {
	by, err := numberOf(args[1])
	return bounded(float64(args[0].(time.Duration)) / by), err
}

// numberOf is a number of the language, whole or not.
func numberOf(v any) (float64, error) {
	switch n := v.(type) {
	case int:
		return float64(n), nil
	case float64:
		return n, nil
	}

	return 0, fmt.Errorf("a duration is multiplied and divided by numbers, not by %T", v)
}

// bounded is the duration nearest to so many nanoseconds. What is no number is
// below zero, so that no delay comes of it.
func bounded(nanoseconds float64) time.Duration {
	switch {
	case nanoseconds >= math.MaxInt64:
		return math.MaxInt64
	case !(nanoseconds > math.MinInt64):
		return math.MinInt64
	}

	return time.Duration(nanoseconds)
}

// loopList is a value that a loop goes through.
func loopList(args ...any) (any, error) {
	all, ok := args[0].([]any)
	if !ok {
		return nil, fmt.Errorf("a loop needs a list, not %T", args[0])
	}

	return all, nil
}
