package sqlite

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that was put in the place of another one, without the log of that one, has no log to
// miss, even if the first process that opens it is killed before it writes a job.
func TestLock_AFileInThePlaceOfAnotherMissesNoLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	create := func(path string) {
		t.Helper()
		pool, err := sql.Open("sqlite", "file:"+path)
		must(err)
		_, err = pool.Exec("CREATE TABLE any_table (n)")
		must(errors.Join(err, pool.Close()))
	}
	open := func() *locks {
		t.Helper()
		l, err := lock(t.Context(), path)
		must(err)
		must(l.noteMade())
		return l
	}
	logged := func(l *locks) bool {
		t.Helper()
		text, err := l.file.text()
		must(err)
		return strings.Contains(text, " logged\n")
	}

	create(path)
	first := open()
	must(os.WriteFile(path+"-wal", []byte("jobs"), 0o600))
	must(first.noteLog(true))
	must(first.Close())
	again := open()
	if !logged(again) {
		t.Error("the log of the same file is not known any more")
	}
	must(again.Close())

	must(os.Remove(path + "-wal"))
	create(path + ".other")
	must(os.Rename(path+".other", path))
	for range 2 {
		l := open()
		if logged(l) {
			t.Error("the file has the note of the one before")
		}
		must(l.Close())
	}

	last := open()
	must(os.WriteFile(path+"-wal", []byte("jobs"), 0o600))
	must(last.noteLog(true))
	if !logged(last) {
		t.Error("the log of the file is not known")
	}
	must(last.Close())
}
