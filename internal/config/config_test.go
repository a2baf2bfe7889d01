package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/handler"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/rules"
)

const full = `# everything that can be said
policy:
  max_attempts: 4
  initial_interval: 2s
  jitter: false
workers: 5
ttr: PT1M
unknown_type: fail
hosts: [redrive.example, "10.0.0.7:8080", "https://redrive.example:8443"]
queues:
  orders:
    workers: 20
    policy: {max_attempts: 5, on_exhaustion: dead_letter}
    dead_letter: {enabled: true}
  mail:
    dead_letter: {enabled: false}
types:
  email.*: {ttr: PT30S, policy: {strategy: linear}}
  email.send:
    policy:
      max_attempts: 9
      non_retryable_errors: [auth.*, http.400]
handlers:
  email.send: {http: {url: "http://127.0.0.1:9000/email", timeout: 30s}}
  "report.*": {exec: {command: [/usr/local/bin/report, --quick], timeout: 5m}}
`

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("redrive.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParse_ReadsEverything(t *testing.T) {
	c := parse(t, full)
	if c.UnknownType != retry.UnknownFail || !slices.Equal(c.Hosts, []string{"redrive.example", "10.0.0.7:8080", "https://redrive.example:8443"}) {
		t.Errorf("unknown_type %q, hosts %q", c.UnknownType, c.Hosts)
	}
	want := map[string]handler.Config{
		"email.send": {HTTP: &handler.HTTP{URL: "http://127.0.0.1:9000/email", Timeout: 30 * time.Second}},
		"report.*":   {Exec: &handler.Exec{Command: []string{"/usr/local/bin/report", "--quick"}, Timeout: 5 * time.Minute}},
	}
	if !reflect.DeepEqual(c.Handlers, want) {
		t.Errorf("handlers %+v, want %+v", c.Handlers, want)
	}
	if c.Workers("orders") != 20 || c.Workers("mail") != 5 || c.Workers("any") != 5 {
		t.Errorf("workers %d, %d, %d; want 20, 5, 5", c.Workers("orders"), c.Workers("mail"), c.Workers("any"))
	}
	if !c.DeadLetters("orders") || c.DeadLetters("mail") || !c.DeadLetters("any") {
		t.Error("dead letters: want on for orders, off for mail, on for every other queue")
	}
	if !slices.Equal(c.Queues(), []string{"mail", "orders"}) {
		t.Errorf("queues %q", c.Queues())
	}
}

func TestDefault_IsTheProducts(t *testing.T) {
	c := Default()
	j := job.Job{Queue: "any", Type: "thing"}
	if err := c.Admit(&j, retry.Patch{}); err != nil || !reflect.DeepEqual(j.Policy, retry.Default()) || j.Timeout != 5*time.Minute {
		t.Errorf("Admit: %v, policy %+v, ttr %v", err, j.Policy, j.Timeout)
	}
	if c.Workers("any") != 10 || !c.DeadLetters("any") || c.UnknownType != retry.UnknownHold || c.Queues() != nil {
		t.Errorf("default %+v", c)
	}
}

