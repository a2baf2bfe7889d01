package webhook_test

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"redrive/internal/shortage"
	"redrive/internal/webhook"
)

// Without a descriptor nothing was sent, and no receiver refused the dead letter. The
// limit is set in a process of its own.
func TestDeliver_TellsThatDescriptorsRanOut(t *testing.T) {
	const child = "REDRIVE_TEST_WITHOUT_DESCRIPTORS"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestDeliver_TellsThatDescriptorsRanOut$")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") // the runtime has its own descriptors now, as in a program that serves
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	f := to(t, webhook.Webhook{URL: "http://127.0.0.1:9/"})
	j, deadLetter := failed()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	d := f.Deliver(t.Context(), j, deadLetter)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if d.Shortage == nil || d.Shortage.Of != shortage.Descriptors || !strings.Contains(d.Problem, "it was not sent") {
		t.Errorf("delivery = %+v", d)
	}
}

// A try before the shortage may have arrived: that one was not sent says the last try only.
func TestDeliver_TellsWhatCameBeforeAShortage(t *testing.T) {
	const child = "REDRIVE_TEST_LOSING_DESCRIPTORS"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestDeliver_TellsWhatCameBeforeAShortage$")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	r := receive(t, silent)
	f := toAtRandom(t, webhook.Webhook{URL: r.URL, Sending: tries(200*time.Millisecond, 3)}, func() float64 { // the first try is over
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: before.Max}); err != nil {
			t.Error(err)
		}
		return 0
	})
	j, deadLetter := failed()
	d := f.Deliver(t.Context(), j, deadLetter)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	const want = "it got no answer within 200ms; the next try was not sent: "
	if d.Shortage == nil || r.got() != 1 || !strings.HasPrefix(d.Problem, want) {
		t.Errorf("delivery = %+v after %d requests, want %s", d, r.got(), want)
	}
}
