package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shopDatabase is a database of Laravel with six failed jobs.
func shopDatabase(t *testing.T, dir string) (path string) {
	t.Helper()
	dump, err := os.ReadFile("../../internal/source/testdata/laravel/sqlite-dump.sql")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "shop.sqlite")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(string(dump) + ";UPDATE failed_jobs SET connection = 'database'"); err != nil { // some have failed on Redis
		t.Fatal(err)
	}
	return path
}

func TestSourceCheck_SaysWhatItSeesAndWouldDo(t *testing.T) {
	dir := t.TempDir()
	path := shopDatabase(t, dir)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "redrive.yaml", "sources: {shop: {preset: laravel, url: 'sqlite://"+path+"', allow: [replay], zone: Europe/Berlin}}\n")
	code, stdout, stderr := finish(t, command(t, dir, "source", "check"))
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{
		"shop: Laravel (database queue)\n", "  Sees      6 dead letters\n",
		`2026-11-22 10:49:33 UTC orders App\Jobs\Until App\Jobs\Declined: card declined: 51 for order 13`,
		"  Does      replay, when", "  Refuses   discard, because allow", "  Hazard    A unique job",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(stdout)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the database has changed, %v", err)
	}
}

func TestSourceCheck_FailsWhenOneCannotBeAttached(t *testing.T) {
	dir := t.TempDir()
	path := shopDatabase(t, dir)
	write(t, dir, "redrive.yaml", "sources:\n  a: {preset: initphp, url: 'sqlite://"+path+"'}\n  b: {preset: laravel, url: 'sqlite://"+path+"'}\n")
	code, stdout, stderr := finish(t, command(t, dir, "source", "check", "redrive.yaml"))
	if code != 1 || !strings.Contains(stderr, "1 of 2 sources cannot be attached") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if !strings.Contains(stdout, "Cannot be attached: this is not InitPHP Queue (PDO)") || !strings.Contains(stdout, "6 dead letters") {
		t.Errorf("%s", stdout)
	}
}

func TestSourceCheck_WithoutSources(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "redrive.yaml", "{}\n")
	if code, _, stderr := finish(t, command(t, dir, "source", "check")); code != 2 || !strings.Contains(stderr, "has no section sources") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestSourceDiscover_NamesThePresetThatFits(t *testing.T) {
	dir := t.TempDir()
	path := shopDatabase(t, dir)
	code, stdout, stderr := finish(t, command(t, dir, "source", "discover", "sqlite://"+path))
	if code != 0 || !strings.HasPrefix(stdout, "laravel: ") || strings.Contains(stdout, "initphp") || !strings.Contains(stdout, "preset: laravel") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	write(t, dir, "empty.sqlite", "")
	code, _, stderr = finish(t, command(t, dir, "source", "discover", "sqlite://"+filepath.Join(dir, "empty.sqlite")))
	if code != 1 || !strings.Contains(stderr, "no preset fits") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, stderr = finish(t, command(t, dir, "source", "discover", "ftp://x")); code != 2 {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
