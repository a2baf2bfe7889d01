package rules

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
)

func newSet(t *testing.T, before []EnqueueRule, after []FailureRule) *Set {
	t.Helper()
	s, err := New(before, after)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// busy are rules of which each goes through the payload 18 times.
func busy(n int) []FailureRule {
	var all []FailureRule
	for k := range n {
		all = append(all, FailureRule{Name: fmt.Sprint("busy-", k), Action: retry.Discard, When: times("1 in job.payload", " or ", 18)})
	}
	return all
}

func TestNew_NamesRuleAndField(t *testing.T) {
	before := func(r EnqueueRule) []EnqueueRule { return []EnqueueRule{{Name: "ok", When: "true", Queue: "q"}, r} }
	after := func(r FailureRule) []FailureRule {
		return []FailureRule{{Name: "ok", When: "true", Action: retry.Discard}, r}
	}
	tests := []struct {
		name   string
		before []EnqueueRule
		after  []FailureRule
		want   string
	}{
		{"none", before(EnqueueRule{Name: "none", When: "true", Queue: "q"}), nil, `before_enqueue[1].name: "none" is reserved for examples in which no rule matches`},
		{"no name", before(EnqueueRule{When: "true", Queue: "q"}), nil, `before_enqueue[1].name: "" is not the name of a rule`},
		{"a name of blanks", nil, after(FailureRule{Name: "a b", When: "true"}), `after_failure[1].name: "a b" is not`},
		{"the same name", nil, after(FailureRule{Name: "ok", When: "true"}), `after_failure[1].name: "ok" is the name of two rules`},
		{"nothing follows", before(EnqueueRule{Name: "a", When: "true"}), nil, "before_enqueue[1]: the rule does nothing"},
		{"refuses and sets", before(EnqueueRule{Name: "a", When: "true", Refuse: "no", TTR: 1}), nil, "before_enqueue[1].refuse: cannot be combined"},
		{"a long refusal", before(EnqueueRule{Name: "a", When: "true", Refuse: strings.Repeat("a", 2000)}), nil, "before_enqueue[1].refuse: is longer"},
		{"queue", before(EnqueueRule{Name: "a", When: "true", Queue: "a b"}), nil, "before_enqueue[1].queue: \"a b\" is not a queue name"},
		{"priority", before(EnqueueRule{Name: "a", When: "true", Priority: new(2000)}), nil, "before_enqueue[1].priority: 2000 is not"},
		{"condition", before(EnqueueRule{Name: "a", When: "attempt.number > 1", TTR: 1}), nil, "before_enqueue[1].when: attempt is unknown"},
		{"no action", nil, after(FailureRule{Name: "a", When: "true"}), `after_failure[1].action: "" is unknown; use retry, dead_letter or discard`},
		{"action", nil, after(FailureRule{Name: "a", When: "true", Action: retry.Complete}), `after_failure[1].action: "complete" is unknown`},
		{"a condition that does not compile", nil, after(FailureRule{Name: "a", When: "job.type ==", Action: retry.Retry}), "after_failure[1].when: unexpected token"},
		{"delay", nil, after(FailureRule{Name: "a", When: "true", Action: retry.Retry, Delay: "soon"}), "after_failure[1].delay: is neither a duration such as 30s nor a valid expression: soon is unknown here"},
		{"a delay that is a number", nil, after(FailureRule{Name: "a", When: "true", Action: retry.Retry, Delay: "30"}), "after_failure[1].delay: is neither a duration such as 30s nor a valid expression: must give a duration"},
		{"delay of a discard", nil, after(FailureRule{Name: "a", When: "true", Action: retry.Discard, Delay: "1s"}), "after_failure[1].delay: requires the action"},
		{"bound beyond all", nil, after(FailureRule{Name: "a", When: "true", Action: retry.Retry, MaxAttempts: retry.MaxAttempts + 1}), "after_failure[1].max_attempts: 10001 is too many; a run has at most 10,000 attempts"},
		{"bound of a discard", nil, after(FailureRule{Name: "a", When: "true", Action: retry.Discard, MaxAttempts: 3}), "after_failure[1].max_attempts: requires the action retry"},
		{"too much cost together", nil, busy(7), "after_failure[5].when: from here on, the rules of this list together cost too much"},
		{"too many", nil, make([]FailureRule, maxRules+1), "after_failure: has more than 100 rules"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := New(test.before, test.after)
			var wrong *invalid.Error
			if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%v, want %s…", err, test.want)
			}
		})
	}
}

