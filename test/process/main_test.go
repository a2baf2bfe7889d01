// Package process_test starts, stops, reloads, damages and kills the built program.
package process_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gorilla/websocket"

	"redrive/test/rig"
)

func TestMain_ExitCodes(t *testing.T) {
	dir := t.TempDir()
	rig.Write(t, dir, "bad.yaml", "queues:\n  orders:\n    policy:\n      max_attempts: -1\n")
	rig.Write(t, dir, "handler.yaml", "handlers:\n  a:\n    http: {url: 'ftp://x'}\n")
	rig.Write(t, dir, "port.yaml", "handlers:\n  a:\n    http: {url: 'http://h:99999999/'}\n")
	rig.Write(t, dir, "gone.yaml", "handlers:\n  a:\n    exec: {command: [/bin/none]}\n")
	rig.Write(t, dir, "two.yaml", "workers: 0\nttr: 5\n")
	rig.Write(t, dir, "good.yaml", "queues: {orders: {workers: 3}}\nhandlers: {a: {exec: {command: [/bin/true]}}}\n")
	rig.Write(t, dir, "not.db", strings.Repeat("this is no database ", 100))
	tests := []struct {
		args string
		code int
		says string
	}{
		{"version", 0, "redrive v9"},
		{"--version", 0, "redrive v9"},
		{"serve --version", 0, "redrive v9"},
		{"--help", 0, "enqueue"},
		{"serve --help", 0, "--insecure-no-auth"},
		{"check good.yaml", 0, "good.yaml is valid. It configures 1 queue and 1 handler."},
		{"check bad.yaml", 2, "bad.yaml:4: queues.orders.policy.max_attempts: -1 is negative"},
		{"check gone.yaml", 2, "gone.yaml:3: handlers.a.exec.command: cannot be run: "},
		{"check two.yaml", 2, "dashboard: two.yaml:2: ttr: must be"},
		{"check handler.yaml", 2, "handler.yaml:3: handlers.a.http.url: is not an address"},
		{"check", 2, "redrive.yaml: no such file"},
		{"check none.yaml", 2, "none.yaml: no such file"},
		{"--config bad.yaml", 2, "bad.yaml:4: queues.orders.policy.max_attempts"},
		{"--config handler.yaml --listen 127.0.0.1:0", 2, "handler.yaml:3: handlers.a.http.url"},
		{"--bogus", 2, "unknown flag --bogus"},
		{"serve --bogus", 2, "unknown flag --bogus"},
		{"frobnicate", 2, "frobnicate"},
		{"demo --jobs 1999", 2, "--jobs 1999: must be from 2000 to 1000000"},
		{"--log-level loud", 2, "--log-level must be one of"},
		{"--listen nonsense", 2, `--listen "nonsense" is not an address`},
		{"--listen 0.0.0.0:0", 2, "--insecure-no-auth"},
		{"--listen 127.0.0.1:0 --db not.db", 3, "not.db"},
		{"--listen 127.0.0.1:0 --db none/a.db", 3, "/none does not exist; create it (mkdir -p "},
		{"token create --name t --role admin --db none/a.db", 3, "/none does not exist"},
		{"user list --db made-up.db", 2, "--db made-up.db: no such file"},
		{"token revoke x --db made-up.db", 2, "--db made-up.db: no such file"},
		{"doctor --db made-up.db", 2, "made-up.db"},
		{"backup a.bak --db made-up.db", 2, "nothing was copied: "},
		{"backup a.bak --db not.db", 3, "not.db is not a Redrive database"},
		{"backup good.yaml --db not.db", 2, "good.yaml exists; name a new file, or add --force"},
		{"restore made-up.bak --db new.db", 2, "nothing was restored: "},
		{"restore not.db --db new.db", 3, "not.db is not a Redrive database"},
		{"--listen 127.0.0.1:99999 --db a.db", 2, "--listen"},
		{"enqueue", 2, "<type>"},
		{"enqueue t {", 2, "payload is not JSON"},
		{"enqueue t --policy {", 2, "--policy is neither the name of a policy"},
		{"enqueue t --ttr soon", 2, "--ttr"},
		{"enqueue t --run-at soon", 2, "--run-at \"soon\" is neither a time"},
		{"enqueue t --run-at 5m --delay 5m", 2, "--delay and --run-at cannot be used together"},
		{"enqueue t --ndjson", 2, "leave out the type and all job flags"},
		{"list qeue:x", 2, "did you mean queue:"},
		{"list --limit=-1", 2, "--limit must be 0 or more"},
		{"show 5", 2, "is not a UUID"},
		{"completion tcsh", 2, "bash"},
		{"enqueue t -5", 2, "after --, for example: dashboard enqueue TYPE -- -5"},
		{"enqueue t --delay -5s", 2, `dashboard: --delay: "-5s" must not be negative`},
		{"enqueue t --delay=-5s", 2, `dashboard: --delay: "-5s" must not be negative`},
		{"enqueue t --run-at -PT5M", 2, `dashboard: --run-at: "-PT5M" must not be negative`},
		{"enqueue t --ttr -1d", 2, `dashboard: --ttr: "-1d" must not be negative`},
		{"enqueue t --priority -5", 2, `perhaps try --priority="-5"?; run dashboard --help`},
		{"lst", 2, "unexpected argument lst; did you mean list?; run dashboard --help for a list of commands"},
		{"enque t", 2, "did you mean enqueue?"},
		{"enqueue t -", 2, "standard input is empty; send null, or leave out -"},
		{"enqueue t\xff 1", 2, `"t\xff" is not valid UTF-8`},
		{"enqueue t --key a\x01b", 2, "--key"},
		{"enqueue t --key a\xff", 2, "UTF-8"},
		{"check port.yaml", 2, "port.yaml:3: handlers.a.http.url: 99999999 is not a port"},
		{"enqueue t --delay soon", 2, "--delay"},
		{"enqueue t --priority x", 2, "--priority"},
		{"enqueue t --server nowhere", 2, "--server"},
		{"enqueue t --server http://127.0.0.1:1", 1, "is the dashboard running?"},
	}
	for _, test := range tests {
		t.Run(test.args, func(t *testing.T) {
			code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, strings.Fields(test.args)...))
			if code != test.code || !strings.Contains(stdout+stderr, test.says) {
				t.Errorf("exit %d, want %d with %q: %s%s", code, test.code, test.says, stdout, stderr)
			}
			if n := strings.Count(stderr, "dashboard: "); code == 2 && n != 1 && test.args != "check two.yaml" {
				t.Errorf("%d lines of complaint, want 1: %s", n, stderr)
			}
		})
	}
	for _, name := range []string{"none", "made-up.db", "a.bak", "new.db", "new.db.lock"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was created", name)
		}
	}
}

