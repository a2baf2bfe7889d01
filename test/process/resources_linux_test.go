package process_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"redrive/test/rig"
)

// shortOf is a dashboard whose jobs call a service and run a program, once each.
func shortOf(t *testing.T, start func(t *testing.T, dir string) *rig.Process) (p *rig.Process, served *atomic.Int64, ran string) {
	t.Helper()
	served = new(atomic.Int64)
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	t.Cleanup(service.Close)
	dir := t.TempDir()
	ran = filepath.Join(dir, "ran")
	rig.Write(t, dir, "redrive.yaml", fmt.Sprintf("policy: {max_attempts: 1}\nhandlers:\n  call: {http: {url: %q}}\n"+
		"  run: {exec: {command: [/bin/sh, -c, %q]}}\n", service.URL, "echo . >> "+ran))
	return start(t, dir), served, ran
}

// enqueueBoth sends as many jobs of each kind, which fall due in a second.
func enqueueBoth(p *rig.Process, n int) (ids []string) {
	p.T.Helper()
	for i := range 2 * n {
		kind := []string{"call", "run"}[i%2]
		id := p.Post(`{"type": "` + kind + `", "delay": "PT1S", "payload": {}}`)
		if id == "" {
			p.T.Fatal("a job was not taken")
		}
		ids = append(ids, id)
	}
	return ids
}

// wantOneAttempt checks that each job succeeded at its only attempt.
func wantOneAttempt(p *rig.Process, ids []string) (givenBack int) {
	p.T.Helper()
	for _, id := range ids {
		d := rig.Get[struct {
			Job struct {
				State    string
				Attempts int
			}
			Attempts []struct{ Outcome string }
		}](p.T, p.URL+"/api/v1/jobs/"+id)
		if d.Job.State != "completed" || d.Job.Attempts != 1 {
			p.T.Errorf("job %s is %s after %d attempts: %+v", id, d.Job.State, d.Job.Attempts, d.Attempts)
		}
		givenBack += len(d.Attempts) - 1
	}
	return givenBack
}

// limit sets how many descriptors a process may have open.
func limit(p *rig.Process, n uint64) {
	p.T.Helper()
	var before unix.Rlimit
	if err := unix.Prlimit(p.Cmd.Process.Pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		p.T.Fatal(err)
	}
	if err := unix.Prlimit(p.Cmd.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: before.Max}, nil); err != nil {
		p.T.Fatal(err)
	}
}

// open counts the descriptors of the process.
func openFiles(p *rig.Process) uint64 {
	p.T.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Cmd.Process.Pid))
	if err != nil {
		p.T.Fatal(err)
	}
	return uint64(len(all))
}

// ask reads an address over a connection of its own that it keeps.
func ask(t *testing.T, client *http.Client, url string) (status int, text string) {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestProcess_OutOfDescriptorsUsesUpNoAttempt(t *testing.T) {
	p, _, _ := shortOf(t, func(t *testing.T, dir string) *rig.Process { return rig.Start(t, dir) })
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	post := func(kind string) string {
		t.Helper()
		response, err := client.Post(p.URL+"/api/v1/jobs", "application/json", strings.NewReader(`{"type": "`+kind+`", "payload": {}}`))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var answer struct{ Job struct{ ID string } }
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
		return answer.Job.ID
	}
	if status, text := ask(t, client, p.URL+"/readyz"); status != http.StatusOK {
		t.Fatalf("/readyz: %d %s", status, text)
	}
	ask(t, client, p.URL+"/jobs") // every connection to the database is open now
	before := openFiles(p)
	limit(p, 3)
	var ids []string
	for i := range 30 {
		ids = append(ids, post([]string{"call", "run"}[i%2]))
	}
	p.Says("Something has run out, so no jobs are claimed.")
	status, text := ask(t, client, p.URL+"/readyz")
	if status != http.StatusServiceUnavailable || !strings.Contains(text, "no jobs have been claimed since 20") || !strings.Contains(text, "file descriptor") {
		t.Errorf("/readyz: %d %s", status, text)
	}
	if _, page := ask(t, client, p.URL+"/"); !strings.Contains(page, "No jobs are started.") {
		t.Error("the page does not say that no jobs are started")
	}
	_, metrics := ask(t, client, p.URL+"/metrics")
	for _, line := range []string{
		`redrive_held{resource="descriptors"} 1`, `redrive_holds_total{resource="descriptors"} 1`,
		`redrive_holds_total{resource="memory"} 0`, "redrive_ready 0",
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("/metrics lacks %s", line)
		}
	}
	limit(p, before+200)
	p.Says("Jobs are claimed again.")
	p.Until(func(now rig.Totals) bool { return now.Succeeded == len(ids) })
	if n := wantOneAttempt(p, ids); n == 0 || n > 20 {
		t.Errorf("%d executions were given back", n)
	}
	if status, text := ask(t, client, p.URL+"/readyz"); status != http.StatusOK {
		t.Errorf("/readyz afterwards: %d %s", status, text)
	}
	if log := p.Stderr.String(); strings.Count(log, "Something has run out, so no jobs are claimed.") != strings.Count(log, "Jobs are claimed again.") {
		t.Errorf("the log says\n%s", log)
	}
}

// Idle connections of strangers leave the database and the handlers their share
// of the few descriptors that the system allows.
func TestProcess_IdleConnectionsTakeNoDescriptorOfAJob(t *testing.T) {
	p, served, ran := shortOf(t, func(t *testing.T, dir string) *rig.Process {
		cmd := rig.Command(t, dir, "--listen", "127.0.0.1:0")
		cmd.Args = append([]string{"sh", "-c", `ulimit -n 160; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		return rig.Await(t, cmd)
	})
	p.Says("The system allows few file descriptors")
	ids := enqueueBoth(p, 20)
	http.DefaultClient.CloseIdleConnections()
	var idle []net.Conn
	for range 300 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, conn)
	}
	rig.Eventually(t, "all jobs ran", func() bool {
		programs, _ := os.ReadFile(ran) // there is none at first
		return served.Load() >= 20 && len(programs) >= 2*20
	})
	for _, conn := range idle {
		conn.Close()
	}
	p.Until(func(now rig.Totals) bool { return now.Succeeded >= len(ids) })
	wantOneAttempt(p, ids)
}
