package rules

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
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
	cost          int  // see maxCost
	payload, meta bool // what it reads of the job
}

// compile compiles an expression over facts. Its errors say where in the
// expression.
func compile(source string, facts any, goal goal) (*expression, error) {
	if strings.TrimSpace(source) == "" {
		return nil, errors.New("is missing; write an expression such as job.type == \"email.send\"")
	}

	if len(source) > maxSource {
		return nil, fmt.Errorf("is longer than %d bytes", maxSource)
	}

	// The inspector reads the expression as it was written, before the compiler changes
	// anything.
	tree, err := parser.Parse(source)
	if err != nil {
		return nil, placed(err, source)
	}

	i := inspector{roots: fieldsOf(reflect.TypeOf(facts))}
	i.inspect(tree.Node)

	if i.err != nil {
		return nil, placed(i.err, source)
	}

	// The mender runs within expr.Compile, so what it refuses is known only afterwards.
	var mend mender

	options := append(mend.options(),
		expr.Env(facts), expr.Function("duration", parseDuration, new(func(string) time.Duration)),
		expr.Function("seconds", seconds, new(func(int) time.Duration), new(func(float64) time.Duration)))
	if goal == condition {
		options = append(options, expr.AsBool())
	}

	program, err := expr.Compile(source, options...)

	err = cmp.Or(err, mend.wrong)
	if err != nil {
		return nil, placed(err, source)
	}

	// AsBool makes the compiler check a condition; what a delay gives is checked here.
	if given := program.Node().Type(); goal == wait && given != reflect.TypeFor[time.Duration]() {
		return nil, fmt.Errorf(`must give a duration, for example duration("30s") or seconds(5 * attempt.number), not %s`, kindName(given))
	}

	return &expression{program, i.cost, i.payload, i.meta}, nil
}

// kindName is a kind of value as people who write rules call it.
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

// run returns the value of an expression.
func run[T any](x *expression, facts any, j *jobFacts) (value T, err error) {
	if err := j.fill(x.payload, x.meta); err != nil {
		return value, err
	}

	machine := vm.VM{MemoryBudget: budget}

	out, err := machine.Run(x.program, facts)
	if err != nil {
		return value, placed(err, x.program.Source().String())
	}

	value, ok := out.(T)
	if !ok {
		return value, fmt.Errorf("it gave %T, not %T", out, value)
	}

	return value, nil
}

// holds reports whether a condition is true.
func (x *expression) holds(facts any, j *jobFacts) (bool, error) { return run[bool](x, facts, j) }

// duration is the value of an expression that gives a duration.
func (x *expression) duration(facts any, j *jobFacts) (time.Duration, error) {
	d, err := run[time.Duration](x, facts, j)
	if err != nil {
		return 0, err
	}

	return notNegative(float64(d))
}

// notNegative is a duration that can be waited; a very long one is the longest
// that there is.
func notNegative(nanoseconds float64) (time.Duration, error) {
	if !(nanoseconds >= 0) {
		return 0, errors.New("it gave no duration, or one below zero")
	}
	return bounded(nanoseconds), nil
}
