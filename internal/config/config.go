// Package config reads redrive.yaml and answers what it says about a queue, a
// type of job and a handler.
//
// Reading is strict: a field that is not known, a value of the wrong kind or
// one that no policy may have is an [Error] with the file, the line and the
// path of the field. What was read cannot fail later: every combination of a
// queue's and a type's policy is checked at once.
//
//	policy: {…}                         every job
//	queues: {orders: {policy: {…}}}     its jobs
//	types: {email.*: {policy: {…}}}     jobs of these types, the exact one last
//	the job itself                      this job
//
// A later line overrides an earlier one, field by field; beneath all of them
// lies [retry.Default].
package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"redrive/internal/retry"
)

const (
	defaultWorkers = 10
	maxWorkers     = 1000
	defaultTTR     = 5 * time.Minute
	maxFile        = 1 << 20
)

// Config is what a file says. Its methods are safe for concurrent use.
type Config struct {
	Handlers    map[string]Handler // by type of job, or a prefix as "report.*"
	UnknownType retry.Unknown
	Hosts       []string // names under which the dashboard is reached, beside the local ones

	file    *file
	workers int
	ttr     time.Duration
	policy  retry.Patch
	queues  map[string]queue
	types   map[string]kind
}

// Handler is one handler: exactly one of its fields is set.
type Handler struct {
	HTTP *HTTP
	Exec *Exec
}

// HTTP describes a service that does the work of a job.
type HTTP struct {
	URL     string
	Timeout time.Duration
}

// Exec describes a program that does the work of a job.
type Exec struct {
	Command []string
	Timeout time.Duration
}

type queue struct {
	workers     *int
	deadLetters *bool
	policy      retry.Patch
}

type kind struct {
	policy retry.Patch
	ttr    time.Duration
}

// Error says what is wrong with a file, and where.
type Error struct {
	File    string
	Line    int    // 0 when it is about the whole file
	Field   string // the path, as queues.orders.policy.max_attempts; may be empty
	Problem string
}

func (e *Error) Error() string {
	var place strings.Builder
	place.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&place, ":%d", e.Line)
	}
	if e.Field != "" {
		place.WriteString(": " + printable(e.Field))
	}
	return place.String() + ": " + printable(strings.ReplaceAll(e.Problem, "\n", " "))
}

// printable escapes what a terminal obeys or does not show.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// Default is the configuration of an empty file.
func Default() *Config {
	c, err := Parse("", nil)
	if err != nil { // unreachable: there is nothing to be wrong
		panic(err)
	}
	return c
}

// Load reads a file.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return Parse(path, data)
}

// Parse reads the content of a file. The name is for errors. It returns an
// *Error.
func Parse(name string, data []byte) (*Config, error) {
	c := &Config{
		Handlers: map[string]Handler{}, UnknownType: retry.UnknownHold,
		file: newFile(name), workers: defaultWorkers, ttr: defaultTTR,
		queues: map[string]queue{}, types: map[string]kind{},
	}
	if err := c.read(data); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, nil
}

// Locate adds file and line to an error about a field of this file, as other
// packages return it for what they were configured with.
func (c *Config) Locate(err error) error {
	var wrong *retry.FieldError
	if !errors.As(err, &wrong) {
		return err
	}
	return c.file.wrong(wrong.Field, wrong.Problem)
}

// Resolve merges the policy of a new job and its time to run: the job's own
// words go before its type's, then its queue's, then the file's, then the
// product's. A ttr of zero says nothing. It returns a *retry.FieldError whose
// field is "policy.NAME" or "ttr".
func (c *Config) Resolve(queue, typ string, patch retry.Patch, ttr time.Duration) (retry.Policy, time.Duration, error) {
	policy, usual := c.base(queue, typ)
	policy = policy.With(patch)
	if err := policy.Validate(); err != nil {
		return policy, 0, under("policy", err)
	}
	if ttr < 0 {
		return policy, 0, &retry.FieldError{Field: "ttr", Problem: "must be longer than zero"}
	}
	return policy, cmp.Or(ttr, usual), nil
}

// base is what the file says about a job of this queue and type.
func (c *Config) base(queue, typ string) (retry.Policy, time.Duration) {
	policy, ttr := retry.Default().With(c.policy).With(c.queues[queue].policy), c.ttr
	for _, pattern := range c.patterns(typ) {
		policy, ttr = policy.With(c.types[pattern].policy), cmp.Or(c.types[pattern].ttr, ttr)
	}
	return policy, ttr
}

// patterns are the entries of types that match, the most exact one last.
func (c *Config) patterns(typ string) []string {
	var matching []string
	for pattern := range c.types {
		if retry.Matches(pattern, typ) {
			matching = append(matching, pattern)
		}
	}
	slices.SortFunc(matching, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(b, a))
	})
	if i := slices.Index(matching, typ); i >= 0 {
		matching = append(slices.Delete(matching, i, i+1), typ)
	}
	return matching
}

// Policy is the policy of a job of this queue that says nothing itself and
// whose type says nothing.
func (c *Config) Policy(queue string) retry.Policy {
	policy, _ := c.base(queue, "")
	return policy
}

// Workers is how many jobs of a queue run at once.
func (c *Config) Workers(queue string) int {
	if n := c.queues[queue].workers; n != nil {
		return *n
	}
	return c.workers
}

// DeadLetters reports whether a queue has a dead-letter queue.
func (c *Config) DeadLetters(queue string) bool {
	on := c.queues[queue].deadLetters
	return on == nil || *on
}

// Queues are the names of the queues that the file mentions, in order.
func (c *Config) Queues() []string { return slices.Sorted(maps.Keys(c.queues)) }

// check tries every combination that a job can meet.
func (c *Config) check() error {
	if err := retry.Default().With(c.policy).Validate(); err != nil {
		return c.Locate(under("policy", err))
	}
	for _, name := range append([]string{""}, c.Queues()...) {
		if err := c.Policy(name).Validate(); err != nil {
			return c.Locate(under("queues."+name+".policy", err))
		}
		for _, pattern := range slices.Sorted(maps.Keys(c.types)) {
			policy, _ := c.base(name, strings.Replace(pattern, "*", "any", 1))
			if err := policy.Validate(); err != nil {
				return c.Locate(under("types."+pattern+".policy", err))
			}
		}
	}
	return nil
}

// under puts a path before the field of an error.
func under(path string, err error) error {
	var wrong *retry.FieldError
	if !errors.As(err, &wrong) {
		return err
	}
	return &retry.FieldError{Field: path + "." + wrong.Field, Problem: wrong.Problem}
}
