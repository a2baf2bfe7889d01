package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/wire"
)

// maxPolicies bounds the memory that policies take. Most systems have a handful.
const maxPolicies = 4096

// policies remembers the rows of the table policies, which never change, in
// both directions. Decoded policies are shared by all jobs that have them:
// nobody may write to their slices and maps.
type policies struct {
	mu      sync.RWMutex
	decoded map[int64]effective
	byText  map[policyText]int64
}

// effective is a policy and whose word it is.
type effective struct {
	retry.Policy
	job.Origins
}

// policyText is both as they are stored.
type policyText struct{ policy, origins string }

func (e effective) text() (policyText, error) {
	t := policyText{policy: string(wire.EncodePolicy(e.Policy))}
	if len(e.Origins) == 0 {
		return t, nil
	}
	origins, err := json.Marshal(e.Origins)
	t.origins = string(origins)
	return t, err
}

// policyTexts writes the policies of jobs, once for neighbours that share one,
// as most jobs of a batch do.
func policyTexts(jobs []job.Job) ([]policyText, error) {
	texts := make([]policyText, len(jobs))
	for i, j := range jobs {
		if i > 0 && j.Policy.Equal(jobs[i-1].Policy) && maps.Equal(j.Origins, jobs[i-1].Origins) {
			texts[i] = texts[i-1]
			continue
		}
		var err error
		if texts[i], err = (effective{j.Policy, j.Origins}).text(); err != nil {
			return nil, fmt.Errorf("write the policy of job %d: %w", i, err)
		}
	}
	return texts, nil
}

func (t policyText) decode() (e effective, err error) {
	if e.Policy, err = wire.DecodePolicy([]byte(t.policy)); err != nil {
		return e, err
	}
	if len(e.NonRetryable) == 0 {
		e.NonRetryable = nil // as it was before it was written
	}
	if t.origins != "" {
		err = json.Unmarshal([]byte(t.origins), &e.Origins)
	}
	return e, err
}

func (p *policies) id(text policyText) (int64, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	id, ok := p.byText[text]
	return id, ok
}

func (p *policies) add(id int64, text policyText) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byText == nil || len(p.byText) >= maxPolicies {
		p.byText, p.decoded = map[policyText]int64{}, map[int64]effective{}
	}
	p.byText[text] = id
}

// get returns the policy with the number id; src is asked for what is not
// remembered.
func (p *policies) get(src source, id int64) (effective, error) {
	p.mu.RLock()
	policy, ok := p.decoded[id]
	p.mu.RUnlock()
	if ok {
		return policy, nil
	}
	const query = `SELECT policy, origins FROM policies WHERE id = $1`
	var text policyText
	err := src.query(query, func(rows *sql.Rows) error { return rows.Scan(&text.policy, &text.origins) }, id)
	if err == nil {
		policy, err = text.decode()
	}
	if err != nil {
		return policy, fmt.Errorf("read policy %d: %w", id, err)
	}
	p.add(id, text)
	p.mu.Lock()
	p.decoded[id] = policy
	p.mu.Unlock()
	return policy, nil
}
