package main

import (
	"strings"
	"syscall"
	"testing"
)

func TestBackup_OfARunningDashboardIsRestoredAfterItsEnd(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, dir)
	id := p.post(`{"type":"t"}`)
	if code, stdout, stderr := finish(t, command(t, dir, "backup", "jobs.bak")); code != 0 || !strings.HasPrefix(stdout, "jobs.bak is a complete, verified copy of redrive.db: ") || stderr != "" {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	p.post(`{"type":"t"}`)
	if code, _, stderr := finish(t, command(t, dir, "restore", "jobs.bak", "--force")); code != 2 || !strings.Contains(stderr, "is in use by the process with pid") {
		t.Errorf("while it runs: exit %d, %s", code, stderr)
	}
	p.stop(syscall.SIGTERM)
	if code, _, stderr := finish(t, command(t, dir, "restore", "jobs.bak")); code != 2 || !strings.Contains(stderr, "add --force") {
		t.Errorf("without --force: exit %d, %s", code, stderr)
	}
	if code, stdout, stderr := finish(t, command(t, dir, "restore", "jobs.bak", "--force")); code != 0 || !strings.Contains(stdout, "redrive.db.replaced-") {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	p = startProcess(t, dir)
	if _, list, _ := finish(t, command(t, dir, "list", "--json", "--server", p.url)); strings.Count(list, "\n") != 1 || !strings.Contains(list, id) {
		t.Errorf("after the restore there are\n%s", list)
	}
}
