//go:build linux

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fault is one thing that can go wrong. strike lets it happen and takes it away
// again; the dashboard must then recover without help, or start again.
type fault struct {
	name   string
	strike func(*dashboard, *rand.Rand)
}

// faults lists all that this machine can do.
func faults(t *testing.T) []fault {
	t.Helper()
	all := []fault{
		{"kill -9 and a start", killed},
		{"kill -9 during a start", killedAtStart},
		{"kill -9 during the first start", killedAtFirstStart},
		{"SIGTERM and a start", terminated},
		{"no descriptors left", withoutDescriptors},
		{"database moved away", moved},
		{"starts on other names of the database", startsBeside},
		{"several starts at once", startsAtOnce},
		{"process frozen", frozen},
		{"database locked by another program", locked},
	}
	if _, err := exec.LookPath("strace"); err != nil {
		t.Log("strace is not installed: no disk is full, stalled or failed in this run")
		return all
	}
	return append(all, fault{"disk stalled", stalled}, fault{"disk full", full}, fault{"disk failed", failed})
}

func killed(d *dashboard, _ *rand.Rand) {
	d.kill()
	d.start()
}

func killedAtStart(d *dashboard, random *rand.Rand) {
	d.kill()
	for range 1 + random.IntN(3) {
		d.killSoon(d.db, random)
	}
	d.start()
}

// killSoon starts the program and kills it before or just after it serves.
func (d *dashboard) killSoon(db string, random *rand.Rand) {
	p, out := d.launch(db)
	time.Sleep(upTo(random, 150*time.Millisecond))
	_ = p.cmd.Process.Kill() // an error says that it has ended
	for {
		if _, err := out.ReadString('\n'); err != nil {
			break
		}
	}
	p.reap()
	d.noteKill()
}

// killedAtFirstStart does so with a database that is only coming into being: the
// next start must serve it.
func killedAtFirstStart(d *dashboard, random *rand.Rand) {
	dir := d.t.TempDir()
	db := filepath.Join(dir, "redrive.db")
	kills, unwritten := d.kills, d.unwritten // what happens to another database explains nothing about this one
	for range 1 + random.IntN(4) {
		d.killSoon(db, random)
	}
	p, out := d.launch(db)
	if !p.serves(out) {
		d.t.Fatalf("after a first start that was killed the next one ended with %d: %s", p.code(), p.stderr)
	}
	p.kill()
	d.kills, d.unwritten = kills, unwritten
}

func terminated(d *dashboard, _ *rand.Rand) {
	d.end()
	d.start()
}

// withoutDescriptors leaves the process the descriptors that it has, for a while.
func withoutDescriptors(d *dashboard, random *rand.Rand) {
	open, err := os.ReadDir("/proc/" + d.pid() + "/fd")
	if err != nil {
		d.t.Fatal(err)
	}
	pid := d.running.cmd.Process.Pid
	var before unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		d.t.Fatal(err)
	}
	few := unix.Rlimit{Cur: uint64(len(open) + random.IntN(4)), Max: before.Max}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil); err != nil {
		d.t.Fatal(err)
	}
	time.Sleep(time.Second + upTo(random, 3*time.Second))
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil); err != nil {
		d.t.Fatal(err)
	}
}

func (d *dashboard) pid() string { return strconv.Itoa(d.running.cmd.Process.Pid) }

// moved takes the main file away, which the dashboard must notice, and puts it back:
// work goes on automatically. If the dashboard is killed meanwhile, no start may make a
// new file beside the log that is left; with the file back all is there.
func moved(d *dashboard, random *rand.Rand) {
	away := d.db + ".away"
	if err := os.Rename(d.db, away); err != nil {
		d.t.Fatal(err)
	}
	d.awaitUnready()
	dies := random.IntN(2) == 0
	if dies {
		d.kill()
		d.refused(d.db, 3, "the main file is missing beside its log")
	}
	if _, err := os.Lstat(d.db); !errors.Is(err, fs.ErrNotExist) {
		d.t.Errorf("there is a new database in the place of the one that was moved away")
	}
	if err := os.Rename(away, d.db); err != nil {
		d.t.Fatal(err)
	}
	if dies {
		d.start()
	}
}

