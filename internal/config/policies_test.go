package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/rules"
)

const named = `
policies:
  slow: {use: ojs, max_attempts: 10}
  slower: {use: slow, initial_interval: 1h}
  sparing: {max_attempts: 2}
policy: {use: daycry, strategy: linear}
ttr: 1m
queues:
  a: {policy: slower, ttr: 2m}
  b: {policy: sparing}
types:
  email.*: {ttr: 3m, policy: {initial_interval: 20m}}
  email.send: {policy: {use: yii2, max_attempts: 6}}
`

// admitted is a job after Admit.
func admitted(t *testing.T, c *Config, j job.Job, patch retry.Patch) job.Job {
	t.Helper()
	if err := c.Admit(&j, patch); err != nil {
		t.Fatal(err)
	}
	return j
}

func TestAdmit_TellsTheOriginOfEachField(t *testing.T) {
	// all is the origins with one for each field that is not named.
	all := func(usual string, more job.Origins) job.Origins {
		o := job.Origins{"ttr": usual}
		for field := range fields(retry.Patch{}) {
			o[field] = usual
		}
		maps.Copy(o, more)
		return o
	}
	tests := []struct {
		name, text string
		job        job.Job
		patch      retry.Patch
		want       job.Origins
	}{
		{"nobody", "", job.Job{Queue: "q", Type: "t"}, retry.Patch{}, all("built_in", nil)},
		{"the file", named, job.Job{Queue: "q", Type: "t"}, retry.Patch{},
			all("default/preset:daycry", job.Origins{"strategy": "default", "ttr": "default"})},
		{"a whole policy replaces every field", named, job.Job{Queue: "a", Type: "t"}, retry.Patch{},
			all("queue:a/policy:slower", job.Origins{"ttr": "queue:a"})},
		{"a partial policy replaces its own", named, job.Job{Queue: "b", Type: "t"}, retry.Patch{},
			all("default/preset:daycry", job.Origins{"strategy": "default", "ttr": "default", "max_attempts": "queue:b/policy:sparing"})},
		{"the cap follows a longer delay", named, job.Job{Queue: "q", Type: "email.other"}, retry.Patch{},
			all("default/preset:daycry", job.Origins{
				"strategy": "default", "initial_interval": "type:email.*", "max_interval": "type:email.*", "ttr": "type:email.*"})},
		{"the exact type goes last", named, job.Job{Queue: "a", Type: "email.send"}, retry.Patch{},
			all("type:email.send/preset:yii2", job.Origins{"max_attempts": "type:email.send", "ttr": "type:email.*"})},
		{"the job", named, job.Job{Queue: "b", Type: "t", Timeout: 1}, retry.Patch{Use: "sparing", Coefficient: new(3.0)},
			all("default/preset:daycry", job.Origins{
				"strategy": "default", "max_attempts": "job/policy:sparing", "coefficient": "job", "ttr": "job"})},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			j := admitted(t, parse(t, test.text), test.job, test.patch)
			if !maps.Equal(j.Origins, test.want) {
				t.Errorf("origins %v\nwant    %v", j.Origins, test.want)
			}
		})
	}
}

func TestAdmit_OriginsBelongToOneJob(t *testing.T) {
	c := parse(t, named)
	first := admitted(t, c, job.Job{Queue: "a", Type: "t"}, retry.Patch{})
	want := maps.Clone(first.Origins)
	admitted(t, c, job.Job{Queue: "b", Type: "email.send", Timeout: 1}, retry.Patch{Coefficient: new(3.0)})
	if !maps.Equal(first.Origins, want) {
		t.Errorf("the next job changed the origins of the first: %v, want %v", first.Origins, want)
	}
}