func TestAdmit_MergesJobOverTypeOverQueueOverDefault(t *testing.T) {
	c := parse(t, full)
	seven := 7
	tests := []struct {
		name, queue, typ string
		patch            retry.Patch
		ttr              time.Duration
		attempts         int
		strategy         retry.Strategy
		wantTTR          time.Duration
	}{
		{"default", "any", "thing", retry.Patch{}, 0, 4, retry.Exponential, time.Minute},
		{"queue", "orders", "thing", retry.Patch{}, 0, 5, retry.Exponential, time.Minute},
		{"prefix", "orders", "email.other", retry.Patch{}, 0, 5, retry.Linear, 30 * time.Second},
		{"exact over prefix", "orders", "email.send", retry.Patch{}, 0, 9, retry.Linear, 30 * time.Second},
		{"job", "orders", "email.send", retry.Patch{MaxAttempts: &seven}, time.Hour, 7, retry.Linear, time.Hour},
		{"a prefix needs a dot", "orders", "emails", retry.Patch{}, 0, 5, retry.Exponential, time.Minute},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			j := job.Job{Queue: test.queue, Type: test.typ, Timeout: test.ttr}
			if err := c.Admit(&j, test.patch); err != nil {
				t.Fatal(err)
			}
			p, ttr := j.Policy, j.Timeout
			if p.MaxAttempts != test.attempts || p.Strategy != test.strategy || ttr != test.wantTTR {
				t.Errorf("got %d, %s, %v; want %d, %s, %v", p.MaxAttempts, p.Strategy, ttr, test.attempts, test.strategy, test.wantTTR)
			}
			if p.InitialInterval != 2*time.Second || p.Jitter.On() {
				t.Errorf("the file's default is lost: %+v", p)
			}
		})
	}
}

func TestAdmit_NamesTheJobsField(t *testing.T) {
	minus, zero := -1, 0.5
	tests := []struct {
		patch retry.Patch
		ttr   time.Duration
		field string
	}{
		{retry.Patch{MaxAttempts: &minus}, 0, "policy.max_attempts"},
		{retry.Patch{Coefficient: &zero}, 0, "policy.coefficient"},
		{retry.Patch{}, -1, "ttr"},
		{retry.Patch{Use: "nothing"}, 0, "policy.use"},
	}
	for _, test := range tests {
		j := job.Job{Queue: "q", Type: "t", Timeout: test.ttr}
		before := j
		err := Default().Admit(&j, test.patch)
		var wrong *invalid.Error
		if !errors.As(err, &wrong) || wrong.Field != test.field {
			t.Errorf("Admit: %v, want an error about %s", err, test.field)
		}
		if !reflect.DeepEqual(j, before) {
			t.Errorf("the job was changed: %+v", j)
		}
	}
}

// badFile is a configuration, and how the error about it begins.
type badFile struct{ name, text, want string }

