package handler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"redrive/internal/handler"
	"redrive/internal/redact"
)

// took returns handlers of a program that hangs, once they have taken over what
// was left of a database.
func took(t *testing.T, database string, args ...string) *handler.Set {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	set, err := handler.New(map[string]handler.Config{"t": {Exec: &handler.Exec{Command: append([]string{self}, args...)}}}, redact.Default().TextFrom)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	if err := set.TakeOver(t.Context(), database, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	return set
}

func TestTakeOver_EndsWhatIsLeftOfItsDatabase(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells which processes a program has started")
	}
	database, pids := owner(t), filepath.Join(t.TempDir(), "pid")
	h, _ := took(t, database, "help-hang", pids).Lookup("t")
	ended := make(chan error, 1)
	go func() { ended <- h(t.Context(), testJob()) }()
	waitForFile(pids)
	took(t, owner(t))
	if !alive(t, pids) {
		t.Error("a program of another database was ended")
	}
	took(t, database)
	if alive(t, pids) {
		t.Error("the program is alive after its database was taken over")
	}
	if err := <-ended; err == nil {
		t.Error("the program succeeded")
	}
}

var owners atomic.Int64

// owner names a database that no other test has, nor another run of this one beside it.
func owner(t *testing.T) string {
	t.Helper()
	return fmt.Sprint(t.Name(), os.Getpid(), owners.Add(1))
}

func TestTakeOver_EndsWithItsContext(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells which processes a program has started")
	}
	database, pids := owner(t), filepath.Join(t.TempDir(), "pid")
	h, _ := took(t, database, "help-hang", pids).Lookup("t") // it ignores SIGTERM: taking over waits
	ended := make(chan error, 1)
	go func() { ended <- h(t.Context(), testJob()) }()
	waitForFile(pids)
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	set, err := handler.New(nil, redact.Default().TextFrom)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	if err := set.TakeOver(ctx, database, slog.New(slog.DiscardHandler)); !errors.Is(err, stopped) {
		t.Errorf("taking over returned %v", err)
	}
	took(t, database)
	<-ended
}
