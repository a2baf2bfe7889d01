package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"redrive/internal/fault"
	"redrive/internal/job"
	"redrive/internal/store/health"
	"redrive/internal/store/sqlite"
)

func unheard(done, all int64) {}

// filesIn are the names of the files in a directory.
func filesIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestBackup_IsOneStateOfARunningStore(t *testing.T) {
	s := open(t, Options{})
	live(t, s)
	dir := t.TempDir()
	copied := filepath.Join(dir, "copy.db")
	stop := make(chan struct{})
	var writes sync.WaitGroup
	writes.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				enqueue(t, s, 10)
			}
		}
	})
	for range 3 {
		check(t, sqlite.File{Path: pathOf(t, s)}.Backup(t.Context(), copied, true, unheard))
		if got := problems(t, copied); len(got) > 0 {
			t.Errorf("the copy: %q", got)
		}
	}
	close(stop)
	writes.Wait()
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	check(t, sqlite.File{Path: pathOf(t, s)}.Backup(t.Context(), filepath.Join(dir, "last.db"), false, unheard))
	restored := open(t, Options{Database: sqlite.File{Path: filepath.Join(dir, "last.db")}})
	if got, want := restored.Snapshot().Depths.Jobs(), s.Snapshot().Depths.Jobs(); got != want {
		t.Errorf("%d jobs in the copy, want %d", got, want)
	}
}

func TestBackup_OverwritesNothing(t *testing.T) {
	s := open(t, Options{})
	f, dir := sqlite.File{Path: pathOf(t, s)}, t.TempDir()
	there := filepath.Join(dir, "there.db")
	check(t, os.WriteFile(there, []byte("mine"), 0o600))
	if err := f.Backup(t.Context(), there, false, unheard); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that exists: %v", err)
	}
	link := filepath.Join(dir, "link.db")
	check(t, os.Symlink(f.Path, link))
	check(t, os.Symlink(filepath.Dir(f.Path), filepath.Join(dir, "home")))
	log := filepath.Join(dir, "home", filepath.Base(f.Path)) + "-wal"
	for _, itself := range []string{f.Path, link, log, f.Path + "-wal", f.Path + "-shm", f.Path + "-journal", f.Path + "-search", f.Path + ".lock"} {
		if err := f.Backup(t.Context(), itself, true, unheard); err == nil || !strings.Contains(err.Error(), "a file of the database itself") {
			t.Errorf("the database itself, as %s: %v", itself, err)
		}
	}
	none := filepath.Join(dir, "none", "copy.db")
	if err := f.Backup(t.Context(), none, false, unheard); err == nil || !strings.Contains(err.Error(), "mkdir -p") {
		t.Errorf("a directory that does not exist: %v", err)
	}
	if text, err := os.ReadFile(there); err != nil || string(text) != "mine" || filesIn(t, dir) != "home link.db there.db" {
		t.Errorf("%q, %v; files: %s", text, err, filesIn(t, dir))
	}
}

// Whatever else has the name stays, also with replace: a link that leads nowhere, a
// pipe, a directory.
func TestBackup_ReplacesOnlyFiles(t *testing.T) {
	s := open(t, Options{})
	f, dir := sqlite.File{Path: pathOf(t, s)}, t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	check(t, os.WriteFile(at("file"), []byte("mine"), 0o600))
	check(t, errors.Join(os.Symlink("nowhere", at("dangling")), os.Symlink("file", at("link")), os.Symlink("pipe", at("to-pipe")),
		os.Mkdir(at("dir"), 0o700), syscall.Mkfifo(at("pipe"), 0o600)))
	before := filesIn(t, dir)
	for name, want := range map[string]string{
		"dangling": "a symbolic link", "link": "a symbolic link", "to-pipe": "a symbolic link", "dir": "a directory", "pipe": "a named pipe",
	} {
		for _, replace := range []bool{false, true} {
			err := f.Backup(t.Context(), at(name), replace, unheard)
			if !errors.Is(err, sqlite.ErrNoFile) || !strings.Contains(err.Error(), name+" is "+want+", ") {
				t.Errorf("%s, replace %v: %v", name, replace, err)
			}
		}
	}
	if err := f.Backup(t.Context(), at("file/copy.db"), true, unheard); err == nil {
		t.Error("a file counts as a directory")
	}
	if after := filesIn(t, dir); after != before {
		t.Errorf("files: %s, want %s", after, before)
	}
}

