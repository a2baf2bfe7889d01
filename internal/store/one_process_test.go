package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"redrive/internal/fault"
	"redrive/internal/job"
	"redrive/internal/store/health"
	"redrive/internal/store/sqlite"
	"redrive/internal/store/sqlite/sqlitetest"
)

// holder is another process that has the database open, with 7 jobs in it.
func holder(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	other := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$")
	other.Env = append(os.Environ(), "STORE_TEST_PATH="+path)
	out, err := other.StdoutPipe()
	check(t, err)
	check(t, other.Start())
	t.Cleanup(func() { kill(t, other) })
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	return other
}

// kill ends a process without a warning.
func kill(t *testing.T, other *exec.Cmd) {
	t.Helper()
	if other.ProcessState != nil {
		return
	}
	check(t, other.Process.Kill())
	if err := other.Wait(); err == nil {
		t.Error("the other process was not killed")
	}
}

func openAt(path string) (*Store, error) {
	return Open(context.Background(), Options{Database: sqlite.File{Path: path}})
}

// alias gives a database a second name, or takes away what guards the first one.
type alias struct {
	name string
	make func(t *testing.T, path string) (second string)
}

var aliases = []alias{
	{"a symbolic link", func(t *testing.T, path string) string {
		link := filepath.Join(t.TempDir(), "link.db")
		check(t, os.Symlink(path, link))
		return link
	}},
	{"a hard link", func(t *testing.T, path string) string {
		link := filepath.Join(filepath.Dir(path), "link.db")
		check(t, os.Link(path, link))
		return link
	}},
	{"a removed lock file", func(t *testing.T, path string) string {
		check(t, os.Remove(path+".lock"))
		return path
	}},
	{"a bind mount of its directory", func(t *testing.T, path string) string {
		dir := t.TempDir()
		mount(t, filepath.Dir(path), dir)
		return filepath.Join(dir, filepath.Base(path))
	}},
	{"a bind mount of the file", func(t *testing.T, path string) string {
		file := filepath.Join(t.TempDir(), "mounted.db")
		check(t, os.WriteFile(file, nil, 0o600))
		mount(t, path, file)
		return file
	}},
	{"another name after a move", func(t *testing.T, path string) string {
		moved := filepath.Join(filepath.Dir(path), "moved.db")
		check(t, os.Rename(path, moved))
		return moved
	}},
}

func mount(t *testing.T, from, to string) {
	t.Helper()
	if err := syscall.Mount(from, to, "", syscall.MS_BIND, ""); err != nil {
		t.Skip("nothing can be mounted here:", err)
	}
	t.Cleanup(func() { check(t, syscall.Unmount(to, syscall.MNT_DETACH)) })
}

func TestOpen_OneProcessForEachDatabaseWhateverItsName(t *testing.T) {
	for _, second := range aliases {
		t.Run(second.name, func(t *testing.T) {
			t.Parallel()
			path := sqlitetest.New(t)
			first := holder(t, path)
			s, err := openAt(second.make(t, path))
			if err == nil {
				check(t, s.Close())
			}
			if !errors.As(err, new(*health.LockedError)) && !errors.Is(err, fault.ErrUnsafe) {
				t.Fatalf("with the other process alive: %v", err)
			}
			check(t, first.Process.Signal(syscall.Signal(0)))
		})
	}
}

// A process that tries in vain must not drop the locks of the one that it is.
func TestOpen_InVainLeavesTheLocksOfThisProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := open(t, Options{Database: sqlite.File{Path: path}})
	enqueue(t, s, 1)
	check(t, os.Remove(path+".lock"))
	if _, err := openAt(path); !errors.As(err, new(*health.LockedError)) {
		t.Fatalf("got %v", err)
	}
	other := exec.Command(os.Args[0], "-test.run=^TestHelperSeesLocks$") // a process does not see its own
	other.Env = append(os.Environ(), "STORE_TEST_LOCKS="+path)
	if out, err := other.CombinedOutput(); err != nil || !strings.Contains(string(out), "SQLite's lock is held: true") {
		t.Errorf("another process sees: %v, %s", err, out)
	}
}

