package config

import (
	"strings"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

func TestParse_RulesThatCannotBe(t *testing.T) {
	before := func(rule string) string { return "rules:\n  before_enqueue:\n    - name: a\n" + rule }
	after := func(rule string) string { return "rules:\n  after_failure:\n    - name: a\n" + rule }
	example := func(text string) string { return "rules:\n  examples:\n    - job: {type: t}\n" + text }
	tests := []struct{ name, text, want string }{
		{"unknown section", "rules:\n  before: []", "redrive.yaml:2: rules.before: no such field; did you mean before_enqueue?; the fields are after_failure, before_enqueue, examples"},
		{"no list", "rules:\n  after_failure: {}", "redrive.yaml:2: rules.after_failure: must be a list"},
		{"unknown field of a rule", after("      then: retry"), "redrive.yaml:4: rules.after_failure[0].then: no such field; did you mean when?; the fields are action, delay, max_attempts, name, when"},
		{"no name", "rules:\n  after_failure:\n    - {when: true, action: retry}", "redrive.yaml:3: rules.after_failure[0].name: \"\" is not the name of a rule"},
		{"no condition", after("      action: retry"), "redrive.yaml:3: rules.after_failure[0].when: is missing"},
		{"does not compile", after("      action: retry\n      when: job.type =="), "redrive.yaml:5: rules.after_failure[0].when: unexpected token EOF, at column 11"},
		{"unknown fact", after("      action: retry\n      when: attempt.count > 1"), "redrive.yaml:5: rules.after_failure[0].when: attempt has no such field"},
		{"not a bool", after("      action: retry\n      when: attempt.number"), "redrive.yaml:5: rules.after_failure[0].when: expected bool, but got int"},
		{"loops", after("      action: retry\n      when: any(job.payload.a, any(.b, true))"), "redrive.yaml:5: rules.after_failure[0].when: any is inside another loop"},
		{"allocates", after("      action: retry\n      when: len(1..100000000) > 1"), "redrive.yaml:5: rules.after_failure[0].when: a range goes"},
		{"condition of another kind", after("      action: retry\n      when: [a]"), "redrive.yaml:5: rules.after_failure[0].when: must be a string"},
		{"unknown action", after("      when: true\n      action: bury"), "redrive.yaml:5: rules.after_failure[0].action: \"bury\" is unknown; use retry, dead_letter or discard"},
		{"bad delay", after("      when: true\n      action: retry\n      delay: soon"), "redrive.yaml:6: rules.after_failure[0].delay: is neither a duration such as 30s"},
		{"a delay that is a number", after("      when: true\n      action: retry\n      delay: 30"), "redrive.yaml:6: rules.after_failure[0].delay: must be a string"},
		{"bound of nothing", after("      when: true\n      action: retry\n      max_attempts: 0"), "redrive.yaml:6: rules.after_failure[0].max_attempts: 0 is not a number of at least 1"},
		{"sets nothing", before("      when: true"), "redrive.yaml:3: rules.before_enqueue[0]: the rule does nothing"},
		{"sets an empty queue", before("      when: true\n      queue: ''"), "redrive.yaml:5: rules.before_enqueue[0].queue: is empty"},
		{"sets a queue that cannot be", before("      when: true\n      queue: a b"), "redrive.yaml:5: rules.before_enqueue[0].queue: \"a b\" is not a queue name"},
		{"sets a ttr of nothing", before("      when: true\n      ttr: 0s"), "redrive.yaml:5: rules.before_enqueue[0].ttr: must be longer than zero"},
		{"sets numbers in the meta", before("      when: true\n      meta: {a: 1}"), "redrive.yaml:5: rules.before_enqueue[0].meta.a: must be a string"},
		{"asks for the attempt before there is one", before("      ttr: 1s\n      when: attempt.number > 1"), "redrive.yaml:5: rules.before_enqueue[0].when: attempt is unknown here; available are job"},
		{"an example without a type", "rules:\n  examples:\n    - {expect: {rule: none}}", "redrive.yaml:3: rules.examples[0]: job.type: "},
		{"an example without a queue", "rules:\n  examples:\n    - {job: {type: t, queue: ''}, expect: {rule: none}}", "redrive.yaml:3: rules.examples[0]: job.queue: "},
		{"an example that expects nothing", "rules:\n  examples:\n    - job: {type: t}", "redrive.yaml:3: rules.examples[0]: has no expectation"},
		{"an example of success", example("      attempt: {outcome: succeeded}"), "redrive.yaml:4: rules.examples[0].attempt.outcome: \"succeeded\" is not a failure"},
		{"an example of no attempt", example("      attempt: {number: 0}"), "redrive.yaml:4: rules.examples[0].attempt.number: 0 is not"},
		{"an example with another answer", example("      error: {code: MAYBE}"), "redrive.yaml:4: rules.examples[0].error.code: \"MAYBE\" is unknown"},
		{"an example that expects the unknown", example("      expect: {rules: none}"), "redrive.yaml:4: rules.examples[0].expect.rules: no such field"},
		{"an example whose meta is a list", "rules:\n  examples:\n    - job: {type: t, meta: [1]}", "redrive.yaml:3: rules.examples[0].job.meta: must be a mapping"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse("redrive.yaml", []byte(test.text))
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error %v\nwant %s…", err, test.want)
			}
		})
	}
}

const withExamples = `
policy: {initial_interval: 10s, jitter: [0.5, 1.5]}
rules:
  before_enqueue:
    - {name: move, when: job.type == "move", queue: elsewhere, ttr: 5s, priority: 3, meta: {a: b}}
    - {name: never, when: job.type == "never", refuse: not today}
  after_failure:
    - {name: slow, when: error.type == "slow", action: retry, delay: 1m}
    - {name: broken, when: job.payload.a.b == 1, action: discard}
  examples:
`

