package internal_test

import (
	"encoding/json"
	"os/exec"
	"testing"
)

// module is what "go list -m" and "go mod edit" tell of a module.
type module struct {
	Version string
	GoMod   string
	Require []struct{ Path, Version string }
}

func moduleOf(t *testing.T, args ...string) (m module) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	if err != nil {
		t.Fatalf("go %v: %v", args, err)
	}
	return m
}

// TestModules_LibcIsTheOneThatSQLiteAsksFor: modernc.org/sqlite is C translated
// against one version of modernc.org/libc, and is tested with no other one.
func TestModules_LibcIsTheOneThatSQLiteAsksFor(t *testing.T) {
	const libc = "modernc.org/libc"
	ours := moduleOf(t, "list", "-m", "-json", libc)
	sqlite := moduleOf(t, "list", "-m", "-json", "modernc.org/sqlite")
	for _, needs := range moduleOf(t, "mod", "edit", "-json", sqlite.GoMod).Require {
		if needs.Path == libc {
			if needs.Version != ours.Version {
				t.Errorf("%s is %s, sqlite %s asks for %s; go get %s@%s and see which module wants another one",
					libc, ours.Version, sqlite.Version, needs.Version, libc, needs.Version)
			}
			return
		}
	}
	t.Errorf("sqlite %s asks for no %s: this test can go", sqlite.Version, libc)
}
