package workers_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// built are the programs in Go, built once: the dashboard as it is released, and the
// systems of this module.
var built = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "workers"); err != nil {
		return "", err
	}
	for _, args := range [][]string{
		{"make", "-s", "-C", "../..", "build", "OUT=" + filepath.Join(dir, "dashboard")},
		{"go", "build", "-o", dir, "./asynq", "./river"},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return dir, fmt.Errorf("%v: %w: %s", args, err, out)
		}
	}
	return dir, nil
})

func program(t testing.TB, name string) string {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// missing skips the test, or fails in CI.
func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// start starts a program that runs until the end of the test, and whose output is shown
// when the test fails.
func start(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	output := new(bytes.Buffer)
	cmd.Stderr = output
	if cmd.Stdout == nil {
		cmd.Stdout = output
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true // so that a signal reaches also the worker that the program may start
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Logf("%v: %s", cmd.Args, output)
		}
	})
}

// program is the system's program with a verb.
func (b *bench) program(args ...string) *exec.Cmd {
	b.Helper()
	args = append(b.command[1:len(b.command):len(b.command)], args...)
	name := b.command[0]
	if len(b.command) == 1 {
		name = program(b.TB, name)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = "testdata", b.env
	return cmd
}

// run runs the system's program to its end and returns what it prints.
func (b *bench) run(args ...string) string {
	b.Helper()
	cmd, problems := b.program(args...), new(bytes.Buffer)
	cmd.Stderr = problems
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%v: %v: %s%s", cmd.Args, err, out, problems)
	}
	return string(out)
}

func (b *bench) startWorker() {
	b.Helper()
	start(b.TB, b.program("work", b.dir))
}

// dashboard is the product at work.
type dashboard struct {
	t    testing.TB
	cmd  *exec.Cmd
	url  string
	path string // of the database
}

// deadLetter is a dead letter as the API shows it.
type deadLetter struct{ Job shownJob }

type shownJob struct {
	ID, Queue, Type, State string
	Run, Attempts          int
	Error                  struct{ Type, Message string }
}

func startDashboard(t testing.TB, config string) *dashboard {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "redrive.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &dashboard{t: t, cmd: exec.Command(program(t, "dashboard"), "--listen", "127.0.0.1:0"), path: filepath.Join(dir, "redrive.db")}
	d.cmd.Dir = dir
	says, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer says.Close()
	d.cmd.Stdout = write
	start(t, d.cmd)
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(says).ReadString('\n')
	_, after, ok := strings.Cut(line, "Redrive is at ")
	if err != nil || !ok {
		t.Fatalf("the dashboard said %q, %v", line, err)
	}
	d.url, _, _ = strings.Cut(after, ",")
	return d
}

func get[T any](d *dashboard, path string) (answer T) {
	d.t.Helper()
	response, err := http.Get(d.url + path)
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK {
		d.t.Fatalf("%s answered %s, %v", path, response.Status, err)
	}
	return answer
}

// post returns the status of the answer; 0 without one.
func (d *dashboard) post(path, body string) int {
	d.t.Helper()
	response, err := http.Post(d.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		d.t.Error(err)
		return 0
	}
	if err := response.Body.Close(); err != nil {
		d.t.Error(err)
	}
	return response.StatusCode
}

// deadLetters are the dead letters of the source.
func (d *dashboard) deadLetters() []deadLetter {
	d.t.Helper()
	return get[struct {
		DeadLetters []deadLetter `json:"dead_letters"`
	}](d, "/api/v1/dead-letters?limit=200&q=source:shop").DeadLetters
}

func (d *dashboard) job(id string) shownJob {
	d.t.Helper()
	return get[deadLetter](d, "/api/v1/jobs/"+id).Job
}

// payload is what a job was enqueued with, as JSON.
func (d *dashboard) payload(id string) string {
	d.t.Helper()
	return string(get[struct {
		Job struct{ Payload json.RawMessage }
	}](d, "/api/v1/jobs/"+id).Job.Payload)
}

// act asks for a replay or a discard.
func (d *dashboard) act(l deadLetter, kind, body string) {
	d.t.Helper()
	if status := d.post("/api/v1/jobs/"+l.Job.ID+"/"+kind, body); status != http.StatusOK {
		d.t.Fatalf("the %s answered %d", kind, status)
	}
}

// ended counts the acts of a kind in the ledger that ended so.
func (d *dashboard) ended(kind, state string) (n int) {
	d.t.Helper()
	ledger := get[struct {
		Acts []struct{ Kind, State string }
	}](d, "/api/v1/sources/shop")
	for _, a := range ledger.Acts {
		if a.Kind == kind && a.State == state {
			n++
		}
	}
	return n
}

// examine ends the dashboard and lets its doctor look at the database.
func (d *dashboard) examine() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	if err := d.cmd.Wait(); err != nil {
		d.t.Fatalf("the dashboard ended: %v", err)
	}
	if out, err := exec.Command(d.cmd.Path, "doctor", "--db", d.path).CombinedOutput(); err != nil {
		d.t.Errorf("doctor: %v: %s", err, out)
	}
}
