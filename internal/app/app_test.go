package main

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"testing"
)

func TestApp_StartsAgainAfterStop(t *testing.T) {
	p := testParts(t)
	for range 2 {
		a, err := startApp(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.Get(a.url() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("readyz answers %s", response.Status)
		}
		if err := errors.Join(a.stop(context.Background()), a.stop(context.Background())); err != nil {
			t.Errorf("stop, and once more: %v", err)
		}
		if _, err := http.Get(a.url()); err == nil {
			t.Error("it still answers after the stop")
		}
	}
}

func TestApp_TwoSideBySide(t *testing.T) {
	one, err := startApp(context.Background(), testParts(t))
	if err != nil {
		t.Fatal(err)
	}
	two, err := startApp(context.Background(), testParts(t))
	if err != nil {
		t.Fatal(err)
	}
	if one.url() == two.url() {
		t.Errorf("both are at %s", one.url())
	}
	if err := errors.Join(one.stop(context.Background()), two.stop(context.Background())); err != nil {
		t.Error(err)
	}
}

func TestApp_FailedStartLeavesNothingBehind(t *testing.T) {
	p := testParts(t)
	p.listen = "127.0.0.1:99999"
	if _, err := startApp(context.Background(), p); err == nil {
		t.Fatal("it started on a port that does not exist")
	}
	p.listen = "127.0.0.1:0"
	a, err := startApp(context.Background(), p)
	if err != nil {
		t.Fatalf("the database is still held: %v", err)
	}
	if err := a.stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestApp_InterruptedStartLeavesNothingBehind(t *testing.T) {
	p := testParts(t)
	p.db = filepath.Join(t.TempDir(), "redrive.db") // the start that makes it
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := startApp(ctx, p); err == nil || unlessInterrupted(ctx, p.log, err) != nil {
		t.Fatalf("a start after a signal: %v, want an error that is no failure", err)
	}
	a, err := startApp(t.Context(), p)
	if err != nil {
		t.Fatalf("the database is still held: %v", err)
	}
	if err := a.stop(t.Context()); err != nil {
		t.Error(err)
	}
}