// TestHelperSeesLocks is another process that asks for the lock that every open
// connection of SQLite holds.
func TestHelperSeesLocks(t *testing.T) {
	path := os.Getenv("STORE_TEST_LOCKS")
	if path == "" {
		t.Skip("helps other tests")
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	check(t, err)
	shared := unix.Flock_t{Type: unix.F_WRLCK, Start: 0x40000002, Len: 510}
	check(t, unix.FcntlFlock(f.Fd(), unix.F_GETLK, &shared))
	fmt.Println("SQLite's lock is held:", shared.Type == unix.F_RDLCK)
	check(t, f.Close())
}

func TestOpen_MakesNoDirectoryBehindALink(t *testing.T) {
	dir := t.TempDir()
	link, away := filepath.Join(dir, "jobs.db"), filepath.Join(dir, "away", "jobs.db")
	check(t, os.Symlink(away, link))
	if _, err := openAt(link); !errors.Is(err, fault.ErrUnsafe) || !strings.Contains(err.Error(), away) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Dir(away)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
}

// Both names are used before there is a file.
func TestOpen_ALinkToAMissingFileIsTheNameOfThatFile(t *testing.T) {
	dir := t.TempDir()
	first, second, target := filepath.Join(dir, "1.db"), filepath.Join(dir, "2.db"), filepath.Join(dir, "target.db")
	check(t, os.Symlink("2.db", first))
	check(t, os.Symlink("target.db", second))
	s := open(t, Options{Database: sqlite.File{Path: first}})
	if got := pathOf(t, s); got != target {
		t.Errorf("the file is %s, want %s", got, target)
	}
	for _, path := range []string{first, second, target} {
		if _, err := openAt(path); !errors.As(err, new(*health.LockedError)) {
			t.Errorf("%s again: %v", path, err)
		}
	}
}

// refusal is a way in which the files of a database are not as they must be.
type refusal struct {
	name string
	harm func(t *testing.T, path string)
	says []string
}

var refusals = []refusal{
	{"a missing file beside its log", func(t *testing.T, path string) {
		check(t, os.Remove(path))
	}, []string{"is missing", "-wal", "mv "}},
	{"an empty file beside its log", func(t *testing.T, path string) {
		check(t, os.Truncate(path, 0))
	}, []string{"is empty", "-wal", "mv "}},
	{"a missing file and log", func(t *testing.T, path string) {
		check(t, os.Remove(path))
		check(t, os.Remove(path+"-wal"))
	}, []string{"is missing", ".lock"}},
	{"a missing log", func(t *testing.T, path string) {
		check(t, os.Remove(path+"-wal"))
	}, []string{"-wal is missing or empty", "Put it back", "remove "}},
	{"a missing log and its index", func(t *testing.T, path string) {
		check(t, errors.Join(os.Remove(path+"-wal"), os.Remove(path+"-shm")))
	}, []string{"-wal is missing or empty", "Put it back", "remove "}},
	{"an empty log", func(t *testing.T, path string) {
		check(t, os.Truncate(path+"-wal", 0))
	}, []string{"-wal is missing or empty", "Put it back", "remove "}},
	{"a log under another name", func(t *testing.T, path string) {
		check(t, os.Rename(path+"-wal", path+".before-wal"))
	}, []string{"-wal is missing or empty"}},
	{"a hard link", func(t *testing.T, path string) {
		check(t, os.Link(path, path+".second"))
	}, []string{"2 names", "find -samefile"}},
	{"a file that everybody may write", func(t *testing.T, path string) {
		check(t, os.Chmod(path, 0o666))
	}, []string{"chmod o-w"}},
	{"a log that everybody may write", func(t *testing.T, path string) {
		check(t, os.Chmod(path+"-wal", 0o666))
	}, []string{"chmod o-w", "-wal"}},
	{"an index that everybody may write", func(t *testing.T, path string) {
		check(t, os.Chmod(path+"-shm", 0o666))
	}, []string{"chmod o-w", "-shm"}},
	{"a lock file that everybody may write", func(t *testing.T, path string) {
		check(t, os.Chmod(path+".lock", 0o666))
	}, []string{"chmod o-w", ".lock"}},
	{"a log that is a link", func(t *testing.T, path string) {
		check(t, os.Rename(path+"-wal", path+".elsewhere"))
		check(t, os.Symlink(path+".elsewhere", path+"-wal"))
	}, []string{"-wal is a symbolic link"}},
	{"a search index that is a link", func(t *testing.T, path string) {
		check(t, os.Rename(path+"-search", path+".elsewhere"))
		check(t, os.Symlink(path+".elsewhere", path+"-search"))
	}, []string{"-search is a symbolic link"}},
	{"a search index that everybody may write", func(t *testing.T, path string) {
		check(t, os.Chmod(path+"-search", 0o666))
	}, []string{"chmod o-w", "-search"}},
	{"a lock file that is a link", func(t *testing.T, path string) {
		check(t, os.Rename(path+".lock", path+".elsewhere"))
		check(t, os.Symlink(path+".elsewhere", path+".lock"))
	}, []string{".lock is a symbolic link"}},
	{"a lock file of somebody else", func(t *testing.T, path string) {
		check(t, os.WriteFile(path+".lock", []byte("a letter\n"), 0o600))
	}, []string{".lock is not a lock file of Redrive"}},
	{"a lock file that is a pipe", func(t *testing.T, path string) {
		check(t, os.Remove(path+".lock"))
		check(t, syscall.Mkfifo(path+".lock", 0o600))
	}, []string{".lock is not a regular file"}},
	{"another file beside the log", func(t *testing.T, path string) {
		data, err := os.ReadFile(path)
		check(t, err)
		check(t, os.Remove(path)) // its number may be given again
		check(t, os.WriteFile(path, data, 0o600))
	}, []string{"is not the file that the log", "mv "}},
	{"a file that was renamed without its log", func(t *testing.T, path string) {
		for _, suffix := range []string{"-wal", "-shm", ".lock"} {
			check(t, os.Rename(path+suffix, path+".before"+suffix))
		}
	}, []string{"was ", ".before when", "mv "}},
	{"a mounted file", func(t *testing.T, path string) {
		file := path + ".mounted"
		check(t, os.Rename(path, file))
		check(t, os.WriteFile(path, nil, 0o600))
		mount(t, file, path)
	}, []string{"mount its directory"}},
}

// Each of them is found after a kill, with jobs that are in the log only. Not a
// byte of any file may change.
func TestOpen_RefusesFilesThatAreNotAsTheyMustBe(t *testing.T) {
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			path := sqlitetest.New(t)
			kill(t, holder(t, path))
			r.harm(t, path)
			before := contents(t, filepath.Dir(path))
			s, err := openAt(path)
			if err == nil {
				check(t, s.Close())
			}
			if !errors.Is(err, fault.ErrUnsafe) {
				t.Fatalf("got %v", err)
			}
			for _, text := range append(r.says, path) {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%v, want %q", err, text)
				}
			}
			if after := contents(t, filepath.Dir(path)); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// lockText changes what the lock file of a database says.
func lockText(t *testing.T, path string, change func(string) string) {
	t.Helper()
	text, err := os.ReadFile(path + ".lock")
	check(t, err)
	check(t, os.WriteFile(path+".lock", []byte(change(string(text))), 0o600))
}

// The log is missing for a reason, or the person who starts knows that it is lost.
func TestOpen_TakesAMissingLogThatIsNotMissed(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, path string){
		"without the lock file": func(t *testing.T, path string) {
			check(t, os.Remove(path+".lock"))
		},
		"with the lock file of an earlier version": func(t *testing.T, path string) {
			lockText(t, path, func(text string) string { return strings.Replace(text, " logged\n", "\n", 1) })
		},
		"a backup in the place of the file": func(t *testing.T, path string) {
			backup := path + ".backup"
			check(t, sqlite.File{Path: path + ".other"}.Backup(t.Context(), backup, false, unheard))
			check(t, os.Rename(backup, path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "jobs.db")
			other := open(t, Options{Database: sqlite.File{Path: path + ".other"}})
			kill(t, holder(t, path))
			check(t, os.Remove(path+"-wal"))
			harm(t, path)
			s, err := openAt(path)
			check(t, err)
			check(t, errors.Join(s.Close(), other.Close()))
		})
	}
}