// A file that gets the name while the copy is made is not replaced.
func TestBackup_DoesNotReplaceAFileThatAppeared(t *testing.T) {
	s := open(t, Options{})
	dir := t.TempDir()
	to := filepath.Join(dir, "copy.db")
	// The context is asked while the copy is made, after the name was looked at.
	ctx := appearing{t.Context(), sync.OnceFunc(func() { check(t, os.WriteFile(to, []byte("mine"), 0o600)) })}
	if err := (sqlite.File{Path: pathOf(t, s)}).Backup(ctx, to, false, unheard); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(to); err != nil || string(text) != "mine" || filesIn(t, dir) != "copy.db" {
		t.Errorf("%d bytes, %v; files: %s", len(text), err, filesIn(t, dir))
	}
}

// appearing is a context that does something when it is first asked.
type appearing struct {
	context.Context
	do func()
}

func (a appearing) Done() <-chan struct{} {
	a.do()
	return a.Context.Done()
}

func TestRestore_PutsTheBackupInThePlaceOfTheDatabase(t *testing.T) {
	dir := t.TempDir()
	f := sqlite.File{Path: filepath.Join(dir, "jobs.db")}
	backup := filepath.Join(t.TempDir(), "backup.db")
	s, err := Open(t.Context(), Options{Database: f})
	check(t, err)
	enqueue(t, s, 3)
	check(t, f.Backup(t.Context(), backup, false, unheard))
	enqueue(t, s, 4)
	_, err = f.Restore(t.Context(), backup, true, unheard)
	if !errors.As(err, new(*health.LockedError)) {
		t.Errorf("while a store has it open: %v", err)
	}
	check(t, s.Close())
	if _, err := f.Restore(t.Context(), backup, false, unheard); !errors.Is(err, fs.ErrExist) {
		t.Errorf("without replace: %v", err)
	}
	kept, err := f.Restore(t.Context(), backup, true, unheard)
	check(t, err)
	for path, want := range map[string]int64{f.Path: 3, kept: 7} {
		s, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}})
		check(t, err)
		if n := s.Snapshot().Depths.Jobs(); n != want {
			t.Errorf("%s has %d jobs, want %d", path, n, want)
		}
		check(t, s.Close())
	}
}

// That the lock file says that there was a database does not keep its backup away.
func TestRestore_BringsALostDatabaseBack(t *testing.T) {
	f := sqlite.File{Path: filepath.Join(t.TempDir(), "jobs.db")}
	backup := filepath.Join(t.TempDir(), "backup.db")
	s, err := Open(t.Context(), Options{Database: f})
	check(t, err)
	enqueue(t, s, 3)
	check(t, errors.Join(f.Backup(t.Context(), backup, false, unheard), s.Close()))
	check(t, os.Remove(f.Path))
	kept, err := f.Restore(t.Context(), backup, false, unheard)
	if err != nil || kept != "" {
		t.Fatalf("it kept %q, %v", kept, err)
	}
	s = open(t, Options{Database: f})
	if n := s.Snapshot().Depths.Jobs(); n != 3 {
		t.Errorf("%d jobs, want 3", n)
	}
}

// A killed process leaves the newest jobs in the log, which has to stay with its file.
func TestRestore_KeepsTheLogOfAKilledProcess(t *testing.T) {
	f := sqlite.File{Path: filepath.Join(t.TempDir(), "jobs.db")}
	other := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$")
	other.Env = append(os.Environ(), "STORE_TEST_PATH="+f.Path)
	out, err := other.StdoutPipe()
	check(t, err)
	check(t, other.Start())
	_, err = out.Read(make([]byte, 5))
	check(t, err)
	backup := filepath.Join(t.TempDir(), "backup.db")
	check(t, f.Backup(t.Context(), backup, false, unheard))
	check(t, other.Process.Kill())
	_ = other.Wait() // it was killed
	kept, err := f.Restore(t.Context(), backup, true, unheard)
	check(t, err)
	for _, path := range []string{f.Path, kept} {
		s := open(t, Options{Database: sqlite.File{Path: path}})
		if n := s.Snapshot().Depths.Jobs(); n != 7 {
			t.Errorf("%s has %d jobs, want 7", path, n)
		}
	}
}

