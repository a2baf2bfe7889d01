package config

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/rules"
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

// whole is the patch that replaces every field.
func whole(p retry.Policy) retry.Patch {
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

	if patch.Use = ""; patch == (retry.Patch{}) {
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

// defines reports whether there is a policy of that name.
func (c *Config) defines(name string) bool {
	_, preset := retry.Preset(name)
	_, ok := c.policies[name]
	return preset || ok
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
		return []step{newStep(origin, whole(preset))}, nil
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

// Admit completes a job that shall be enqueued: the rules may change or refuse
// it, then its own words about policy and ttr are merged with those of its
// type, its queue, the file and the product. patch is what the job says of its
// policy, its Timeout what it says of the ttr, zero being nothing. It returns a
// *invalid.Error whose field is as in a request ("policy.max_attempts",
// "ttr"), or a *rules.Refused; then the job is as it was.
func (c *Config) Admit(j *job.Job, patch retry.Patch) error {
	c = c.now()
	_, err := c.admit(j, patch)
	return err
}

// admit is Admit; it names the rule that changed the job, or "none".
func (c *Config) admit(j *job.Job, patch retry.Patch) (rule string, err error) {
	if err := cmp.Or(job.CheckType(j.Type), job.CheckQueue(j.Queue)); err != nil {
		return "", err
	}

	if j.Timeout < 0 {
		return "", &invalid.Error{Field: "ttr", Problem: "must be longer than zero"}
	}

	own, err := c.steps("job", patch)
	if err != nil {
		return "", under("policy", err)
	}

	admitted, err := c.complete(*j, j.Timeout, own)
	if err != nil {
		return "", err
	}

	rule = rules.None

	note, err := c.rules.BeforeEnqueue(admitted, func(change rules.Change) error {
		changed, err := c.change(change, j.Timeout, own)
		if err == nil {
			admitted, rule = changed, change.Rule
		}

		return err
	})
	if err != nil {
		return "", err
	}

	*j = admitted
	j.Note = clip.Text(note, job.MaxNote)

	return rule, nil
}

// Override is the policy of a job that is replayed with another one, and whose
// word each of its fields is. Fields that the patch does not speak of stay as
// the job has them. It returns a *invalid.Error whose field is as in a
// request ("policy.max_attempts").
func (c *Config) Override(j job.Job, patch retry.Patch) (retry.Policy, job.Origins, error) {
	c = c.now()

	said, err := c.steps("replay", patch)
	if err != nil {
		return retry.Policy{}, nil, under("policy", err)
	}

	m := merged{j.Policy, j.Timeout, maps.Clone(j.Origins)}
	if m.origins == nil {
		m.origins = job.Origins{}
	}

	m.take(said)

	return m.policy, m.origins, under("policy", m.policy.Validate())
}

// Complete is Admit for a job that is set aside before it ran: no rule is
// asked.
func (c *Config) Complete(j *job.Job) (err error) {
	c = c.now()
	*j, err = c.complete(*j, j.Timeout, nil)
	return err
}

// complete merges the policy and the ttr of a job.
func (c *Config) complete(j job.Job, ttr time.Duration, steps []step) (job.Job, error) {
	m := c.base(j.Queue, j.Type)
	m.take(steps)
	m.limit(ttr, "job")
	j.Policy, j.Timeout, j.Origins = m.policy, m.ttr, m.origins

	return j, under("policy", m.policy.Validate())
}

// change completes a job as a rule changed it: what the rule says overrides what
// the job says.
func (c *Config) change(change rules.Change, ttr time.Duration, own []step) (job.Job, error) {
	said, err := c.steps("rule:"+change.Rule, change.Policy)
	if err != nil {
		return job.Job{}, under("policy", err)
	}

	j, err := c.complete(change.Job, ttr, slices.Concat(own, said))
	if change.TTR > 0 {
		j.Timeout, j.Origins["ttr"] = change.TTR, "rule:"+change.Rule
	}

	return j, err
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
