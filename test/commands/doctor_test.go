package commands_test

import (
	"bytes"
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"redrive/test/rig"
)

// The doctor's exit code says whether a database is sound: 0 when it is, 2 when
// there is none to look at, something else when a check found a problem.
func TestDoctor_ExitCodes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		harm    func(t *testing.T, file string)
		healthy bool
		says    string
	}{
		"intact": {func(*testing.T, string) {}, true, "ok"},
		"a changed entry": {func(t *testing.T, file string) {
			tamper(t, file, `DROP TRIGGER audit_keeps`, `UPDATE audit SET actor = 'nobody' WHERE seq = 1`)
		}, false, "audit"},
		"a missing tail": {func(t *testing.T, file string) {
			tamper(t, file, `DROP TRIGGER audit_stays`, `DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)`)
		}, false, "audit"},
		"a damaged page": {func(t *testing.T, file string) {
			data, err := os.ReadFile(file)
			if err == nil {
				for at := 8192; at+4096 <= len(data); at += 4096 {
					copy(data[at:], bytes.Repeat([]byte{0xa5}, 512))
				}
				err = os.WriteFile(file, data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, false, "redrive.db"},
		"another file": {func(t *testing.T, file string) {
			rig.Write(t, filepath.Dir(file), "redrive.db", "a letter to my aunt, no database at all")
		}, false, "redrive.db"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p := rig.Start(t, dir)
			p.Send(t, "/api/v1/jobs", "application/json", `{"type":"t","queue":"orders"}`, http.StatusCreated)
			for _, act := range []string{"pause", "resume"} {
				p.Send(t, "/api/v1/queues/orders/"+act, "application/json", "", http.StatusOK)
			}
			p.Stop(syscall.SIGTERM)
			test.harm(t, filepath.Join(dir, "redrive.db"))
			code, out, problems := rig.Finish(t, rig.Command(t, dir, "doctor"))
			if (code == 0) != test.healthy || code == 2 || !strings.Contains(out+problems, test.says) {
				t.Errorf("exit %d: %s%s", code, out, problems)
			}
		})
	}
	if code, _, problems := rig.Finish(t, rig.Command(t, t.TempDir(), "doctor")); code != 2 || !strings.Contains(problems, "redrive.db") {
		t.Errorf("without a database: exit %d: %s", code, problems)
	}
}

// What is no database is said so in one line, with the exit code of a file that
// another start does not help.
func TestDoctor_OfWhatIsNoDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rig.Write(t, dir, "empty.db", "")
	for _, path := range []string{dir, filepath.Join(dir, "empty.db")} {
		code, out, problems := rig.Finish(t, rig.Command(t, dir, "doctor", "--db", path))
		if code != 3 || out != "" || !strings.Contains(problems, path+" is not a Redrive database") || strings.Count(problems, "\n") != 1 {
			t.Errorf("%s: exit %d: %s%s", path, code, out, problems)
		}
	}
}

// tamper changes a database behind the program's back.
func tamper(t *testing.T, file string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