// What a process that stops leaves behind needs no log, whenever it is killed: the note goes
// before the log does.
func TestOpen_AfterAStopTheLogIsNotMissed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	for range 3 {
		s, err := openAt(path)
		check(t, err)
		enqueue(t, s, 1)
		text, err := os.ReadFile(path + ".lock")
		check(t, err)
		if !strings.Contains(string(text), " logged\n") {
			t.Errorf("the lock file says %q while the log holds jobs", text)
		}
		check(t, s.Close())
		text, err = os.ReadFile(path + ".lock")
		check(t, err)
		if strings.Contains(string(text), "logged") || exists(t, path+"-wal") {
			t.Errorf("the lock file says %q after a stop", text)
		}
	}
}

// A reader that outlives the store keeps its log from being removed. Its content is in the
// file all the same.
func TestOpen_AReaderOfAnotherProgramDoesNotMakeTheLogMissed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s, err := openAt(path)
	check(t, err)
	enqueue(t, s, 3)
	reader, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	check(t, err)
	var jobs int64
	check(t, reader.QueryRow(`SELECT count(*) FROM jobs`).Scan(&jobs))
	check(t, errors.Join(s.Close(), reader.Close()))
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			check(t, err)
		}
	}
	s = open(t, Options{Database: sqlite.File{Path: path}})
	if n := s.Snapshot().Depths.Jobs(); n != 3 {
		t.Errorf("%d jobs, want 3", n)
	}
}

