package api

import (
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/audit"
	"redrive/internal/config"
	"redrive/internal/job"
	"redrive/internal/live"
	"redrive/internal/retry"
	"redrive/internal/server/limit"
	"redrive/internal/server/problem"
	"redrive/internal/server/view"
	"redrive/internal/server/web"
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
	e.Knows = func(string) bool { return true }
	limits := web.Limits{
		Exports: limit.NewShare(2, 50), Large: limit.NewShare(2, 50), Refused: func(string, limit.Refusal) {},
	}
	return &web.Site{View: view.New(s, c.Redactor()), Config: c, Hub: hub, Engine: e, Limits: limits, Log: slog.New(slog.DiscardHandler)}, s
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

var tester = audit.Actor{Name: "test"}

// serve answers by the routes of the API alone, over real HTTP, and returns a
// function that sends a request and returns the status and the kind of its error.
func serve(t *testing.T, a *API) func(method, path, body string) (int, string) {
	t.Helper()
	e := echo.New()
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		f := problem.Of(err)
		_ = c.JSONBlob(f.Kind.Status, f.Encode())
	}
	a.Routes(web.NewRoutes(e), nil)
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return func(method, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		response, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var answer struct{ Error struct{ Code string } }
		_ = json.NewDecoder(response.Body).Decode(&answer) // a file has none
		return response.StatusCode, answer.Error.Code
	}
}
