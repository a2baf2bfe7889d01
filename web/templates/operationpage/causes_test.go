package operationpage

import (
	"strings"
	"testing"

	"redrive/internal/operation"
	"redrive/internal/retry"
)

// A preview says what becomes of the jobs that no handler can run, as the configuration has it.
func TestUnhandled_SaysWhatBecomesOfTheJobs(t *testing.T) {
	one := []operation.TypePart{{Type: "a", Count: 42, Unhandled: true}, {Type: "b", Count: 7}}
	two := []operation.TypePart{{Type: "a", Count: 1, Unhandled: true}, {Type: "b", Count: 2, Unhandled: true}}
	for _, test := range []struct {
		types   []operation.TypePart
		unknown retry.Unknown
		want    string
	}{
		{one, retry.UnknownHold, "1 type has no handler here: its 42 jobs will wait until one is configured."},
		{two, retry.UnknownFail, "2 types have no handler here: their 3 jobs will fail at once."},
		{two, retry.UnknownDeadLetter, "2 types have no handler here: their 3 jobs will become dead letters again at once."},
		{one[1:], retry.UnknownHold, ""},
	} {
		v := View{Operation: operation.Operation{Kind: operation.Replay}, UnknownType: test.unknown}
		v.Breakdown.Types = test.types
		if got := v.unhandledWords(); got != test.want {
			t.Errorf("it says %q, want %q", got, test.want)
		}
	}
}

// What passed can be resumed once the canary is over and has failed for another cause, and of
// an operation whose causes were noted.
func TestResumePassed_IsOfferedWhenTheCanaryIsOver(t *testing.T) {
	s := Standing{Operation: operation.Operation{Kind: operation.Replay, State: operation.Paused, Causes: 2}}
	s.CanaryAt = s.CanaryAt.AddDate(2026, 0, 0)
	s.Canary = operation.Canary{Done: 2, Succeeded: 1, Relapsed: 1, Causes: []operation.CauseCanary{{Done: 1, Relapsed: 1}, {Done: 1, Succeeded: 1}}}
	if !s.mayResumePassed() {
		t.Error("a canary that is over does not offer to resume what passed")
	}

	runs, old, none := s, s, s
	runs.Canary.Done = 3
	old.Causes = 0
	none.Canary.Causes = s.Canary.Causes[:1]
	for name, s := range map[string]Standing{"one that runs": runs, "one without causes": old, "one that no cause passed": none} {
		if s.mayResumePassed() {
			t.Errorf("%s offers to resume what passed", name)
		}
	}
}

// The guard has the word only while its pause lasts.
func TestVerdict_OfAnAbortedOperationIsNotTheGuards(t *testing.T) {
	s := Standing{Operation: operation.Operation{Kind: operation.Replay, State: operation.Aborted, Guarded: true, Why: "aborted by ana"}}
	if word := s.Verdict().Word; word != "Aborted by ana." {
		t.Errorf("it says %q", word)
	}
	if advice := s.Advice(); strings.Contains(advice, "Fix it first") {
		t.Errorf("it advises %q", advice)
	}
}
