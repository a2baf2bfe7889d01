package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// Find is the policy that a person names: "default", "queue:orders",
// "type:email.send", or a policy of the file or a preset by its name. The ttr
// is zero where the name says nothing about it.
func (c *Config) Find(name string) (retry.Policy, time.Duration, error) {
	kind, place, _ := strings.Cut(name, ":")
	switch kind {
	case "default":
		return c.found(c.base("", ""))
	case "queue":
		if _, ok := c.queues[place]; !ok {
			return retry.Policy{}, 0, fmt.Errorf("the configuration does not mention the queue %q: its jobs have the policy default%s",
				job.Clip(place, 64), orOneOf("queue:", c.Queues()))
		}
		return c.found(c.base(place, ""))
	case "type":
		if len(c.patterns(sample(place))) == 0 {
			return retry.Policy{}, 0, fmt.Errorf("the configuration does not mention the type %q: its jobs have the policy of their queue%s",
				job.Clip(place, 64), orOneOf("type:", slices.Sorted(maps.Keys(c.types))))
		}
		return c.found(c.base("", sample(place)))
	}
	if p, ok := c.Named(name); ok {
		return p, 0, nil
	}
	return retry.Policy{}, 0, fmt.Errorf("there is no policy %q; there are %s, default, queue:NAME and type:NAME",
		job.Clip(name, 64), strings.Join(slices.Concat(retry.Presets(), c.policyNames()), ", "))
}

func (c *Config) found(m merged) (retry.Policy, time.Duration, error) { return m.policy, m.ttr, nil }

// maxOffered is how many names an error lists.
const maxOffered = 10

// orOneOf lists what could have been meant.
func orOneOf(prefix string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; it mentions " + prefix + strings.Join(names[:min(len(names), maxOffered)], ", "+prefix)
}