// A log that was removed while the store had it open was moved into the file when that was
// found: nothing is missing then.
func TestOpen_ALogThatWasRemovedInTimeIsNotMissed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	other := holder(t, path)
	check(t, os.Remove(path+"-wal"))
	wait(t, func() bool {
		text, err := os.ReadFile(path + ".lock")
		return err == nil && !strings.Contains(string(text), "logged")
	})
	kill(t, other)
	s := open(t, Options{Database: sqlite.File{Path: path}})
	if n := s.Snapshot().Depths.Jobs(); n != 7 {
		t.Errorf("%d jobs, want 7", n)
	}
}

// The note goes before the log is cut, so that a kill in between leaves a log too many and not
// one too few. A reader that needs the log shows the moment between the two.
func TestStore_NotesThatItsLogCanGoBeforeItIsCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := open(t, Options{Database: sqlite.File{Path: path}})
	enqueue(t, s, 3)
	noted := func() bool {
		text, err := os.ReadFile(path + ".lock")
		return err == nil && strings.Contains(string(text), " logged\n")
	}

	pool, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	check(t, err)
	reader, err := pool.Begin()
	check(t, err)
	var jobs int
	check(t, reader.QueryRow(`SELECT count(*) FROM jobs`).Scan(&jobs))
	check(t, os.Rename(path, path+".moved"))
	wait(t, func() bool { return !noted() })
	log, err := os.Stat(path + "-wal")
	check(t, err)
	if log.Size() == 0 {
		t.Error("the log was cut while a reader needed it")
	}

	check(t, errors.Join(reader.Rollback(), pool.Close()))
	check(t, os.Rename(path+".moved", path))
	wait(t, func() bool { return s.Problem() == nil })
	enqueue(t, s, 1)
	if !noted() {
		t.Error("the lock file does not say that the log holds jobs again")
	}
}

