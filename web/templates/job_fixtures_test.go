package templates_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/shortage"
	"redrive/web/templates"
	"redrive/web/templates/jobpage"
)

const upstreamTrace = `paylane: 503 Service Unavailable
  body: {"error":"maintenance","until":"14:30"}
at payments.(*Client).Capture     payments/client.go:142
at payments.HandleCapture          payments/capture.go:58
at engine.(*runner).call           engine/runner.go:211`

func capturePolicy() retry.Policy {
	return retry.Policy{
		MaxAttempts: 5, Strategy: retry.Exponential, InitialInterval: 5 * time.Second, Coefficient: 2,
		MaxInterval: 5 * time.Minute, Jitter: retry.Jitter{Low: 0.85, High: 1.15}, OnExhaustion: retry.DeadLetter,
		NonRetryable: []string{"auth.*", "card.declined"},
	}
}

// life builds the history of a job the way the engine does: by executions that
// settle.
type life struct {
	history.Detail
	clock time.Time
	draw  float64 // where between low and high the jitter falls
}

func newLife(at time.Time) *life {
	l := &life{clock: at, draw: 0.5}
	l.Job = job.Job{
		Token: job.Token{ID: "019ce2f4-7a1e-7c30-9d2b-4f6a1e8b5c07", Run: 1}, Seq: 1, Queue: "payments",
		Type: "payments.capture", State: job.Available, Priority: 10, Policy: capturePolicy(),
		Timeout: 30 * time.Second, RunAt: at, EnqueuedAt: at, ChangedAt: at, Key: "cap-88412",
		Meta: json.RawMessage(`{"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "source": "checkout-api"}`),
		Payload: []byte(`{"order_id": 88412, "amount": 4990.00, "currency": "EUR", "provider": "paylane",
 "card": {"token": "tok_1N3…", "last4": "4242", "expires": "09/28", "brand": "visa"},
 "lines": [{"sku": "TR-204", "qty": 2}, {"sku": "MK-011", "qty": 1}], "capture": true, "coupon": null}`),
	}
	return l
}

// starts claims the job when it is due.
func (l *life) starts(worker string) *life {
	if l.Job.RunAt.After(l.clock) {
		l.clock = l.Job.RunAt
	}
	j := &l.Job
	j.State, j.Worker, j.StartedAt, j.ChangedAt, j.LastSeen = job.Active, worker, l.clock, l.clock, l.clock
	j.LeaseUntil = l.clock.Add(40 * time.Second)
	j.Execution++
	return l
}

// ends settles the running execution.
func (l *life) ends(after time.Duration, outcome job.Outcome, kind, message, trace string, answer retry.Answer, deadLetters bool) *life {
	return l.settles(after, job.Ending{
		Outcome: outcome, Error: job.ErrorInfo{Type: kind, Message: message}, Trace: trace, Answer: answer,
	}, job.InDeadLetters(l.Job.Queue, deadLetters))
}

// settles ends the running execution in any way.
func (l *life) settles(after time.Duration, e job.Ending, d job.Delivery) *life {
	l.clock = l.clock.Add(after)
	j := &l.Job
	j.LastSeen, e.FinishedAt = l.clock, l.clock
	s := j.Settle(e, func() float64 { return l.draw }).Delivered(d)
	l.Attempts = append(l.Attempts, s.Attempt)
	if deadLetter, ok := s.NewDeadLetter(j.Queue); ok {
		l.DeadLetters = append(l.DeadLetters, deadLetter)
	}
	j.State, j.RunAt, j.Reason, j.DeadLetter, j.ChangedAt, j.Worker = s.State, s.RunAt, s.Reason, s.DeadLetter, l.clock, ""
	if e.Outcome.Counted() {
		j.Attempts, j.Error = s.Attempt.Number, s.Attempt.Error
	}
	if j.State == job.Completed || j.State == job.Discarded {
		j.FinishedAt = l.clock
	}
	return l
}

