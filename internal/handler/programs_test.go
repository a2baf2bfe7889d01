package handler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
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

// A database is the same under each of its names, and a copy is another one.
func TestTakeOver_EndsWhatIsLeftOfItsDatabase(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells which processes a program has started")
	}
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"db", "copy"} {
		if err := os.WriteFile(file(name), []byte("the same"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(file("db"), file("symlink")), os.Link(file("db"), file("link"))); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"symlink", "link", "missing/../db"} {
		pids := file(fmt.Sprint("pid ", i))
		h, _ := took(t, file("db"), "help-hang", pids).Lookup("t")
		ended := make(chan error, 1)
		go func() { ended <- h(t.Context(), testJob()) }()
		waitForFile(pids)
		took(t, file("copy"))
		if !alive(t, pids) {
			t.Error("a program of another database was ended")
		}
		took(t, dir+"/"+name) // not Join, which would shorten it
		if alive(t, pids) {
			t.Errorf("the program is alive after its database was taken over as %s", name)
		}
		if err := <-ended; err == nil {
			t.Error("the program succeeded")
		}
	}
}

func TestTakeOver_EndsWithItsContext(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells which processes a program has started")
	}
	database, pids := filepath.Join(t.TempDir(), "db"), filepath.Join(t.TempDir(), "pid")
	if err := os.WriteFile(database, nil, 0o600); err != nil {
		t.Fatal(err)
	}
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
