package config

import (
	"slices"
	"strings"
	"time"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// step is one thing that a place says about a policy. A place that names a
// whole policy takes several steps: those of the named one, then its own.
type step struct {
	origin string // see [job.Origins]
	patch  retry.Patch
	fields []string // of which the patch speaks
}

// newStep lists the fields of which a patch speaks once, since steps are taken
// for every job.
func newStep(origin string, patch retry.Patch) step {
	s := step{origin: origin, patch: patch}
	for field, said := range fields(patch) {
		if said {
			s.fields = append(s.fields, field)
		}
	}

	return s
}

// merged is what is known of a job's policy and ttr after some steps.
type merged struct {
	policy  retry.Policy
	ttr     time.Duration
	origins job.Origins
}

// take goes further steps. A cap that is raised by a longer delay comes from
// where the delay was written.
func (m *merged) take(steps []step) {
	for _, s := range steps {
		limit := m.policy.MaxInterval
		m.policy = m.policy.With(s.patch)
		for _, field := range s.fields {
			m.origins[field] = s.origin
		}

		if m.policy.MaxInterval != limit {
			m.origins["max_interval"] = s.origin
		}
	}
}

// limit sets the ttr, unless nothing is said about it.
func (m *merged) limit(ttr time.Duration, origin string) {
	if ttr > 0 {
		m.ttr, m.origins["ttr"] = ttr, origin
	}
}

// fields tells of which fields a patch speaks.
func fields(p retry.Patch) map[string]bool {
	return map[string]bool{
		"max_attempts":         p.MaxAttempts != nil,
		"strategy":             p.Strategy != nil,
		"initial_interval":     p.InitialInterval != nil,
		"coefficient":          p.Coefficient != nil,
		"schedule":             p.Schedule != nil,
		"max_interval":         p.MaxInterval != nil,
		"jitter":               p.Jitter != nil,
		"non_retryable_errors": p.NonRetryable != nil,
		"on_exhaustion":        p.OnExhaustion != nil,
	}
}

// patchOf is the patch that replaces every field.
func patchOf(p retry.Policy) retry.Patch {
	return retry.Patch{
		MaxAttempts: &p.MaxAttempts, Strategy: &p.Strategy, InitialInterval: &p.InitialInterval,
		Coefficient: &p.Coefficient, Schedule: &p.Schedule, MaxInterval: &p.MaxInterval,
		Jitter: &p.Jitter, NonRetryable: &p.NonRetryable, OnExhaustion: &p.OnExhaustion,
	}
}

// steps are those of a patch that stands in some place. It returns a
// *invalid.Error about the field "use", and then steps that contradict nothing.
func (c *Config) steps(origin string, patch retry.Patch) ([]step, error) {
	beneath, err := c.named(origin, patch.Use, nil)
	if err != nil {
		beneath = []step{newStep(origin, anyIntervals())}
	}

	patch.Use = ""
	if patch == (retry.Patch{}) {
		return beneath, err
	}

	return append(beneath, newStep(origin, patch)), err
}

// stepsAt is steps for a place in the file. What is wrong with a named policy is said
// there, and not in each place that uses it.
func (c *Config) stepsAt(place, origin string, patch retry.Patch) ([]step, error) {
	steps, err := c.steps(origin, patch)
	if err == nil || c.defines(patch.Use) {
		return steps, nil
	}

	return steps, c.misused(place, err)
}

// named are the steps of the policy of that name. way holds the names that led
// to it.
func (c *Config) named(origin, name string, way []string) ([]step, error) {
	if name == "" {
		return nil, nil
	}

	if len(way) == 0 { // what it says is said by the name that the place wrote
		kind := "policy"
		if _, ok := retry.Preset(name); ok {
			kind = "preset"
		}

		origin += "/" + kind + ":" + name
	}

	if preset, ok := retry.Preset(name); ok {
		return []step{newStep(origin, patchOf(preset))}, nil
	}

	patch, ok := c.policies[name]
	if !ok {
		names := append(retry.Presets(), c.policyNames()...)
		return nil, invalid.Errorf("use", "there is no policy %q%s; available are %s",
			clip.Text(name, 64), invalid.DidYouMean(name, names), strings.Join(names, ", "))
	}

	if slices.Contains(way, name) {
		return nil, &invalid.Error{Field: "use", Problem: "refers to itself: " + strings.Join(append(way, name), " uses ")}
	}

	beneath, err := c.named(origin, patch.Use, append(way, name))

	return append(beneath, newStep(origin, patch)), err
}