// Who only looks, or copies, is told as well.
func TestFile_ALogThatIsMissedIsToldToReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	kill(t, holder(t, path))
	check(t, os.Remove(path+"-wal"))
	f := sqlite.File{Path: path}
	_, examining := Examine(t.Context(), f)
	copying := f.Backup(t.Context(), path+".backup", false, unheard)
	for what, err := range map[string]error{"examine": examining, "back up": copying} {
		if !errors.Is(err, fault.ErrUnsafe) || !strings.Contains(err.Error(), "-wal is missing or empty") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// contents are the names and contents of the files of a directory.
func contents(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	var all strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&all, "%s %v", e.Name(), e.Type())
		if e.Type().IsRegular() {
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			check(t, err)
			fmt.Fprintf(&all, " %d %x", len(data), sha256.Sum256(data))
		}
		all.WriteByte('\n')
	}
	return all.String()
}

// All of a database that was killed can be copied or moved elsewhere.
func TestOpen_TakesAWholeCopyAfterAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	kill(t, holder(t, path))
	copied, moved := filepath.Join(t.TempDir(), "copy.db"), filepath.Join(t.TempDir(), "moved.db")
	for _, suffix := range []string{"", "-wal", ".lock"} {
		data, err := os.ReadFile(path + suffix)
		check(t, err)
		check(t, os.WriteFile(copied+suffix, data, 0o600))
		check(t, os.Rename(path+suffix, moved+suffix))
	}
	for _, path := range []string{copied, moved} {
		s := open(t, Options{Database: sqlite.File{Path: path}})
		if n := s.Snapshot().Depths.Jobs(); n != 7 {
			t.Errorf("%d jobs in %s, want 7", n, path)
		}
	}
}

// A child that was forked just before a kill has the files of the dead process
// until it runs its program.
func TestOpen_WaitsForAForkedChildOfADeadProcess(t *testing.T) {
	for _, what := range []string{".lock", ""} {
		t.Run("with the file jobs.db"+what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jobs.db")
			dead := holder(t, path)
			kill(t, dead)
			f, err := os.OpenFile(path+what, os.O_RDWR, 0)
			check(t, err)
			if what == "" {
				const lockedByte = 0x40000000 + 512 // behind those of SQLite
				check(t, unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: lockedByte, Len: 1}))
			} else {
				check(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
			}
			child := exec.Command("sleep", "60")
			child.ExtraFiles = []*os.File{f}
			check(t, child.Start())
			check(t, f.Close())
			opened := make(chan error, 1)
			go func() {
				s, err := openAt(path)
				if err == nil {
					err = s.Close()
				}
				opened <- err
			}()
			select {
			case err := <-opened:
				t.Fatalf("while the child held the lock: %v", err)
			case <-time.After(100 * time.Millisecond):
			}
			kill(t, child)
			if err := <-opened; err != nil {
				t.Error(err)
			}
		})
	}
}

// trouble is something that happens to the files of an open database.
type trouble struct {
	name  string
	harm  func(t *testing.T, path string)
	says  string
	mend  func(t *testing.T, path string) // nil: it takes a new start
	after string                          // where the jobs are after the end; empty: at the path
}

var troubles = []trouble{
	{"moved away with all that is beside it", func(t *testing.T, path string) {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			check(t, os.Rename(path+suffix, path+".moved"+suffix))
		}
	}, "was moved away", func(t *testing.T, path string) {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			check(t, os.Rename(path+".moved"+suffix, path+suffix))
		}
	}, ".moved"},
	{"moved away alone", func(t *testing.T, path string) {
		check(t, os.Rename(path, path+".moved"))
	}, "was moved away", func(t *testing.T, path string) {
		check(t, os.Rename(path+".moved", path))
	}, ".moved"},
	{"its directory renamed", func(t *testing.T, path string) {
		check(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+".moved"))
	}, "was moved away", func(t *testing.T, path string) {
		check(t, os.Rename(filepath.Dir(path)+".moved", filepath.Dir(path)))
	}, "dir"},
	{"removed", func(t *testing.T, path string) {
		check(t, os.Remove(path))
	}, "was removed", nil, "none"},
	{"replaced", func(t *testing.T, path string) {
		check(t, os.Rename(path, path+".moved"))
		check(t, os.WriteFile(path, []byte("another one"), 0o600))
	}, "was replaced by another file", func(t *testing.T, path string) {
		check(t, os.Rename(path+".moved", path))
	}, ".moved"},
	{"without its log", func(t *testing.T, path string) {
		check(t, os.Remove(path+"-wal"))
	}, "-wal, which belongs", nil, ""},
	{"without its index", func(t *testing.T, path string) {
		check(t, os.Remove(path+"-shm"))
	}, "-shm, which belongs", nil, ""},
}