func TestRestore_RefusesWhatIsNoSoundBackup(t *testing.T) {
	dir, backups := t.TempDir(), t.TempDir()
	f := sqlite.File{Path: filepath.Join(dir, "jobs.db")}
	s, err := Open(t.Context(), Options{Database: f})
	check(t, err)
	enqueue(t, s, 200)
	whole := filepath.Join(backups, "whole.db")
	check(t, errors.Join(f.Backup(t.Context(), whole, false, unheard), s.Close()))
	before := filesIn(t, dir)
	data, err := os.ReadFile(whole)
	check(t, err)
	damaged := append([]byte{}, data...)
	for i := len(damaged) / 2; i < len(damaged)/2+64<<10 && i < len(damaged); i++ {
		damaged[i] = 0xff
	}
	for name, content := range map[string][]byte{"half.db": data[:len(data)/2], "damaged.db": damaged, "text.db": []byte(strings.Repeat("text ", 100)), "empty.db": nil} {
		path := filepath.Join(backups, name)
		check(t, os.WriteFile(path, content, 0o600))
		kept, err := f.Restore(t.Context(), path, true, unheard)
		if err == nil || !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, sqlite.ErrForeign) {
			t.Errorf("%s: it kept %q, %v", name, kept, err)
		}
	}
	if after := filesIn(t, dir); after != before {
		t.Errorf("the files are %s, and were %s", after, before)
	}
}

// smallDisk is the directory of a disk with room for two megabytes.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("a small disk cannot be mounted here:", err)
	}
	t.Cleanup(func() { check(t, syscall.Unmount(dir, 0)) })
	return dir
}

// A copy that finds no room names the disk where it should be, and not the database that it
// is made of.
func TestBackup_AFullDiskIsThatOfTheCopy(t *testing.T) {
	small := smallDisk(t)
	f := sqlite.File{Path: filepath.Join(t.TempDir(), "jobs.db")}
	s := open(t, Options{Database: f})
	for range 4 {
		_, err := s.Enqueue(t.Context(), testTime, []job.Job{testJob(`"` + strings.Repeat("x", 900<<10) + `"`)})
		check(t, err)
	}
	err := f.Backup(t.Context(), filepath.Join(small, "backup.db"), false, unheard)
	blames(t, err, "the disk that holds the directory "+small+" is full", f.Path+" was only read", "the disk that holds the database")

	whole := filepath.Join(t.TempDir(), "backup.db")
	check(t, f.Backup(t.Context(), whole, false, unheard))
	_, err = sqlite.File{Path: filepath.Join(small, "jobs.db")}.Restore(t.Context(), whole, false, unheard)
	blames(t, err, "the disk that holds the directory "+small+" is full", whole+" was only read", "the disk that holds the database")
	if left := filesIn(t, small); strings.Contains(left, ".redrive-copy") {
		t.Errorf("it left %s", left)
	}
}

// blames checks that an error has some words and not others, and is of no kind that stops a
// database.
func blames(t *testing.T, err error, who, whoNot, never string) {
	t.Helper()
	switch {
	case err == nil || errors.Is(err, fault.ErrBroken) || errors.Is(err, fault.ErrCorrupt):
		t.Errorf("got %v", err)
	case !strings.Contains(err.Error(), who) || !strings.Contains(err.Error(), whoNot) || strings.Contains(err.Error(), never):
		t.Errorf("got %v, want %q and %q, and not %q", err, who, whoNot, never)
	}
}

// A disk that refuses to be written is the one of the copy as well.
func TestBackup_ABrokenDiskIsThatOfTheCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	enqueue(t, open(t, Options{Database: sqlite.File{Path: path}}), 7)
	other := exec.Command(os.Args[0], "-test.run=^TestHelperCopies$")
	other.Env = append(os.Environ(), "STORE_TEST_COPY="+path)
	out, err := other.CombinedOutput()
	dir := filepath.Dir(path)
	if err != nil || !strings.Contains(string(out), "the disk that holds the directory "+dir+" could not be written") ||
		!strings.Contains(string(out), path+" was only read") || strings.Contains(string(out), "the last writes may be lost") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestHelperCopies copies a database in a process that cannot write more than a page to a file.
func TestHelperCopies(t *testing.T) {
	path := os.Getenv("STORE_TEST_COPY")
	if path == "" {
		t.Skip("helps other tests")
	}
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	check(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	check(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: limit.Max}))
	err := sqlite.File{Path: path}.Backup(context.Background(), path+".backup", false, unheard)
	check(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	fmt.Println("copied:", err)
}
