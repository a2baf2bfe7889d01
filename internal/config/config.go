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
//	rules: {before_enqueue: […]}        jobs that a rule matches
//
// A later line overrides an earlier one, field by field; all of them override
// [retry.Default]. Each line can name a whole policy, "use: slow", one of the
// section policies or a preset, which the line's own fields override. The job
// keeps which of them each field comes from.
//
// # How a file is read
//
// The parser of YAML gives a tree; a value is a place in it, with its path and
// the file, and reads itself as one kind of thing or returns an error with its
// line. A section is a mapping of the names of its fields to readers. The helpers
// into and optional make such a reader of one for a kind of value and the field
// that it fills; word and listOf make readers of readers.
//
// [Parse] goes through the file four times: it reads every section on its own;
// turns the policies of each place into steps, when all names of policies are
// known; tries every combination of a queue and a type; and compiles the rules.
// Lines are remembered by path, so that each of these can say where its error is.
// None of them is left out because of an error: people see all errors at once. What
// could not be read is replaced by a value that leads to no further error.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"redrive/internal/handler"
	"redrive/internal/redact"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/rules"
)

const (
	defaultWorkers = 10
	maxWorkers     = 1000
	defaultTTR     = 5 * time.Minute
	maxFile        = 1 << 20
)

// Config is what a file says. Its methods are safe for concurrent use, and tell what
// the newest version of the file says, see [Config.Replace].
type Config struct {
	newest   atomic.Pointer[Config] // nil: this one
	sections map[string]string      // the text of each, by its name

	Handlers    map[string]handler.Config // by type of job, or a prefix as "report.*"
	UnknownType retry.Unknown
	Hosts       []string // names under which the dashboard is reached, beside the local ones

	proxy    *Proxy
	basePath string

	file      *file
	workers   int
	ttr       time.Duration // zero: not said
	expired   retry.Action
	policy    retry.Patch
	policies  map[string]retry.Patch
	queues    map[string]queue
	types     map[string]kind
	retention retention.Limits
	limits    Limits
	written   written
	rules     *rules.Set
	sources   []Source
	redactor  *redact.Redactor

	built    merged // what the product says
	defaults []step // what the file says about every job
}

// queue is what the file says about one queue. Nil and zero mean that it says
// nothing, and that the setting of all queues holds.
type queue struct {
	workers     *int
	deadLetters *bool
	webhook     *Webhook
	ttr         time.Duration
	expired     retry.Action
	policy      retry.Patch
	steps       []step
}

// kind is what the file says about a type of job, or about all types below a
// prefix.
type kind struct {
	policy retry.Patch
	ttr    time.Duration
	steps  []step
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
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}

	return Parse(path, data)
}

// LoadPolicies is Load for a caller that only looks at policies: a missing secret is not
// an error, and no secret can be used.
func LoadPolicies(path string) (*Config, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}

	c, err := parseAll(path, data)
	wrong := slices.DeleteFunc(split(err), func(err error) bool { return errors.As(err, new(noSecret)) })
	if err := errors.Join(wrong...); err != nil {
		return nil, collect(err)
	}

	return c, nil
}

// readFile reads no more of a file than shows that it is too large.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}

	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))

	return data, cmp.Or(err, f.Close())
}

// Parse reads the content of a file. The name is for errors. It returns an
// *Error, or Errors.
func Parse(name string, data []byte) (*Config, error) {
	c, err := parseAll(name, data)
	if err != nil {
		return nil, collect(err)
	}

	return c, nil
}

// parseAll returns what could be read together with all errors.
func parseAll(name string, data []byte) (*Config, error) {
	c := &Config{
		Handlers: map[string]handler.Config{}, UnknownType: retry.UnknownHold,
		file: newFile(name), workers: defaultWorkers, expired: retry.DeadLetter,
		policies: map[string]retry.Patch{}, queues: map[string]queue{}, types: map[string]kind{},
		redactor: redact.Default(), limits: defaultLimits(), sections: map[string]string{},
		retention: retention.Limits{
			Ages: defaultAges(), Queues: map[string]retention.Ages{}, Types: map[string]retention.Ages{}, Trash: defaultTrash,
			Said: map[retention.Kind]bool{},
		},
	}
	root, err := c.file.parse(data)
	if err == nil && root.node != nil {
		err = c.read(root)
	}

	return c, errors.Join(err, c.link(), c.check(), c.compileRules(split(err)))
}

// File is the name of the file; empty for the built-in configuration.
func (c *Config) File() string { return c.now().file.name }

// Workers is how many jobs of a queue run at once.
func (c *Config) Workers(queue string) int {
	c = c.now()
	if n := c.queues[queue].workers; n != nil {
		return *n
	}

	return c.workers
}

// DeadLetters reports whether a queue has a dead-letter queue.
func (c *Config) DeadLetters(queue string) bool {
	c = c.now()
	on := c.queues[queue].deadLetters
	return on == nil || *on
}

// Expired is what becomes of a job of this queue whose time to live ended
// before it ran: retry.DeadLetter or retry.Discard.
func (c *Config) Expired(queue string) retry.Action {
	c = c.now()
	return cmp.Or(c.queues[queue].expired, c.expired)
}

// Rules are the operator's rules; a file without any gives a set that says
// nothing.
func (c *Config) Rules() *rules.Set {
	c = c.now()
	return c.rules
}

// Queues are the names of the queues that the file mentions, in order.
func (c *Config) Queues() []string {
	c = c.now()
	return slices.Sorted(maps.Keys(c.queues))
}

// NamedQueues are the queues that the file names anywhere: those of [Config.Queues],
// those into which rules move jobs, and the one of jobs that name none.
func (c *Config) NamedQueues() []string {
	c = c.now()
	all := append(c.Queues(), "default")
	for _, rule := range c.written.before {
		if rule.Queue != "" {
			all = append(all, rule.Queue)
		}
	}

	slices.Sort(all)

	return slices.Compact(all)
}