func (l *life) fails(after time.Duration) *life {
	return l.ends(after, job.Failed, "upstream.unavailable",
		"POST https://api.paylane.example/v2/captures: 503 Service Unavailable", upstreamTrace, retry.Answer{}, true)
}

func (l *life) answers(after time.Duration, answer retry.Answer) *life {
	return l.ends(after, job.Failed, "upstream.unavailable", "503 Service Unavailable", "", answer, true)
}

func (l *life) timesOut() *life {
	return l.ends(30*time.Second, job.TimedOut, "context.DeadlineExceeded", "the execution exceeded its ttr of 30 s", "", retry.Answer{}, true)
}

func (l *life) isLost(after time.Duration) *life {
	return l.ends(after, job.Lost, "lost", "the lease of worker w-eu-4 ran out without a sign of life", "", retry.Answer{}, true)
}

func (l *life) succeeds(after time.Duration) *life {
	return l.ends(after, job.Succeeded, "", "", "", retry.Answer{}, true)
}

func (l *life) drawing(x float64) *life {
	l.draw = (x - 0.85) / 0.30
	return l
}

// replayed starts the next run.
func (l *life) replayed(at time.Time, by string) *life {
	j := &l.Job
	l.Replays = append(l.Replays, history.Replay{Run: j.Run, State: j.State, Reason: j.Reason, Attempts: j.Attempts, At: at, By: by})
	for i := range l.DeadLetters {
		if l.DeadLetters[i].Run == j.Run {
			l.DeadLetters[i].ReplayedAt, l.DeadLetters[i].ReplayedBy = at, by
		}
	}
	l.clock = at
	j.Run, j.Attempts, j.State, j.DeadLetter, j.Reason = j.Run+1, 0, job.Available, job.NoDeadLetter, ""
	j.RunAt, j.ChangedAt, j.FinishedAt, j.Error = at, at, time.Time{}, job.ErrorInfo{}
	return l
}

func (l *life) page(change ...func(*jobpage.View)) jobpage.View {
	v := jobpage.View{
		Frame:  templates.Frame{Title: l.Job.Type, Section: "jobs", Now: now, QueueCount: 9},
		Detail: l.Detail, KeepsDeadLetters: true, Preview: 64 << 10,
	}
	v.Total = len(v.Attempts)
	for _, c := range change {
		c(&v)
	}
	return v
}

func clockAt(s string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05.000", "2026-03-12 "+s)
	if err != nil {
		panic(err)
	}
	return t
}

// captured is the job of the drawing: a run that died, and its replay, which
// waits for attempt 4.
func captured() *life {
	five := 5 * time.Second
	return newLife(clockAt("13:12:04.100")).
		starts("w-eu-2").answers(1090*time.Millisecond, retry.Answer{RetryAfter: &five}).
		starts("w-eu-2").drawing(1.08).timesOut().
		starts("w-eu-1").drawing(1.13).fails(420*time.Millisecond).
		starts("w-eu-4").drawing(0.91).isLost(8900*time.Millisecond).
		starts("w-eu-3").fails(380*time.Millisecond).
		replayed(clockAt("14:01:19.000"), "ana").
		starts("w-eu-2").drawing(1.04).fails(1310 * time.Millisecond).
		starts("w-eu-1").drawing(0.93).timesOut().
		starts("w-eu-2").drawing(1.13).fails(440 * time.Millisecond)
}

func ago(d time.Duration) *life { return newLife(now.Add(-d)) }

func exhausted(deadLetters bool, change func(*job.Job)) *life {
	l := ago(20 * time.Minute)
	l.Job.Policy.MaxAttempts = 2
	change(&l.Job)
	l.starts("w-eu-1").fails(1200 * time.Millisecond)
	return l.starts("w-eu-3").ends(900*time.Millisecond, job.Panicked, "runtime.Error", "index out of range [3] with length 3",
		"panic: index out of range\ngoroutine 41", retry.Answer{}, deadLetters)
}

