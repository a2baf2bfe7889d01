package pages

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"redrive/internal/config"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/live"
	"redrive/internal/retry"
	"redrive/internal/server/view"
	"redrive/internal/server/web"
	"redrive/internal/source"
	"redrive/internal/store"
	"redrive/internal/store/databasetest"
)

// newSite is a site on a database of its own.
func newSite(t testing.TB, e web.Engine) (*web.Site, *store.Store) {
	t.Helper()
	c, err := config.Parse("redrive.yaml", []byte("queues: {orders: {workers: 20, policy: {max_attempts: 1}}}"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), store.Options{Database: databasetest.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	hub := live.New(s, live.Options{})
	t.Cleanup(func() {
		hub.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &web.Site{View: view.New(s, c.Redactor()), Config: c, Hub: hub, Engine: e, Log: slog.New(slog.DiscardHandler)}, s
}

// refuse makes a job whose dead letter was refused.
func refuse(t *testing.T, s *store.Store) string {
	t.Helper()
	once := retry.Policy{Strategy: retry.Constant, MaxAttempts: 1, OnExhaustion: retry.DeadLetter}
	done, err := s.Enqueue(t.Context(), time.Now(), []job.Job{{
		Type: "order.ship", Queue: "orders", Payload: []byte("{}"), Policy: once, Timeout: time.Minute,
	}})
	if err != nil {
		t.Fatal(err)
	}
	claim := job.Claim{Worker: "w", Now: time.Now(), Lease: time.Minute, Free: map[string]int{"orders": 9}}
	claimed, _, err := s.Exchange(t.Context(), nil, claim)
	if err != nil || len(claimed) != 1 {
		t.Fatalf("%d jobs were claimed, %v", len(claimed), err)
	}
	ended := claimed[0].Settle(job.Ending{Outcome: job.Failed, FinishedAt: time.Now(), Error: job.ErrorInfo{Type: "io"}}, rand.Float64)
	if _, _, err := s.Exchange(t.Context(), []job.Settlement{ended.Delivered(job.Delivery{Problem: "it answered 507"})}, job.Claim{}); err != nil {
		t.Fatal(err)
	}
	return done[0].Job.ID
}

func TestPages_SlowListsOfTheOverviewAreTolerated(t *testing.T) {
	site, s := newSite(t, web.Engine{})
	refuse(t, s)
	p := &Pages{Site: site}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	var r reads
	if p.failing(late, &r, ""); !r.slow || r.err != nil {
		t.Errorf("failing: %+v", r)
	}
	r = reads{}
	if p.refused(late, &r, filter.Filter{}); !r.slow || r.err != nil {
		t.Errorf("refused: %+v", r)
	}
}

// A page shows the totals of one commit, and the dead letters at sources can be those of a later
// one: a number of dead letters is never negative for it.
func TestPages_DeadLettersOfSourcesThatAreNewerThanTheTotalsMakeNoNegativeNumber(t *testing.T) {
	site, s := newSite(t, web.Engine{})
	now := time.Now()
	before := s.Snapshot()
	record := source.Record{Key: "1", Lineage: "1", Place: "failed", VersionToken: "1", Queue: "q", Type: "t", Payload: []byte("{}"), FailedAt: now}
	if _, err := s.Mirror.Update(t.Context(), now, "shop", []source.Record{record}); err != nil {
		t.Fatal(err)
	}

	p := &Pages{Site: site}
	u, err := p.deadLetterUsage(t.Context(), now, before)
	if err != nil || u.AtSources != 1 || u.Open != 0 {
		t.Errorf("%d dead letters are open and %d at sources, %v; want 0 and 1", u.Open, u.AtSources, err)
	}
}