func TestAdmit_MergesWholePolicies(t *testing.T) {
	c := parse(t, named)
	slower := retry.Default()
	slower.MaxAttempts, slower.InitialInterval, slower.MaxInterval, slower.OnExhaustion = 10, time.Hour, time.Hour, retry.Discard
	if j := admitted(t, c, job.Job{Queue: "a", Type: "t"}, retry.Patch{}); !reflect.DeepEqual(j.Policy, slower) || j.Timeout != 2*time.Minute {
		t.Errorf("policy %+v, ttr %v\nwant   %+v, 2m", j.Policy, j.Timeout, slower)
	}
	initphp, _ := retry.Preset("initphp")
	if j := admitted(t, c, job.Job{Queue: "a", Type: "email.send"}, retry.Patch{Use: "initphp"}); !reflect.DeepEqual(j.Policy, initphp) {
		t.Errorf("policy %+v\nwant   %+v", j.Policy, initphp)
	}
}

func TestAdmit_RulesGoBeforeTheJob(t *testing.T) {
	c := parse(t, named+`
rules:
  before_enqueue:
    - {name: hurry, when: job.type == "import", ttr: 9s, policy: {use: sparing, strategy: immediate}}
    - {name: move, when: job.type == "move", queue: b}
    - {name: clash, when: job.type == "clash", policy: {max_interval: 10s}}
    - {name: never, when: job.type == "never", refuse: not today}
`)
	own := retry.Patch{MaxAttempts: new(7), Coefficient: new(3.0)}
	j := admitted(t, c, job.Job{Queue: "q", Type: "import", Timeout: time.Hour}, own)
	if j.Policy.MaxAttempts != 2 || j.Policy.Strategy != retry.Immediate || j.Policy.Coefficient != 3 || j.Timeout != 9*time.Second {
		t.Errorf("policy %+v, ttr %v", j.Policy, j.Timeout)
	}
	o := j.Origins
	if o["max_attempts"] != "rule:hurry/policy:sparing" || o["strategy"] != "rule:hurry" || o["coefficient"] != "job" || o["ttr"] != "rule:hurry" {
		t.Errorf("origins %v", o)
	}
	j = admitted(t, c, job.Job{Queue: "a", Type: "move"}, retry.Patch{})
	if j.Queue != "b" || j.Origins["max_attempts"] != "queue:b/policy:sparing" || j.Note != "rule move: queue b instead of a" {
		t.Errorf("queue %s, origins %v, note %q", j.Queue, j.Origins, j.Note)
	}
	j = admitted(t, c, job.Job{Queue: "q", Type: "clash"}, retry.Patch{InitialInterval: new(time.Minute)})
	if want := "rule clash failed: policy.max_interval: 10s is shorter than initial_interval, 1m0s, skipped"; j.Policy.InitialInterval != time.Minute || j.Note != want {
		t.Errorf("policy %+v, note %q, want %q", j.Policy, j.Note, want)
	}
	refused := new(rules.Refused)
	if err := c.Admit(&job.Job{Queue: "q", Type: "never"}, retry.Patch{}); !errors.As(err, &refused) || refused.Rule != "never" || refused.Text != "not today" {
		t.Errorf("%v, want a refusal", err)
	}
}

func TestAdmit_TellsTheRulesWhatTheJobWouldHave(t *testing.T) {
	c := parse(t, named+`
rules:
  before_enqueue:
    - {name: all, when: 'job.max_attempts == 10 && job.ttr == duration("2m") && job.run == 1', priority: 5}
`)
	if j := admitted(t, c, job.Job{Queue: "a", Type: "t"}, retry.Patch{}); j.Priority != 5 {
		t.Errorf("the rule did not match: %+v", j)
	}
}

func TestAdmit_WantsTypeAndQueue(t *testing.T) {
	for _, test := range []struct {
		job   job.Job
		field string
	}{{job.Job{Queue: "q"}, "type"}, {job.Job{Queue: "a b", Type: "t"}, "queue"}} {
		var wrong *invalid.Error
		if err := Default().Admit(&test.job, retry.Patch{}); !errors.As(err, &wrong) || wrong.Field != test.field {
			t.Errorf("%+v: %v, want an error about %s", test.job, err, test.field)
		}
	}
}

