package app_test

import (
	"context"
	"errors"
	"log"
	"net/http"
	"path/filepath"
	"runtime/debug"
	"testing"

	"redrive/internal/app"
	"redrive/internal/app/apptest"
	"redrive/test/rig"
)

func TestApp_StartsAgainAfterStop(t *testing.T) {
	p := apptest.Parts(t)
	for range 2 {
		a, err := app.Start(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.Get(a.URL() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("readyz answers %s", response.Status)
		}
		if err := errors.Join(a.Stop(context.Background()), a.Stop(context.Background())); err != nil {
			t.Errorf("stop, and once more: %v", err)
		}
		if _, err := http.Get(a.URL()); err == nil {
			t.Error("it still answers after the stop")
		}
	}
}

// Two apps in one process share nothing: each takes jobs while the other one runs, and after
// it has stopped.
func TestApp_TwoSideBySide(t *testing.T) {
	parts := apptest.Parts(t)
	one := start(t, parts)
	two := start(t, apptest.Parts(t))
	if one.URL() == two.URL() {
		t.Fatalf("both are at %s", one.URL())
	}

	first := enqueue(t, one)
	second := enqueue(t, two)
	has(t, one, first, http.StatusOK)
	has(t, one, second, http.StatusNotFound)
	has(t, two, second, http.StatusOK)
	has(t, two, first, http.StatusNotFound)

	// One stops, twice, and the other goes on.
	if err := errors.Join(one.Stop(t.Context()), one.Stop(t.Context())); err != nil {
		t.Errorf("stop, and once more: %v", err)
	}
	if _, err := http.Get(one.URL()); err == nil {
		t.Error("the first one answers after its stop")
	}
	has(t, two, second, http.StatusOK)
	third := enqueue(t, two)

	// The next one has what the first one had.
	again := start(t, parts)
	has(t, again, first, http.StatusOK)
	has(t, again, third, http.StatusNotFound)
	has(t, again, enqueue(t, again), http.StatusOK)
	has(t, two, third, http.StatusOK)
}

// start starts an app, which stops at the end of the test if it runs until then.
func start(t *testing.T, p app.Parts) *app.App {
	t.Helper()
	a, err := app.Start(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return a
}

// enqueue sends a job and returns its id.
func enqueue(t *testing.T, a *app.App) string {
	t.Helper()
	id := (&rig.Process{T: t, URL: a.URL()}).Post(`{"type":"t"}`)
	if id == "" {
		t.Fatalf("%s took no job", a.URL())
	}
	return id
}

// has asks an app for a job, and wants this status.
func has(t *testing.T, a *app.App, id string, status int) {
	t.Helper()
	got, body := (&rig.Process{T: t, URL: a.URL()}).Answer("GET", "/api/v1/jobs/"+id, "")
	if got != status {
		t.Errorf("job %s at %s: %d, want %d: %s", id, a.URL(), got, status, body)
	}
}

// What a process has only once is not an app's: neither the log that libraries share nor the
// limit of memory.
func TestApp_LeavesTheProcessAlone(t *testing.T) {
	writer, flags, memory := log.Writer(), log.Flags(), debug.SetMemoryLimit(-1)
	a := start(t, apptest.Parts(t))
	unchanged := func(when string) {
		t.Helper()
		if log.Writer() != writer || log.Flags() != flags || debug.SetMemoryLimit(-1) != memory {
			t.Errorf("%s: the log of libraries or the limit of memory is another one", when)
		}
	}
	unchanged("while it runs")
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	unchanged("after its stop")
}

func TestApp_FailedStartLeavesNothingBehind(t *testing.T) {
	p := apptest.Parts(t)
	p.Listen = "127.0.0.1:99999"
	if _, err := app.Start(context.Background(), p); err == nil {
		t.Fatal("it started on a port that does not exist")
	}
	p.Listen = "127.0.0.1:0"
	a, err := app.Start(context.Background(), p)
	if err != nil {
		t.Fatalf("the database is still held: %v", err)
	}
	if err := a.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestApp_InterruptedStartLeavesNothingBehind(t *testing.T) {
	p := apptest.Parts(t)
	p.DB = filepath.Join(t.TempDir(), "redrive.db") // the start that makes it
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := app.Start(ctx, p); err == nil || app.UnlessInterrupted(ctx, p.Log, err) != nil {
		t.Fatalf("a start after a signal: %v, want an error that is no failure", err)
	}
	a, err := app.Start(t.Context(), p)
	if err != nil {
		t.Fatalf("the database is still held: %v", err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
