package rows

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store/db"
	"redrive/internal/wire"
)

// maxPolicies bounds the memory that policies take. Most systems have a handful.
const maxPolicies = 4096

// Policies remembers the rows of the table policies, which never change, in both
// directions. Decoded policies are shared by all jobs that have them: no caller may
// write to their slices and maps.
type Policies struct {
	mu      sync.RWMutex
	decoded map[int64]effective
	byText  map[PolicyText]int64
	fresh   *db.Slot[storedPolicies]

	newest atomic.Pointer[writtenPolicy]
}

// storedPolicies are those that a transaction has stored.
type storedPolicies map[PolicyText]int64

// NewPolicies returns policies of which nothing is known yet.
func NewPolicies() *Policies {
	return &Policies{fresh: db.NewSlot(func() *storedPolicies { return &storedPolicies{} })}
}

// writtenPolicy is a policy and how it is stored. It shares its slices with no one.
type writtenPolicy struct {
	effective
	text PolicyText
}

// effective is a policy and the origin of each of its fields.
type effective struct {
	retry.Policy
	job.Origins
}

// PolicyText is a policy with its origins as they are stored.
type PolicyText struct{ policy, origins string }

// TextOf is the policy of a job as it is stored.
func TextOf(j job.Job) PolicyText {
	t := PolicyText{policy: string(wire.EncodePolicy(j.Policy))}
	if len(j.Origins) > 0 {
		origins, _ := json.Marshal(j.Origins) // texts: it never fails
		t.origins = string(origins)
	}

	return t
}

// Texts writes the policies of jobs. Most jobs have the policy of the one before,
// which is not written again.
func (p *Policies) Texts(jobs []job.Job) []PolicyText {
	texts := make([]PolicyText, len(jobs))
	last := p.newest.Load()
	for i := range jobs {
		j := &jobs[i]
		if last == nil || !j.Policy.Equal(last.Policy) || !maps.Equal(j.Origins, last.Origins) {
			last = &writtenPolicy{effective{j.Policy, maps.Clone(j.Origins)}, TextOf(*j)}
			last.Schedule, last.NonRetryable = slices.Clone(j.Policy.Schedule), slices.Clone(j.Policy.NonRetryable)
			p.newest.Store(last)
		}

		texts[i] = last.text
	}

	return texts
}

func (t PolicyText) decode() (e effective, err error) {
	e.Policy, err = wire.DecodePolicy([]byte(t.policy))
	if err != nil {
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

// ID returns the number under which a policy is stored; it stores one that is
// new.
func (p *Policies) ID(t *db.Tx, text PolicyText) (int64, error) {
	if id, ok := p.id(text); ok {
		return id, nil
	}

	fresh := *p.fresh.In(t)
	if id, ok := fresh[text]; ok {
		return id, nil
	}

	const insert = `INSERT INTO policies (policy, origins) VALUES ($1, $2)
		ON CONFLICT (policy, origins) DO UPDATE SET policy = excluded.policy RETURNING id`

	id, err := db.Value[int64](t, insert, text.policy, text.origins)
	if err != nil {
		return 0, fmt.Errorf("store a policy: %w", err)
	}

	fresh[text] = id

	return id, nil
}

// Flush writes nothing: policies are stored at once.
func (p *Policies) Flush(*db.Tx) error { return nil }

// Committed remembers the policies of the transaction.
func (p *Policies) Committed(t *db.Tx) {
	for text, id := range *p.fresh.In(t) {
		p.add(id, text)
	}
}

func (p *Policies) id(text PolicyText) (int64, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()

	id, ok := p.byText[text]

	return id, ok
}

func (p *Policies) add(id int64, text PolicyText) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.byText == nil || len(p.byText) >= maxPolicies {
		p.byText, p.decoded = map[PolicyText]int64{}, map[int64]effective{}
	}

	p.byText[text] = id
}

// get returns the policy with the number id; src is asked for what is not
// remembered.
func (p *Policies) get(src db.Source, id int64) (effective, error) {
	p.mu.RLock()
	policy, ok := p.decoded[id]
	p.mu.RUnlock()

	if ok {
		return policy, nil
	}

	const query = `SELECT policy, origins FROM policies WHERE id = $1`
	var text PolicyText

	_, err := db.Row(src, query, []any{&text.policy, &text.origins}, id)
	if err == nil {
		policy, err = text.decode()
	}

	if err != nil {
		return policy, fmt.Errorf("read policy %d: %w", id, err)
	}

	if t, writes := src.(*db.Tx); writes {
		_, open := (*p.fresh.In(t))[text]
		if open { // a rollback would take it back
			return policy, nil
		}
	}

	p.add(id, text)
	p.mu.Lock()
	p.decoded[id] = policy
	p.mu.Unlock()

	return policy, nil
}

// Get returns the policy with the number id, and the origin of each field.
func (p *Policies) Get(src db.Source, id int64) (retry.Policy, job.Origins, error) {
	e, err := p.get(src, id)
	return e.Policy, e.Origins, err
}