func TestParse_PoliciesThatCannotBe(t *testing.T) {
	many := "policies:\n"
	for n := range 101 {
		many += fmt.Sprintf("  p%d: {max_attempts: 1}\n", n)
	}
	tests := []struct{ name, text, want string }{
		{"unknown", "policy: fast", `redrive.yaml:1: policy: there is no policy "fast"; available are ojs, daycry, yii2, initphp, sidekiq`},
		{"unknown with fields", "queues:\n  a:\n    policy:\n      max_attempts: 2\n      use: fast", `redrive.yaml:5: queues.a.policy.use: there is no policy "fast"`},
		{"unknown of a type", "types:\n  a: {policy: fast}", `redrive.yaml:2: types.a.policy: there is no policy "fast"`},
		{"unknown of a policy", "policies:\n  a: {use: b}\n  b: {use: fast}", `redrive.yaml:3: policies.b.use: there is no policy "fast"; available are ojs, daycry, yii2, initphp, sidekiq, a, b`},
		{"unknown of a rule", "rules:\n  before_enqueue:\n    - name: a\n      when: true\n      policy: fast", `redrive.yaml:5: rules.before_enqueue[0].policy: there is no policy "fast"`},
		{"itself", "policies:\n  a: a", `redrive.yaml:2: policies.a: refers to itself: a uses a`},
		{"a circle", "policies:\n  a: {use: b}\n  b: {use: c}\n  c: {use: a}", `redrive.yaml:2: policies.a.use: refers to itself: a uses b uses c uses a`},
		{"shadows a preset", "policies:\n  daycry: {max_attempts: 2}", `redrive.yaml:2: policies.daycry: is the name of a preset`},
		{"name", "policies:\n  a b: {max_attempts: 2}", `redrive.yaml:2: policies.a b: is not the name of a policy`},
		{"field", "policies:\n  a:\n    use: ojs\n    max_interval: 1ms", `redrive.yaml:4: policies.a.max_interval: 1ms is shorter`},
		{"no name", "policy: {use: ''}", `redrive.yaml:1: policy.use: must name a policy`},
		{"use of another kind", "policy: {use: 1}", `redrive.yaml:1: policy.use: must be the name of a policy`},
		{"of a rule", "policy:\n  initial_interval: 1m\nrules:\n  before_enqueue:\n    - {name: a, when: true, policy: {max_interval: 1s}}", `redrive.yaml:5: rules.before_enqueue[0].policy.max_interval: 1s is shorter`},
		{"too many", many, `redrive.yaml:102: policies.p100: exceeds the limit of 100 policies`},
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

func TestNamedPolicies_AreWholeAndInOrder(t *testing.T) {
	c := parse(t, named)
	all := c.NamedPolicies()
	if len(all) != 3 || all[0].Name != "slow" || all[1].Name != "slower" || all[2].Name != "sparing" {
		t.Fatalf("policies %+v", all)
	}
	if p := all[1].Policy; p.MaxAttempts != 10 || p.InitialInterval != time.Hour {
		t.Errorf("slower is %+v", p)
	}
	if p := all[2].Policy; p.MaxAttempts != 2 || p.Strategy != retry.Linear || p.InitialInterval != 5*time.Second {
		t.Errorf("sparing is %+v, want it to stand on the file's default", p)
	}
	if _, ok := c.Named("nothing"); ok {
		t.Error("there is a policy of the name nothing")
	}
	if p, ok := c.Named("yii2"); !ok || p.MaxAttempts != 1 {
		t.Errorf("yii2 is %+v, %v", p, ok)
	}
}

func TestPoliciesInUse_AreThoseOfThePlaces(t *testing.T) {
	c := parse(t, named)
	type place struct {
		queue, typ string
		attempts   int
		ttr        time.Duration
	}
	var got []place
	for _, use := range c.PoliciesInUse() {
		got = append(got, place{use.Queue, use.Type, use.Policy.MaxAttempts, use.TTR})
	}
	want := []place{{"", "", 4, time.Minute}, {"a", "", 10, 2 * time.Minute}, {"b", "", 2, time.Minute}, {"", "email.*", 4, 3 * time.Minute}, {"", "email.send", 6, 3 * time.Minute}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