func badPolicies() []badFile {
	return []badFile{
		{"unknown field", "policy: {}\nquues: {}", "redrive.yaml:2: quues: no such field; did you mean queues?; the fields are access, base_path, dead_letter, expired, handlers, hosts, limits, policies, policy, queues, redaction,"},
		{"unknown field below", "queues:\n  a:\n    wrokers: 1", "redrive.yaml:3: queues.a.wrokers: no such field; did you mean workers?; the fields are dead_letter, expired, policy, retention, ttr, workers"},
		{"unknown policy field", "policy:\n  attempts: 3", "redrive.yaml:2: policy.attempts: no such field"},
		{"negative attempts", "queues:\n  orders:\n    policy:\n      strategy: linear\n      max_attempts: -1", "redrive.yaml:5: queues.orders.policy.max_attempts: -1 is negative"},
		{"too many attempts", "policy:\n  max_attempts: 1000000000000000000", "redrive.yaml:2: policy.max_attempts: 1000000000000000000 is too many; a run has at most 10,000 attempts"},
		{"fractional attempts", "policy:\n  max_attempts: 1.5", "redrive.yaml:2: policy.max_attempts: must be a whole number"},
		{"unknown strategy", "types:\n  a.b:\n    policy: {strategy: fast}", "redrive.yaml:3: types.a.b.policy.strategy: \"fast\" is unknown"},
		{"strategy of the wrong type", "policy: {strategy: [1]}", "redrive.yaml:1: policy.strategy: must be a string"},
		{"coefficient", "policy: {coefficient: 0.5}", "redrive.yaml:1: policy.coefficient: 0.5 is not"},
		{"bad duration", "policy:\n  initial_interval: soon", "redrive.yaml:2: policy.initial_interval: \"soon\" is not"},
		{"duration without unit", "policy:\n  initial_interval: 5", "redrive.yaml:2: policy.initial_interval: must be a duration"},
		{"bad schedule", "policy:\n  schedule: [1s, x]", "redrive.yaml:2: policy.schedule: \"x\" is not"},
		{"caps against each other", "policy:\n  initial_interval: 1m\n  max_interval: 1s", "redrive.yaml:3: policy.max_interval: 1s is shorter"},
		{"caps of a schedule", "policy:\n  strategy: schedule\n  schedule: [100ms]\n  max_interval: 500ms", "redrive.yaml:4: policy.max_interval: 500ms is shorter"},
		{"caps of immediate retries", "queues:\n  q:\n    policy: {strategy: immediate, max_interval: 500ms}", "redrive.yaml:3: queues.q.policy.max_interval: 500ms is shorter"},
		{"across queue and type", "queues:\n  q: {policy: {max_interval: 30s}}\ntypes:\n  t: {policy: {initial_interval: 20s, max_interval: 40s}}\n  u.*: {policy: {max_interval: 1ms}}", "redrive.yaml:5: types.u.*.policy.max_interval"},
		{"null in a policy", "policy:\n  max_attempts:", "redrive.yaml:2: policy.max_attempts: must not be null"},
		{"policy is a list", "policy: [1]", "redrive.yaml:1: policy: must be an object"},
		{"workers", "workers: 0", "redrive.yaml:1: workers: 0 is not a valid number of workers"},
		{"too many workers", "queues: {a: {workers: 1001}}", "redrive.yaml:1: queues.a.workers: 1001 is not"},
		{"workers in words", "workers: many", "redrive.yaml:1: workers: must be a whole number, not many"},
		{"huge workers", "workers: 18446744073709551615", "redrive.yaml:1: workers: must be a whole number of reasonable size"},
		{"ttr", "ttr: 0s", "redrive.yaml:1: ttr: must be longer than zero"},
		{"ttr below", "types: {a: {ttr: -1s}}", "redrive.yaml:1: types.a.ttr: must be longer than zero"},
		{"ttr number", "ttr: 30", "redrive.yaml:1: ttr: must be a duration with its unit, for example 30s, not 30"},
		{"unknown type", "unknown_type: drop", "redrive.yaml:1: unknown_type: \"drop\" is unknown; use hold"},
	}
}

func badPlaces() []badFile {
	return []badFile{
		{"hosts", "hosts: example.org", "redrive.yaml:1: hosts: must be a list"},
		{"hosts entry", "hosts:\n  - a\n  - 7", "redrive.yaml:3: hosts[1]: must be a string"},
		{"hosts with a scheme of others", "hosts:\n  - redrive.example\n  - ftp://redrive.internal", "redrive.yaml:3: hosts[1]: \"ftp://redrive.internal\" is not a host"},
		{"hosts with two schemes", "hosts: ['https://http://a']", "redrive.yaml:1: hosts[0]: \"https://http://a\" is not a host"},
		{"hosts with a path", "hosts: [redrive.example/]", "redrive.yaml:1: hosts[0]: \"redrive.example/\" is not a host"},
		{"hosts with a blank", "hosts: ['redrive example']", "redrive.yaml:1: hosts[0]: \"redrive example\" is not a host"},
		{"hosts with a pattern", "hosts: ['*.example']", "redrive.yaml:1: hosts[0]: \"*.example\" is not a host"},
		{"hosts with a port in words", "hosts: ['redrive.example:http']", "redrive.yaml:1: hosts[0]: \"redrive.example:http\" is not a host"},
		{"hosts with nothing", "hosts: ['']", "redrive.yaml:1: hosts[0]: \"\" is not a host"},
		{"queue name", "queues:\n  \"a b\": {}", "redrive.yaml:2: queues.a b: \"a b\" is not a queue name"},
		{"dead_letter", "queues:\n  a:\n    dead_letter: yes please", "redrive.yaml:3: queues.a.dead_letter: must be a mapping"},
		{"dead_letter.enabled", "queues:\n  a:\n    dead_letter:\n      enabled: 1", "redrive.yaml:4: queues.a.dead_letter.enabled: must be true or false"},
		{"type pattern", "types:\n  \"*\": {}", "redrive.yaml:2: types.*: is not a pattern"},
		{"type pattern in the middle", "types:\n  \"a.*.b\": {}", "redrive.yaml:2: types.a.*.b: is not a pattern"},
		{"handler pattern", "handlers:\n  \".*\": {}", "redrive.yaml:2: handlers..*: is not a pattern"},
		{"handler of two kinds", "handlers:\n  a: {http: {url: x}, exec: {command: [/x]}}", "redrive.yaml:2: handlers.a: needs exactly one"},
		{"handler of no kind", "handlers:\n  a: {}", "redrive.yaml:2: handlers.a: needs exactly one"},
		{"http without url", "handlers:\n  a:\n    http: {timeout: 1s}", "redrive.yaml:3: handlers.a.http: needs a url"},
		{"http timeout", "handlers:\n  a:\n    http: {url: x, timeout: 1}", "redrive.yaml:3: handlers.a.http.timeout: must be a duration with its unit, for example 1s, not 1"},
		{"exec without command", "handlers:\n  a:\n    exec: {}", "redrive.yaml:3: handlers.a.exec: needs a command"},
		{"exec command is a line", "handlers:\n  a:\n    exec: {command: /bin/x -y}", "redrive.yaml:3: handlers.a.exec.command: must be a list"},
	}
}