func TestTryExamples_TellsWhatDisagrees(t *testing.T) {
	tests := []struct {
		name, example string
		want          []string // nothing: it passes
	}{
		{"enqueue", `{job: {type: move}, expect: {rule: move, queue: elsewhere, ttr: 5s, priority: 3, max_attempts: 3, meta: {a: b}}}`, nil},
		{"no rule", `{job: {type: other, priority: 2, ttr: 7s, policy: {max_attempts: 8}, meta: {a: c, n: 1}}, expect: {rule: none, priority: 2, ttr: 7s, max_attempts: 8, meta: {a: c}}}`, nil},
		{"refused", `{job: {type: never}, expect: {rule: never, refused: not today}}`, nil},
		{"a rule decides", `{job: {type: t}, error: {type: slow}, expect: {rule: slow, action: retry, delay: PT60S}}`, nil},
		{"the bound of the rule", `{job: {type: t, payload: {a: {b: 2}}}, attempt: {number: 3}, error: {type: slow}, expect: {rule: none, action: dead_letter, reason: attempts_exhausted}}`, nil},
		{"the policy decides, before chance", `{job: {type: t}, attempt: {number: 2}, expect: {rule: none, action: retry, delay: 20s}}`, nil},
		{"the handler's answer", `{job: {type: t}, error: {code: DISCARD}, expect: {action: discard, reason: handler_discard}}`, nil},
		{"another rule", `{name: the slow one, job: {type: t, payload: {a: {b: 2}}}, error: {type: quick}, expect: {rule: slow, delay: 1m}}`, []string{
			"redrive.yaml:11: rules.examples[0].expect.delay: the slow one: expected 1m0s, got 10s",
			"redrive.yaml:11: rules.examples[0].expect.rule: the slow one: expected slow, got none"}},
		{"a rule that fails", `{job: {type: t}, error: {type: quick}, expect: {rule: broken}}`, []string{
			"redrive.yaml:11: rules.examples[0].expect.rule: expected broken, got none (rule broken failed: cannot fetch a from <nil>, at column 13, skipped)"}},
		{"not refused", `{job: {type: t}, expect: {refused: not today}}`, []string{
			"redrive.yaml:11: rules.examples[0].expect.refused: expected not today, got nothing"}},
		{"refused unexpectedly", `{job: {type: never}, expect: {queue: default}}`, []string{
			"redrive.yaml:11: rules.examples[0].expect.queue: expected default, got nothing (rule never refused it: not today)"}},
		{"a policy that no job can have", `{job: {type: t, policy: {max_interval: 1s}}, expect: {rule: none}}`, []string{
			"redrive.yaml:11: rules.examples[0].expect.rule: expected none, got nothing (policy.max_interval: 1s is shorter than initial_interval, 10s)"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			passed, wrong := parse(t, strings.TrimPrefix(withExamples, "\n")+"    # it\n    - "+test.example).TryExamples()
			var got []string
			for _, err := range wrong {
				got = append(got, err.Error())
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") || (passed == 1) != (test.want == nil) {
				t.Errorf("%d passed, wrong\n%s\nwant\n%s", passed, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestRules_DecideAboutFailures(t *testing.T) {
	c := parse(t, withExamples)
	ruling, note := c.Rules().AfterFailure(job.Job{Type: "t", Policy: retry.Default()}, job.Ending{Error: job.ErrorInfo{Type: "slow"}})
	if ruling == nil || ruling.Rule != "slow" || *ruling.Delay != time.Minute || note != "" {
		t.Errorf("%+v, %q; want a minute by the rule slow", ruling, note)
	}
	if ruling, _ := Default().Rules().AfterFailure(job.Job{}, job.Ending{}); ruling != nil || Default().Rules().Len() != 0 {
		t.Errorf("an empty file rules %+v", ruling)
	}
}

// A field under a wrong name is not said to be missing as well.
func TestParse_ARuleWithAnUnknownFieldIsOneError(t *testing.T) {
	tells(t, "rules:\n  after_failure:\n    - {name: a, wen: true, action: retry}\n",
		"3: rules.after_failure[0].wen: no such field; did you mean when?")
}

func TestParse_TellsAllErrorsOfRules(t *testing.T) {
	tells(t, `
rules:
  before_enqueue:
    - {name: a, when: 'job.typ == "x"', queue: q}
    - {name: b, when: 'job.type == "x"', queue: a b, priority: 5000}
  after_failure:
    - {name: c, when: "x(", action: retr}
    - {name: d, when: job.nope, action: 5, delay: 1m}
    - {name: d, when: true, action: discard, delay: 1m, max_attempts: 3}
`,
		`4: rules.before_enqueue[0].when: job has no such field; did you mean type?; its fields are`,
		`5: rules.before_enqueue[1].queue: "a b" is not a queue name`, `5: rules.before_enqueue[1].priority: 5000 is not between`,
		`7: rules.after_failure[0].action: "retr" is unknown; did you mean retry?; use retry, dead_letter or discard`,
		`7: rules.after_failure[0].when: `,
		`8: rules.after_failure[1].action: must be a string`, `8: rules.after_failure[1].when: job has no such field; its fields are`,
		`9: rules.after_failure[2].name: "d" is the name of two rules`, `9: rules.after_failure[2].delay: requires the action retry`,
		`9: rules.after_failure[2].max_attempts: requires the action retry`)
}
