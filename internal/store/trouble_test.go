package store

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/fault"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/store/sqlite"
	"redrive/internal/store/sqlite/sqlitetest"
)

// damage overwrites the beginning of the pages that hold jobs, in a database that
// no process has open.
func damage(t *testing.T, path string) {
	t.Helper()
	const page = 4096
	data, err := os.ReadFile(path)
	check(t, err)
	if len(data) < 240*page {
		t.Fatalf("the database has only %d bytes", len(data))
	}
	for at := 120 * page; at < 240*page; at += page {
		copy(data[at:], "no page begins like this")
	}
	check(t, os.WriteFile(path, data, 0o600))
}

// used is the path of a database with a few hundred pages.
func used(t *testing.T) string {
	t.Helper()
	s := open(t, Options{})
	jobs := make([]job.Job, 1000)
	for i := range jobs {
		jobs[i] = testJob(`"` + strings.Repeat("x", 1000) + `"`)
	}
	_, err := s.Enqueue(t.Context(), testTime, jobs)
	check(t, err)
	path := pathOf(t, s)
	check(t, s.Close())
	return path
}

func TestStore_StopsWritingWhenAReaderFindsDamage(t *testing.T) {
	path := used(t)
	damage(t, path)
	s := open(t, Options{Database: sqlite.File{Path: path}})
	_, err := s.Jobs(t.Context(), filter.Filter{}, filter.Cursor{}, 1000)
	if !errors.Is(err, fault.ErrCorrupt) || !errors.Is(err, fault.ErrBroken) {
		t.Fatalf("reading gave %v", err)
	}
	<-s.Failed()
	_, written := s.Enqueue(t.Context(), testTime, []job.Job{testJob("1")})
	for what, err := range map[string]error{"Enqueue": written, "Ping": s.Ping(t.Context()), "Problem": s.Problem()} {
		if !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), ".recover") {
			t.Errorf("%s: %v, want that the file is damaged, its name and what to do", what, err)
		}
	}
}

func TestOpen_NamesADamagedFile(t *testing.T) {
	path := used(t)
	data, err := os.ReadFile(path)
	check(t, err)
	copy(data[100:4096], bytes.Repeat([]byte{0xff}, 3996)) // the first page, after the header
	check(t, os.WriteFile(path, data, 0o600))
	if _, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}}); !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

func TestPing_FindsAFullDisk(t *testing.T) {
	const size = 2 << 20
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("a small disk cannot be mounted here:", err)
	}
	t.Cleanup(func() { check(t, syscall.Unmount(dir, 0)) })
	s, err := Open(t.Context(), Options{Database: sqlite.File{Path: filepath.Join(dir, "jobs.db")}})
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, size), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	for range 100 { // the last pages of the disk
		if s.Ping(t.Context()) != nil {
			break
		}
	}
	if err := s.Ping(t.Context()); !errors.Is(err, fault.ErrStorageFull) || !errors.Is(s.Problem(), fault.ErrStorageFull) {
		t.Fatalf("Ping gives %v, the problem is %v", err, s.Problem())
	}
	check(t, os.Remove(filler))
	wait(t, func() bool { return s.Problem() == nil })
	check(t, s.Ping(t.Context()))
}

// A job that finds no room is a problem until there is room for one of its size,
// also while smaller ones are stored.
func TestProblem_LastsUntilTheSizeThatWasRefusedFits(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("a small disk cannot be mounted here:", err)
	}
	t.Cleanup(func() { check(t, syscall.Unmount(dir, 0)) })
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Options{Database: sqlite.File{Path: filepath.Join(dir, "jobs.db")}})
		check(t, err)
		t.Cleanup(func() { check(t, s.Close()) })
		filler := filepath.Join(dir, "filler")
		if err := os.WriteFile(filler, make([]byte, 4<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("filling the disk: %v", err)
		}
		info, err := os.Stat(filler)
		check(t, err)
		check(t, os.Truncate(filler, info.Size()-512<<10))
		large := testJob(strings.Repeat("x", 1<<20-10))
		if _, err := s.Enqueue(t.Context(), testTime, []job.Job{large}); !errors.Is(err, fault.ErrStorageFull) {
			t.Fatalf("a job of 1 MB is stored on a disk with 512 kB: %v", err)
		}
		enqueue(t, s, 1)
		time.Sleep(lookedTwice)
		check(t, s.Ping(t.Context()))
		if problem := s.Problem(); problem == nil || problem.Kind != fault.ErrStorageFull {
			t.Errorf("after small writes the problem is %v", s.Problem())
		}
		check(t, os.Remove(filler))
		wait(t, func() bool { return s.Problem() == nil })
		_, err = s.Enqueue(t.Context(), testTime, []job.Job{large})
		check(t, err)
		if left, err := filepath.Glob(filepath.Join(dir, "*room*")); len(left) > 0 || err != nil {
			t.Errorf("what is left: %v, %v", left, err)
		}
	})
}

// Tests in which days pass have it look seldom.
func TestStore_ChecksItsFilesAsOftenAsItIsTold(t *testing.T) {
	path := sqlitetest.New(t)
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}, CheckEvery: time.Hour})
		check(t, err)
		t.Cleanup(func() { check(t, s.Close()) })
		check(t, os.Rename(path, path+".moved"))

		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if problem := s.Problem(); problem != nil {
			t.Errorf("before it looked, the problem is %v", problem)
		}

		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if problem := s.Problem(); problem == nil || problem.Kind != fault.ErrUnsafe {
			t.Errorf("after an hour the problem is %v, want that the file is away", problem)
		}
	})
}

