package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/wire"
)

func TestEngine_EndsWhatIsClaimedTooLate(t *testing.T) {
	tests := []struct {
		name   string
		fate   func(queue string) retry.Action
		status job.Status
		by     string
	}{
		{"by default as a dead letter", nil, "dead_letter", "expired:dead_letter"},
		{"discarded", func(string) retry.Action { return retry.Discard }, "discarded", "expired:discard"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				ran := false
				r.on("ok", func(context.Context, job.Job) error { ran = true; return nil })
				late, soon := ofType("ok"), ofType("ok")
				late.RunAt, soon.RunAt = time.Now().Add(time.Minute), time.Now().Add(time.Minute)
				late.ExpiresAt, soon.ExpiresAt = late.RunAt, soon.RunAt.Add(time.Microsecond)
				r.start(func(o *options) { o.Expired = test.fate })
				id := r.enqueue(late)[0]
				time.Sleep(time.Minute)
				synctest.Wait()
				a := r.want(id, test.status, 1)[0]
				if ran || a.DecidedBy != test.by || a.Outcome != job.Failed || a.Error.Type != "expired" {
					t.Errorf("ran: %v, attempt = %+v", ran, a)
				}
				if !strings.Contains(a.Error.Message, wire.FormatTime(late.ExpiresAt)) {
					t.Errorf("message %q lacks the moment", a.Error.Message)
				}
				if got := r.detail(id).Job.Reason; got != retry.Expired {
					t.Errorf("reason = %q", got)
				}
			})
		})
	}
}

func TestEngine_RunsWhatIsClaimedInTime(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("ok", succeed)
		r.start()
		j := ofType("ok")
		j.RunAt = time.Now().Add(time.Minute)
		j.ExpiresAt = j.RunAt.Add(time.Microsecond)
		id := r.enqueue(j)[0]
		time.Sleep(time.Minute)
		synctest.Wait()
		r.want(id, "completed", 1)
	})
}

// The time to live bounds the wait for the first attempt: what failed follows
// its policy.
func TestEngine_ARetryNeverComesTooLate(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("bad", fails(failure("x")))
		r.start()
		j := ofType("bad")
		j.ExpiresAt = time.Now().Add(time.Second)
		id := r.enqueue(j)[0]
		time.Sleep(time.Second)
		synctest.Wait()
		if a := r.want(id, "retryable", 2); a[1].DecidedBy != "policy:retry:2/3" {
			t.Errorf("attempts = %+v", a)
		}
	})
}

// A replay is a person's word that the job is still wanted.
func TestEngine_AReplayDoesNotExpire(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("ok", succeed)
		r.start()
		j := ofType("ok")
		j.RunAt = time.Now().Add(time.Minute)
		j.ExpiresAt = j.RunAt
		id := r.enqueue(j)[0]
		time.Sleep(time.Minute)
		synctest.Wait()
		r.want(id, "dead_letter", 1)
		r.replay(id, 1)
		synctest.Wait()
		r.want(id, "completed", 1)
	})
}
