package templates_test

import (
	"strings"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates/jobpage"
)

func TestJob_SaysWhatMoreThanItsPolicyDecided(t *testing.T) {
	all := jobPages()
	for name, want := range map[string][]string{
		"job-rule-retried": {
			"Attempt 3 of 5 starts in", "the rule slow-mail retries after 10 s", "Rules: slow-mail retried the job", "Rules: temporary-only retried the job",
			"asks for 10 s", "the rule by-tenant failed and was skipped", "the rule tenant-queue failed and was skipped", "7b3f9c1e-trace",
			"preset daycry, named by the queue payments", "from the type email.*", "set by the rule long-reports",
		},
		"job-rule-letter":   {"decided by the rule spam", "Rules: spam dead-lettered the job"},
		"job-rule-discard":  {"A rule discarded the job", "decided by the rule spam"},
		"job-expired":       {"the time to live ended before the job ran", "Time to live: ended before it ran, so dead letter"},
		"job-poison":        {"This envelope was set aside", "trace_id is missing", "original bytes are kept", "/api/v1/jobs/019ce2f4-7a1e-7c30-9d2b-4f6a1e8b5c07/envelope"},
		"job-forward-again": {"https://dlq.ops.example answered 507 Insufficient Storage after 3 tries", "Forward again", "once dlq.ops.example accepts it"},
		"job-forwarded":     {"the last one timed out", "A copy was sent to https://dlq.ops.example", "dead letter sent to https://dlq.ops.example"},
		"job-stuck":         {"Attempt 2 of 5 waits for the previous execution", "told to stop and has not returned since", "as soon as a worker is free"},
		"job-stuck-over":    {"Attempt 2 of 5 starts as soon as a worker is free", "the previous execution held it up"},
	} {
		page := string(render(t, all[name]))
		said := text(parse(t, all[name]).root)
		for _, words := range want {
			if !strings.Contains(said, words) && !strings.Contains(page, words) {
				t.Errorf("%s does not say %q", name, words)
			}
		}
	}
}

// What failed once follows its policy, whatever its time to live.
func TestJob_ExpiresBeforeItsFirstAttemptOnly(t *testing.T) {
	v := jobPages()["job-available"]
	v.Job.ExpiresAt = now.Add(time.Hour)
	first := text(parse(t, v).root)
	v.Job.Attempts = 1
	second := text(parse(t, v).root)
	if says := "The job expires at"; !strings.Contains(first, says) || strings.Contains(second, says) {
		t.Errorf("before its first attempt the page says\n%s\nafter it\n%s", first, second)
	}
}

// An envelope that cannot be read says why once, and a replay, which would not help, is
// not the obvious act. There is nothing to draw.
func TestJob_PoisonSaysItsCauseOnce(t *testing.T) {
	d := jobDoc(t, "job-poison")
	if said := d.one(t, ".next").text(); strings.Count(said, "trace_id") != 1 || strings.Contains(said, "unless you replay it") {
		t.Errorf("the page says %s", said)
	}
	if len(d.all(".primary")) > 0 || len(d.all(".strip")) > 0 {
		t.Error("a replay is the obvious act, or a timeline without attempts is drawn")
	}
	if d := jobDoc(t, "job-dead-letter"); len(d.all(".primary")) != 1 || len(d.all(".strip")) != 1 {
		t.Error("a dead letter that a replay helps has no obvious act, or no timeline")
	}
}

// An envelope that is set aside is kept, whatever its queue does with others.
func TestJob_SetAsideIsAlwaysKept(t *testing.T) {
	poison := jobPages()["job-poison"]
	refused := jobPages()["job-poison"]
	refused.Job.Reason, refused.Job.Type = retry.RuleDecided, "urn:shop:orders:created"
	refused.Job.Error = job.ErrorInfo{Type: "rule.refused", Message: "not today (rule never)"}
	refused.DeadLetters = []job.DeadLetter{refused.DeadLetters[0]}
	refused.DeadLetters[0].Reason = retry.RuleDecided
	for name, v := range map[string]jobpage.View{"poison": poison, "refused by a rule": refused} {
		for _, to := range []string{"", "dlq.ops.example"} {
			v.KeepsDeadLetters, v.ForwardedTo = to != "", to
			said := text(parse(t, v).root)
			if !strings.Contains(said, "always stored in Redrive") || strings.Contains(said, "forwarded to") || strings.Contains(said, "off for this queue") {
				t.Errorf("%s, forwarded to %q: the page does not say that it is kept", name, to)
			}
		}
	}
	said := text(parse(t, refused).root)
	for _, want := range []string{"A rule refused this job", "before it ran: not today (rule never). Replay the job", "set aside: refused by a rule"} {
		if !strings.Contains(said, want) {
			t.Errorf("refused by a rule: the page does not say %q", want)
		}
	}
}