// lookedTwice is how long a store takes to look after its trouble twice.
const lookedTwice = 2500 * time.Millisecond

// wait waits until a condition holds.
func wait(t *testing.T, holds func() bool) {
	t.Helper()
	late := time.After(3 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("it never came to be")
		}
	}
}

func TestProblem_EndsByItself(t *testing.T) {
	s, readOnly := openSwitchable(t)
	readOnly.Store(true)
	if err := s.Ping(t.Context()); !errors.Is(err, fault.ErrReadOnly) || !errors.Is(s.Problem(), fault.ErrReadOnly) {
		t.Errorf("Ping gives %v, the problem is %v", err, s.Problem())
	}
	readOnly.Store(false)
	wait(t, func() bool { return s.Problem() == nil }) // no other caller writes
}

// unprivileged runs the test of the same name in a process without privileges.
func unprivileged(t *testing.T, path string) {
	t.Helper()
	if os.Getuid() != 0 {
		return // modes hold for this process
	}
	program, err := os.ReadFile(os.Args[0])
	check(t, err)
	reachable := filepath.Join(filepath.Dir(strings.TrimSuffix(path, "/closed/jobs.db")), t.Name())
	check(t, os.WriteFile(reachable, program, 0o755))
	t.Cleanup(func() { check(t, os.Remove(reachable)) })
	other := exec.Command(reachable, "-test.run=^"+t.Name()+"$", "-test.v")
	other.Env = append(os.Environ(), "STORE_TEST_NOBODY="+path, "TMPDIR=/tmp")
	other.Dir = "/"
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := other.CombinedOutput(); errors.Is(err, fs.ErrPermission) {
		t.Skip("this test cannot be run by another user:", err)
	} else if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// forUnprivileged is a path that a user without privileges can reach.
func forUnprivileged(t *testing.T, name string) string {
	t.Helper()
	if path := os.Getenv("STORE_TEST_NOBODY"); path != "" {
		return path
	}
	dir, err := os.MkdirTemp("/tmp", "store")
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	check(t, os.Chmod(dir, 0o777))
	return filepath.Join(dir, name)
}

func TestOpen_SaysThatTheFileCanOnlyBeRead(t *testing.T) {
	path := forUnprivileged(t, "jobs.db")
	if os.Getenv("STORE_TEST_NOBODY") == "" {
		s, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}})
		check(t, err)
		enqueue(t, s, 1)
		check(t, s.Close())
		check(t, os.Remove(path+".lock"))
		check(t, os.Chmod(path, 0o444))
		if os.Getuid() == 0 {
			unprivileged(t, path)
			return
		}
	}
	s, err := Open(context.Background(), Options{Database: sqlite.File{Path: path}})
	check(t, err)
	defer func() { check(t, s.Close()) }()
	if err := s.Problem(); !errors.Is(err, fault.ErrReadOnly) || !strings.Contains(err.Error(), path) {
		t.Errorf("the problem is %v", err)
	}
	if page, err := s.Jobs(t.Context(), filter.Filter{}, filter.Cursor{}, 10); err != nil || len(page.Jobs) != 1 {
		t.Errorf("%d jobs, %v", len(page.Jobs), err)
	}
}

func TestOpen_SaysWhatToDoAboutADirectory(t *testing.T) {
	path := forUnprivileged(t, "closed/jobs.db")
	if os.Getenv("STORE_TEST_NOBODY") == "" {
		check(t, os.Mkdir(filepath.Dir(path), 0o555))
		if os.Getuid() == 0 {
			unprivileged(t, path)
			return
		}
	}
	if _, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}}); err == nil || !strings.Contains(err.Error(), "give it the right") {
		t.Errorf("got %v", err)
	}
}

func TestOpen_ARefusalLeavesNoLockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	check(t, os.WriteFile(path, []byte("no database"), 0o600))
	unchanged(t, path)
	if _, err := os.Stat(path + ".lock"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lock file: %v", err)
	}
	check(t, os.WriteFile(path+".lock", nil, 0o600))
	unchanged(t, path)
	if _, err := os.Stat(path + ".lock"); err != nil {
		t.Errorf("the lock file of somebody else: %v", err)
	}
}

// A database that may open no further file is no damaged one, and nothing is wrong
// with what is asked of it. The limit is set in a process of its own.
func TestStore_TellsThatDescriptorsRanOut(t *testing.T) {
	const child = "REDRIVE_TEST_WITHOUT_DESCRIPTORS"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestStore_TellsThatDescriptorsRanOut$")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	s := open(t, Options{})
	s.engine.Reads().SetMaxIdleConns(-1) // closes those that were opened at the start: a page has to open one
	var before syscall.Rlimit
	check(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	check(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: before.Max}))
	if _, err := s.Jobs(t.Context(), filter.Filter{}, filter.Cursor{}, 10); !errors.Is(err, fault.ErrStarved) || fault.InInput(err) {
		t.Errorf("reading without a descriptor: %v", err)
	}
	check(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before))
	_, err := s.Jobs(t.Context(), filter.Filter{}, filter.Cursor{}, 10)
	check(t, err)
}