func same(*job.Job) {}

func jobPages() map[string]jobpage.View { return maps.Clone(madeJobPages()) }

// madeJobPages are made once, as madePages.
var madeJobPages = sync.OnceValue(func() map[string]jobpage.View {
	all := waitingPages()
	maps.Copy(all, overPages())
	maps.Copy(all, ruledPages())
	all["job-edited"] = editedPage()
	all["job-recent"] = recentPage()
	return all
})

// waitingPages are jobs that have not ended.
func waitingPages() map[string]jobpage.View {
	scheduled := ago(time.Hour)
	scheduled.Job.State, scheduled.Job.RunAt = job.Scheduled, now.Add(2*time.Hour)
	held := ago(time.Minute)
	held.Job.Held = true
	released := ago(2 * time.Minute).starts("w-eu-1")
	released.ends(4*time.Second, job.Interrupted, "", "", "", retry.Answer{}, true)
	short := ago(2 * time.Minute).starts("w-eu-1")
	short.ends(4*time.Second, job.Interrupted, shortage.ErrorType, shortage.Descriptors.Lack(), "", retry.Answer{}, true)
	overdue := ago(2 * time.Minute).starts("w-eu-1").fails(time.Second)
	silent := ago(10 * time.Minute).starts("w-eu-4")
	last := ago(20 * time.Second)
	last.Job.Policy.MaxAttempts = 2
	last.starts("w-eu-1").fails(time.Second).starts("w-eu-2")
	return map[string]jobpage.View{
		"job-retryable": captured().page(func(v *jobpage.View) { v.Group = groupsByNumber()[1] }),
		"job-scheduled": scheduled.page(),
		"job-shortage":  short.page(),
		"job-available": ago(6 * time.Second).page(),
		"job-held":      held.page(),
		"job-paused": ago(6 * time.Second).page(func(v *jobpage.View) {
			v.PausedAt, v.PausedBy = time.Date(2026, 3, 12, 13, 50, 0, 0, time.UTC), "ana"
		}),
		"job-interrupted": released.page(),
		"job-replayed": captured().replayed(now.Add(-2*time.Second), "sam").page(func(v *jobpage.View) {
			acted := v.Job.Changed()
			v.Acted = &acted
		}),
		"job-active":       ago(10 * time.Second).starts("w-eu-1").fails(time.Second).starts("w-eu-2").page(),
		"job-active-last":  last.page(),
		"job-active-quiet": silent.page(),
		"job-overdue":      overdue.page(),
		"job-retry-paused": ago(3 * time.Second).starts("w-eu-1").fails(time.Second).page(func(v *jobpage.View) {
			v.NoHandler = true
		}),
		"job-read-only":   captured().page(func(v *jobpage.View) { v.Problem = "The disk is full." }),
		"job-26-attempts": sidekiq().page(),
		"job-first-retry": ago(3 * time.Second).starts("w-eu-1").fails(time.Second).page(func(v *jobpage.View) { v.KeepsDeadLetters = false }),
	}
}

func sidekiq() *life {
	l := newLife(now.Add(-9 * 24 * time.Hour))
	l.Job.Policy = retry.Policy{
		MaxAttempts: 26, Strategy: retry.Polynomial, InitialInterval: time.Second, Coefficient: 4,
		MaxInterval: 7 * 24 * time.Hour, OnExhaustion: retry.DeadLetter,
	}
	for l.starts("w-eu-1").fails(900 * time.Millisecond); l.Job.RunAt.Before(now); {
		l.starts("w-eu-2").fails(700 * time.Millisecond)
	}
	return l
}

