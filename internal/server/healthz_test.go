package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"redrive/internal/store"
	"redrive/internal/store/postgres"
	"redrive/internal/store/postgres/postgrestest"
)

// A process that has lost its lease is not healthy from that moment on, long before it has ended: another
// one may work by then, and a balancer has to tell them apart.
func TestHealthz_SaysThatTheLeaseIsLost(t *testing.T) {
	dsn := postgrestest.New(t)
	s, err := store.Open(t.Context(), store.Options{Database: postgres.Server{DSN: dsn}})
	if err != nil {
		t.Fatal(err)
	}

	h := startOn(t, s)
	if answer := h.get("/healthz").want(t, http.StatusOK); answer.body != "ok\n" {
		t.Errorf("before, it says %q", answer.body)
	}

	postgrestest.Query(t, dsn, `UPDATE leases SET holder = 'another'`)

	select {
	case <-s.Failed():
	case <-time.After(time.Minute):
		t.Fatal("the store has not noticed after a minute")
	}

	answer := h.get("/healthz").want(t, http.StatusServiceUnavailable)
	if !strings.HasPrefix(answer.body, "failed: another process works on the database ") {
		t.Errorf("it says %q", answer.body)
	}
}
