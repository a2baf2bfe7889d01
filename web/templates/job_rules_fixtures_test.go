package templates_test

import (
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates/jobpage"
)

// refusedBy is a failure about which a rule spoke.
func refusedBy(rule string, action retry.Action, delay *time.Duration) job.Ending {
	return job.Ending{
		Outcome: job.Failed, Error: job.ErrorInfo{Type: "smtp.451", Message: "greylisted, try again later"},
		Ruling: &retry.Ruling{Rule: rule, Action: action, Delay: delay, Limit: 9},
	}
}

// origins is what several places said about one policy.
func origins() job.Origins {
	return job.Origins{
		"max_attempts": "type:email.*", "strategy": "queue:payments/preset:daycry", "initial_interval": "queue:payments/preset:daycry",
		"coefficient": "queue:payments/preset:daycry", "schedule": "queue:payments/preset:daycry", "max_interval": "default/policy:slow",
		"jitter": "queue:payments/preset:daycry", "non_retryable_errors": "job", "on_exhaustion": "built_in", "ttr": "rule:long-reports",
	}
}

// set is a job that was not run as what it came in was poison.
func set(reason retry.Reason, envelope string) *life {
	l := ago(time.Hour)
	j := &l.Job
	j.State, j.DeadLetter, j.Reason, j.FinishedAt, j.Envelope = job.Discarded, job.DeadLetterStored, reason, l.clock, []byte(envelope)
	j.Type, j.Payload, j.Meta, j.Key = "(unknown)", []byte("null"), nil, ""
	j.Error = job.ErrorInfo{Type: string(reason), Message: "trace_id is missing; it must be a text of 1 to 128 bytes"}
	l.DeadLetters = []job.DeadLetter{{JobID: j.ID, Run: 1, Reason: reason, Exception: j.Error.Type, Error: j.Error.Message, FailedAt: l.clock, Queue: j.Queue}}
	return l
}

// ruledPages are jobs about which more than their policy decided.
func ruledPages() map[string]jobpage.View {
	ten := 10 * time.Second
	ruled := ago(12 * time.Second)
	ruled.Job.Origins, ruled.Job.Note = origins(), "the rule tenant-queue failed and was skipped: cannot fetch tenant from nil"
	ruled.Job.ExpiresAt, ruled.Job.TraceID = now.Add(time.Hour), "7b3f9c1e-trace"
	failed := refusedBy("temporary-only", retry.Retry, nil)
	failed.Note = "the rule by-tenant failed and was skipped: cannot fetch tenant from nil (1:12)"
	ruled.starts("w-eu-1").settles(time.Second, failed, job.Delivery{})
	ruled.starts("w-eu-1").settles(time.Second, refusedBy("slow-mail", retry.Retry, &ten), job.Delivery{})
	expired := ago(time.Hour)
	expired.Job.ExpiresAt = now.Add(-2 * time.Hour)
	expired.starts("w-eu-1").settles(0, job.Ending{
		Outcome: job.Failed, Expired: retry.DeadLetter, Error: job.ErrorInfo{Type: "expired", Message: "its time to live ended before it ran"},
	}, job.Delivery{})
	again := exhausted(false, same)
	again.DeadLetters[0].Problem = "https://dlq.ops.example answered 507 Insufficient Storage after 3 tries"
	sent := exhausted(true, same)
	sent.DeadLetters[0].ForwardedTo, sent.DeadLetters[0].ForwardedAt, sent.DeadLetters[0].Cause = "https://dlq.ops.example", sent.clock.Add(time.Second), job.TimedOut
	stuck := ago(20 * time.Second).starts("w-eu-1").timesOutAfter(5 * time.Second).starts("w-eu-1")
	return map[string]jobpage.View{
		"job-rule-retried":  ruled.page(),
		"job-rule-letter":   ago(time.Minute).starts("w-eu-1").settles(time.Second, refusedBy("spam", retry.DeadLetter, nil), job.Delivery{}).page(),
		"job-rule-discard":  ago(time.Minute).starts("w-eu-1").settles(time.Second, refusedBy("spam", retry.Discard, nil), job.Delivery{}).page(),
		"job-expired":       expired.page(),
		"job-poison":        set(retry.MissingTraceID, "{\"job\": \"urn:shop:orders:created\",\n \"data\": {\"id\": 7}, \"meta\": {\"id\": \"m-1\"}}").page(),
		"job-forward-again": again.page(func(v *jobpage.View) { v.ForwardedTo = "dlq.ops.example" }),
		"job-forwarded":     sent.page(func(v *jobpage.View) { v.ForwardedTo = "dlq.ops.example" }),
		"job-stuck": stuck.page(func(v *jobpage.View) {
			v.Waits, v.StuckSince, v.StuckUntil = true, now.Add(-9*time.Second), now.Add(time.Minute)
		}),
		"job-stuck-over": stuck.page(func(v *jobpage.View) { v.Waits = true }),
	}
}

func (l *life) timesOutAfter(d time.Duration) *life {
	return l.ends(d, job.TimedOut, "timed_out", "the execution exceeded its ttr", "", retry.Answer{}, true)
}