func TestMain_EnvironmentStandsForFlags(t *testing.T) {
	cmd := rig.Command(t, t.TempDir())
	cmd.Env = append(cmd.Env, "REDRIVE_LISTEN=0.0.0.0:0")
	if code, _, stderr := rig.Finish(t, cmd); code != 2 || !strings.Contains(stderr, "0.0.0.0:0") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestServe_SecondInstanceIsRefused(t *testing.T) {
	dir := t.TempDir()
	p := rig.Start(t, dir)
	code, _, stderr := rig.Finish(t, rig.Command(t, dir, "--listen", "127.0.0.1:0"))
	if want := fmt.Sprintf("pid %d", p.Cmd.Process.Pid); code != 2 || !strings.Contains(stderr, want) {
		t.Errorf("exit %d: %s; want 2 and %q", code, stderr, want)
	}
}

func TestServe_AddressInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	code, _, stderr := rig.Finish(t, rig.Command(t, t.TempDir(), "--listen", listener.Addr().String()))
	if code != 1 || !strings.Contains(stderr, "choose another address with --listen") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestServe_InsecureSaysSoOnEveryPage(t *testing.T) {
	p := rig.Start(t, t.TempDir(), "--listen", "0.0.0.0:0", "--insecure-no-auth")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(p.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Get("http://127.0.0.1:" + port + "/queues")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(body), "Anyone on this network can use this page") {
		t.Errorf("no banner: %v", err)
	}
}

func TestServe_StopsGracefully(t *testing.T) {
	p := rig.Start(t, t.TempDir())
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(p.URL, "http")+"/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, _, err = conn.ReadMessage()
	}
	if !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("the websocket ended with %v, want 1001", err)
	}
	if p.Wait(); p.Code() != 0 {
		t.Errorf("exit %d: %s", p.Code(), p.Stderr)
	}
}

const working = `
policy: {strategy: constant, initial_interval: 1ms, jitter: false}
queues: {work: {workers: 20}}
handlers: {work.do: {http: {url: %q}}}
`

func TestServe_GracefulStopDoesNotCountWhatItReleases(t *testing.T) {
	service := rig.NewHolding(20)
	web := httptest.NewServer(service)
	defer web.Close()
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", fmt.Sprintf(working, web.URL))
	p := rig.Start(t, dir)
	var ids []string
	for range 25 {
		ids = append(ids, p.Post(`{"type":"work.do","queue":"work"}`))
	}
	<-service.Full
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.Says("Stopping;")     // two signals at once would be one
	p.Stop(syscall.SIGTERM) // the second one does not wait for the handlers
	close(service.Open)
	p = rig.Start(t, dir)
	p.Until(func(now rig.Totals) bool { return now.Succeeded == len(ids) })
	for _, id := range ids {
		d := rig.Get[rig.Detail](t, p.URL+"/api/v1/jobs/"+id)
		if d.Job.Attempts != 1 || d.Job.State != "completed" {
			t.Errorf("job %s is %s after %d attempts, want the released ones uncounted: %+v", id, d.Job.State, d.Job.Attempts, d.Attempts)
		}
	}
}

