package postgres

import (
	"errors"
	"strings"
	"testing"
	"time"

	"redrive/internal/fault"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store"
)

// An address that says nothing of it gets a bound for connecting.
func TestParse_BoundsConnecting(t *testing.T) {
	for dsn, want := range map[string]time.Duration{
		"postgres://db/redrive":                    5 * time.Second,
		"postgres://db/redrive?connect_timeout=60": time.Minute,
	} {
		config, _, err := parse(dsn)
		if err != nil || config.ConnectTimeout != want {
			t.Errorf("%s waits %v, want %v: %v", dsn, config.ConnectTimeout, want, err)
		}
	}
}

// Several hosts share the time of one try, so that the lease is renewed at the second one.
func TestDesk_ReachesEachHost(t *testing.T) {
	for dsn, want := range map[string]time.Duration{
		"postgres://db/redrive?sslmode=disable":                          2 * time.Second,
		"postgres://a,b/redrive?sslmode=disable":                         time.Second,
		"postgres://a,b,c,d,e,f/redrive?sslmode=disable":                 500 * time.Millisecond,
		"postgres://a,b/redrive?sslmode=disable&connect_timeout=1":       time.Second,
		"postgres://a/redrive?sslmode=disable&connect_timeout=2":         2 * time.Second,
		"postgres://a,b,c,d/redrive?sslmode=disable&connect_timeout=100": 500 * time.Millisecond,
	} {
		config, _, err := parse(dsn)
		if err != nil {
			t.Fatal(err)
		}

		if got := newDesk(config, new(hosts)).config.ConnectTimeout; got != want {
			t.Errorf("%s: a host has %v, want %v", dsn, got, want)
		}
	}
}

// The sessions of a start of the program can be told from all others by what the server keeps of
// their names.
func TestSessionName_EndsWithTheNode(t *testing.T) {
	node := job.NewID()
	for name, want := range map[string]string{
		"redrive":                "redrive",
		"bücher":                 "b?cher",
		strings.Repeat("x", 200): strings.Repeat("x", 26),
	} {
		got := sessionName(name, node)
		if got != want+" "+node || len(got) > 63 {
			t.Errorf("%q is named %q", name, got)
		}
	}
}

// A process that was frozen until its lease was over writes nothing when it wakes, also before
// its watch has seen it.
func TestLease_IsLookedAtBeforeEachTransaction(t *testing.T) {
	w := &watched{Server: Server{DSN: EmptyForTest(t)}}
	s, err := store.Open(t.Context(), store.Options{Database: w})
	if err != nil {
		t.Fatal(err)
	}

	held := w.writer.lease
	held.renewed.Store(int64(held.now() - longestApart))

	j := job.Job{Queue: "orders", Type: "email.send", Policy: retry.Default(), Timeout: time.Minute, Payload: []byte("1")}

	_, err = s.Enqueue(t.Context(), time.Now(), []job.Job{j})
	if !errors.Is(err, fault.ErrTakenOver) {
		t.Errorf("a job is written with %v", err)
	}

	select {
	case <-s.Failed():
	default:
		t.Error("the process goes on")
	}

	err = s.Close()
	if err != nil {
		t.Error(err)
	}
}
