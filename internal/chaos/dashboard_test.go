//go:build linux

package chaos

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	workers  = 8
	patience = 2 * time.Minute // how long a machine under load may take for anything
)

// dashboard is the program under test and what is known of its processes.
type dashboard struct {
	t      *testing.T
	binary string
	dir    string
	db     string
	config string
	url    atomic.Pointer[string] // of the process that serves now

	running *process
	starts  int
	doors   int // starts that were refused, rightly

	kills     int         // kill -9
	failures  int         // ends of the program's own, because its disk had failed
	unwritten []time.Time // when a process ended by either, and what it knew was not written
}

// process is one start of the program.
type process struct {
	cmd    *exec.Cmd
	url    string
	stderr *lines
	ended  chan struct{} // closed when it has ended
	end    time.Time     // to be read after that
}

// lines keeps what a process said.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is the end of it.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.text.Bytes()
	return string(all[max(0, len(all)-4000):])
}

func newDashboard(t *testing.T, configuration string) *dashboard {
	t.Helper()
	dir := t.TempDir()
	d := &dashboard{t: t, binary: filepath.Join(dir, "dashboard"), dir: dir, db: filepath.Join(dir, "data", "redrive.db"),
		config: filepath.Join(dir, "redrive.yaml")}
	if out, err := exec.Command("make", "-s", "-C", "../..", "build", "OUT="+d.binary).CombinedOutput(); err != nil {
		t.Fatalf("make build: %v: %s", err, out)
	}
	if err := os.WriteFile(d.config, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Dir(d.db), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if d.running != nil {
			d.running.kill()
		}
		if t.Failed() && d.running != nil {
			t.Logf("the dashboard said at last: %s", d.running.stderr)
		}
	})
	return d
}

// command is a start of the program on a database.
func (d *dashboard) command(args ...string) *exec.Cmd {
	cmd := exec.Command(d.binary, args...)
	cmd.Dir = d.dir
	return cmd
}

// launch starts the program on a database, without waiting for anything.
func (d *dashboard) launch(db string) (*process, *bufio.Reader) {
	d.t.Helper()
	p := &process{stderr: &lines{}, ended: make(chan struct{})}
	p.cmd = d.command("serve", "--listen", "127.0.0.1:0", "--db", db, "--config", d.config)
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.starts++
	return p, bufio.NewReader(out)
}

// reap waits for the end of a process; its pipe has been read to the end.
func (p *process) reap() {
	_ = p.cmd.Wait() // how it ended is in ProcessState
	p.end = time.Now()
	close(p.ended)
}

// serves waits until a process says where it is. It reports false when the
// process ended instead.
func (p *process) serves(out *bufio.Reader) bool {
	line, err := out.ReadString('\n')
	_, after, found := strings.Cut(line, "Redrive is at ")
	if err != nil || !found {
		p.reap()
		return false
	}
	p.url, _, _ = strings.Cut(after, ",")
	go p.reap()
	return true
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error says that it has ended
	<-p.ended
}

func (p *process) code() int { return p.cmd.ProcessState.ExitCode() }

// start starts the dashboard, which must come up.
func (d *dashboard) start() {
	d.t.Helper()
	p, out := d.launch(d.db)
	if !p.serves(out) {
		d.t.Fatalf("the dashboard did not start, exit code %d: %s", p.code(), p.stderr)
	}
	d.adopt(p)
}

// adopt makes a process the one that serves.
func (d *dashboard) adopt(p *process) {
	d.running = p
	d.url.Store(&p.url)
}

// kill ends the dashboard with kill -9.
func (d *dashboard) kill() {
	d.noteKill()
	d.running.kill()
}

func (d *dashboard) noteKill() {
	d.kills++
	d.unwritten = append(d.unwritten, time.Now())
}

// refused starts the program on a database that must not be opened, under a name
// of it, and waits for the exit code.
func (d *dashboard) refused(db string, code int, why string) {
	d.t.Helper()
	p, out := d.launch(db)
	if p.serves(out) {
		p.kill()
		d.t.Errorf("a start on %s was not refused although %s", db, why)
		return
	}
	if d.doors++; p.code() != code {
		d.t.Errorf("a start on %s ended with %d, want %d because %s: %s", db, p.code(), code, why, p.stderr)
	}
}

// get asks the serving process and decodes its answer.
func (d *dashboard) get(path string, into any) error {
	response, err := client.Get(*d.url.Load() + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, response.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// awaitReady waits until the dashboard takes jobs again. It starts a dashboard again that
// ended on its own because its disk failed, as a service manager does.
func (d *dashboard) awaitReady() {
	d.t.Helper()
	var err error
	for late := time.Now().Add(patience); time.Now().Before(late); time.Sleep(50 * time.Millisecond) {
		select {
		case <-d.running.ended:
			d.t.Logf("the dashboard ended by itself with %d: %s", d.running.code(), d.running.stderr)
			d.failures++
			d.unwritten = append(d.unwritten, d.running.end)
			d.start()
		default:
		}
		if err = d.get("/readyz", nil); err == nil {
			return
		}
	}
	d.t.Fatalf("the dashboard does not take jobs again: %v: %s", err, d.running.stderr)
}

// awaitUnready waits until the dashboard says that it takes no jobs, or ends.
func (d *dashboard) awaitUnready() {
	d.t.Helper()
	d.await("it takes no jobs", func() bool {
		select {
		case <-d.running.ended:
			return true
		default:
			return d.get("/readyz", nil) != nil
		}
	})
}

// await waits for what has to come.
func (d *dashboard) await(what string, came func() bool) {
	d.t.Helper()
	for late := time.Now().Add(patience); !came(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(late) {
			d.t.Fatalf("it did not come to this: %s: %s", what, d.running.stderr)
		}
	}
}

// awaitIdle waits until no job is left to run.
func (d *dashboard) awaitIdle() {
	d.t.Helper()
	left, before := 0, -1
	for late := time.Now().Add(patience); time.Now().Before(late); time.Sleep(200 * time.Millisecond) {
		var now struct {
			Counters struct{ States map[string]int }
		}
		if err := d.get("/live", &now); err != nil {
			d.t.Fatalf("while the last jobs ran: %v: %s", err, d.running.stderr)
		}
		left = 0
		for _, state := range []string{"available", "active", "scheduled", "retryable"} {
			left += now.Counters.States[state]
		}
		if left == 0 {
			return
		}
		if left != before {
			before, late = left, time.Now().Add(patience)
		}
	}
	d.t.Fatalf("%d jobs are still to run, and none of them ended for %v: %s", left, patience, d.running.stderr)
}

// end stops the dashboard as a service manager does.
func (d *dashboard) end() {
	d.t.Helper()
	if err := d.running.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		d.t.Fatal(err)
	}
	<-d.running.ended
	if code := d.running.code(); code != 0 {
		d.t.Errorf("the dashboard ended with %d after SIGTERM: %s", code, d.running.stderr)
	}
}

// examine asks the program itself whether its counts and its audit log are right.
func (d *dashboard) examine() {
	d.t.Helper()
	if out, err := d.command("doctor", "--db", d.db).CombinedOutput(); err != nil {
		d.t.Errorf("dashboard doctor: %v\n%s", err, out)
	}
}
