package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const beforeReload = `
policy: {max_attempts: 1}
handlers: {shell.fail: {exec: {command: [/bin/false]}}}
`

const afterReload = `
policy: {max_attempts: 2, strategy: constant, initial_interval: 1ms, jitter: false}
handlers: {shell.fail: {exec: {command: [/bin/false]}}, shell.new: {exec: {command: [/bin/true]}}}
hosts: [redrive.example]
`

func TestReload_TakesEffectWithoutARestart(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "redrive.yaml", beforeReload)
	p := startProcess(t, dir)
	waits := p.post(`{"type":"shell.new"}`)
	write(t, dir, "redrive.yaml", afterReload)
	code, stdout, stderr := finish(t, command(t, dir, "reload"))
	const want = "Reloaded: handlers, policy.\nThese take effect after a restart: hosts.\n"
	if code != 0 || stdout != want {
		t.Fatalf("exit %d: %s%s, want %s", code, stdout, stderr, want)
	}
	p.until(func(now totals) bool { return now.Succeeded == 1 })
	if d := get[detail](t, p.url+"/api/v1/jobs/"+waits); d.Job.State != "completed" {
		t.Errorf("the job that waited for its handler is %s", d.Job.State)
	}
	p.post(`{"type":"shell.fail"}`)
	p.until(func(now totals) bool { return now.Failed == 2 })
	write(t, dir, "redrive.yaml", beforeReload)
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.says(`changed="[handlers policy]" needs_restart=[]`)
}

func TestReload_OfAFileThatIsWrongChangesNothing(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "redrive.yaml", beforeReload)
	p := startProcess(t, dir)
	for text, want := range map[string]string{
		"":                                     "is empty",
		afterReload + "hadnlers: {}\nttr: 5\n": "did you mean handlers?",
		afterReload + "queues: {a: {policy: nosuch}}\n":                                           `there is no policy "nosuch"`,
		strings.ReplaceAll(afterReload, "/bin/true", "/bin/none"):                                 "handlers.shell.new.exec.command: cannot be run",
		strings.ReplaceAll(afterReload, "exec: {command: [/bin/true]}", "http: {url: 'ftp://x'}"): "handlers.shell.new.http.url: ",
	} {
		write(t, dir, "redrive.yaml", text)
		if code, _, stderr := finish(t, command(t, dir, "reload")); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("exit %d: %s; want %q", code, stderr, want)
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.says("The configuration was not reloaded.")
	if err := os.Remove(filepath.Join(dir, "redrive.yaml")); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := finish(t, command(t, dir, "reload")); code != 2 || !strings.Contains(stderr, "no such file") {
		t.Errorf("without the file: exit %d, %s", code, stderr)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "redrive.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := finish(t, command(t, dir, "reload")); code != 2 || !strings.Contains(stderr, "not a regular file") {
		t.Errorf("of a pipe: exit %d, %s", code, stderr)
	}
	p.post(`{"type":"shell.fail"}`)
	p.until(func(now totals) bool { return now.Failed == 1 && now.States["discarded"] == 1 })
	if now := p.until(func(totals) bool { return true }); now.Failed != 1 {
		t.Errorf("%d attempts failed, want the 1 of the first configuration", now.Failed)
	}
}

// A configuration that is in effect is never reported as refused, also while nothing can
// be written.
func TestReload_TakesEffectWhileTheDatabaseIsBusy(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "redrive.yaml", beforeReload)
	p := startProcess(t, dir)
	waits := p.post(`{"type":"shell.new"}`)
	other, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "redrive.db")+"?_txlock=immediate&_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	lock, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "redrive.yaml", afterReload)
	code, stdout, stderr := finish(t, command(t, dir, "reload"))
	const want = "Reloaded: handlers, policy.\nThese take effect after a restart: hosts.\n"
	if code != 0 || stdout != want {
		t.Errorf("exit %d: %s%s, want %s", code, stdout, stderr, want)
	}
	p.says("The jobs that waited for a handler could not be freed. Redrive will try again.")
	p.says("A reload could not be recorded in the audit log.")
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	p.until(func(now totals) bool { return now.Succeeded == 1 })
	if d := get[detail](t, p.url+"/api/v1/jobs/"+waits); d.Job.State != "completed" {
		t.Errorf("the job that waited for its handler is %s", d.Job.State)
	}
	if strings.Contains(p.stderr.String(), "was not reloaded") {
		t.Errorf("the log says\n%s", p.stderr)
	}
}

// The first configuration takes effect without a restart, too.
func TestReload_ReadsAFileThatWasNotThereAtTheStart(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, dir)
	code, _, stderr := finish(t, command(t, dir, "reload"))
	if want := filepath.Join(dir, "redrive.yaml") + ": no such file"; code != 2 || !strings.Contains(stderr, want) {
		t.Errorf("without a file: exit %d, %s, want %q", code, stderr, want)
	}
	waits := p.post(`{"type":"shell.new"}`)
	write(t, dir, "redrive.yaml", afterReload)
	code, stdout, stderr := finish(t, command(t, dir, "reload"))
	if want := "Reloaded: handlers, policy.\nThese take effect after a restart: hosts.\n"; code != 0 || stdout != want {
		t.Fatalf("exit %d: %s%s, want %s", code, stdout, stderr, want)
	}
	p.until(func(now totals) bool { return now.Succeeded == 1 })
	if d := get[detail](t, p.url+"/api/v1/jobs/"+waits); d.Job.State != "completed" {
		t.Errorf("the job that waited for its handler is %s", d.Job.State)
	}
	type log struct{ Entries []struct{ Subject string } }
	if all := get[log](t, p.url+"/api/v1/audit?action=config.reload").Entries; len(all) != 1 || all[0].Subject != "redrive.yaml" {
		t.Errorf("the audit log has %+v", all)
	}
}

// Editors and people find the place of each error on a line of its own.
func TestReload_PrintsEachErrorOnItsLine(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, dir)
	write(t, dir, "redrive.yaml", "hadnlers: {}\nworkers: 0\n")
	code, _, stderr := finish(t, command(t, dir, "reload"))
	lines := strings.Split(stderr, "\n")
	if code != 2 || len(lines) != 3 || !strings.HasPrefix(lines[0], "dashboard: redrive.yaml:1: hadnlers: no such field") ||
		!strings.HasPrefix(lines[1], "dashboard: redrive.yaml:2: workers: 0 is not") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.says("; redrive.yaml:2: workers: 0 is not") // a record of the log is one line
}

func TestReload_NeedsADashboard(t *testing.T) {
	dir := t.TempDir()
	if code, _, stderr := finish(t, command(t, dir, "reload")); code != 2 || !strings.Contains(stderr, "no such file") {
		t.Errorf("without a database: exit %d, %s", code, stderr)
	}
	p := startProcess(t, dir)
	p.stop(syscall.SIGTERM)
	if code, _, stderr := finish(t, command(t, dir, "reload")); code != 2 || !strings.Contains(stderr, "no dashboard has redrive.db open") {
		t.Errorf("without a dashboard: exit %d, %s", code, stderr)
	}
}
