package sqlite

import (
	"errors"
	"fmt"
	"testing"

	"redrive/internal/fault"
)

// The words are read by people on pages and by scripts in logs.
func TestFault_SaysWhatHappenedAndWhatToDo(t *testing.T) {
	said := errors.New("what the engine said")
	for _, c := range []struct {
		kind error
		want string
	}{
		{fault.ErrBusy, "another process is keeping the database /d/jobs.db busy; try again (what the engine said)"},
		{fault.ErrStarved, "the database /d/jobs.db could not open another file or allocate memory; raise the limits of this process, " +
			"and writing resumes automatically (what the engine said)"},
		{fault.ErrStorageFull, "the disk that holds the database /d/jobs.db is full; make room, and writing resumes automatically " +
			"(what the engine said)"},
		{fault.ErrReadOnly, "the database file /d/jobs.db is read-only; make it writable for the user of this program, " +
			"then restart the program (what the engine said)"},
		{fault.ErrUnsafe, "what the engine said"},
		{fault.ErrCorrupt, "the database file /d/jobs.db is damaged; restore a backup, or copy out what can still be read: " +
			"sqlite3 '/d/jobs.db' .recover | sqlite3 NEW-FILE (what the engine said)"},
		{fault.ErrBroken, "the database file /d/jobs.db failed, and the last writes may be lost; check the disk, " +
			"then restart the program (what the engine said)"},
	} {
		f := faultOf("/d/jobs.db", c.kind, said)
		if f.Error() != c.want || !errors.Is(f, c.kind) || !errors.Is(f, said) {
			t.Errorf("%v is %q, want %q", c.kind, f, c.want)
		}
		if f.Error() != f.Words && f.Error() != fmt.Sprintf("%s (%v)", f.Words, said) {
			t.Errorf("the advice of %q is %q", f, f.Words)
		}
		if f.Where.String() != "path=/d/jobs.db" {
			t.Errorf("the log names it %s", f.Where)
		}
	}
}
