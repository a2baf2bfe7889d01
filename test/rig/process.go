package main

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"redrive/internal/operation"
)

// binary is the program as it is released. All packages of tests share one, which is built
// again only when something has changed.
var binary = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../../bin/tests/dashboard")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}

	// One package after the other: the first one builds it.
	lock, err := os.Create(path + ".lock")
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}

	out, err := exec.Command("make", "-s", "-C", "../..", "build", "VERSION=v9", "OUT="+path).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("make build: %w: %s", err, out)
	}
	return path, err
})

// command is the built program in a directory of its own, without the
// environment's REDRIVE_*.
func command(t testing.TB, dir string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "REDRIVE_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// finish runs the program to its end.
func finish(t *testing.T, cmd *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), problems.String()
}

// process is the program while it serves.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	url    string
	stderr *transcript
}

// transcript is what a process says, to be read while it speaks.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // one slot: there is more
}

func newTranscript() *transcript { return &transcript{more: make(chan struct{}, 1)} }

func (t *transcript) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case t.more <- struct{}{}:
	default:
	}
	return t.text.Write(text)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// await waits until the text was said.
func (t *transcript) await(test testing.TB, text string) {
	test.Helper()
	late := time.After(3 * time.Minute)
	for !strings.Contains(t.String(), text) {
		select {
		case <-t.more:
		case <-late:
			test.Fatalf("it did not say %q, but %q", text, t)
		}
	}
}

// says waits until the process has written the text to its standard error.
func (p *process) says(text string) {
	p.t.Helper()
	p.stderr.await(p.t, text)
}

// startProcess runs the program and returns once it says where it is.
func startProcess(t testing.TB, dir string, args ...string) *process {
	t.Helper()
	return await(t, command(t, dir, append([]string{"--listen", "127.0.0.1:0"}, args...)...))
}

// startLimited is startProcess with files that can grow to one or two
// megabytes, as the shell counts.
func startLimited(t *testing.T, dir string) *process {
	t.Helper()
	cmd := command(t, dir, "--listen", "127.0.0.1:0")
	cmd.Args = append([]string{"sh", "-c", `ulimit -f 2048; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	return await(t, cmd)
}

// await starts the program and returns once it says where it is.
func await(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, stderr: newTranscript()}
	p.cmd.Stderr = p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			p.cmd.Process.Kill()
			p.wait()
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	_, after, ok := strings.Cut(line, "Redrive is at ")
	if err != nil || !ok {
		t.Fatalf("it said %q, %v: %s", line, err, p.stop(syscall.SIGKILL).stderr)
	}
	p.url, _, _ = strings.Cut(after, ",")
	return p
}

// stop sends a signal and waits for the end.
func (p *process) stop(signal os.Signal) *process {
	p.t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
	return p.wait()
}

func (p *process) wait() *process {
	_ = p.cmd.Wait() // how it ended is in ProcessState
	return p
}

func (p *process) code() int { return p.cmd.ProcessState.ExitCode() }

// post sends a job and returns its id, or an empty one if there was no answer.
func (p *process) post(body string) string {
	response, err := http.Post(p.url+"/api/v1/jobs", "application/json", strings.NewReader(body))
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	var answer struct{ Job struct{ ID string } }
	if json.NewDecoder(response.Body).Decode(&answer) != nil || response.StatusCode != http.StatusCreated {
		return ""
	}
	return answer.Job.ID
}

// text is what an address answers, which must be a page or a document that is there.
func text(t testing.TB, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %s, %v: %s", url, response.Status, err, data)
	}
	return string(data)
}

func get[T any](t testing.TB, url string) T {
	t.Helper()
	data := text(t, url)
	var v T
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		t.Fatalf("%s: %v in %s", url, err, data)
	}
	return v
}

// totals is what the live connection says.
type totals struct {
	Failed    int `json:"jobs_failed"`
	Succeeded int `json:"jobs_succeeded"`
	States    map[string]int
}

// until follows the live totals until they are as wanted.
func (p *process) until(wanted func(totals) bool) totals {
	p.t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(p.url, "http")+"/live", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close()
	for {
		var now totals
		if err := conn.ReadJSON(&now); err != nil {
			p.t.Fatalf("the totals ended: %v", err)
		}
		if wanted(now) {
			return now
		}
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	late := time.After(3 * time.Minute)
	for !is() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-late:
			t.Fatalf("it never came so far: %s", what)
		}
	}
}

// holding is a real service that can hold back its answers.
type holding struct {
	mu    sync.Mutex
	held  map[string]bool // by job
	full  chan struct{}   // closed when want requests are held
	want  int
	open  chan struct{} // closed: requests are answered
	calls map[string]int
}

func newHolding(want int) *holding {
	return &holding{held: map[string]bool{}, full: make(chan struct{}), want: want, open: make(chan struct{}), calls: map[string]int{}}
}

func (s *holding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	id := r.Header.Get("Redrive-Job-Id")
	s.calls[id]++
	select {
	case <-s.open:
	default:
		if s.held[id] = true; len(s.held) == s.want {
			close(s.full)
		}
	}
	s.mu.Unlock()
	select {
	case <-s.open:
	case <-r.Context().Done():
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// detail is a job with its history, as the API tells it.
type detail struct {
	Job struct {
		State    string
		Run      int
		Attempts int
	}
	Attempts []struct {
		Number  int
		Outcome string
		Worker  string
	}
}

// answer is the status and the body of a request.
func (p *process) answer(method, path, body string) (int, string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// send posts a body and wants the status.
func (p *process) send(t *testing.T, path, kind, body string, status int) {
	t.Helper()
	response, err := http.Post(p.url+path, kind, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, err := io.ReadAll(response.Body); err != nil || response.StatusCode != status {
		t.Fatalf("%s: %s, %s, %v", path, response.Status, answer, err)
	}
}

// operationNow is an operation as the API shows it.
type operationNow struct {
	Operation struct {
		State                                                       operation.State
		Total, Pending, Done, Skipped, Failed, Succeeded, Unsettled int64
	}
}

func (p *process) operation(id int64) operationNow {
	p.t.Helper()
	r := get[operationNow](p.t, fmt.Sprintf("%s/api/v1/operations/%d", p.url, id))
	if o := r.Operation; o.Total != o.Pending+o.Done+o.Skipped+o.Failed {
		p.t.Errorf("the meters of operation %d do not add up: %+v", id, o)
	}
	return r
}

// statement changes a database as another program would.
func statement(t *testing.T, path, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.ExecContext(t.Context(), query)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// openBeside opens a database that a running program has open too.
func openBeside(t *testing.T, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// openLive opens the websocket of a page.
func openLive(t *testing.T, url string) *websocket.Conn {
	t.Helper()
	page, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(url, "http")+"/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { page.Close() })
	return page
}

// untilRedrawn waits until the server tells an open page that it has to be drawn again.
func untilRedrawn(t *testing.T, page *websocket.Conn) {
	t.Helper()
	if err := page.SetReadDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	for {
		var message struct{ Type string }
		if err := page.ReadJSON(&message); err != nil {
			t.Fatalf("the page was not told that it has changed: %v", err)
		}
		if message.Type == "page" {
			return
		}
	}
}

// failing is a configuration under which jobs of type shell.fail become dead letters
// after two attempts.
const failing = `
policy: {max_attempts: 2, strategy: constant, initial_interval: 1ms, jitter: false}
handlers: {shell.fail: {exec: {command: [/bin/false]}}}
`
