package process_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"redrive/test/rig"
)

// Every command that opens a database refuses one whose files are not as they must
// be, in one line, with the exit code of what another start does not help.
func TestCommands_RefuseAMissingDatabaseBesideItsLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := rig.Start(t, dir)
	p.Post(`{"type":"t"}`)
	p.Stop(syscall.SIGKILL)
	if err := os.Remove(filepath.Join(dir, "redrive.db")); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "redrive.db-wal"))
	if err != nil || len(log) == 0 {
		t.Fatalf("the log has %d bytes, %v", len(log), err)
	}
	for code, args := range map[int][][]string{
		2: {{"seed", "--db", "redrive.db"}, {"token", "list"}},
		3: {{"serve", "--listen", "127.0.0.1:0"}, {"doctor"}, {"user", "add", "ana", "--role", "admin"}},
	} {
		for _, args := range args {
			cmd := rig.Command(t, dir, args...)
			cmd.Stdin = strings.NewReader("a long password\n")
			got, out, problems := rig.Finish(t, cmd)
			if got != code || code == 3 && (!strings.Contains(problems, "is missing, but its log") || strings.Count(problems, "\n") != 1) {
				t.Errorf("%q: exit %d, want %d: %s%s", args, got, code, out, problems)
			}
		}
	}
	if after, err := os.ReadFile(filepath.Join(dir, "redrive.db-wal")); err != nil || string(after) != string(log) {
		t.Errorf("the log has %d bytes now, %d before: %v", len(after), len(log), err)
	}
}

// So is one whose log is missing, which held the newest jobs when its process was killed.
// Without the lock file it starts with what is left.
func TestCommands_RefuseADatabaseWithoutItsLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := rig.Start(t, dir)
	p.Post(`{"type":"t"}`)
	p.Stop(syscall.SIGKILL)
	if err := os.Remove(filepath.Join(dir, "redrive.db-wal")); err != nil {
		t.Fatal(err)
	}

	for _, args := range [][]string{{"doctor"}, {"backup", "copy.db"}, {"serve", "--listen", "127.0.0.1:0"}} {
		code, out, problems := rig.Finish(t, rig.Command(t, dir, args...))
		if code != 3 || !strings.Contains(problems, "redrive.db-wal is missing or empty") || strings.Count(problems, "\n") != 1 {
			t.Fatalf("%q: exit %d: %s%s", args, code, out, problems) // a start that succeeds does not end
		}
	}

	if err := os.Remove(filepath.Join(dir, "redrive.db.lock")); err != nil {
		t.Fatal(err)
	}
	p = rig.Start(t, dir)
	if status, body := p.Answer("GET", "/readyz", ""); status != http.StatusOK {
		t.Errorf("without the lock file: %d %s", status, body)
	}
}

func TestServe_StopsTakingWorkWhileItsDatabaseIsMoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := rig.Start(t, dir)
	p.Post(`{"type":"t"}`)
	file := filepath.Join(dir, "redrive.db")
	if err := os.Rename(file, file+".moved"); err != nil {
		t.Fatal(err)
	}
	p.Says("was moved away") // without a request
	if status, body := p.Answer("POST", "/api/v1/jobs", `{"type":"t"}`); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "storage_unsafe") || !strings.Contains(body, "move it back") {
		t.Errorf("a job: %d %s", status, body)
	}
	if status, body := p.Answer("GET", "/readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, "was moved away") {
		t.Errorf("readyz: %d %s", status, body)
	}
	if status, body := p.Answer("GET", "/queues", ""); status != http.StatusOK || !strings.Contains(body, "was moved away") {
		t.Errorf("a page: %d, with the banner: %v", status, strings.Contains(body, "was moved away"))
	}
	code, _, problems := rig.Finish(t, rig.Command(t, dir, "--listen", "127.0.0.1:0", "--db", "redrive.db.moved"))
	if code != 2 || !strings.Contains(problems, "in use") {
		t.Errorf("a second one under the other name: exit %d: %s", code, problems)
	}
	if err := os.Rename(file+".moved", file); err != nil {
		t.Fatal(err)
	}
	p.Says("can be written again")
	if status, body := p.Answer("POST", "/api/v1/jobs", `{"type":"t"}`); status != http.StatusCreated {
		t.Errorf("a job afterwards: %d %s", status, body)
	}
}

// A child that was forked just before the kill must not keep the next start away.
func TestServe_StartsAtOnceAfterAKillWithPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", "workers: 8\nhandlers: {t: {exec: {command: [/bin/true]}}}\n")
	for range 5 {
		p := rig.Start(t, dir)
		for range 30 {
			p.Post(`{"type":"t"}`)
		}
		p.Stop(syscall.SIGKILL)
	}
}
