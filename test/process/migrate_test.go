package process_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"redrive/internal/store/postgres/postgrestest"
	"redrive/test/rig"
)

// A dashboard goes on with its jobs on a server, and later in a file again.
func TestMigrate_MovesADashboardThereAndBack(t *testing.T) {
	dir, dsn := t.TempDir(), postgrestest.New(t)
	p := rig.Start(t, dir)
	first := p.Post(`{"type":"t"}`)

	migrate := func(from, to string) (code int, stdout, stderr string) {
		t.Helper()
		return rig.Finish(t, rig.Command(t, dir, "migrate", "--from", from, "--to", to))
	}
	if code, _, stderr := migrate("redrive.db", dsn); code != 2 || !strings.Contains(stderr, "is in use by the process with pid") {
		t.Errorf("while it runs: exit %d, %s", code, stderr)
	}
	p.Stop(syscall.SIGTERM)

	code, stdout, stderr := migrate("redrive.db", dsn)
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	for _, said := range []string{"is a complete, verified copy of redrive.db: ", "Not copied: sessions (everyone logs in again) and the search index",
		"dashboard serve --db 'postgres://", "Keep redrive.db, which is as it was"} {
		if !strings.Contains(stdout, said) {
			t.Errorf("it says\n%s\nwithout %q", stdout, said)
		}
	}
	if code, _, stderr := migrate("redrive.db", dsn); code != 2 || !strings.Contains(stderr, "is not empty, and was left as it is") {
		t.Errorf("a second time: exit %d, %s", code, stderr)
	}

	p = rig.Start(t, dir, "--db", dsn)
	second := p.Post(`{"type":"t"}`)
	p.Stop(syscall.SIGTERM)

	if code, stdout, stderr := migrate(dsn, "back.db"); code != 0 {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	p = rig.Start(t, dir, "--db", "back.db")
	_, list, _ := rig.Finish(t, rig.Command(t, dir, "list", "--json", "--server", p.URL))
	if strings.Count(list, "\n") != 2 || !strings.Contains(list, first) || !strings.Contains(list, second) {
		t.Errorf("at the end there are\n%s", list)
	}
}

// A dashboard goes on with its jobs on another server. What is told of both never has a password.
func TestMigrate_MovesADashboardToAnotherServer(t *testing.T) {
	dir, old := t.TempDir(), postgrestest.New(t)
	moved := postgrestest.NewCluster(t).DSN("postgres")

	p := rig.Start(t, dir, "--db", old)
	first := p.Post(`{"type":"t"}`)

	migrate := func(from, to string) (code int, stdout, stderr string) {
		t.Helper()
		return rig.Finish(t, rig.Command(t, dir, "migrate", "--from", from, "--to", to))
	}
	code, _, stderr := migrate(old, moved)
	if code != 2 || !strings.Contains(stderr, "; stop it, and what stands by for it") {
		t.Errorf("while it runs: exit %d, %s", code, stderr)
	}
	p.Stop(syscall.SIGTERM)

	withPassword := func(dsn string) string { return strings.Replace(dsn, "postgres@", "postgres:hidden@", 1) }
	shown := func(dsn string) string {
		address, _, _ := strings.Cut(dsn, "?")
		return strings.Replace(address, "postgres@", "postgres:xxxxx@", 1)
	}

	code, stdout, stderr := migrate(withPassword(old), withPassword(moved))
	if code != 0 || stderr != "" || strings.Contains(stdout, "hidden") {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	for _, said := range []string{shown(moved) + " is a complete, verified copy of " + shown(old) + ": ", "Keep " + shown(old) + ", which is as it was"} {
		if !strings.Contains(stdout, said) {
			t.Errorf("it says\n%s\nwithout %q", stdout, said)
		}
	}

	p = rig.Start(t, dir, "--db", moved)
	second := p.Post(`{"type":"t"}`)
	_, list, _ := rig.Finish(t, rig.Command(t, dir, "list", "--json", "--server", p.URL))
	if strings.Count(list, "\n") != 2 || !strings.Contains(list, first) || !strings.Contains(list, second) {
		t.Errorf("at the end there are\n%s", list)
	}
}

// A command line that makes no sense changes nothing.
func TestMigrate_RefusesWhatIsNoDatabase(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct{ from, to, says string }{
		{"redrive.db", "mysql://ana:secret@host/db", "--to mysql://ana:***@host/db is a URL of mysql"},
		{"none.db", "new.db", "there is no database at none.db"},
	} {
		code, _, stderr := rig.Finish(t, rig.Command(t, dir, "migrate", "--from", test.from, "--to", test.to))
		if code != 2 || !strings.Contains(stderr, test.says) {
			t.Errorf("%s: exit %d, %s", test.to, code, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new.db")); err == nil {
		t.Error("a database was made")
	}
}
