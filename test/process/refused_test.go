package process_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"redrive/test/rig"
)

// The exit status tells a service manager whether another start can help: 2 for the
// command line, 3 for the database, each in one line.
func TestServe_ExitStatusSaysWhatIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rig.Write(t, dir, "text.db", "hello world\n")
	rig.Statement(t, filepath.Join(dir, "foreign.db"), "CREATE TABLE t (a)")
	rig.Statement(t, filepath.Join(dir, "named.db"), "PRAGMA application_id = 7")
	rig.Start(t, dir, "--db", "newer.db").Stop(syscall.SIGTERM)
	rig.Statement(t, filepath.Join(dir, "newer.db"), "PRAGMA user_version = 999")
	for _, test := range []struct {
		code int
		args string
		says string
	}{
		{3, "--db text.db", "text.db is not a Redrive database"},
		{3, "--db foreign.db", "of another program"},
		{3, "--db named.db", "of another program"},
		{3, "--db newer.db", "use a newer version"},
		{2, "--listen 127.0.0.1:99999", "99999 is not a port"},
		{2, "--listen 127.0.0.1:-1", "-1 is not a port"},
		{2, "--listen 127.0.0.1", "is not an address"},
	} {
		code, _, stderr := rig.Finish(t, rig.Command(t, dir, append([]string{"serve", "--listen", "127.0.0.1:0"}, strings.Fields(test.args)...)...))
		if code != test.code || !strings.Contains(stderr, test.says) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, want %d: %s", test.args, code, test.code, stderr)
		}
	}
}

// A start that is refused before it could serve a client leaves no database behind, which
// the next command would take for the one that was meant.
func TestServe_RefusedLeavesNoNewDatabase(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, args := range map[string][]string{
		"a port in use": {"--listen", taken.Addr().String()},
		"no login":      {"--listen", "0.0.0.0:0"},
	} {
		dir := t.TempDir()
		if code, _, stderr := rig.Finish(t, rig.Command(t, dir, append([]string{"serve"}, args...)...)); code == 0 {
			t.Errorf("%s: exit 0: %s", name, stderr)
		}
		if left := filesIn(t, dir); len(left) > 0 {
			t.Errorf("%s: %q were left", name, left)
		}
	}
}

// A database that was there before a start that is refused stays as it was.
func TestServe_RefusedKeepsTheDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := rig.Start(t, dir)
	id := p.Post(`{"type":"t"}`)
	p.Stop(syscall.SIGTERM)
	if code, _, stderr := rig.Finish(t, rig.Command(t, dir, "serve", "--listen", "0.0.0.0:0")); code != 2 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if code, body := rig.Start(t, dir).Answer("GET", "/api/v1/jobs/"+id, ""); code != 200 {
		t.Errorf("%d: %s", code, body)
	}
}

func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names
}