func badYAML() []badFile {
	return []badFile{
		{"the same key twice", "workers: 1\nttr: 1s\nworkers: 2", "redrive.yaml:3: "},
		{"not YAML", "policy: [\nworkers: }", "redrive.yaml:"},
		{"a list", "- a", "redrive.yaml:1: must be a mapping"},
		{"a scalar", "# no mapping\nworkers", "redrive.yaml:2: must be a mapping"},
		{"a key of control characters", "\"a\\e[31m\\nb\": 1", `redrive.yaml:1: a\x1b[31m\nb: no such field`},
		{"a value of control characters", "workers: \"\\e[31m\"", `redrive.yaml:1: workers: must be a whole number, not "\x1b[31m"`},
		{"a mark in the middle", "workers: 1\n\ufefftypes: {}", `redrive.yaml:2: \ufefftypes: no such field`},
		{"a tab", "queues:\n\ta: {}", "redrive.yaml:"},
		{"anchor", "policy: &p {max_attempts: 1}", "redrive.yaml:1: policy: anchors, aliases and tags"},
		{"alias", "types: {a: {ttr: *x}}", "redrive.yaml:1: types.a.ttr: anchors, aliases and tags"},
		{"merge key", "queues:\n  a:\n    <<: {workers: 1}", "redrive.yaml:3: queues.a: anchors, merge keys"},
		{"tag", "workers: !!int \"5\"", "redrive.yaml:1: workers: anchors, aliases and tags"},
		{"two documents", "workers: 1\n---\nworkers: 2", "redrive.yaml:3: a second document"},
		{"too large", strings.Repeat("#", maxFile+1), "redrive.yaml: is larger than"},
	}
}

func TestParse_ErrorsNameLineAndField(t *testing.T) {
	for _, test := range slices.Concat(badPolicies(), badPlaces(), badYAML()) {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse("redrive.yaml", []byte(test.text))
			var located *Error
			if !errors.As(err, &located) || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error %v\nwant %s…", err, test.want)
			}
		})
	}
}

func TestParse_HostsAreNamesAndAddresses(t *testing.T) {
	want := []string{"redrive", "Redrive.Example", "my_host-1.internal:8080", "10.0.0.7", "10.0.0.7:80", "::1", "[::1]", "[fd00::1]:8080"}
	if c := parse(t, "hosts: ['"+strings.Join(want, "', '")+"']"); !slices.Equal(c.Hosts, want) {
		t.Errorf("hosts %q, want %q", c.Hosts, want)
	}
}