// failedOnce is a job whose attempt of this number failed, and how.
func failedOnce(number int, typ string) (job.Job, job.Ending) {
	j := job.Job{Type: "t", Queue: "q", Policy: retry.Default(), Payload: []byte(`{"wait": 7}`), Attempts: number - 1, StartedAt: time.Unix(1, 0)}
	return j, job.Ending{Outcome: job.Failed, FinishedAt: time.Unix(2, 0), Error: job.ErrorInfo{Type: typ}}
}

func TestAfterFailure_TheFirstThatMatchesDecides(t *testing.T) {
	s := newSet(t, nil, []FailureRule{
		{Name: "auth", When: `error.type == "auth"`, Action: retry.DeadLetter},
		{Name: "http", When: `error.type startsWith "http."`, Action: retry.Retry, Delay: "PT30S", MaxAttempts: 9},
		{Name: "slow", When: `error.type == "http.429" || error.type == "slow"`, Action: retry.Retry, Delay: `seconds(job.payload.wait * attempt.number)`},
		{Name: "plain", When: `error.type == "plain"`, Action: retry.Retry},
		{Name: "rest", When: `error.type == "rest"`, Action: retry.Discard},
	})
	tests := []struct {
		typ  string
		want *retry.Ruling
	}{
		{"auth", &retry.Ruling{Rule: "auth", Action: retry.DeadLetter}},
		{"http.429", &retry.Ruling{Rule: "http", Action: retry.Retry, Delay: new(30 * time.Second), Limit: 9}},
		{"slow", &retry.Ruling{Rule: "slow", Action: retry.Retry, Delay: new(14 * time.Second)}},
		{"plain", &retry.Ruling{Rule: "plain", Action: retry.Retry}},
		{"rest", &retry.Ruling{Rule: "rest", Action: retry.Discard}},
		{"other", nil},
	}
	for _, test := range tests {
		if got, note := s.AfterFailure(failedOnce(2, test.typ)); !reflect.DeepEqual(got, test.want) || note != "" {
			t.Errorf("%s: %+v, %q; want %+v", test.typ, got, note, test.want)
		}
	}
}

func TestAfterFailure_ARetryWhoseBoundIsUsedUpDoesNotMatch(t *testing.T) {
	s := newSet(t, nil, []FailureRule{
		{Name: "usual", When: `error.type == "usual"`, Action: retry.Retry}, // the policy's three
		{Name: "often", When: "true", Action: retry.Retry, MaxAttempts: 5},
		{Name: "end", When: "true", Action: retry.DeadLetter},
	})
	tests := []struct {
		number int
		typ    string
		rule   string
	}{
		{2, "usual", "usual"}, {3, "usual", "often"}, {4, "usual", "often"}, {5, "usual", "end"}, {1, "other", "often"}, {6, "other", "end"},
	}
	for _, test := range tests {
		if got, _ := s.AfterFailure(failedOnce(test.number, test.typ)); got == nil || got.Rule != test.rule {
			t.Errorf("attempt %d, %s: %+v, want %s", test.number, test.typ, got, test.rule)
		}
	}
}

