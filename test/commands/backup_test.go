package commands_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"redrive/test/rig"
)

func TestBackup_OfARunningDashboardIsRestoredAfterItsEnd(t *testing.T) {
	dir := t.TempDir()
	p := rig.Start(t, dir)
	id := p.Post(`{"type":"t"}`)
	if code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "backup", "jobs.bak")); code != 0 || !strings.HasPrefix(stdout, "jobs.bak is a complete, verified copy of redrive.db: ") || stderr != "" {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	p.Post(`{"type":"t"}`)
	if code, _, stderr := rig.Finish(t, rig.Command(t, dir, "restore", "jobs.bak", "--force")); code != 2 || !strings.Contains(stderr, "is in use by the process with pid") {
		t.Errorf("while it runs: exit %d, %s", code, stderr)
	}
	p.Stop(syscall.SIGTERM)
	if code, _, stderr := rig.Finish(t, rig.Command(t, dir, "restore", "jobs.bak")); code != 2 || !strings.Contains(stderr, "add --force") {
		t.Errorf("without --force: exit %d, %s", code, stderr)
	}
	if code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "restore", "jobs.bak", "--force")); code != 0 || !strings.Contains(stdout, "redrive.db.replaced-") {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	p = rig.Start(t, dir)
	if _, list, _ := rig.Finish(t, rig.Command(t, dir, "list", "--json", "--server", p.URL)); strings.Count(list, "\n") != 1 || !strings.Contains(list, id) {
		t.Errorf("after the restore there are\n%s", list)
	}
}

// asUnprivileged returns a function that runs the program as a user without any rights.
func asUnprivileged(t *testing.T) func(args ...string) (code int, stdout, stderr string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run a program as another user")
	}
	program, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := openDir(t)
	other := filepath.Join(dir, "dashboard") // the directory of the program is root's alone
	if out, err := exec.Command("cp", program, other).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return func(args ...string) (code int, stdout, stderr string) {
		t.Helper()
		cmd := exec.Command(other, args...)
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		return rig.Finish(t, cmd)
	}
}

// openDir is a directory that every user can read; those of the tests are not.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "open")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestBackupAndDoctor_SayWhichFileTheUserMayNotRead(t *testing.T) {
	run, dir, copies := asUnprivileged(t), openDir(t), openDir(t)
	file, to := filepath.Join(dir, "redrive.db"), filepath.Join(copies, "copy.db")
	allow := func(mode os.FileMode, names ...string) {
		for _, name := range names {
			if err := os.Chmod(name, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	refused := func(when, want string, args ...string) {
		t.Helper()
		code, _, stderr := run(append(args, "--db", file)...)
		for _, want := range []string{want, "permission denied", "run this command as the user who runs the dashboard"} {
			if code != 1 || !strings.Contains(stderr, want) || strings.Count(stderr, "permission denied") != 1 {
				t.Errorf("%s, %s: exit %d: %s; want %q", when, args[0], code, stderr, want)
			}
		}
	}
	says := func(when, want string) {
		t.Helper()
		refused(when, want, "backup", to)
		refused(when, want, "doctor")
	}
	allow(0o777, copies)
	p := rig.Start(t, dir)
	p.Post(`{"type":"t"}`)
	says("while it runs", "read "+file+": ")
	allow(0o644, file)
	says("while it runs, without the log", "read "+file+"-")
	p.Stop(syscall.SIGTERM)
	refused("after its end", "write to the directory "+dir, "backup", to)
	refused("after its end", "read "+file+"-search: ", "doctor")
	allow(0o644, file+"-search")
	if code, _, stderr := run("doctor", "--db", file); code != 0 { // nothing has to be made beside it
		t.Errorf("doctor in a directory that cannot be written to: exit %d: %s", code, stderr)
	}
	allow(0o700, dir)
	says("in a closed directory", file)
	allow(0o777, dir) // SQLite makes the index of its log
	allow(0o755, copies)
	want := "write to the directory " + copies + ": permission denied; name another one"
	if code, _, stderr := run("backup", to, "--db", file); code != 1 || !strings.Contains(stderr, want) {
		t.Errorf("to a closed directory: exit %d: %s", code, stderr)
	}
}
