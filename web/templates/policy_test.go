package templates

import (
	"redrive/internal/retry"
	"testing"
)

func TestPolicy_InWords(t *testing.T) {
	never, twice := retry.Default(), retry.Default()
	never.MaxAttempts, twice.MaxAttempts = 0, 2
	twice.Strategy, twice.Jitter = retry.Constant, retry.Jitter{}
	for _, test := range []struct {
		policy       retry.Policy
		line, delays string
	}{
		{retry.Default(), "3 attempts, then dead letter", "1 s × 2^n−1, cap 5 min, jitter 0.5 to 1.5"},
		{never, "1 attempt, then dead letter", "never retried"},
		{twice, "2 attempts, then dead letter", "1 s apart, cap 5 min"},
	} {
		if line, waits := policyLine(test.policy), tapeText([]cell{delays(test.policy)}); line != test.line || waits != test.delays {
			t.Errorf("the policy reads %q, %q; want %q, %q", line, waits, test.line, test.delays)
		}
	}
}