func TestParse_EmptySectionsSayNothing(t *testing.T) {
	for _, text := range []string{"", "# only a remark\n", "---\n", "queues:\ntypes:\nhandlers:\n", "queues: {a: }"} {
		if _, err := Parse("redrive.yaml", []byte(text)); err != nil {
			t.Errorf("Parse(%q): %v", text, err)
		}
	}
}

func TestParse_SkipsAByteOrderMark(t *testing.T) {
	if c := parse(t, "\ufeffworkers: 3\n"); c.Workers("any") != 3 {
		t.Errorf("workers %d, want 3", c.Workers("any"))
	}
}

func TestLocate_FindsTheClosestLine(t *testing.T) {
	c := parse(t, full)
	err := c.Locate(&invalid.Error{Field: "handlers.report.*.exec.command", Problem: "is no program"})
	if want := "redrive.yaml:25: handlers.report.*.exec.command: is no program"; err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	other := errors.New("other")
	if c.Locate(other) != other {
		t.Error("an error about no field was changed")
	}
}

func TestLoad_RefusesAFileWithoutEnd(t *testing.T) {
	if _, err := Load("/dev/zero"); err == nil || !strings.Contains(err.Error(), "is larger than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}

func TestLoad_ReadsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "redrive.yaml")
	if _, err := Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of nothing: %v", err)
	}
	if err := os.WriteFile(path, []byte(full), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(named + withExamples[1:]))
	f.Add([]byte(hook(`url: "https://h/", secret: s, timeout: 1d, attempts: 2`) + "\n    expired: discard\ndead_letter: {retention: {age: 180d, count: 9}}"))
	f.Add([]byte("a: &x [*x]"))
	f.Add([]byte("policy: {schedule: [[[[1]]]]}"))
	f.Add([]byte("? [a]: b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f", data)
		if err != nil {
			var located *Error
			if !errors.As(err, &located) || located.Problem == "" {
				t.Errorf("an error without a place: %v", err)
			}
			return
		}
		if changed, restart := c.Replace(parse(t, string(data))); len(changed)+len(restart) > 0 {
			t.Errorf("the same text changes %v and %v", changed, restart)
		}
		for _, queue := range append(c.Queues(), "any") {
			for _, typ := range []string{"t", "a.b"} {
				j := job.Job{Queue: queue, Type: typ}
				c.TryExamples()
				if err := c.Admit(&j, retry.Patch{}); err != nil && !errors.As(err, new(*rules.Refused)) || err == nil && j.Timeout <= 0 {
					t.Errorf("accepted, but a job of %s/%s gets %v, %v", queue, typ, j.Timeout, err)
				}
			}
			if n := c.Workers(queue); n < 1 || n > maxWorkers || job.CheckQueue(queue) != nil {
				t.Errorf("accepted queue %q with %d workers", queue, n)
			}
		}
	})
}

