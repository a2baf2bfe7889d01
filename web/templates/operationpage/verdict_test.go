package operationpage

import (
	"strings"
	"testing"
	"unicode/utf8"

	"redrive/internal/operation"
)

// While an operation works, what stands behind the number that grows stays where it is.
func TestVerdict_IsAsLongAllTheTimeThatAnOperationRuns(t *testing.T) {
	verdict := func(state operation.State, done, total int64) string {
		s := Standing{Operation: operation.Operation{Kind: operation.Replay, State: state, Done: done, Total: total}}
		return s.Verdict().Word
	}

	last := verdict(operation.Running, 1640, 1640)
	for _, done := range []int64{0, 9, 10, 99, 100, 999, 1000} {
		now := verdict(operation.Running, done, 1640)
		if utf8.RuneCountInString(now) != utf8.RuneCountInString(last) || !strings.HasSuffix(now, " of 1,640.") {
			t.Errorf("after %d jobs it says %q, and in the end %q", done, now, last)
		}
	}

	if a, b := verdict(operation.Collecting, 0, 9), verdict(operation.Collecting, 0, 10); a != b {
		t.Errorf("while jobs are selected it says %q and then %q", a, b)
	}
}
