package api

import (
	"context"
	"strings"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
)

func TestResend_OutlivesWhoAskedForIt(t *testing.T) {
	var ended bool // before it answered
	site, s := newSite(t, web.Engine{Deliver: func(ctx context.Context, _ job.Job, _ job.DeadLetter) job.Delivery {
		ended = ctx.Err() != nil
		return job.Delivery{}
	}})
	id := refuse(t, s)
	gone, leave := context.WithCancel(t.Context())
	leave()
	j, err := New(site, nil, time.Now()).resend(gone, time.Now(), id, 1, tester)
	if err != nil || j.Status() != job.StatusDeadLetter {
		t.Errorf("the job is %s, %v; want its letter stored", j.Status(), err)
	}
	if ended {
		t.Error("the delivery ended with its caller")
	}
}

// What the conflict of a run that is over tells of the job is redacted.
func TestResend_HidesTheJobOfAConflict(t *testing.T) {
	site, s := newSite(t, web.Engine{})
	done, err := s.Enqueue(t.Context(), time.Now(), []job.Job{{
		Type: "order.ship", Queue: "orders", Payload: []byte(`{"password":"hunter2-canary"}`), Policy: retry.Default(), Timeout: time.Minute,
	}})
	if err != nil {
		t.Fatal(err)
	}
	id := done[0].Job.ID
	j, err := New(site, nil, time.Now()).resend(t.Context(), time.Now(), id, 1, tester)
	if err == nil {
		t.Fatal("a letter that there is not was sent")
	}
	if f := problem.Of(err); strings.Contains(string(j.Payload)+string(f.First.Job.Payload), "hunter2-canary") || f.First.Job.ID != id {
		t.Errorf("%s, %+v", j.Payload, f.First.Job)
	}
}
