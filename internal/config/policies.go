package config

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// defines reports whether there is a policy of that name.
func (c *Config) defines(name string) bool {
	_, preset := retry.Preset(name)
	_, ok := c.policies[name]
	return preset || ok
}

func (c *Config) policyNames() []string { return slices.Sorted(maps.Keys(c.policies)) }

// link turns what the places say into steps, once every policy has its name.
func (c *Config) link() error {
	c.built = merged{policy: retry.Default(), ttr: defaultTTR, origins: job.Origins{"ttr": "built_in"}}
	for field := range fields(retry.Patch{}) {
		c.built.origins[field] = "built_in"
	}

	var err error
	all := []error{c.linkPolicies()}

	c.defaults, err = c.stepsAt("policy", "default", c.policy)
	all = append(all, err)
	for _, name := range c.Queues() {
		q := c.queues[name]
		q.steps, err = c.stepsAt("queues."+name+".policy", "queue:"+name, q.policy)
		c.queues[name], all = q, append(all, err)
	}

	for _, pattern := range slices.Sorted(maps.Keys(c.types)) {
		k := c.types[pattern]
		k.steps, err = c.stepsAt("types."+pattern+".policy", "type:"+pattern, k.policy)
		c.types[pattern], all = k, append(all, err)
	}

	return errors.Join(all...)
}

// linkPolicies looks for names that nothing has, and for circles.
func (c *Config) linkPolicies() error {
	var all []error
	for _, name := range c.policyNames() {
		if use := c.policies[name].Use; use != "" && !c.defines(use) {
			_, err := c.named("", use, nil)
			all = append(all, c.misused("policies."+name, err))
		}

		if circle := c.circle(name); circle != nil {
			err := invalid.Errorf("use", "refers to itself: %s", strings.Join(circle, " uses "))
			all = append(all, c.misused("policies."+name, err))
		}
	}

	return errors.Join(all...)
}

// circle lists the policies that lead from one back to itself. It is empty unless the
// name is the first in the alphabet of these, so that a circle is said once.
func (c *Config) circle(name string) []string {
	way := []string{name}
	for use := c.policies[name].Use; use >= name && (use == name || !slices.Contains(way, use)); use = c.policies[use].Use {
		way = append(way, use)
		if use == name {
			return way
		}
	}

	return nil
}

// misused is the error of a place that names a policy, as a field beside
// others or as the whole of it.
func (c *Config) misused(place string, err error) error {
	if _, ok := c.file.lines[place+".use"]; ok {
		return c.Locate(under(place, err))
	}
	return c.file.wrong(place, problem(err))
}

// base is what the file says about a job of this queue and type.
func (c *Config) base(queue, typ string) merged {
	m := merged{c.built.policy, c.built.ttr, maps.Clone(c.built.origins)}
	m.take(c.defaults)
	m.limit(c.ttr, "default")
	q := c.queues[queue]
	m.take(q.steps)
	m.limit(q.ttr, "queue:"+queue)

	for _, pattern := range c.patterns(typ) {
		m.take(c.types[pattern].steps)
		m.limit(c.types[pattern].ttr, "type:"+pattern)
	}

	return m
}

// patterns are the entries of types that match, the most exact one last.
func (c *Config) patterns(typ string) []string {
	var matching []string
	for i := range len(typ) {
		if typ[i] != '.' {
			continue
		}

		pattern := typ[:i+1] + "*"
		if _, ok := c.types[pattern]; ok && pattern != typ && retry.Matches(pattern, typ) {
			matching = append(matching, pattern)
		}
	}

	if _, ok := c.types[typ]; ok {
		matching = append(matching, typ)
	}

	return matching
}

// Policy is the policy of a job of this queue that says nothing itself and
// whose type says nothing.
func (c *Config) Policy(queue string) retry.Policy {
	c = c.now()
	return c.base(queue, "").policy
}

// NamedPolicy is a policy of the section policies.
type NamedPolicy struct {
	Name   string
	Policy retry.Policy // with the file's default and the product's beneath
}

// NamedPolicies are the policies to which the file gives names, in the order of
// their names.
func (c *Config) NamedPolicies() []NamedPolicy {
	c = c.now()
	var all []NamedPolicy
	for _, name := range c.policyNames() {
		policy, _ := c.Named(name)
		all = append(all, NamedPolicy{name, policy})
	}

	return all
}

// Named is the policy of that name, of the file or a preset.
func (c *Config) Named(name string) (retry.Policy, bool) {
	c = c.now()

	steps, err := c.named("", name, nil)
	if name == "" || err != nil {
		return retry.Policy{}, false
	}

	m := merged{c.built.policy, c.built.ttr, maps.Clone(c.built.origins)}
	m.take(c.defaults)
	m.take(steps)

	return m.policy, true
}

// PolicyInUse is what the file says about the jobs of one place, with the
// defaults beneath. What a queue and a type say together is known for a job
// only.
type PolicyInUse struct {
	Queue, Type string // one of them, or none for the default of all jobs
	Policy      retry.Policy
	TTR         time.Duration
}

// PoliciesInUse are the default, and the policies of the queues and the types
// that the file mentions, in order.
func (c *Config) PoliciesInUse() []PolicyInUse {
	c = c.now()

	use := func(queue, typ string, m merged) PolicyInUse {
		return PolicyInUse{queue, typ, m.policy, m.ttr}
	}
	all := []PolicyInUse{use("", "", c.base("", ""))}
	for _, name := range c.Queues() {
		all = append(all, use(name, "", c.base(name, "")))
	}

	for _, pattern := range slices.Sorted(maps.Keys(c.types)) {
		all = append(all, use("", pattern, c.base("", sample(pattern))))
	}

	return all
}

// sample is a type of job to which a pattern applies.
func sample(pattern string) string { return strings.Replace(pattern, "*", "any", 1) }

// check tries every combination that a job can meet. What is wrong with the policy
// of all jobs would be wrong everywhere, and is said once.
func (c *Config) check() error {
	var all []error

	wrong := func(place string, err error) bool {
		if err != nil {
			all = append(all, c.Locate(under(place, err)))
		}
		return err != nil
	}
	if wrong("policy", c.base("", "").policy.Validate()) {
		c.defaults = append(c.defaults, newStep("default", anyIntervals()))
	}

	for _, name := range c.policyNames() {
		steps, _ := c.steps("", retry.Patch{Use: name})
		m := merged{c.built.policy, c.built.ttr, maps.Clone(c.built.origins)}
		m.take(slices.Concat(c.defaults, steps))
		wrong("policies."+name, m.policy.Validate())
	}

	// Each queue, and in it each type, because both can change the policy of a job.
	for _, name := range append([]string{""}, c.Queues()...) {
		if name != "" && len(c.queues[name].steps) == 0 {
			continue // as for a queue without a name
		}

		if wrong("queues."+name+".policy", c.Policy(name).Validate()) {
			continue
		}

		for _, pattern := range slices.Sorted(maps.Keys(c.types)) {
			if len(c.types[pattern].steps) > 0 {
				wrong("types."+pattern+".policy", c.base(name, sample(pattern)).policy.Validate())
			}
		}
	}

	return errors.Join(all...)
}