func TestAfterFailure_SkipsARuleThatFails(t *testing.T) {
	s := newSet(t, nil, []FailureRule{
		{Name: "broken", When: `job.payload.customer.tier == "gold"`, Action: retry.Discard},
		{Name: "late", When: "true", Action: retry.Retry, Delay: `seconds(-1)`},
		{Name: "never", When: "true", Action: retry.Retry, Delay: `seconds(0.0 / 0)`},
		{Name: "next", When: "true", Action: retry.Retry},
	})
	got, note := s.AfterFailure(failedOnce(1, "x"))
	if got == nil || got.Rule != "next" {
		t.Errorf("%+v, want the rule next", got)
	}
	want := "rule broken failed: cannot fetch tier from <nil>, at column 22, skipped; " +
		"rule late failed: delay: it gave no duration, or one below zero, at column 1, skipped; " +
		"rule never failed: delay: it gave no duration, or one below zero, at column 1, skipped"
	if note != want {
		t.Errorf("note %q\nwant %q", note, want)
	}
}

func TestAfterFailure_ADelayBeyondAllTimesIsTheLongest(t *testing.T) {
	s := newSet(t, nil, []FailureRule{{Name: "grow", When: "true", Action: retry.Retry, Delay: `duration("5s") * 9 ** 99`}})
	if got, note := s.AfterFailure(failedOnce(1, "x")); got == nil || *got.Delay < 1<<62 {
		t.Errorf("%+v, %q; want the longest delay", got, note)
	}
}

func TestAfterFailure_SaysNothingWhereTheFateIsDecided(t *testing.T) {
	s := newSet(t, nil, []FailureRule{{Name: "all", When: "true", Action: retry.Retry}})
	for _, end := range []job.Ending{{Unknown: retry.UnknownDelete}, {Unknown: retry.UnknownDeadLetter}, {Expired: retry.Discard}} {
		if got, note := s.AfterFailure(job.Job{Policy: retry.Default()}, end); got != nil || note != "" {
			t.Errorf("%+v: %+v, %q; want nothing", end, got, note)
		}
	}
	if got, _ := s.AfterFailure(job.Job{Policy: retry.Default()}, job.Ending{Unknown: retry.UnknownFail}); got == nil {
		t.Error("unknown_type: fail: no ruling, want one")
	}
}

func TestAfterFailure_SeesTheHandlersAnswer(t *testing.T) {
	s := newSet(t, nil, []FailureRule{{Name: "anyway", When: `error.retryable == false && error.code == "DISCARD"`, Action: retry.Retry}})
	j, end := failedOnce(1, "x")
	if got, note := s.AfterFailure(j, end); got != nil {
		t.Errorf("without an answer: %+v, %q", got, note)
	}
	end.Answer = retry.Answer{Code: retry.CodeDiscard, Retryable: new(false)}
	if got, note := s.AfterFailure(j, end); got == nil {
		t.Errorf("with an answer: no ruling, %q", note)
	}
}

func TestBeforeEnqueue_ChangesTheJob(t *testing.T) {
	s := newSet(t, []EnqueueRule{
		{Name: "slow", When: `job.type == "slow"`, TTR: 5 * time.Minute, Policy: retry.Patch{Use: "yii2"}},
		{Name: "vip", When: `job.meta.tenant == "acme"`, Queue: "vip", Priority: new(9), Meta: map[string]string{"lane": "a", "tenant": "ACME"}},
	}, nil)
	var got Change
	take := func(c Change) error { got = c; return nil }
	note, err := s.BeforeEnqueue(job.Job{Type: "slow", Queue: "q"}, take)
	if err != nil || note != "" || got.Rule != "slow" || got.TTR != 5*time.Minute || got.Policy != (retry.Patch{Use: "yii2"}) || got.Job.Queue != "q" {
		t.Errorf("slow: %+v, %q, %v", got, note, err)
	}
	note, err = s.BeforeEnqueue(job.Job{Type: "t", Queue: "q", Meta: []byte(`{"tenant": "acme", "n": 1e2}`)}, take)
	if want := `{"lane":"a","n":1e2,"tenant":"ACME"}`; err != nil || got.Job.Queue != "vip" || got.Job.Priority != 9 || string(got.Job.Meta) != want {
		t.Errorf("vip: %+v, %v; want meta %s", got, err, want)
	}
	if want := "rule vip: queue vip instead of q, priority 9 instead of 0"; note != want {
		t.Errorf("note %q, want %q", note, want)
	}
	got = Change{}
	if note, err := s.BeforeEnqueue(job.Job{Type: "t"}, take); note != "" || err != nil || got.Rule != "" {
		t.Errorf("no rule matches, but %+v, %q, %v", got, note, err)
	}
}

