package rules

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp/syntax"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"redrive/internal/job"
)

// The bounds of one expression. Together with the list of what it may use they
// bound the time and the memory that it takes.
const (
	maxSource  = 4 << 10 // bytes
	maxNodes   = 250     // names, values and operators
	maxLarge   = 16      // mentions of the payload, the meta and the message
	maxLoops   = 4
	maxPattern = 100     // instructions of all its patterns
	maxRange   = 1000    // from a to b
	budget     = 100_000 // entries of all lists that it makes while it runs
)

// loops go through a list. They never stand inside one another, and what they
// give is one entry, a number, or some of the entries.
var loops = [...]string{"all", "any", "none", "one", "count", "find", "findIndex", "filter", "sum"}

// functions take time linear in their argument and give nothing longer than it.
var functions = [...]string{
	"len", "lower", "upper", "trim", "trimPrefix", "trimSuffix", "indexOf", "lastIndexOf", "hasPrefix", "hasSuffix",
	"string", "int", "float", "abs", "ceil", "floor", "round", "min", "max", "first", "last", "type", "duration",
}

var operators = [...]string{
	"==", "!=", "<", "<=", ">", ">=", "in", "and", "&&", "or", "||", "+", "-", "*", "/", "%", "**", "^",
	"contains", "startsWith", "endsWith", "matches", "??", "..",
}

// goal is what an expression gives.
type goal int

const (
	condition goal = iota // a bool
	wait                  // a duration
)

// expression is a compiled expression.
type expression struct {
	program       *vm.Program
	payload, meta bool // what it reads of the job
}

// compile compiles an expression over facts. Its errors say where in the
// expression.
func compile(source string, facts any, goal goal) (*expression, error) {
	if strings.TrimSpace(source) == "" {
		return nil, errors.New("is missing; write an expression as job.type == \"email.send\"")
	}
	if len(source) > maxSource {
		return nil, fmt.Errorf("is longer than %d bytes", maxSource)
	}
	tree, err := parser.Parse(source)
	if err != nil {
		return nil, placed(err, source)
	}
	i := inspector{roots: fieldsOf(reflect.TypeOf(facts))}
	if err := i.inspect(tree.Node); err != nil {
		return nil, placed(err, source)
	}
	options := []expr.Option{
		expr.Env(facts), expr.Function("duration", parseDuration, new(func(string) time.Duration)),
		expr.Function("seconds", seconds, new(func(int) time.Duration), new(func(float64) time.Duration)),
	}
	if goal == condition {
		options = append(options, expr.AsBool())
	}
	program, err := expr.Compile(source, options...)
	if err != nil {
		return nil, placed(err, source)
	}
	if given := program.Node().Type(); goal == wait && given != reflect.TypeFor[time.Duration]() {
		return nil, fmt.Errorf(`must give a duration, as duration("30s") or seconds(5 * attempt.number), not %s`, kindName(given))
	}
	return &expression{program, i.payload, i.meta}, nil
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Interface:
		return "any value"
	case reflect.Int, reflect.Float64:
		return "a number"
	}
	return "a " + t.Kind().String()
}

// placed is an error of the language with its place, in one line.
func placed(err error, source string) error {
	var at *file.Error
	if !errors.As(err, &at) {
		return err
	}
	at.Bind(file.NewSource(source))
	place := fmt.Sprintf("column %d", at.Column+1)
	if at.Line > 1 {
		place = fmt.Sprintf("line %d, %s", at.Line, place)
	}
	return fmt.Errorf("%s, at %s", at.Message, place)
}

func (x *expression) run(facts any, j *jobFacts) (any, error) {
	if err := j.fill(x.payload, x.meta); err != nil {
		return nil, err
	}
	machine := vm.VM{MemoryBudget: budget}
	out, err := machine.Run(x.program, facts)
	if err != nil {
		return nil, placed(err, x.program.Source().String())
	}
	return out, nil
}

// holds reports whether a condition is true.
func (x *expression) holds(facts any, j *jobFacts) (bool, error) {
	out, err := x.run(facts, j)
	if err != nil {
		return false, err
	}
	is, ok := out.(bool)
	if !ok {
		return false, fmt.Errorf("it gave %T, neither true nor false", out)
	}
	return is, nil
}

// duration is the value of an expression that gives a duration. A duration
// times a fraction is a fraction in the language.
func (x *expression) duration(facts any, j *jobFacts) (time.Duration, error) {
	out, err := x.run(facts, j)
	if err != nil {
		return 0, err
	}
	switch d := out.(type) {
	case time.Duration:
		return notNegative(float64(d))
	case float64:
		return notNegative(d)
	}
	return 0, fmt.Errorf("it gave %T, no duration", out)
}

func notNegative(nanoseconds float64) (time.Duration, error) {
	switch {
	case !(nanoseconds >= 0):
		return 0, errors.New("it gave no duration, or one below zero")
	case nanoseconds >= math.MaxInt64:
		return math.MaxInt64, nil
	}
	return time.Duration(nanoseconds), nil
}

func parseDuration(args ...any) (any, error) {
	return job.ParseGoDuration(args[0].(string))
}

