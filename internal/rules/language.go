package rules

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/retry"
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
	work          int  // see maxWork
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
		return nil, fmt.Errorf(`must give a duration, for example duration("30s") or seconds(5 * attempt.number), not %s`, kindName(given))
	}

	return &expression{program, i.work, i.payload, i.meta}, nil
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

// parseDuration is the function duration of the language.
func parseDuration(args ...any) (any, error) {
	return wire.ParseDuration(args[0].(string))
}

// seconds is the function of that name, for numbers with a fraction, too.
func seconds(args ...any) (any, error) {
	n, err := number(args[0])
	if err != nil { // unreachable: the language has checked it
		return nil, err
	}

	return notNegative(n * float64(time.Second))
}

// The facts that an expression sees, under the names in the tags.
type (
	enqueueFacts struct {
		Job *jobFacts `expr:"job"`
	}

	failureFacts struct {
		Job     *jobFacts    `expr:"job"`
		Attempt attemptFacts `expr:"attempt"`
		Error   errorFacts   `expr:"error"`
	}

	jobFacts struct {
		ID          string         `expr:"id"`
		Type        string         `expr:"type"`
		Queue       string         `expr:"queue"`
		Priority    int            `expr:"priority"`
		Run         int            `expr:"run"`
		MaxAttempts int            `expr:"max_attempts"`
		TTR         time.Duration  `expr:"ttr"`
		TraceID     string         `expr:"trace_id"`
		Payload     any            `expr:"payload"`
		Meta        map[string]any `expr:"meta"`

		raw job.Job
	}

	attemptFacts struct {
		Number   int           `expr:"number"`
		Outcome  string        `expr:"outcome"`
		Duration time.Duration `expr:"duration"`
		Worker   string        `expr:"worker"`
	}

	errorFacts struct {
		Type      string `expr:"type"`
		Message   string `expr:"message"`
		Code      string `expr:"code"`
		Retryable any    `expr:"retryable"` // a bool, or nil when the handler did not say
	}
)

// newJobFacts are the facts of a job without its payload and its meta, which
// are decoded only when a rule reads them.
func newJobFacts(j job.Job) *jobFacts {
	return &jobFacts{
		ID: j.ID, Type: j.Type, Queue: j.Queue, Priority: j.Priority, Run: max(j.Run, 1),
		MaxAttempts: j.Policy.Limit(), TTR: j.Timeout, TraceID: j.TraceID, raw: j,
	}
}

// newFailureFacts are the facts of a failure. Texts are as long as they are
// kept at most, so that the price of a rule holds for them.
func newFailureFacts(j job.Job, e job.Ending) failureFacts {
	f := failureFacts{
		Job: newJobFacts(j),
		Attempt: attemptFacts{
			Number: j.Attempts + 1, Outcome: string(e.Outcome),
			Duration: max(0, e.FinishedAt.Sub(j.StartedAt)), Worker: j.Worker,
		},
		Error: errorFacts{
			Type: clip.Text(e.Error.Type, retry.MaxErrorType), Message: clip.Text(e.Error.Message, job.MaxErrorMessage),
			Code: string(e.Answer.Code),
		},
	}
	if r := e.Answer.Retryable; r != nil {
		f.Error.Retryable = *r
	}

	return f
}

// fill decodes what an expression needs and no other did before it.
func (f *jobFacts) fill(payload, meta bool) error {
	if payload && f.Payload == nil {
		if err := json.Unmarshal(f.raw.Payload, &f.Payload); err != nil {
			return fmt.Errorf("the payload cannot be read: %w", err)
		}
	}

	if meta && f.Meta == nil && len(f.raw.Meta) > 0 {
		if err := json.Unmarshal(f.raw.Meta, &f.Meta); err != nil {
			return fmt.Errorf("the meta cannot be read: %w", err)
		}
	}

	return nil
}

// merge adds members to a job's meta and leaves its others as they are.
func merge(meta json.RawMessage, more map[string]string) (json.RawMessage, error) {
	if len(more) == 0 {
		return meta, nil
	}

	var all map[string]json.RawMessage
	if len(meta) > 0 {
		if err := json.Unmarshal(meta, &all); err != nil {
			return nil, fmt.Errorf("the meta cannot be read: %w", err)
		}
	}

	if all == nil {
		all = map[string]json.RawMessage{}
	}

	for name, value := range more {
		data, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("meta.%s: %w", name, err)
		}

		all[name] = data
	}

	merged, err := json.Marshal(all)
	if err == nil && len(merged) > job.MaxMeta {
		err = fmt.Errorf("the meta would have %d bytes; the maximum is %d", len(merged), job.MaxMeta)
	}

	return merged, err
}

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
		i.refuse(n, "from here on, the expression costs too much for the largest job (%d of %d); "+
			"do less with the whole payload, especially in loops and with matches, string and max", i.work/job.MaxPayload, maxWork/job.MaxPayload)
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

// find looks for a function by its name.
func find(all []function, name string) (function, bool) {
	k := slices.IndexFunc(all, func(f function) bool { return f.name == name })
	if k < 0 {
		return function{}, false
	}

	return all[k], true
}

// names lists functions for an error.
func names(all []function) string {
	var list []string
	for _, f := range all {
		list = append(list, f.name)
	}

	return strings.Join(list, ", ")
}