// The queues that the file names anywhere have their places, and so does the one of
// jobs that name none.
func TestLimits_QueuesThatTheFileNamesHaveTheirPlaces(t *testing.T) {
	c, err := Parse("redrive.yaml", []byte(`
limits: {queues: 20}
queues: {orders: {workers: 2}}
rules:
  before_enqueue:
    - {name: slow, when: 'job.priority < 0', queue: backlog}
    - {name: late, when: 'job.priority > 9', priority: 9}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.NamedQueues(); !slices.Equal(got, []string{"backlog", "default", "orders"}) || c.Limits().Queues != 20 {
		t.Errorf("%q, %d queues", got, c.Limits().Queues)
	}
}

// People should not have to run the program once for each mistake.
func TestParse_TellsAllErrorsAtOnce(t *testing.T) {
	_, err := Parse("redrive.yaml", []byte(`
queues:
  orders: {wrokers: 3, ttr: 5}
  mail: {policy: sidekik}
types:
  email.*: {max_attempts: 3}
policy: {max_attempts: 0, initial_interval: 5}
handlers:
  a: {http: {url: "http://127.0.0.1", timeout: "5"}}
`))
	const want = `redrive.yaml:3: queues.orders.wrokers: no such field; did you mean workers?; the fields are dead_letter, expired, policy, retention, ttr, workers
redrive.yaml:3: queues.orders.ttr: must be a duration with its unit, for example 5s, not 5
redrive.yaml:4: queues.mail.policy: there is no policy "sidekik"; did you mean sidekiq?; available are ojs, daycry, yii2, initphp, sidekiq
redrive.yaml:6: types.email.*.max_attempts: no such field; it is a field of the policy, so write it below policy:
redrive.yaml:7: policy.initial_interval: must be a duration in quotes, for example "5s", not 5
redrive.yaml:7: policy.max_attempts: 0 is not possible, because every job runs at least once; write 1 to run it once and never again
redrive.yaml:9: handlers.a.http.timeout: must be a duration with its unit, for example 5s, not "5"`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	_, err = Parse("redrive.yaml", []byte("policy: {max_attempts: 0}"))
	if wrong, ok := errors.AsType[*Error](err); !ok || wrong.Field != "policy.max_attempts" || !strings.Contains(wrong.Problem, "write 1") {
		t.Errorf("max_attempts: 0 gave %v", err)
	}
}

// The policies of places are checked together when everything could be read.
func TestParse_TellsAllPoliciesThatCannotBe(t *testing.T) {
	_, err := Parse("redrive.yaml", []byte(`
queues:
  a: {policy: {max_interval: 1ms}}
  b: {policy: {coefficient: 0.5}}
types:
  t: {policy: {max_attempts: -1}}
`))
	all, ok := errors.AsType[Errors](err)
	if !ok || len(all) != 3 || all[0].Line != 3 || all[1].Line != 4 || all[2].Line != 6 {
		t.Errorf("got %v", err)
	}
}

// tells fails the test unless the file has these errors, and no others.
func tells(t *testing.T, text string, want ...string) {
	t.Helper()
	_, err := Parse("redrive.yaml", []byte(text))
	if err == nil {
		t.Fatal("there is no error")
	}
	got := strings.Split(err.Error(), "\n")
	for i, line := range got {
		if i >= len(want) || !strings.HasPrefix(line, "redrive.yaml:"+want[i]) {
			t.Errorf("error %d: %s", i, line)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d errors, want %d:\n%s", len(got), len(want), strings.Join(want, "\n"))
	}
}

func TestParse_TellsAllErrorsOfAPolicy(t *testing.T) {
	tells(t, `
policy:
  strategy: expo
  jitter: [2, 1]
  max_attempts: 0
  coefficient: x
  initial_interval: 1m
  max_interval: 1s
`,
		`3: policy.strategy: "expo" is unknown; did you mean exponential?; use immediate,`, `4: policy.jitter: must be two factors`,
		`5: policy.max_attempts: 0 is not possible`, `6: policy.coefficient: must be a number, not "x"`,
		`8: policy.max_interval: 1s is shorter than initial_interval, 1m0s`)
	tells(t, `policy: {max_atempts: 1, inital_interval: 5s, strategy: exponental, on_exhaustion: discrd}`,
		`1: policy.inital_interval: no such field in a policy; did you mean initial_interval?; the fields are coefficient, initial_interval,`,
		`1: policy.max_atempts: no such field in a policy; did you mean max_attempts?; the fields are`,
		`1: policy.strategy: "exponental" is unknown; did you mean exponential?; use immediate`,
		`1: policy.on_exhaustion: "discrd" is unknown; did you mean discard?; use dead_letter or discard`)
}

// A policy that cannot be read does not hide the others, also those that contradict
// what is beneath them; and it contradicts nothing itself.
func TestParse_TellsTheWrongPoliciesOfAllPlaces(t *testing.T) {
	tells(t, `
queues:
  a: {policy: {max_attempts: x, initial_interval: soon}}
  b: {policy: nosuch}
  c: {policy: slow}
types:
  t: {policy: {coefficient: 0.5, max_interval: 1ms}}
policies:
  slow: {strategy: expo}
  slower: {use: nothing, max_interval: 1ms}
  around: {use: around}
rules:
  before_enqueue:
    - {name: r, when: true, policy: {max_interval: 1ms}}
    - {name: s, when: true, policy: {use: nosuch}}
`,
		`3: queues.a.policy.initial_interval: "soon" is not a duration`, `3: queues.a.policy.max_attempts: must be a whole number`,
		`4: queues.b.policy: there is no policy "nosuch"`,
		`7: types.t.policy.coefficient: 0.5 is not`, `7: types.t.policy.max_interval: 1ms is shorter than initial_interval, 1s`,
		`9: policies.slow.strategy: "expo" is unknown`,
		`10: policies.slower.use: there is no policy "nothing"`, `11: policies.around.use: refers to itself`,
		`14: rules.before_enqueue[0].policy.max_interval: 1ms is shorter`, `15: rules.before_enqueue[1].policy.use: there is no policy "nosuch"`)
}

// What follows from a value that cannot be read is no error of its own.
func TestParse_DoesNotTellWhatFollowsFromAnError(t *testing.T) {
	tells(t, "queues:\n  a: {policy: {initial_interval: 5, max_interval: 1ms}}\n  b: {policy: {max_interval: 5, initial_interval: 1h}}\n",
		`2: queues.a.policy.initial_interval: must be a duration`, `3: queues.b.policy.max_interval: must be a duration`)
	tells(t, "queues:\n  a: {policy: {use: nosuch, max_interval: 1ms}}\n", `2: queues.a.policy.use: there is no policy`)
	tells(t, "rules:\n  before_enqueue:\n    - {name: a, when: true, ttr: 0s}\n    - {name: b, when: [], queue: q}\n    - {name: 5, when: true, policy: {max_attempts: x}}\n",
		`3: rules.before_enqueue[0].ttr: must be longer than zero`, `4: rules.before_enqueue[1].when: must be a string`,
		`5: rules.before_enqueue[2].name: must be a string`, `5: rules.before_enqueue[2].policy.max_attempts: must be a whole number`)
}

// No error suggests what the next one refuses.
func TestParse_SuggestsOnlyWhatIsAccepted(t *testing.T) {
	tells(t, `
retention:
  completed: -3
  cancelled: "-2h"
  discarded: 5
  dead_letters: -1
ttr: -5
trash: {age: 1.5}
queues:
  a: {ttr: 0, retention: {completed: "30"}}
  b: {ttr: "-5s", policy: {initial_interval: -5s}}
types:
  t: {ttr: 999999999999}
`,
		`3: retention.completed: must be positive, or 0 to keep jobs forever`, `4: retention.cancelled: must be positive, or 0 to keep jobs forever`,
		`5: retention.discarded: must be a duration with its unit, for example 5d, not 5`,
		`6: retention.dead_letters: must be positive, or 0 to keep jobs forever`,
		`7: ttr: must be longer than zero`, `8: trash.age: must be a duration with its unit, for example 30d, not 1.5`,
		`10: queues.a.ttr: must be longer than zero`, `10: queues.a.retention.completed: must be a duration with its unit, for example 30d, not "30"`,
		`11: queues.b.ttr: must be longer than zero`, `11: queues.b.policy.initial_interval: "-5s" must not be negative`,
		`13: types.t.ttr: must be a duration with its unit, for example 30s, not 999999999999`)
}
