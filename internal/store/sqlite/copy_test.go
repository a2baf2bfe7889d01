package sqlite

import (
	"os"
	"path/filepath"
	"testing"
)

// Where there are no hard links, the name is taken before the copy gets it. When that
// fails, nothing is left that would pass for a complete backup.
func TestSettleNew_LeavesNothingWhenItFails(t *testing.T) {
	dir := t.TempDir()
	to := filepath.Join(dir, "backup.db")
	if err := nameNewCopy(filepath.Join(dir, "gone"), to); err == nil {
		t.Error("a copy that is not there got a name")
	}
	if info, err := os.Stat(to); !os.IsNotExist(err) {
		t.Errorf("the backup is %v, %v", info, err)
	}
}
