package store

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

func TestSmoke(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c#%.db")
	s, err := Open(context.Background(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := retry.Default()
	p.MaxAttempts = 1
	done, err := s.Enqueue(ctx, now, []job.Job{{Queue: "q", Type: "t", Policy: p, Payload: []byte("1")}, {Queue: "q", Type: "u", Policy: p}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", done)
	claimed, stale, err := s.Exchange(ctx, nil, job.Claim{Worker: "w", Now: now, Lease: time.Minute, Free: map[string]int{"q": 10}})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(len(claimed), stale)
	var ss []job.Settlement
	for _, j := range claimed {
		ss = append(ss, j.Settle(job.Ending{Outcome: job.Failed, FinishedAt: now.Add(time.Second), Error: job.ErrorInfo{Type: "x", Message: "boo%m"}}, true, nil))
	}
	_, stale, err = s.Exchange(ctx, append(ss, ss...), job.Claim{})
	t.Log(stale, err)
	l, err := s.Letters(ctx, job.Filter{Queue: "q", Type: "t", Error: "BOO%"}, job.Cursor{}, 10)
	t.Logf("%+v %v", l, err)
	j, err := s.Replay(ctx, now, claimed[0].ID, 1, "me")
	t.Logf("%+v %v", j, err)
	_, err = s.Replay(ctx, now, claimed[0].ID, 1, "me")
	t.Log(err)
	j, err = s.Discard(ctx, now, claimed[1].ID, "me")
	t.Logf("%+v %v", j, err)
	j, err = s.Cancel(ctx, now, claimed[0].ID, "me")
	t.Logf("%+v %v", j, err)
	d, err := s.Job(ctx, claimed[0].ID)
	t.Logf("%+v %v", d, err)
	for _, st := range append(job.Statuses(), "") {
		l, err := s.Jobs(ctx, job.Filter{Status: st, Queue: "q"}, job.Cursor{}, 1)
		t.Log(st, len(l.Jobs), l.Next, err)
	}
	t.Log(s.Pause(ctx, now, "q", "me"), s.Resume(ctx, "nope"))
	q, err := s.Queues(ctx, now)
	t.Logf("%+v %v", q, err)
	t.Log(s.NextDue(ctx))
	t.Log(s.Leases(ctx, time.Time{}))
	t.Log(s.Held(ctx))
	t.Log(s.Tallies(ctx))
	t.Log(s.Reasons(ctx))
	t.Log(s.Changes(ctx, []string{claimed[0].ID}))
	t.Log(s.Unhold(ctx, func(string) bool { return true }))
	t.Log(s.Snapshot())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open(context.Background(), Options{Path: path})
	t.Log(err)
	t.Log(s.Snapshot())
	t.Log(s.Close())
}