func TestBeforeEnqueue_Refuses(t *testing.T) {
	s := newSet(t, []EnqueueRule{{Name: "no", When: `len(job.payload) > 2`, Refuse: "too many"}}, nil)
	_, err := s.BeforeEnqueue(job.Job{Payload: []byte("[1,2,3]")}, nil)
	var refused *Refused
	if !errors.As(err, &refused) || *refused != (Refused{"no", "too many"}) {
		t.Errorf("%v, want that rule no refuses", err)
	}
	if _, err := s.BeforeEnqueue(job.Job{Payload: []byte("[1,2]")}, nil); err != nil {
		t.Error(err)
	}
}

func TestBeforeEnqueue_SkipsWhatCannotBe(t *testing.T) {
	s := newSet(t, []EnqueueRule{
		{Name: "broken", When: `job.payload.a.b`, TTR: 1},
		{Name: "large", When: "true", Meta: map[string]string{"a": strings.Repeat("a", job.MaxMeta)}},
		{Name: "unwelcome", When: "true", TTR: 2},
		{Name: "fine", When: "true", TTR: 3},
	}, nil)
	var got Change
	note, err := s.BeforeEnqueue(job.Job{Payload: []byte("{}")}, func(c Change) error {
		if c.TTR == 2 {
			return errors.New("cannot be")
		}
		got = c
		return nil
	})
	want := "rule broken failed: cannot fetch b from <nil>, at column 15, skipped; " +
		"rule large failed: the meta would have 65544 bytes; the maximum is 65536, skipped; " +
		"rule unwelcome failed: cannot be, skipped"
	if err != nil || got.Rule != "fine" || note != want {
		t.Errorf("%+v, %v, note %q\nwant %q", got, err, note, want)
	}
}

func TestSet_WithoutRulesCostsNothing(t *testing.T) {
	j, end := failedOnce(1, "x")
	for _, s := range []*Set{nil, newSet(t, nil, nil)} {
		if n := testing.AllocsPerRun(100, func() {
			if ruling, note := s.AfterFailure(j, end); ruling != nil || note != "" {
				t.Error("a ruling without rules")
			}
			if note, err := s.BeforeEnqueue(j, nil); note != "" || err != nil {
				t.Error("a change without rules")
			}
		}); n != 0 || s.Len() != 0 {
			t.Errorf("%v allocations, %d rules; want none", n, s.Len())
		}
	}
}

func TestSet_IsAskedByManyAtOnce(t *testing.T) {
	s := newSet(t,
		[]EnqueueRule{{Name: "a", When: `job.priority in [0, 1, 2] && any([1, 2, 3], # == 2) && job.payload.wait == 7`, TTR: 1}},
		[]FailureRule{{Name: "b", When: `error.type matches "^x" && job.payload.wait == 7`, Action: retry.Retry, Delay: "seconds(attempt.number)"}})
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for range 50 {
				j, end := failedOnce(n%2+1, "x")
				j.Priority = 2
				if got, note := s.AfterFailure(j, end); got == nil || *got.Delay != time.Duration(n%2+1)*time.Second {
					t.Errorf("%+v, %q", got, note)
				}
				took := false
				if _, err := s.BeforeEnqueue(j, func(Change) error { took = true; return nil }); err != nil || !took {
					t.Errorf("took %v, %v", took, err)
				}
			}
		})
	}
	all.Wait()
}
