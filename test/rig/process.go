// Package rig starts the built program for tests, and has what they do with it: commands
// and processes with what they write, their API and live pages, a database beside them, a
// service that they call, and a shop whose failed jobs they show. It links nothing of the
// program itself, so that tests of processes stay small.
package rig

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"redrive/internal/operation"
)

// Finish runs the program to its end.
func Finish(t *testing.T, cmd *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), problems.String()
}

// Process is the program while it serves.
type Process struct {
	T      testing.TB
	Cmd    *exec.Cmd
	URL    string
	Stderr *Transcript
}

// Says waits until the process has written the text to its standard error.
func (p *Process) Says(text string) {
	p.T.Helper()
	p.Stderr.Await(p.T, text)
}

// Start runs the program and returns once it says where it is.
func Start(t testing.TB, dir string, args ...string) *Process {
	t.Helper()
	return Await(t, Command(t, dir, append([]string{"--listen", "127.0.0.1:0"}, args...)...))
}

// StartLimited is Start with files that can grow to one or two
// megabytes, as the shell counts.
func StartLimited(t *testing.T, dir string) *Process {
	t.Helper()
	cmd := Command(t, dir, "--listen", "127.0.0.1:0")
	cmd.Args = append([]string{"sh", "-c", `ulimit -f 2048; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	return Await(t, cmd)
}

// Await starts the program and returns once it says where it is.
func Await(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{T: t, Cmd: cmd, Stderr: NewTranscript()}
	p.Cmd.Stderr = p.Stderr
	stdout, err := p.Cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.Cmd.ProcessState == nil {
			p.Cmd.Process.Kill()
			p.Wait()
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	_, after, ok := strings.Cut(line, "Redrive is at ")
	if err != nil || !ok {
		t.Fatalf("it said %q, %v: %s", line, err, p.Stop(syscall.SIGKILL).Stderr)
	}
	p.URL, _, _ = strings.Cut(after, ",")
	return p
}

// Stop sends a signal and waits for the end.
func (p *Process) Stop(signal os.Signal) *Process {
	p.T.Helper()
	if err := p.Cmd.Process.Signal(signal); err != nil {
		p.T.Fatal(err)
	}
	return p.Wait()
}

// Wait waits for the end.
func (p *Process) Wait() *Process {
	_ = p.Cmd.Wait() // how it ended is in ProcessState
	return p
}

// Code is the exit status of a process that has ended.
func (p *Process) Code() int { return p.Cmd.ProcessState.ExitCode() }

// Post sends a job and returns its id, or an empty one if there was no answer.
func (p *Process) Post(body string) string {
	response, err := http.Post(p.URL+"/api/v1/jobs", "application/json", strings.NewReader(body))
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

// Text is what an address answers, which must be a page or a document that is there.
func Text(t testing.TB, url string) string {
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

// Get reads the JSON document at an address.
func Get[T any](t testing.TB, url string) T {
	t.Helper()
	data := Text(t, url)
	var v T
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		t.Fatalf("%s: %v in %s", url, err, data)
	}
	return v
}

// Eventually waits until something is so.
func Eventually(t *testing.T, what string, is func() bool) {
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

// Write writes a file.
func Write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Detail is a job with its history, as the API tells it.
type Detail struct {
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

// Answer is the status and the body of a request.
func (p *Process) Answer(method, path, body string) (int, string) {
	p.T.Helper()
	request, err := http.NewRequestWithContext(p.T.Context(), method, p.URL+path, strings.NewReader(body))
	if err != nil {
		p.T.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.T.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.T.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// Send posts a body and wants the status.
func (p *Process) Send(t *testing.T, path, kind, body string, status int) {
	t.Helper()
	response, err := http.Post(p.URL+path, kind, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, err := io.ReadAll(response.Body); err != nil || response.StatusCode != status {
		t.Fatalf("%s: %s, %s, %v", path, response.Status, answer, err)
	}
}

// OperationNow is an operation as the API shows it.
type OperationNow struct {
	Operation struct {
		State                                                       operation.State
		Total, Pending, Done, Skipped, Failed, Succeeded, Unsettled int64
	}
}

// Operation reads an operation, whose meters must add up.
func (p *Process) Operation(id int64) OperationNow {
	p.T.Helper()
	r := Get[OperationNow](p.T, fmt.Sprintf("%s/api/v1/operations/%d", p.URL, id))
	if o := r.Operation; o.Total != o.Pending+o.Done+o.Skipped+o.Failed {
		p.T.Errorf("the meters of operation %d do not add up: %+v", id, o)
	}
	return r
}

// Failing is a configuration under which jobs of type shell.fail become dead letters
// after two attempts.
const Failing = `
policy: {max_attempts: 2, strategy: constant, initial_interval: 1ms, jitter: false}
handlers: {shell.fail: {exec: {command: [/bin/false]}}}
`