// startsBeside starts a second process under each kind of name while the first
// serves, and once more when the lock file was removed.
func startsBeside(d *dashboard, random *rand.Rand) {
	dir := d.t.TempDir()
	link, hard, folder := filepath.Join(dir, "link.db"), filepath.Join(dir, "hard.db"), filepath.Join(dir, "folder")
	for _, err := range []error{os.Symlink(d.db, link), os.Symlink(filepath.Dir(d.db), folder)} {
		if err != nil {
			d.t.Fatal(err)
		}
	}
	names := []string{d.db, link, filepath.Join(folder, filepath.Base(d.db))}
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		d.refused(name, 2, "another process has the database open")
	}
	if err := os.Remove(d.db + ".lock"); err != nil {
		d.t.Fatal(err)
	}
	d.refused(names[0], 2, "another process has the database open, although its lock file was removed")
	d.await("the lock file is made again", func() bool {
		_, err := os.Lstat(d.db + ".lock")
		return err == nil
	})
	if err := os.Link(d.db, hard); err != nil {
		d.t.Fatal(err)
	}
	d.refused(hard, 3, "the log of the database lies beside its other name")
	if err := os.Remove(hard); err != nil {
		d.t.Fatal(err)
	}
}

// startsAtOnce kills the dashboard and starts several at the same moment: one may
// serve, the others must go.
func startsAtOnce(d *dashboard, random *rand.Rand) {
	d.kill()
	type outcome struct {
		*process
		serves bool
	}
	const many = 4
	var all [many]outcome
	var busy sync.WaitGroup
	for i := range all {
		p, out := d.launch(d.db)
		busy.Go(func() { all[i] = outcome{p, p.serves(out)} })
	}
	busy.Wait()
	var serving []*process
	for _, o := range all {
		if o.serves {
			serving = append(serving, o.process)
		} else if d.doors++; o.code() != 2 {
			d.t.Errorf("one of %d starts ended with %d, want 2: %s", many, o.code(), o.stderr)
		}
	}
	if len(serving) != 1 {
		for _, p := range serving {
			p.kill()
		}
		d.t.Fatalf("%d of %d starts at once serve the same database", len(serving), many)
	}
	d.adopt(serving[0])
}

func frozen(d *dashboard, random *rand.Rand) {
	for _, signal := range []os.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := d.running.cmd.Process.Signal(signal); err != nil {
			d.t.Fatal(err)
		}
		time.Sleep(upTo(random, 4*time.Second))
	}
}

// locked lets another program write to the database, or say that it will.
func locked(d *dashboard, random *rand.Rand) {
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:"+d.db+"?_pragma=busy_timeout(60000)")
	if err != nil {
		d.t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		d.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		d.t.Fatal(err)
	}
	time.Sleep(time.Second + upTo(random, 4*time.Second))
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		d.t.Fatal(err)
	}
}

// stalled lets every wait for the disk take half a second more.
func stalled(d *dashboard, random *rand.Rand) {
	d.inject(random, "fsync,fdatasync:delay_enter=500000")
}

// letGo is how long strace may take to leave the dashboard alone.
const letGo = 10 * time.Second

// full lets every write to a file fail as on a full disk.
func full(d *dashboard, random *rand.Rand) {
	d.inject(random, "pwrite64,ftruncate,fallocate:error=ENOSPC")
}

// failed lets every write to a file fail as on a broken disk, which ends the dashboard.
func failed(d *dashboard, random *rand.Rand) {
	d.inject(random, "pwrite64:error=EIO")
}

// inject lets system calls of the dashboard fail for some seconds.
func (d *dashboard) inject(random *rand.Rand, what string) {
	calls, _, _ := strings.Cut(what, ":")
	tracer := exec.Command("strace", "-f", "-p", d.pid(), "-o", os.DevNull, "-e", "trace="+calls, "-e", "inject="+what)
	said, err := tracer.StderrPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := tracer.Start(); err != nil {
		d.t.Fatal(err)
	}
	stuck := time.AfterFunc(patience, func() { _ = tracer.Process.Kill() }) // an error says that it has ended
	defer stuck.Stop()
	var words bytes.Buffer
	attached := bufio.NewScanner(said)
	for attached.Scan() && !strings.Contains(attached.Text(), "attached") {
		words.WriteString(attached.Text())
	}
	if attached.Err() != nil || !strings.Contains(attached.Text(), "attached") {
		d.t.Fatalf("strace cannot follow the dashboard: %s", words.String())
	}
	time.Sleep(time.Second + upTo(random, 3*time.Second))
	// An interrupted strace can wait forever if the dashboard is starting a program at this
	// moment: the thread that starts it waits for the program, and the program waits for
	// strace. Killing strace frees both.
	_ = tracer.Process.Signal(os.Interrupt) // an error says that it has ended
	stuck.Reset(letGo)
	for attached.Scan() {
		continue // until the pipe ends
	}
	_ = tracer.Wait() // it ends by the signal
}
