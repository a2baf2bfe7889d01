package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"redrive/test/rig"
)

// Beside the database of a running dashboard no command needs its address, and no
// token once people have to log in.
func TestConnect_FindsTheDashboardByItsDatabase(t *testing.T) {
	dir := t.TempDir()
	rig.Start(t, dir)
	if code, _, stderr := rig.WithInput(t, dir, "a long password\n", nil, "user", "add", "ana", "--role", "admin"); code != 0 {
		t.Fatal(stderr)
	}
	code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "enqueue", "email.send", "1"))
	id, _, _ := strings.Cut(stdout, " ")
	if code != 0 || id == "" {
		t.Fatalf("enqueue: exit %d: %s", code, stderr)
	}
	file := filepath.Join(dir, "redrive.db")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"list"}, id},
		{[]string{"show", id}, id},
		{[]string{"discard", "--filter", "type:email.send", "--dry-run"}, "Nothing was done."},
		{[]string{"health"}, "ready"},
	} {
		code, stdout, stderr := rig.Finish(t, rig.Command(t, t.TempDir(), append(c.args, "--db", file)...))
		if code != 0 || !strings.Contains(stdout, c.says) {
			t.Errorf("%q: exit %d: %s%s", c.args, code, stdout, stderr)
		}
	}
	inEnv := rig.Command(t, t.TempDir(), "list")
	inEnv.Env = append(inEnv.Env, "REDRIVE_DB="+file)
	if code, stdout, stderr := rig.Finish(t, inEnv); code != 0 || !strings.Contains(stdout, id) {
		t.Errorf("by REDRIVE_DB: exit %d: %s", code, stderr)
	}
}

// A flag goes before the environment: a user who names a database never acts on another
// dashboard.
func TestConnect_PrefersFlagsToTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	p := rig.Start(t, dir)
	for _, c := range []struct {
		env  string
		args []string
		code int
		says string
	}{
		{"REDRIVE_SERVER=http://127.0.0.1:1", []string{"--db", "redrive.db"}, 0, "ready"},
		{"REDRIVE_DB=none.db", []string{"--server", p.URL}, 0, "ready"},
		{"REDRIVE_DB=none.db", nil, 1, "none.db: there is no such file"},
		{"REDRIVE_SERVER=http://127.0.0.1:1", nil, 1, "127.0.0.1:1"},
		{"REDRIVE_SERVER=", []string{"--server", p.URL, "--db", "redrive.db"}, 1, "write one of them"},
	} {
		cmd := rig.Command(t, dir, append([]string{"health"}, c.args...)...)
		cmd.Env = append(cmd.Env, c.env)
		if code, stdout, stderr := rig.Finish(t, cmd); code != c.code || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%s %q: exit %d: %s%s", c.env, c.args, code, stdout, stderr)
		}
	}
}

// A command must not make, change or open a database to learn that no dashboard serves it.
func TestConnect_LeavesADatabaseWithoutDashboardAlone(t *testing.T) {
	dir := t.TempDir()
	rig.Start(t, dir).Stop(syscall.SIGTERM)
	before := contents(t, dir)
	for _, args := range [][]string{{"list"}, {"reload"}, {"show", "01890000-0000-7000-8000-000000000000"}} {
		code, _, stderr := rig.Finish(t, rig.Command(t, dir, append(args, "--db", "redrive.db")...))
		if code != 2 || !strings.Contains(stderr, "no dashboard has redrive.db open") {
			t.Errorf("%q: exit %d: %s", args, code, stderr)
		}
	}
	if after := contents(t, dir); after != before {
		t.Errorf("the files were changed from\n%s to\n%s", before, after)
	}
}

// contents are the names, sizes and times of the files in a directory.
func contents(t *testing.T, dir string) (all string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		all += e.Name() + " " + info.ModTime().String() + " " + info.Mode().String() + "\n"
	}
	return all
}

// A container is healthy when the dashboard takes jobs, and not merely answers.
func TestHealth_FailsWhenTheDashboardIsNotReady(t *testing.T) {
	dir := t.TempDir()
	p := rig.Start(t, dir)
	if err := os.Rename(filepath.Join(dir, "redrive.db"), filepath.Join(dir, "moved.db")); err != nil {
		t.Fatal(err)
	}
	p.Says("was moved away")
	code, _, stderr := rig.Finish(t, rig.Command(t, dir, "health", "--server", p.URL))
	if code != 1 || !strings.Contains(stderr, "is not ready: ") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if err := os.Rename(filepath.Join(dir, "moved.db"), filepath.Join(dir, "redrive.db")); err != nil {
		t.Fatal(err)
	}
	p.Stop(syscall.SIGTERM)
	if code, _, stderr := rig.Finish(t, rig.Command(t, dir, "health", "--server", p.URL)); code != 1 || !strings.Contains(stderr, "is one running there?") {
		t.Errorf("after the end: exit %d: %s", code, stderr)
	}
}
