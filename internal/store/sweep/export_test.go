package sweep

import (
	"context"
	"time"

	"redrive/internal/retention"
)

// RemoveDue is the step of a pass that removes jobs whose time had come when they were read.
func (s *Sweeper) RemoveDue(
	ctx context.Context, now time.Time, limits retention.Limits, kind retention.Kind, seqs []int64,
) (retention.Pruned, error) {
	p := &pass{Sweeper: s, now: now, limits: limits, done: retention.Pruned{Jobs: parts{}}}
	err := p.removeDue(ctx, kind, seqs)
	return p.done, err
}

// CountAtMost bounds how many jobs of a kind a forecast counts that will be removed soon.
func (s *Sweeper) CountAtMost(n int64) { s.maxSoon = n }