func TestServe_KillLosesNothing(t *testing.T) {
	const running = 20
	service := rig.NewHolding(running)
	web := httptest.NewServer(service)
	defer web.Close()
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", fmt.Sprintf(working, web.URL))
	p := rig.Start(t, dir)
	acknowledged := busily(p, service)
	close(service.Open)

	p = rig.Start(t, dir)
	p.Until(func(now rig.Totals) bool { return now.Failed == running })
	p.Until(func(now rig.Totals) bool {
		return now.Succeeded >= len(acknowledged) && now.States["completed"] == now.Succeeded
	})
	seen := map[string]bool{}
	for _, id := range acknowledged {
		if seen[id] {
			t.Errorf("job %s was acknowledged twice", id)
		}
		seen[id] = true
		checkHistory(t, rig.Get[rig.Detail](t, p.URL+"/api/v1/jobs/"+id), id, service.Held[id])
	}
	if now := p.Until(func(rig.Totals) bool { return true }); now.Failed != running {
		t.Errorf("%d attempts failed, want the %d that were running", now.Failed, running)
	}
	for id, n := range service.Calls {
		if want := 1 + map[bool]int{true: 1}[service.Held[id]]; n != want {
			t.Errorf("job %s was run %d times, want %d", id, n, want)
		}
	}
}

// busily enqueues from several sides until the service holds what it can and
// more is waiting, then kills the process in the middle of it.
func busily(p *rig.Process, service *rig.Holding) (acknowledged []string) {
	var mu sync.Mutex
	var senders sync.WaitGroup
	enough := make(chan struct{})
	for range 4 {
		senders.Go(func() {
			for {
				id := p.Post(`{"type":"work.do","queue":"work","payload":{"n":1}}`)
				if id == "" {
					return // the process is gone
				}
				mu.Lock()
				acknowledged = append(acknowledged, id)
				if len(acknowledged) == 150 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-service.Full
	<-enough
	p.Stop(syscall.SIGKILL)
	senders.Wait()
	return acknowledged
}

// checkHistory wants one lost attempt of a job that was running, and none of a
// job that was not, before the one that succeeded.
func checkHistory(t *testing.T, d rig.Detail, id string, wasRunning bool) {
	t.Helper()
	var outcomes []string
	for _, a := range d.Attempts {
		outcomes = append(outcomes, a.Outcome)
	}
	want := "succeeded"
	if wasRunning {
		want = "lost succeeded"
	}
	if got := strings.Join(outcomes, " "); got != want || d.Job.State != "completed" {
		t.Errorf("job %s is %s after %q, want %q", id, d.Job.State, got, want)
	}
}

// The limit on the size of files stands for a disk that fails: SQLite gets an
// error in the middle of a write.
func TestServe_StoreFailureEndsTheProcess(t *testing.T) {
	dir := t.TempDir()
	rig.Start(t, dir).Stop(os.Interrupt) // to make a database takes nearly as much as the limit allows
	p := rig.StartLimited(t, dir)
	payload := strings.Repeat("x", 1<<18)
	sent := 0
	for p.Post(`{"type":"t","payload":"`+payload+`"}`) != "" {
		if sent++; sent > 100 {
			t.Fatal("the limit had no effect")
		}
	}
	if p.Wait(); p.Code() != 1 {
		t.Errorf("exit %d: %s", p.Code(), p.Stderr)
	}
	p = rig.Start(t, dir)
	if n := p.Until(func(rig.Totals) bool { return true }).States["available"]; n < sent {
		t.Errorf("%d jobs after the restart, want the %d that were acknowledged", n, sent)
	}
}

// A person who stops the demo while it writes its history does not wait for it.
func TestDemo_SignalEndsTheHistory(t *testing.T) {
	dir := t.TempDir()
	cmd := rig.Command(t, dir, "demo", "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	p := &rig.Process{T: t, Cmd: cmd, Stderr: rig.NewTranscript()}
	var stdout strings.Builder
	person, terminal := rig.Terminal(t) // where alone the progress is drawn
	cmd.Stdout, cmd.Stderr = &stdout, terminal
	go io.Copy(p.Stderr, person)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.Says("Writing a day of history")
	if p.Stop(syscall.SIGINT); p.Code() != 0 || stdout.Len() > 0 {
		t.Errorf("exit %d: %s%s; want 0 before the demo has started", p.Code(), stdout.String(), p.Stderr)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}