func seconds(args ...any) (any, error) {
	switch n := args[0].(type) {
	case int:
		return notNegative(float64(n) * float64(time.Second))
	case float64:
		return notNegative(n * float64(time.Second))
	}
	return nil, fmt.Errorf("seconds(%T): not a number", args[0])
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

// inspector refuses what an expression may not use.
type inspector struct {
	roots                        map[string][]string
	nodes, large, loops, pattern int
	inLoop                       bool
	payload, meta                bool
}

func wrong(n ast.Node, format string, args ...any) error {
	return &file.Error{Location: n.Location(), Message: fmt.Sprintf(format, args...)}
}

// all inspects the parts of a node.
func (i *inspector) all(nodes ...ast.Node) error {
	for _, n := range nodes {
		if n == nil { // the open end of a slice
			continue
		}
		if err := i.inspect(n); err != nil {
			return err
		}
	}
	return nil
}

func (i *inspector) inspect(node ast.Node) error {
	if i.nodes++; i.nodes > maxNodes {
		return wrong(node, "the expression is too long: more than %d names, values and operators", maxNodes)
	}
	switch n := node.(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode, *ast.PointerNode:
		return nil
	case *ast.IdentifierNode:
		return i.identifier(n)
	case *ast.UnaryNode:
		return i.inspect(n.Node)
	case *ast.BinaryNode:
		return i.binary(n)
	case *ast.ChainNode:
		return i.inspect(n.Node)
	case *ast.MemberNode:
		return i.member(n)
	case *ast.SliceNode:
		return i.all(n.Node, n.From, n.To)
	case *ast.ConditionalNode:
		return i.all(n.Cond, n.Exp1, n.Exp2)
	case *ast.ArrayNode:
		return i.all(n.Nodes...)
	case *ast.BuiltinNode:
		return i.builtin(n)
	case *ast.CallNode:
		if callee, ok := n.Callee.(*ast.IdentifierNode); ok && callee.Value == "seconds" {
			return i.all(n.Arguments...)
		}
		return wrong(n, "there is no such function in a rule; there are %s, seconds and %s", strings.Join(functions[:], ", "), strings.Join(loops[:], ", "))
	}
	return wrong(node, "neither let, nor several statements, nor mappings can be used in a rule")
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
	return wrong(n, "%s is unknown here; known are %s", job.Clip(n.Value, 64), strings.Join(known, ", "))
}

// member is a field of the facts, or an entry of some value.
func (i *inspector) member(n *ast.MemberNode) error {
	root, ok := n.Node.(*ast.IdentifierNode)
	if !ok {
		return i.all(n.Node, n.Property)
	}
	fields, known := i.roots[root.Value]
	if !known {
		return i.identifier(root)
	}
	name, ok := n.Property.(*ast.StringNode)
	if !ok || !slices.Contains(fields, name.Value) {
		return wrong(n.Property, "%s has no such field; it has %s", root.Value, strings.Join(fields, ", "))
	}
	i.nodes++
	path := root.Value + "." + name.Value
	i.payload, i.meta = i.payload || path == "job.payload", i.meta || path == "job.meta"
	if !slices.Contains(large[:], path) {
		return nil
	}
	if i.large++; i.large > maxLarge {
		return wrong(n, "the payload, the meta and the message are mentioned more than %d times", maxLarge)
	}
	if i.inLoop {
		return wrong(n, "%s cannot be used inside a loop: it would be read once for each entry", path)
	}
	return nil
}

func (i *inspector) binary(n *ast.BinaryNode) error {
	switch {
	case !slices.Contains(operators[:], n.Operator):
		return wrong(n, "the operator %s cannot be used in a rule", n.Operator)
	case n.Operator == "matches":
		if err := i.regexp(n.Right); err != nil {
			return err
		}
	case n.Operator == "..":
		from, ok1 := n.Left.(*ast.IntegerNode)
		to, ok2 := n.Right.(*ast.IntegerNode)
		if !ok1 || !ok2 || to.Value-from.Value > maxRange || to.Value < from.Value {
			return wrong(n, "a range goes from one written number up to another, and over at most %d", maxRange)
		}
	}
	return i.all(n.Left, n.Right)
}

// regexp bounds the size of patterns: it multiplies the time that a match takes.
func (i *inspector) regexp(n ast.Node) error {
	pattern, ok := n.(*ast.StringNode)
	if !ok {
		return wrong(n, "a pattern must be written out, in quotes")
	}
	parsed, err := syntax.Parse(pattern.Value, syntax.Perl)
	if err != nil {
		return wrong(n, "%v", err)
	}
	compiled, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return wrong(n, "%v", err)
	}
	if i.pattern += len(compiled.Inst); i.pattern > maxPattern {
		return wrong(n, "the patterns of the expression are too large; repeat less in them")
	}
	return nil
}

func (i *inspector) builtin(n *ast.BuiltinNode) error {
	switch {
	case slices.Contains(functions[:], n.Name):
		if s, ok := argument(n).(*ast.StringNode); ok && n.Name == "duration" {
			if _, err := job.ParseGoDuration(s.Value); err != nil {
				return wrong(s, "%v", err)
			}
		}
		return i.all(n.Arguments...)
	case !slices.Contains(loops[:], n.Name):
		return wrong(n, "%s cannot be used in a rule", n.Name)
	case i.inLoop:
		return wrong(n, "%s stands inside another loop; a rule goes through a list once", n.Name)
	}
	if i.loops++; i.loops > maxLoops {
		return wrong(n, "the expression has more than %d loops", maxLoops)
	}
	for _, argument := range n.Arguments {
		predicate, ok := argument.(*ast.PredicateNode)
		if !ok {
			if err := i.inspect(argument); err != nil {
				return err
			}
			continue
		}
		i.inLoop = true
		err := i.inspect(predicate.Node)
		i.inLoop = false
		if err != nil {
			return err
		}
	}
	return nil
}

// argument is the first argument of a function, or nil.
func argument(n *ast.BuiltinNode) ast.Node {
	if len(n.Arguments) == 0 {
		return nil
	}
	return n.Arguments[0]
}
