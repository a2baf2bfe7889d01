package reach

import (
	"os"
	"path/filepath"
	"testing"
)

// In a directory that all users can write to, a lock file of another user would lead the
// token of the environment to a stranger.
func TestConnect_TakesNoForeignDatabaseByItself(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to another user")
	}
	db := filepath.Join(t.TempDir(), "redrive.db")
	for _, name := range []string{db, db + ".lock"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !belongToUser(db, db+".lock") {
		t.Error("one's own files count as those of another user")
	}
	if err := os.Chown(db+".lock", 12345, -1); err != nil {
		t.Fatal(err)
	}
	if belongToUser(db, db+".lock") {
		t.Error("a lock file of another user counts as one's own")
	}
}
