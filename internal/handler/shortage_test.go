package handler_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"redrive/internal/handler"
	"redrive/internal/shortage"
)

// Without a descriptor no handler can do its work, and that is no failure of the
// job. The limit is set in a process of its own.
func TestHandlers_TellThatDescriptorsRanOut(t *testing.T) {
	const child = "REDRIVE_TEST_WITHOUT_DESCRIPTORS"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestHandlers_TellThatDescriptorsRanOut$")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	configs := map[string]handler.Config{
		"an address": {HTTP: &handler.HTTP{URL: "http://127.0.0.1:9/"}},
		"a name":     {HTTP: &handler.HTTP{URL: "http://service.invalid/"}},
		"a program":  {Exec: &handler.Exec{Command: []string{"/bin/sh", "-c", "exit 0"}}},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") // the runtime has its own descriptors now, as in a program that serves
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	for name, config := range configs {
		h := build(t, config)
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: before.Max}); err != nil {
			t.Fatal(err)
		}
		err := h(t.Context(), testJob())
		if restored := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); restored != nil {
			t.Fatal(restored)
		}
		if short := new(shortage.Error); !errors.As(err, &short) || short.Of != shortage.Descriptors {
			t.Errorf("%s without a descriptor: %v", name, err)
		}
	}
}