// There is no transaction after the one that finds it, and a store that has
// nothing to do finds it on its own.
func TestStore_StopsWritingWhenItsFilesAreMoved(t *testing.T) {
	for _, harm := range troubles {
		t.Run(harm.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "dir", "jobs.db")
			check(t, os.Mkdir(filepath.Dir(path), 0o700))
			s := open(t, Options{Database: sqlite.File{Path: path}})
			enqueue(t, s, 7)
			harm.harm(t, path)
			wait(t, func() bool { return s.Problem() != nil }) // no caller writes
			_, err := s.Enqueue(t.Context(), testTime, []job.Job{testJob("1")})
			for what, err := range map[string]error{"Enqueue": err, "Ping": s.Ping(t.Context()), "Problem": s.Problem()} {
				if !errors.Is(err, fault.ErrUnsafe) || errors.Is(err, fault.ErrBroken) || !strings.Contains(err.Error(), harm.says) {
					t.Errorf("%s: %v, want %q", what, err, harm.says)
				}
			}
			if n := s.Snapshot().Depths.Jobs(); n != 7 {
				t.Errorf("%d jobs, want the 7 of before", n)
			}
			if harm.mend == nil {
				return
			}
			harm.mend(t, path)
			wait(t, func() bool { return s.Problem() == nil })
			enqueue(t, s, 1)
		})
	}
}

// Removing the lock file does not make the database forget that there is one.
func TestStore_MakesItsLockFileAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := open(t, Options{Database: sqlite.File{Path: path}})
	check(t, s.Announce("http://127.0.0.1:1", "key"))
	before, err := os.ReadFile(path + ".lock")
	check(t, err)
	check(t, os.Remove(path+".lock"))
	wait(t, func() bool { return exists(t, path+".lock") })
	enqueue(t, s, 1) // afterwards no goroutine is in the middle of writing the lock file
	after, err := os.ReadFile(path + ".lock")
	check(t, err)
	if first := strings.Split(string(before), "\n")[:2]; !slices.Equal(first, strings.Split(string(after), "\n")[:2]) {
		t.Errorf("it says %q, and said %q", after, before)
	}
	check(t, s.Close())
	check(t, os.Remove(path))
	if _, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}}); !errors.Is(err, fault.ErrUnsafe) {
		t.Errorf("a start where the file is gone: %v", err)
	}
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// Once it was found, the main file is all there is, however the process ends.
func TestStore_GathersInItsFileWhatIsMoved(t *testing.T) {
	for _, harm := range troubles {
		t.Run(harm.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "dir", "jobs.db")
			check(t, os.Mkdir(filepath.Dir(path), 0o700))
			s := open(t, Options{Database: sqlite.File{Path: path}})
			enqueue(t, s, 7)
			harm.harm(t, path)
			wait(t, func() bool { return s.Problem() != nil })
			check(t, s.Close())
			switch harm.after {
			case "none":
				return
			case "dir":
				path = filepath.Join(filepath.Dir(path)+".moved", "jobs.db")
			default:
				path += harm.after
			}
			alone := filepath.Join(t.TempDir(), "alone.db")
			data, err := os.ReadFile(path)
			check(t, err)
			check(t, os.WriteFile(alone, data, 0o600))
			s = open(t, Options{Database: sqlite.File{Path: alone}})
			if n := s.Snapshot().Depths.Jobs(); n != 7 {
				t.Errorf("%d jobs in the file alone, want 7", n)
			}
		})
	}
}

