package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"redrive/internal/retry"
	"redrive/internal/rules"
)

// written is the section rules as it stands in the file.
type written struct {
	before   []rules.EnqueueRule
	after    []rules.FailureRule
	examples []example
}

// readRules reads the section rules. They are compiled later, when every policy
// that they can name is known.
func (c *Config) readRules(v value) error {
	return v.fields(map[string]func(value) error{
		"before_enqueue": each(&c.written.before, enqueueRule),
		"after_failure":  each(&c.written.after, failureRule),
		"examples":       each(&c.written.examples, readExample),
	})
}

// each makes a reader of a list, which may be empty, out of a reader of its
// entries.
func each[T any](list *[]T, read func(value) (T, error)) func(value) error {
	return func(v value) error {
		if v.node.Type() == ast.NullType {
			return nil
		}
		return into(list, listOf(read))(v)
	}
}

// enqueueRule reads a rule that changes or refuses a job before it is enqueued.
func enqueueRule(v value) (r rules.EnqueueRule, err error) {
	err = v.fields(map[string]func(value) error{
		"name":     into(&r.Name, value.text),
		"when":     into(&r.When, value.expression),
		"refuse":   into(&r.Refuse, value.filled),
		"queue":    into(&r.Queue, value.filled),
		"ttr":      into(&r.TTR, positive),
		"policy":   into(&r.Policy, value.policy),
		"priority": optional(&r.Priority, value.integer),
		"meta":     into(&r.Meta, value.strings),
	})

	return r, err
}

// failureRule reads a rule about a job that failed. Package rules checks the
// action, together with the fields that go with it.
func failureRule(v value) (r rules.FailureRule, err error) {
	err = v.fields(map[string]func(value) error{
		"name": into(&r.Name, value.text),
		"when": into(&r.When, value.expression),
		"action": func(v value) error {
			s, err := v.text()
			r.Action = retry.Action(s)
			return err
		},
		"delay":        into(&r.Delay, value.filled),
		"max_attempts": into(&r.MaxAttempts, value.count),
	})

	return r, err
}

// expression is a text that may read as true or false in YAML.
func (v value) expression() (string, error) {
	if b, ok := v.node.(*ast.BoolNode); ok {
		return fmt.Sprint(b.Value), nil
	}
	return v.text()
}

// filled is a text that is not empty.
func (v value) filled() (string, error) {
	s, err := v.text()
	if err == nil && s == "" {
		err = v.wrong("is empty")
	}

	return s, err
}

// count is a whole number of at least 1.
func (v value) count() (int, error) {
	n, err := v.integer()
	if err == nil && n < 1 {
		err = v.wrong("%d is not a number of at least 1", n)
	}

	return n, err
}

// strings reads a mapping whose values are all texts.
func (v value) strings() (map[string]string, error) {
	all := map[string]string{}

	return all, v.entries(func(name string, v value) (err error) {
		all[name], err = v.text()
		return err
	})
}

// compileRules makes the rules ready, once every policy has its name. What follows from
// what could not be read is no error of its own.
func (c *Config) compileRules(unread []error) error {
	set, err := rules.New(c.written.before, c.written.after)

	c.rules = set
	all := split(c.Locate(under("rules", err)))
	for i, rule := range c.written.before {
		place := fmt.Sprintf("rules.before_enqueue[%d].policy", i)
		steps, err := c.stepsAt(place, "rule:"+rule.Name, rule.Policy)
		m := c.base(rule.Queue, "")
		before := m.policy.Validate()
		m.take(steps)

		if before == nil {
			err = errors.Join(err, c.Locate(under(place, m.policy.Validate())))
		}

		all = append(all, split(err)...)
	}

	return errors.Join(slices.DeleteFunc(all, func(err error) bool { return c.follows(err, unread) })...)
}

// follows reports whether an error is about a place in which something could not be
// read, or about a field that is missing beside it: it may be there under a wrong name.
func (c *Config) follows(err error, unread []error) bool {
	at, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}

	place := at.Field
	if _, written := c.file.lines[place]; !written {
		place = place[:max(0, strings.LastIndex(place, "."))]
	}

	return slices.ContainsFunc(unread, func(err error) bool {
		from, ok := errors.AsType[*Error](err)
		if !ok {
			return false
		}

		rest, within := strings.CutPrefix(from.Field, place)

		return within && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}
