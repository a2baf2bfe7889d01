package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/retry"
)

// Find is the policy that a person names: "default", "queue:orders",
// "type:email.send", or a policy of the file or a preset by its name. The ttr
// is zero where the name says nothing about it.
func (c *Config) Find(name string) (retry.Policy, time.Duration, error) {
	c = c.now()
	var m merged
	switch kind, place, colon := strings.Cut(name, ":"); {
	case name == "default":
		// A job of no queue and no type has what the file says about all jobs.
		m = c.base("", "")
	case colon && kind == "queue":
		if _, ok := c.queues[place]; !ok {
			return retry.Policy{}, 0, fmt.Errorf("the configuration does not mention the queue %q: its jobs have the policy default%s",
				clip.Text(place, 64), orOneOf("queue:", c.Queues()))
		}

		// Only what the file says about the queue, whatever the type.
		m = c.base(place, "")
	case colon && kind == "type":
		// The name can be a pattern of the file, as "email.*". The policy is then that of a
		// type which it matches.
		if len(c.patterns(sample(place))) == 0 {
			return retry.Policy{}, 0, fmt.Errorf("the configuration does not mention the type %q: its jobs have the policy of their queue%s",
				clip.Text(place, 64), orOneOf("type:", slices.Sorted(maps.Keys(c.types))))
		}

		m = c.base("", sample(place))
	default:
		var ok bool
		m.policy, ok = c.Named(name)
		if !ok {
			names := slices.Concat(retry.Presets(), c.policyNames())
			return retry.Policy{}, 0, fmt.Errorf("there is no policy %q%s; available are %s, default, queue:NAME and type:NAME",
				clip.Text(name, 64), invalid.DidYouMean(name, names), strings.Join(names, ", "))
		}
	}

	return m.policy, m.ttr, nil
}

// maxOffered is how many names an error lists.
const maxOffered = 10

// orOneOf lists what could have been meant.
func orOneOf(prefix string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; it mentions " + prefix + strings.Join(names[:min(len(names), maxOffered)], ", "+prefix)
}

// ReadPolicy reads a file that holds one policy, as YAML or JSON: its fields,
// or those fields below "policy". What it does not say is said by the default.
// It returns an *Error about the file, or Errors, unless the file cannot be read.
func (c *Config) ReadPolicy(path string) (retry.Policy, error) {
	c = c.now()

	data, err := readFile(path)
	if err != nil {
		return retry.Policy{}, fmt.Errorf("read the policy: %w", err)
	}

	v, err := newFile(path).parse(data)
	if err != nil {
		return retry.Policy{}, err
	}

	if v.node == nil {
		return retry.Policy{}, &Error{File: path, Problem: "is empty; write the fields of a policy, for example max_attempts: 5"}
	}

	v, err = v.below("policy")
	if err != nil {
		return retry.Policy{}, err
	}

	return c.readPolicy(v)
}

// readPolicy reads a policy with the file's default and the product's beneath,
// and checks the whole.
func (c *Config) readPolicy(v value) (retry.Policy, error) {
	patch, err := v.policy()
	all := []error{err}

	// All that is wrong is reported together, so reading goes on after an error.
	steps, err := c.steps("file", patch)
	if err != nil {
		all = append(all, v.file.wrong(join(v.path, "use"), problem(err)))
	}

	m := c.base("", "")
	m.take(steps)

	if err := m.policy.Validate(); err != nil {
		all = append(all, v.file.wrong(join(v.path, fieldOf(err)), problem(err)))
	}

	if err := errors.Join(all...); err != nil {
		return retry.Policy{}, collect(err)
	}

	return m.policy, nil
}

// below is the value of the only field, if it has this name; otherwise v.
func (v value) below(name string) (value, error) {
	if _, ok := v.node.(ast.MapNode); !ok {
		return v, nil
	}

	inner, fields := v, 0
	err := v.entries(func(field string, child value) error {
		if fields++; field == name {
			inner = child
		}
		return nil
	})
	if fields != 1 {
		return v, err
	}

	return inner, err
}
