package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"redrive/internal/fault"
	"redrive/internal/job"
	"redrive/internal/store/health"
	"redrive/internal/store/sqlite"
)

func TestOpen_FilesBelongToTheirOwnerAlone(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := t.TempDir()
	s := open(t, Options{Database: sqlite.File{Path: filepath.Join(dir, "jobs.db")}})
	enqueue(t, s, 1)
	for name, want := range map[string]fs.FileMode{
		"jobs.db": 0o600, "jobs.db-wal": 0o600, "jobs.db-shm": 0o600, "jobs.db.lock": 0o600,
		"jobs.db-search": 0o600, "jobs.db-search-wal": 0o600, "jobs.db-search-shm": 0o600,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		check(t, err)
		if info.Mode() != want {
			t.Errorf("%q has mode %v, want %v", name, info.Mode(), want)
		}
	}
}

// A mistyped name must not lead to a new, empty database.
func TestOpen_MakesNoDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	s, err := Open(t.Context(), Options{Database: sqlite.File{Path: filepath.Join(dir, "jobs.db")}})
	if !errors.Is(err, fault.ErrUnsafe) || !strings.Contains(err.Error(), "mkdir -p "+dir) {
		t.Errorf("got %v, %v", s, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
}

func TestOpen_PathMayHaveAnyCharacter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c#d%20e&f=é;.db")
	s := open(t, Options{Database: sqlite.File{Path: path}})
	enqueue(t, s, 1)
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestOpen_RefusesASecondInstanceAndNamesTheFirst(t *testing.T) {
	s := open(t, Options{})
	link := filepath.Join(t.TempDir(), "link.db")
	check(t, os.Symlink(pathOf(t, s), link))
	for _, path := range []string{pathOf(t, s), link} {
		_, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}})
		var locked *health.LockedError
		if !errors.As(err, &locked) || locked.PID != os.Getpid() || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
			t.Errorf("opening %s again gave %v", path, err)
		}
	}
}

// TestHelperProcess is no test: it is the other process of the tests below.
func TestHelperProcess(t *testing.T) {
	path := os.Getenv("STORE_TEST_PATH")
	if path == "" {
		t.Skip("helps other tests")
	}
	s, err := Open(context.Background(), Options{Database: sqlite.File{Path: path}})
	check(t, err)
	enqueue(t, s, 7)
	if os.Getenv("STORE_TEST_BREAK") != "" {
		breakFiles(t, s)
		return
	}
	if os.Getenv("STORE_TEST_ONCE") != "" {
		check(t, s.Close())
		return
	}
	fmt.Println("ready")
	select {} // until it is killed
}

// breakFiles lets every further write of this process fail, as a broken disk
// would, and says how the store takes it.
func breakFiles(t *testing.T, s *Store) {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	check(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	check(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: limit.Max}))
	defer func() { check(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)) }()
	_, first := s.Enqueue(context.Background(), testTime, []job.Job{testJob("1")})
	<-s.Failed()
	_, second := s.Enqueue(context.Background(), testTime, []job.Job{testJob("1")})
	var sqliteError *driver.Error
	fmt.Println("broken:", errors.Is(first, fault.ErrBroken), errors.As(first, &sqliteError) && sqliteError.Code()&0xff == lib.SQLITE_IOERR, errors.Is(second, fault.ErrBroken))
}

func TestWriter_StopsForGoodAfterAnInputOutputError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	other := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$")
	other.Env = append(os.Environ(), "STORE_TEST_PATH="+path, "STORE_TEST_BREAK=1")
	out, err := other.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "broken: true true true") {
		t.Errorf("%v: %s", err, out)
	}
	s := open(t, Options{Database: sqlite.File{Path: path}})
	if n := s.Snapshot().Depths.Jobs(); n < 7 || n > 8 { // the outcome of the one that failed is open
		t.Errorf("%d jobs after a restart, want 7", n)
	}
}

func TestOpen_AfterAKillFindsEverythingAndALooseLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	other := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$")
	other.Env = append(os.Environ(), "STORE_TEST_PATH="+path)
	out, err := other.StdoutPipe()
	check(t, err)
	check(t, other.Start())
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), Options{Database: sqlite.File{Path: path}})
	var locked *health.LockedError
	if !errors.As(err, &locked) || locked.PID != other.Process.Pid {
		t.Errorf("with the other process alive: %v, want its pid %d", err, other.Process.Pid)
	}
	check(t, other.Process.Kill())
	if err := other.Wait(); err == nil {
		t.Error("the other process was not killed")
	}
	s := open(t, Options{Database: sqlite.File{Path: path}})
	if n := s.Snapshot().Depths.Jobs(); n != 7 {
		t.Errorf("%d jobs, want 7", n)
	}
}

// unchanged opens a file that has to be refused, and checks that not a byte of
// it changed.
func unchanged(t *testing.T, path string, want ...string) {
	t.Helper()
	before, err := os.ReadFile(path)
	check(t, err)
	_, err = Open(t.Context(), Options{Database: sqlite.File{Path: path}})
	for _, text := range append(want, path) {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want an error with %q", err, text)
		}
	}
	after, err := os.ReadFile(path)
	check(t, err)
	if !bytes.Equal(before, after) {
		t.Errorf("the file of %d bytes was changed, it has %d now", len(before), len(after))
	}
}