// halfMade leaves a database as a kill in the middle of its making does: with its
// first pages in the file, and the journal that takes them back.
func halfMade(t *testing.T, path string, statements ...string) {
	t.Helper()
	making := filepath.Join(t.TempDir(), "making.db")
	pool, err := sql.Open("sqlite", "file:"+making)
	check(t, err)
	pool.SetMaxOpenConns(1)
	for _, statement := range append(statements, "PRAGMA cache_size = 1", "BEGIN IMMEDIATE", "CREATE TABLE large (text)",
		"INSERT INTO large SELECT hex(randomblob(2000)) FROM json_each('[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]')") {
		_, err := pool.Exec(statement)
		check(t, err)
	}
	for _, suffix := range []string{"", "-journal"} {
		data, err := os.ReadFile(making + suffix)
		check(t, err)
		if len(data) == 0 {
			t.Fatalf("%s is empty", making+suffix)
		}
		check(t, os.WriteFile(path+suffix, data, 0o600))
	}
	check(t, pool.Close())
}

func TestOpen_UndoesAFirstStartThatWasKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	halfMade(t, path)
	enqueue(t, open(t, Options{Database: sqlite.File{Path: path}}), 1)
}

// A first start can also be cut off in the middle of its first page, by the end of
// power.
func TestOpen_UndoesAFirstPageThatIsNotWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	halfMade(t, path)
	check(t, os.Truncate(path, 60))
	enqueue(t, open(t, Options{Database: sqlite.File{Path: path}}), 1)
}

func TestOpen_UndoesNothingOfAnotherProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	halfMade(t, path, "CREATE TABLE theirs (a)")
	before := contents(t, filepath.Dir(path))
	s, err := openAt(path)
	if err == nil {
		check(t, s.Close())
	}
	if !errors.Is(err, sqlite.ErrForeign) {
		t.Errorf("got %v", err)
	}
	if after := contents(t, filepath.Dir(path)); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// Here at every 120th call of a kind, the first one included.
func TestOpen_AfterAFirstStartThatWasKilled(t *testing.T) {
	opensAfterAKill(t, 120)
}

func TestLong_OpenAfterAFirstStartThatWasKilledAtAnyWrite(t *testing.T) {
	opensAfterAKill(t, 1)
}

// opensAfterAKill lets strace kill the process at the k-th call of each kind that
// changes or opens one of the database's files, for k = 1, 1+stride and so on.
func opensAfterAKill(t *testing.T, stride int) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed; apt-get install strace")
	}
	for _, call := range []string{"openat", "pwrite64", "fsync", "ftruncate", "unlink,unlinkat"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			killed := 0
			for k, survived := 1, false; !survived; k += stride {
				path := filepath.Join(t.TempDir(), "jobs.db")
				if survived = !killedAt(t, strace, path, call, k); !survived {
					killed++
				}
				s, err := openAt(path)
				if err != nil {
					t.Fatalf("killed at the %d. %s, with these files: %s\n%v", k, call, contents(t, filepath.Dir(path)), err)
				}
				enqueue(t, s, 1)
				check(t, s.Close())
			}
			if t.Logf("killed %d times", killed); killed == 0 {
				t.Error("no call was met")
			}
		})
	}
}

// killedAt reports whether a first start lived to its k-th call.
func killedAt(t *testing.T, strace, path, call string, k int) bool {
	t.Helper()
	args := []string{"-f", "-qq", "-o", os.DevNull, "-e", "trace=" + call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, k)}
	for _, suffix := range []string{"", "-journal", "-wal", "-shm", ".lock"} {
		args = append(args, "-P", path+suffix)
	}
	first := exec.Command(strace, append(args, os.Args[0], "-test.run=^TestHelperProcess$")...)
	first.Env = append(os.Environ(), "STORE_TEST_PATH="+path, "STORE_TEST_ONCE=1", "GOMAXPROCS=1")
	out, err := first.CombinedOutput()
	if exit := new(exec.ExitError); err == nil || errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return err != nil
	}
	t.Skipf("nothing can be traced here: %v: %s", err, out)
	return false
}
