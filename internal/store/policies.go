package store

import (
	"database/sql"
	"fmt"
	"sync"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// maxPolicies bounds the memory that policies take. Most systems have a handful.
const maxPolicies = 4096

// policies remembers the rows of the table policies, which never change, in
// both directions. Decoded policies are shared by all jobs that have them:
// nobody may write to their slices.
type policies struct {
	mu      sync.RWMutex
	decoded map[int64]retry.Policy
	byText  map[string]int64
}

func (p *policies) id(text string) (int64, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	id, ok := p.byText[text]
	return id, ok
}

func (p *policies) add(id int64, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byText == nil || len(p.byText) >= maxPolicies {
		p.byText, p.decoded = map[string]int64{}, map[int64]retry.Policy{}
	}
	p.byText[text] = id
}

// get returns the policy with the number id; src is asked for what is not
// remembered.
func (p *policies) get(src source, id int64) (retry.Policy, error) {
	p.mu.RLock()
	policy, ok := p.decoded[id]
	p.mu.RUnlock()
	if ok {
		return policy, nil
	}
	const query = `SELECT policy FROM policies WHERE id = $1`
	var text string
	err := src.query(query, func(rows *sql.Rows) error { return rows.Scan(&text) }, id)
	if err == nil {
		policy, err = job.DecodePolicy([]byte(text))
	}
	if len(policy.NonRetryable) == 0 {
		policy.NonRetryable = nil // as it was before it was written
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