// edit runs statements on a file that no store has open.
func edit(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	check(t, err)
	for _, statement := range statements {
		_, err := db.Exec(statement)
		check(t, err)
	}
	check(t, db.Close())
}

func TestOpen_RefusesANewerSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}})
	check(t, err)
	check(t, s.Close())
	files, err := filepath.Glob("sqlite/migrations/*.sql")
	check(t, err)
	edit(t, path, fmt.Sprintf("PRAGMA user_version = %d", len(files)+1))
	unchanged(t, path, fmt.Sprintf("schema %d", len(files)+1), fmt.Sprintf("up to %d", len(files)))
}

func TestOpen_RefusesWhatIsNoDatabase(t *testing.T) {
	for name, content := range map[string]string{
		"text": strings.Repeat("no database at all\n", 100), "short": "x", "almost": "SQLite format 3\x00",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "notes.txt")
			check(t, os.WriteFile(path, []byte(content), 0o600))
			unchanged(t, path, "not an SQLite database")
		})
	}
}

func TestOpen_RefusesTheDatabaseOfAnotherProgram(t *testing.T) {
	for name, statements := range map[string][]string{
		"with its own id":  {"PRAGMA application_id = 77", "CREATE TABLE t (a)"},
		"without any id":   {"CREATE TABLE t (a)"},
		"in journal mode":  {"PRAGMA journal_mode = wal", "CREATE TABLE t (a)"},
		"with our version": {"CREATE TABLE jobs (a)", "PRAGMA user_version = 1"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "other.db")
			edit(t, path, statements...)
			unchanged(t, path, "another program")
		})
	}
}

func TestOpen_RefusesADirectory(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(t.Context(), Options{Database: sqlite.File{Path: dir}}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
}

func TestOpen_TakesAnEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	check(t, os.WriteFile(path, nil, 0o600))
	enqueue(t, open(t, Options{Database: sqlite.File{Path: path}}), 1)
}

func TestMigrations_WriteTheirNumber(t *testing.T) {
	s := open(t, Options{})
	var version, id, recorded int64
	check(t, s.engine.Reads().QueryRow(`SELECT user_version, application_id, (SELECT max(version_id) FROM goose_db_version)
		FROM pragma_user_version, pragma_application_id`).Scan(&version, &id, &recorded))
	if version != recorded || id != 0x52445256 {
		t.Errorf("user_version %d, recorded %d, application_id %#x", version, recorded, id)
	}
	files, err := filepath.Glob("sqlite/migrations/*.sql")
	check(t, err)
	if len(files) != int(version) {
		t.Errorf("%d migrations, the program knows %d", len(files), version)
	}
}

// SQLite before 3.51.3 can corrupt a database when its WAL is reset.
func TestSQLite_IsNewEnough(t *testing.T) {
	s := open(t, Options{})
	var major, minor, patch int
	var version string
	check(t, s.engine.Reads().QueryRow("SELECT sqlite_version()").Scan(&version))
	_, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch)
	check(t, err)
	if major*1_000_000+minor*1000+patch < 3_051_003 {
		t.Errorf("SQLite is %s", version)
	}
}

func TestSQLite_SettingsReachEveryConnection(t *testing.T) {
	s := open(t, Options{})
	relaxed := open(t, Options{Database: sqlite.File{Path: filepath.Join(t.TempDir(), "jobs.db"), Relaxed: true}})
	readers := make([]*sql.Conn, 4)
	for i := range readers {
		var err error
		readers[i], err = s.engine.Reads().Conn(t.Context())
		check(t, err)
		defer readers[i].Close()
	}
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "0", "trusted_schema": "0"} {
		if got := setting(t, s, pragma); got != want {
			t.Errorf("writer has %s = %s, want %s", pragma, got, want)
		}
	}
	if got := setting(t, relaxed, "synchronous"); got != "1" {
		t.Errorf("relaxed writer has synchronous = %s, want 1", got)
	}
	for _, c := range []struct {
		conn         *sql.Conn
		pragma, want string
	}{
		{readers[0], "query_only", "1"}, {readers[3], "query_only", "1"}, {readers[3], "trusted_schema", "0"}, {readers[2], "mmap_size", "134217728"},
	} {
		var got string
		check(t, c.conn.QueryRowContext(t.Context(), "PRAGMA "+c.pragma).Scan(&got))
		if got != c.want {
			t.Errorf("a reader has %s = %s, want %s", c.pragma, got, c.want)
		}
	}
	if _, err := readers[1].ExecContext(t.Context(), "DELETE FROM jobs"); err == nil {
		t.Error("a reader can write")
	}
}

// Any user who can read the key is an admin of the dashboard.
func TestAnnounce_LeavesTheKeyWhereOnlyItsUserCanReadIt(t *testing.T) {
	s := open(t, Options{})
	path := pathOf(t, s)
	for mode, want := range map[fs.FileMode]string{0o600: "secret", 0o640: "", 0o604: ""} {
		check(t, os.Chmod(path+".lock", mode))
		check(t, s.Announce("http://127.0.0.1:1", "secret"))
		_, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}})
		var locked *health.LockedError
		if !errors.As(err, &locked) || locked.Key != want || locked.URL != "http://127.0.0.1:1" || strings.Contains(err.Error(), "secret") {
			t.Errorf("with mode %v the lock says %+v, want the key %q", mode, locked, want)
		}
		check(t, os.Chmod(path+".lock", 0o600))
	}
}
