package commands_test

import (
	"os"
	"strings"
	"testing"

	"redrive/test/rig"
)

// TestCheck_TriesTheExamples has an operator write a rule wrongly, read why, and
// put it right.
func TestCheck_TriesTheExamples(t *testing.T) {
	dir := t.TempDir()
	const text = `rules:
  after_failure:
    - name: throttled
      when: error.type == "http.429"
      action: retry
      delay: 1m
  examples:
    - job: {type: hook.send}
      error: {type: http.429}
      expect: {rule: throttled, delay: 30s}
    - job: {type: hook.send}
      error: {type: http.500}
      expect: {rule: none}
`
	rig.Write(t, dir, "redrive.yaml", text)
	code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "check"))
	if want := "redrive.yaml:10: rules.examples[0].expect.delay: expected 30s, got 1m0s\n"; code != 2 || stdout != want {
		t.Errorf("exit %d, said %q, want 2 and %q", code, stdout, want)
	}
	if want := "dashboard: redrive.yaml: the rules do not do what the examples expect; examples that passed: 1\n"; stderr != want {
		t.Errorf("complained %q, want %q", stderr, want)
	}
	rig.Write(t, dir, "redrive.yaml", strings.Replace(text, "delay: 30s", "delay: 1m", 1))
	code, stdout, stderr = rig.Finish(t, rig.Command(t, dir, "check"))
	if want := "redrive.yaml is valid. It configures 0 queues and 0 handlers.\nIt has 1 rule, and 2 examples passed.\n"; code != 0 || stdout != want {
		t.Errorf("exit %d, said %q%q, want 0 and %q", code, stdout, stderr, want)
	}
}

// TestServe_DoesNotTryExamples starts in spite of an example that disagrees.
func TestServe_DoesNotTryExamples(t *testing.T) {
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", "rules: {examples: [{job: {type: t}, expect: {rule: nobody}}]}\n")
	if p := rig.Start(t, dir); p.Stop(os.Interrupt).Code() != 0 {
		t.Errorf("exit %d: %s", p.Code(), p.Stderr)
	}
}

// TestServe_ARuleDecidesAboutAFailure lets a rule allow one attempt more than
// the policy, and another bury the job.
func TestServe_ARuleDecidesAboutAFailure(t *testing.T) {
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", `
policy: {max_attempts: 1}
handlers: {t: {exec: {command: [/bin/false]}}}
rules:
  after_failure:
    - {name: broken, when: job.payload.a.b == 1, action: discard}
    - {name: once-more, when: 'true', action: retry, delay: 0s, max_attempts: 2}
    - {name: bury, when: error.type startsWith "exec.", action: dead_letter}
`)
	p := rig.Start(t, dir)
	id := p.Post(`{"type":"t","payload":{}}`)
	p.Until(func(now rig.Totals) bool { return now.Failed == 2 })
	d := rig.Get[struct {
		Job      struct{ Reason string }
		Attempts []struct {
			DecidedBy string `json:"decided_by"`
			Note      string
		}
	}](t, p.URL+"/api/v1/jobs/"+id)
	if len(d.Attempts) != 2 || d.Attempts[0].DecidedBy != "rule:once-more" || d.Attempts[1].DecidedBy != "rule:bury" || d.Job.Reason != "rule" {
		t.Fatalf("%+v, want the rules once-more and bury", d)
	}
	if want := "rule broken failed: cannot fetch b from <nil>, at column 15, skipped"; d.Attempts[0].Note != want {
		t.Errorf("note %q, want %q", d.Attempts[0].Note, want)
	}
}
