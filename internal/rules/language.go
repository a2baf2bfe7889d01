package rules

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"redrive/internal/wire"
)

// budget bounds the entries of all lists that an expression makes while it runs.
const budget = 100_000

// goal is what an expression gives.
type goal int

const (
	condition goal = iota // a bool
	wait                  // a duration
)

// expression is a compiled expression.
type expression struct {
	program       *vm.Program
	work          int  // see price.go
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
	if i.inspect(tree.Node); i.err != nil {
		return nil, placed(i.err, source)
	}
	var mend mender
	options := append(mend.options(),
		expr.Env(facts), expr.Function("duration", parseDuration, new(func(string) time.Duration)),
		expr.Function("seconds", seconds, new(func(int) time.Duration), new(func(float64) time.Duration)))
	if goal == condition {
		options = append(options, expr.AsBool())
	}
	program, err := expr.Compile(source, options...)
	if err = cmp.Or(err, mend.wrong); err != nil {
		return nil, placed(err, source)
	}
	if given := program.Node().Type(); goal == wait && given != reflect.TypeFor[time.Duration]() {
		return nil, fmt.Errorf(`must give a duration, as duration("30s") or seconds(5 * attempt.number), not %s`, kindName(given))
	}
	return &expression{program, i.work, i.payload, i.meta}, nil
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

// duration is the value of an expression that gives a duration.
func (x *expression) duration(facts any, j *jobFacts) (time.Duration, error) {
	out, err := x.run(facts, j)
	if err != nil {
		return 0, err
	}
	d, ok := out.(time.Duration)
	if !ok {
		return 0, fmt.Errorf("it gave %T, no duration", out)
	}
	return notNegative(float64(d))
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
	return wire.ParseGoDuration(args[0].(string))
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
