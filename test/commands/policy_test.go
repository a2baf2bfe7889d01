package commands_test

import (
	"strings"
	"testing"

	"redrive/test/rig"
)

const policyConfig = `policies:
  patient: {use: daycry, max_attempts: 12}
queues:
  orders: {ttr: 30s, policy: {use: daycry, max_attempts: 5, non_retryable_errors: [auth.*]}}
types:
  email.*: {policy: {strategy: schedule, schedule: [30s, 2m], jitter: false}}
`

// The whole answer, once: the figures are daycry's own, with 15 % around.
const ordersTable = `queue orders
for jobs of the queue orders without a policy of their own; stored with each job at enqueue

  delay(n) = min( min( 5 s × 2^(n−1), 5 min ) × [0.85, 1.15), 5 min )
  The first retry waits 5 s, and each further one 2 times as long as the one before, at most 5 min. Jitter multiplies each delay by 0.85 to 1.15, under the same cap.

  Attempts        5, the first included
  Time to death   75 s of waiting, 63.8 to 86.2 s, plus up to 5 × 30 s of running
  Never retried   auth.*
  When exhausted  dead letter

    n        Raw  Delay     With jitter  In all         Between
    1  5 s × 2^0    5 s  4.25 to 5.75 s     5 s  4.25 to 5.75 s
    2  5 s × 2^1   10 s   8.5 to 11.5 s    15 s  12.8 to 17.2 s
    3  5 s × 2^2   20 s      17 to 23 s    35 s  29.8 to 40.2 s
    4  5 s × 2^3   40 s      34 to 46 s    75 s  63.8 to 86.2 s

  1,000 jobs that fail together make at most 511 retries in one second; without jitter it would be 1,000.
`

func TestPolicy_PrintsTheTable(t *testing.T) {
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", policyConfig)
	code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "policy", "queue:orders"))
	if code != 0 || stdout != ordersTable || stderr != "" {
		t.Errorf("exit %d, %s\n%s\nwant\n%s", code, stderr, stdout, ordersTable)
	}
}

// answered is a command line, and how it ends.
type answered struct {
	args string
	code int
	says string
}

func policyCommands() []answered {
	return []answered{
		{"policy ojs", 0, "delay(n) = min( min( 1 s × 2^(n−1), 5 min ) × [0.5, 1.5), 5 min )"},
		{"policy sidekiq", 0, "25  1 s × 25^4     4 d 13 h    24 d 22 h"},
		{"policy yii2", 0, "A job has one attempt and is never retried."},
		{"policy initphp", 0, "make at most 2,000 retries in one second"},
		{"policy default", 0, "used when no other policy applies"},
		{"policy patient", 0, "12, the first included"},
		{"policy patient --config other.yaml", 0, "2, the first included"},
		{"policy type:email.send", 0, "[30 s, 2 min][min(n, 2)]"},
		{"policy fields.yaml", 0, "10 s × 3"},
		{"policy below.yaml", 0, "entry 3 again"},
		{"policy p.json", 0, "1 s × 2^2"},
		{"policy plain", 0, "26, the first included"},
		{"policy", 2, "<name>"},
		{"policy nothing", 2, `there is no policy "nothing"; available are ojs, daycry, yii2, initphp, sidekiq, patient, default, queue:NAME and type:NAME`},
		{"policy queue:order", 2, `does not mention the queue "order": its jobs have the policy default; it mentions queue:orders`},
		{"policy type:sms", 2, `does not mention the type "sms"`},
		{"policy none.yaml", 2, "none.yaml: no such file"},
		{"policy ./none", 2, "./none: no such file"},
		{"policy .", 2, "is a directory"},
		{"policy wrong.yaml", 2, "wrong.yaml:2: coefficient: 0.5 is not a number of at least 1"},
		{"policy below-wrong.json", 2, "below-wrong.json:2: policy.max_attempts: -1 is negative"},
		{"policy field.yaml", 2, "field.yaml:2: retries: no such field in a policy"},
		{"policy unknown.yaml", 2, `unknown.yaml:1: use: there is no policy "nothing"`},
		{"policy empty.yaml", 2, "empty.yaml: is empty; write the fields of a policy"},
		{"policy list.yaml", 2, "list.yaml:1: must be an object, or the name of a policy"},
		{"policy broken.json", 2, "broken.json:"},
		{"policy large.yaml", 2, "large.yaml: is larger than"},
		{"policy ojs --config bad-config.yaml", 2, "bad-config.yaml:1: policy.max_attempts"},
		{"policy ojs --config none.yaml", 2, "none.yaml: no such file"},
		{"policy a\x1b[31mb", 2, `"a\x1b[31mb"`},
	}
}

func TestPolicy_TakesNamesAndFiles(t *testing.T) {
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", policyConfig)
	rig.Write(t, dir, "other.yaml", "policies: {patient: {max_attempts: 2}}\n")
	rig.Write(t, dir, "fields.yaml", "strategy: linear\ninitial_interval: 10s\nmax_attempts: 4\njitter: false\n")
	rig.Write(t, dir, "below.yaml", "policy:\n  use: initphp\n  schedule: [1s, 5s, 15s]\n  max_attempts: 6\n")
	rig.Write(t, dir, "p.json", "{\"strategy\": \"polynomial\",\n \"coefficient\": 2, \"max_attempts\": 3}\n")
	rig.Write(t, dir, "plain", "sidekiq\n")
	rig.Write(t, dir, "wrong.yaml", "max_attempts: 3\ncoefficient: 0.5\n")
	rig.Write(t, dir, "below-wrong.json", "{\"policy\":\n {\"max_attempts\": -1}}")
	rig.Write(t, dir, "field.yaml", "max_attempts: 3\nretries: 2\n")
	rig.Write(t, dir, "unknown.yaml", "use: nothing\n")
	rig.Write(t, dir, "empty.yaml", "# nothing\n")
	rig.Write(t, dir, "list.yaml", "- 1\n")
	rig.Write(t, dir, "broken.json", "{")
	rig.Write(t, dir, "large.yaml", strings.Repeat("#", 1<<20+1))
	rig.Write(t, dir, "bad-config.yaml", "policy: {max_attempts: -1}\n")
	for _, test := range policyCommands() {
		t.Run(test.args, func(t *testing.T) {
			code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, strings.Split(test.args, " ")...))
			if code != test.code || !strings.Contains(stdout+stderr, test.says) {
				t.Errorf("exit %d, want %d with %q: %s%s", code, test.code, test.says, stdout, stderr)
			}
			if n := strings.Count(stderr, "\n"); code == 2 && (n != 1 || stdout != "") {
				t.Errorf("%d lines of complaint, want 1: %s%s", n, stderr, stdout)
			}
		})
	}
}

// A policy is looked at where the secrets of the configuration are not: on the machine of
// a developer.
func TestPolicy_NeedsNoSecrets(t *testing.T) {
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", policyConfig+`
handlers:
  email.*: {http: {url: "https://${MAIL_HOST}/", headers: {Authorization: "Bearer ${MAIL_TOKEN}"}, secret_env: MAIL_SECRET}}
sources:
  shop: {preset: laravel, url_env: SHOP_URL}
  other: {preset: laravel, url_file: none}
`)
	code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "policy", "queue:orders"))
	if code != 0 || stdout != ordersTable || stderr != "" {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	if code, _, stderr = rig.Finish(t, rig.Command(t, dir, "check", "redrive.yaml")); code != 2 || strings.Count(stderr, "\n") != 4 {
		t.Errorf("check: exit %d, want an error for each of the four secrets: %s", code, stderr)
	}
}
