package config

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/rules"
)

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

	// First the policy that the request asks for, as it stands.
	own, err := c.steps("job", patch)
	if err != nil {
		return "", under("policy", err)
	}

	admitted, err := c.complete(*j, j.Timeout, own)
	if err != nil {
		return "", err
	}

	rule = rules.None

	// Then what a rule changes of it, completed like the request itself.
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
