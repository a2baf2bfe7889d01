package process_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"redrive/test/rig"
)

// A damaged database ends the process with its own exit code, and the last line
// says which file it is and what to do.
func TestServe_DamageEndsTheProcess(t *testing.T) {
	dir := t.TempDir()
	p := rig.Start(t, dir)
	payload := strings.Repeat("x", 3000)
	for range 300 {
		p.Post(`{"type":"t","payload":"` + payload + `"}`)
	}
	p.Stop(syscall.SIGTERM)
	path := filepath.Join(dir, "redrive.db")
	data, err := os.ReadFile(path)
	if err != nil || len(data) < 240*4096 {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	for at := 120 * 4096; at < len(data)-40*4096; at += 4096 {
		copy(data[at:], "no page begins like this")
	}
	rig.Write(t, dir, "redrive.db", string(data))

	p = rig.Start(t, dir)
	if response, err := http.Get(p.URL + "/api/v1/jobs?limit=200"); err == nil {
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body) // the process ends meanwhile
		if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "storage_damaged") {
			t.Errorf("%s: %.300s", response.Status, body)
		}
	}
	p.Wait()
	lines := strings.Split(strings.TrimSpace(p.Stderr.String()), "\n")
	last := lines[len(lines)-1]
	if p.Code() != 3 || !strings.Contains(last, path) || !strings.Contains(last, ".recover") {
		t.Errorf("exit %d: %s", p.Code(), last)
	}
}

func TestServe_DamageAtTheStart(t *testing.T) {
	dir := t.TempDir()
	rig.Start(t, dir).Stop(syscall.SIGTERM)
	path := filepath.Join(dir, "redrive.db")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rig.Write(t, dir, "redrive.db", string(data[:100])+strings.Repeat("\xff", len(data)-100))
	code, _, stderr := rig.Finish(t, rig.Command(t, dir, "--listen", "127.0.0.1:0"))
	if code != 3 || !strings.Contains(stderr, path) || !strings.Contains(stderr, ".recover") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// Pages can be looked at while the disk is full, also after a crash.
func TestServe_StartsOnAFullDiskAfterAKill(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("a small disk cannot be mounted here:", err)
	}
	t.Cleanup(func() { // the killed program left its handler behind, which still uses the directory
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	rig.Write(t, dir, "redrive.yaml", "handlers: {t: {exec: {command: [/bin/sleep, '5']}}}\n")
	p := rig.Start(t, dir)
	p.Post(`{"type":"t"}`)
	p.Until(func(now rig.Totals) bool { return now.States["active"] == 1 })
	p.Stop(syscall.SIGKILL)
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 4<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	p = rig.Start(t, dir)
	get := func(path string) (int, string) {
		response, err := http.Get(p.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body)
	}
	status, body := get("/readyz")
	for sent := 0; status == http.StatusOK; status, body = get("/readyz") { // the files have some room of their own
		response, err := http.Post(p.URL+"/api/v1/jobs", "application/json", strings.NewReader(`{"type":"other"}`))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if sent++; sent > 5000 {
			t.Fatal("the disk does not fill")
		}
	}
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "is full") {
		t.Errorf("readyz: %d %s", status, body)
	}
	if status, _ := get("/dead-letters"); status != http.StatusOK {
		t.Errorf("a page of a full disk: %d", status)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	p.Until(func(now rig.Totals) bool { return now.Failed == 1 }) // the one that the dead process left
	for late := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if status, body = get("/readyz"); status == http.StatusOK {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("readyz with room on the disk: %d %s", status, body)
		}
	}
	p.Says("can be written again")
}