// overPages are jobs that have ended.
func overPages() map[string]jobpage.View {
	no := false
	resolved := exhausted(true, same)
	resolved.DeadLetters[0].DiscardedAt, resolved.DeadLetters[0].DiscardedBy = now.Add(-time.Minute), "sam"
	resolved.Job.DeadLetter, resolved.Job.Reason, resolved.Job.ChangedAt = job.NoDeadLetter, retry.Manual, now.Add(-time.Minute)
	manually := ago(time.Hour)
	manually.Job.State, manually.Job.Reason, manually.Job.FinishedAt, manually.Job.ChangedAt = job.Discarded, retry.Manual, now.Add(-time.Minute), now.Add(-time.Minute)
	cancelled := ago(time.Hour).starts("w-eu-1")
	cancelled.ends(4*time.Second, job.CancelledBy, "", "", "", retry.Answer{}, true)
	cancelled.Job.State, cancelled.Job.FinishedAt = job.Cancelled, cancelled.clock
	unknown := ago(time.Hour).starts("w-eu-1").fails(time.Second)
	unknown.Job.State, unknown.Job.Reason = "quarantined", "sunspots"
	unknown.Attempts[0].DecidedBy, unknown.Attempts[0].Outcome = "oracle:maybe:later", "vanished"
	declined := ago(time.Hour).starts("w-eu-1")
	declined.ends(time.Second, job.Failed, "auth.expired", "token expired", "", retry.Answer{}, true)
	unhandled := ago(time.Hour).starts("w-eu-1").fails(time.Second)
	unhandled.Attempts[0].DecidedBy, unhandled.Attempts[0].Action, unhandled.Attempts[0].Delay = "unknown_type:delete", retry.Discard, nil
	unhandled.Job.State, unhandled.Job.Reason = job.Discarded, retry.UnknownType
	return map[string]jobpage.View{
		"job-completed":         ago(time.Minute).starts("w-eu-1").fails(time.Second).starts("w-eu-2").succeeds(2 * time.Second).page(),
		"job-replay-worked":     exhausted(true, same).replayed(now.Add(-20*time.Second), "ana").starts("w-eu-2").succeeds(700 * time.Millisecond).page(),
		"job-dead-letter":       exhausted(true, same).page(),
		"job-dlq-failed":        exhausted(false, same).page(func(v *jobpage.View) { v.KeepsDeadLetters = false }),
		"job-policy-discard":    exhausted(true, func(j *job.Job) { j.Policy.OnExhaustion = retry.Discard }).page(),
		"job-resolved":          resolved.page(),
		"job-manual-discard":    manually.page(),
		"job-handler-discard":   ago(time.Hour).starts("w-eu-1").answers(time.Second, retry.Answer{Code: retry.CodeDiscard}).page(),
		"job-handler-letter":    ago(time.Hour).starts("w-eu-1").answers(time.Second, retry.Answer{Retryable: &no}).page(),
		"job-non-retryable":     declined.page(),
		"job-unknown-type":      unhandled.page(),
		"job-cancelled":         cancelled.page(),
		"job-unknown-state":     unknown.page(),
		"job-many-runs":         manyRuns(14).page(),
		"job-payload-text":      withPayload("=cmd()|'/C calc'!\x00\xff").page(),
		"job-payload-cut":       withPayload(`{"rows": [` + strings.Repeat(`{"n": 12345678901234567890}, `, 40) + `1]}`).page(func(v *jobpage.View) { v.Preview = 300 }),
		"job-payload-duplicate": withPayload(`{"a": 1.10, "a": 1E+02, "s": "<b>\u202e"}`).page(),
	}
}

func withPayload(s string) *life {
	l := ago(time.Minute)
	l.Job.Payload = []byte(s)
	return l.starts("w-eu-1").succeeds(time.Second)
}

func manyRuns(n int) *life {
	l := newLife(now.Add(-time.Duration(n) * time.Hour))
	l.Job.Policy.MaxAttempts = 2
	for i := range n {
		l.starts("w-eu-1").fails(time.Duration(i+1) * time.Second).starts("w-eu-2").fails(time.Second)
		if i < n-1 {
			l.replayed(l.clock.Add(time.Hour), fmt.Sprintf("operator-%d", i))
		}
	}
	return l
}
