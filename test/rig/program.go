package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Binary is the path of the program, compiled with the flags of the tests: of the packages
// that they have compiled it is only linked, and it has the race detector where they have it.
// All packages of tests share one, which is built again only when something has changed.
func Binary() (path string, err error) { return built() }

var built = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../../bin/tests/dashboard")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}

	// One package after the other: the first one builds it.
	lock, err := os.Create(path + ".lock")
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}

	var flags []string
	if as := os.Getenv("GOFLAGS"); as != "" {
		flags = []string{"GOFLAGS=" + as, "CGO_ENABLED=" + os.Getenv("CGO_ENABLED")}
	}
	return path, Build(path, flags...)
})

// Watched tells whether that program has the race detector.
func Watched() bool { return slices.Contains(strings.Fields(os.Getenv("GOFLAGS")), "-race") }

// Build makes the program as it is released, or with other variables of the Makefile.
func Build(path string, variables ...string) error {
	args := append([]string{"-s", "-C", "../..", "build", "VERSION=v9", "OUT=" + path}, variables...)
	out, err := exec.Command("make", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make build: %w: %s", err, out)
	}
	return nil
}

// Command is the built program in a directory of its own, without the environment's
// REDRIVE_*. The test fails if the race detector finds something in it.
func Command(t testing.TB, dir string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := Binary()
	if err != nil {
		t.Fatal(err)
	}
	return CommandOf(t, path, dir, args...)
}

// CommandOf is Command for the program at a path.
func CommandOf(t testing.TB, path, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "REDRIVE_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "GORACE="+os.Getenv("GORACE")+" log_path="+raceReports(t))
	return cmd
}

// raceReports is where the race detector of the test's processes writes, each into a file of
// its own. What it has written there at the end of the test is a failure, however the process
// has ended.
func raceReports(t testing.TB) (prefix string) {
	t.Helper()
	dir := t.TempDir()

	t.Cleanup(func() {
		reports, err := filepath.Glob(filepath.Join(dir, "race.*"))
		if err != nil {
			t.Error(err)
		}
		for _, report := range reports {
			text, err := os.ReadFile(report)
			if err != nil {
				t.Error(err)
			}
			t.Errorf("the program has a data race:\n%s", text)
		}
	})

	return filepath.Join(dir, "race")
}
