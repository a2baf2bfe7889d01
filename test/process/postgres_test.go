package process_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"redrive/internal/store/postgres/postgrestest"
	"redrive/test/rig"
)

func TestMain(m *testing.M) { postgrestest.Run(m) }

// standingBy starts a program that has to wait for another one, and returns it with the address
// at which it says so.
func standingBy(t *testing.T, dir, dsn string) (p *rig.Process, address string) {
	t.Helper()

	p = &rig.Process{T: t, Cmd: rig.Command(t, dir, "--listen", "127.0.0.1:0", "--db", dsn), Stderr: rig.NewTranscript()}
	p.Cmd.Stderr = p.Stderr
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.Cmd.ProcessState == nil {
			p.Stop(os.Kill)
		}
	})

	p.Says("Standing by")
	address = regexp.MustCompile(`listen=(\S+)`).FindStringSubmatch(p.Stderr.String())[1]

	return p, "http://" + address
}

func statusOf(t *testing.T, url string) (int, string) {
	t.Helper()

	response, err := http.Get(url)
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

// A standby says to load balancers that it takes no requests. Who works meanwhile, and where, is
// for those who read its log. It takes over when the other process stops, and finds its jobs.
func TestPostgres_AStandbyTakesOver(t *testing.T) {
	dsn, dir := postgrestest.New(t), t.TempDir()
	first := rig.Start(t, dir, "--db", dsn)
	id := first.Post(`{"type":"t","payload":{"n":1}}`)

	second, url := standingBy(t, dir, dsn)
	says := "standby: another process works on the database " + postgrestest.Query(t, dsn, `SELECT current_database()`) + ", and this one stands by\n"
	if status, body := statusOf(t, url+"/readyz"); status != http.StatusServiceUnavailable || body != says {
		t.Errorf("the standby answers %d: %s", status, body)
	}
	if !strings.Contains(second.Stderr.String(), "url="+first.URL) {
		t.Errorf("the log of the standby says: %s", second.Stderr)
	}
	if status, body := statusOf(t, url+"/healthz"); status != http.StatusOK || body != "standby\n" {
		t.Errorf("asked whether it is healthy, the standby answers %d: %s", status, body)
	}
	if status, body := statusOf(t, first.URL+"/healthz"); status != http.StatusOK || body != "ok\n" {
		t.Errorf("asked whether it is healthy, the one that works answers %d: %s", status, body)
	}

	first.Stop(syscall.SIGTERM)
	second.Says("Redrive is ready.")

	if got := rig.Get[rig.Detail](t, url+"/api/v1/jobs/"+id).Job.State; got != "available" {
		t.Errorf("the job is %s", got)
	}
	if second.Stop(syscall.SIGTERM); second.Code() != 0 {
		t.Errorf("exit %d: %s", second.Code(), second.Stderr)
	}
}

// A standby works with what its configuration says when it takes over, whether or not it was told
// to reload meanwhile. That signal ends a process that does not expect it.
func TestPostgres_AStandbyReadsItsConfigurationWhenItTakesOver(t *testing.T) {
	for name, told := range map[string]bool{"told": true, "not told": false} {
		t.Run(name, func(t *testing.T) {
			dsn, dir := postgrestest.New(t), t.TempDir()
			rig.Write(t, dir, "redrive.yaml", beforeReload)
			first := rig.Start(t, dir, "--db", dsn)
			second, _ := standingBy(t, dir, dsn)

			if told {
				if err := second.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
					t.Fatal(err)
				}
			}
			rig.Write(t, dir, "redrive.yaml", afterReload)

			first.Stop(syscall.SIGTERM)
			second.Says("Redrive is ready.")
			second.Says(`changed="[handlers policy]" needs_restart=[hosts]`)

			if second.Stop(syscall.SIGTERM); second.Code() != 0 {
				t.Errorf("exit %d: %s", second.Code(), second.Stderr)
			}
		})
	}
}

// A standby that is stopped has done nothing.
func TestPostgres_AStandbyCanBeStopped(t *testing.T) {
	dsn, dir := postgrestest.New(t), t.TempDir()
	rig.Start(t, dir, "--db", dsn)

	second, _ := standingBy(t, dir, dsn)
	if second.Stop(syscall.SIGTERM); second.Code() != 0 {
		t.Errorf("exit %d: %s", second.Code(), second.Stderr)
	}
}

// A process that is killed in the middle of its work is followed by the standby, which loses no
// job, and runs again only those that were running.
func TestPostgres_AKillLosesNothing(t *testing.T) {
	const running = 20
	service := rig.NewHolding(running)
	web := httptest.NewServer(service)
	defer web.Close()

	dsn, dir := postgrestest.New(t), t.TempDir()
	rig.Write(t, dir, "redrive.yaml", fmt.Sprintf(working, web.URL))
	first := rig.Start(t, dir, "--db", dsn)
	second, url := standingBy(t, dir, dsn)

	acknowledged := busily(first, service)
	close(service.Open)
	postgrestest.ExpireLease(t, dsn)
	second.Says("Redrive is ready.")

	second.URL = url
	second.Until(func(now rig.Totals) bool { return now.Failed == running })
	second.Until(func(now rig.Totals) bool {
		return now.Succeeded >= len(acknowledged) && now.States["completed"] == now.Succeeded
	})
	for _, id := range acknowledged {
		checkHistory(t, rig.Get[rig.Detail](t, url+"/api/v1/jobs/"+id), id, service.Held[id])
	}
	for id, n := range service.Calls {
		if want := 1 + map[bool]int{true: 1}[service.Held[id]]; n != want {
			t.Errorf("job %s was run %d times, want %d", id, n, want)
		}
	}

	second.Stop(syscall.SIGTERM)
	examine(t, dir, dsn)
}

// examine wants doctor to find nothing.
func examine(t *testing.T, dir, dsn string) {
	t.Helper()

	code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "doctor", "--db", dsn))
	if code != 0 {
		t.Errorf("doctor: exit %d: %s%s", code, stdout, stderr)
	}
}

// A process that is cut off from its server has ended what it began while its lease still lasts:
// the next one begins the same job. Then it ends.
func TestPostgres_AProcessThatIsCutOffEndsItsHandlers(t *testing.T) {
	for name, stops := range map[string]bool{"while it works": false, "while it stops": true} {
		t.Run(name, func(t *testing.T) {
			first, second := newCall(), newCall()
			calls := make(chan *call, 2)
			calls <- first
			calls <- second
			web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				now := <-calls
				if now == second && !first.hasEnded() {
					t.Error("the next process has begun the job that is still running")
				}
				now.serve(r)
			}))
			defer web.Close()

			dsn, dir := postgrestest.New(t), t.TempDir()
			proxy := postgrestest.NewProxy(t, dsn)
			rig.Write(t, dir, "redrive.yaml", fmt.Sprintf(working, web.URL))
			cutOff := rig.Start(t, dir, "--db", proxy.DSN)
			next, _ := standingBy(t, dir, dsn)

			cutOff.Post(`{"type":"work.do","queue":"work"}`)
			<-first.begun
			if stops {
				_ = cutOff.Cmd.Process.Signal(syscall.SIGTERM)
				cutOff.Says("Stopping; ")
			}
			proxy.Freeze(t)

			<-first.ended
			<-second.begun
			close(second.answer)

			if cutOff.Wait(); cutOff.Code() != 1 || !strings.Contains(cutOff.Stderr.String(), "another process may work on it by now") {
				t.Errorf("exit %d: %s", cutOff.Code(), cutOff.Stderr)
			}
			next.Stop(syscall.SIGTERM)
		})
	}
}

// call is one that a handler makes.
type call struct {
	begun, answer, ended chan struct{}
}

func newCall() *call { return &call{make(chan struct{}), make(chan struct{}), make(chan struct{})} }

func (c *call) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// serve waits for its answer, or for the end of the call.
func (c *call) serve(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the server watches the connection from then on

	close(c.begun)
	defer close(c.ended)

	select {
	case <-c.answer:
	case <-r.Context().Done():
	}
}

// A process that was frozen while another one took over writes nothing when it wakes, and ends: the
// job that it was running has been run again.
func TestPostgres_AProcessThatWakesEnds(t *testing.T) {
	first, second := newCall(), newCall()
	calls := make(chan *call, 2)
	calls <- first
	calls <- second
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { (<-calls).serve(r) }))
	defer web.Close()

	dsn, dir := postgrestest.New(t), t.TempDir()
	rig.Write(t, dir, "redrive.yaml", fmt.Sprintf(working, web.URL))
	frozen := rig.Start(t, dir, "--db", dsn)
	next, url := standingBy(t, dir, dsn)
	id := frozen.Post(`{"type":"work.do","queue":"work"}`)
	<-first.begun

	if err := frozen.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	postgrestest.ExpireLease(t, dsn)
	next.Says("Redrive is ready.")
	<-second.begun
	close(first.answer) // it has this answer when it wakes
	if err := frozen.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}

	if frozen.Wait(); frozen.Code() != 1 || !strings.Contains(frozen.Stderr.String(), "another process") {
		t.Errorf("exit %d: %s", frozen.Code(), frozen.Stderr)
	}

	next.URL = url
	next.Post(`{"type":"t"}`)
	if n := postgrestest.Query(t, dsn, `SELECT count(*) FROM jobs`); n != "2" {
		t.Errorf("%s jobs are there, want 2", n)
	}

	close(second.answer)
	next.Until(func(now rig.Totals) bool { return now.Succeeded == 1 })
	checkHistory(t, rig.Get[rig.Detail](t, url+"/api/v1/jobs/"+id), id, true)
	next.Stop(syscall.SIGTERM)
	examine(t, dir, dsn)
}

// A process can be stopped while its server is silent, and so can one that stands by.
func TestPostgres_AStopDoesNotWaitForASilentServer(t *testing.T) {
	dsn, dir := postgrestest.New(t), t.TempDir()
	proxy := postgrestest.NewProxy(t, dsn)
	first := rig.Start(t, dir, "--db", proxy.DSN)
	second, _ := standingBy(t, dir, proxy.DSN)
	proxy.Freeze(t)

	if second.Stop(syscall.SIGTERM); second.Code() != 0 {
		t.Errorf("exit %d: %s", second.Code(), second.Stderr)
	}
	first.Stop(syscall.SIGTERM)
	if !strings.Contains(first.Stderr.String(), "give the lease of the database back") {
		t.Errorf("it says: %s", first.Stderr)
	}
}

// Every command that names a database has an answer for one on a server.
func TestPostgres_CommandsTakeItsAddress(t *testing.T) {
	dsn, dir := postgrestest.New(t), t.TempDir()
	run := func(code int, says string, args ...string) {
		t.Helper()
		got, stdout, stderr := rig.Finish(t, rig.Command(t, dir, args...))
		if got != code || !strings.Contains(stdout+stderr, says) {
			t.Errorf("%q: exit %d, want %d with %q: %s%s", args, got, code, says, stdout, stderr)
		}
	}

	run(0, "ok", "doctor", "--db", dsn)
	run(2, "no dashboard works on postgres://", "list", "--db", dsn)
	run(2, "on a server of PostgreSQL", "backup", "copy.bak", "--db", dsn)
	run(2, "on a server of PostgreSQL", "restore", "copy.bak", "--db", dsn)
	run(2, "on a server of PostgreSQL", "seed", "--db", dsn)

	bare, _ := postgrestest.Bare(t, "")
	run(2, "has no tables of Redrive", "doctor", "--db", bare)
	run(2, "no dashboard works on", "list", "--db", bare)

	for _, command := range []string{"user list", "user remove ana", "user role ana --role viewer", "token list", "token revoke x"} {
		run(2, "there is no database of Redrive", append(strings.Fields(command), "--db", bare)...)
	}

	if n := postgrestest.Query(t, bare, `SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace`); n != "0" {
		t.Errorf("the commands have made %s tables and indexes", n)
	}

	run(0, "it won't be shown again", "token", "create", "--name", "t", "--role", "admin", "--db", bare)

	p := rig.Start(t, dir, "--db", dsn)
	run(0, "ready", "health", "--db", dsn)
	run(0, "available", "enqueue", "mail.send", "{}", "--db", dsn)
	run(0, "mail.send", "list", "state:available", "--db", dsn)
	run(0, "ok", "doctor", "--db", dsn)
	p.Stop(syscall.SIGTERM)
}

// The check of a container's health asks the process of its own container, which is healthy also while it
// stands by for another one, but not while it waits for a database that cannot be used.
func TestPostgres_HealthIsThatOfTheProcessHere(t *testing.T) {
	dsn, dir := postgrestest.New(t), t.TempDir()
	proxy := postgrestest.NewProxy(t, dsn)
	health := func(url, base string, code int, says string) {
		t.Helper()
		_, port, _ := strings.Cut(strings.TrimPrefix(url, "http://"), ":")
		cmd := rig.Command(t, dir, "health")
		cmd.Env = append(cmd.Env, "REDRIVE_DB="+proxy.DSN, "REDRIVE_LISTEN=0.0.0.0:"+port, "REDRIVE_BASE_PATH="+base)

		got, stdout, stderr := rig.Finish(t, cmd)
		if got != code || !strings.Contains(stdout+stderr, says) {
			t.Errorf("exit %d, want %d with %q: %s%s", got, code, says, stdout, stderr)
		}
	}

	first := rig.Start(t, dir, "--db", proxy.DSN, "--base-path", "/jobs")
	second, url := standingBy(t, dir, proxy.DSN)
	health(strings.TrimSuffix(first.URL, "/jobs"), "/jobs", 0, "ready")
	health(url, "", 0, "standby: another process works")

	proxy.Leave()
	second.Says("does not answer")
	health(url, "", 1, "is not ready: storage_unreachable")

	second.Stop(syscall.SIGTERM)
	health(url, "", 1, "is one running there?")
}

// A dump that was made while a dashboard worked is a whole database when it is restored.
func TestPostgres_ADumpCanBeRestored(t *testing.T) {
	dsn, dir := postgrestest.New(t), t.TempDir()
	restored, _ := postgrestest.Bare(t, `ENCODING 'UTF8' TEMPLATE template0`)
	run := func(cmd *exec.Cmd, says string) {
		t.Helper()
		code, stdout, stderr := rig.Finish(t, cmd)
		if code != 0 || !strings.Contains(stdout, says) {
			t.Errorf("%q: exit %d: %s%s", cmd.Args, code, stdout, stderr)
		}
	}

	p := rig.Start(t, dir, "--db", dsn)
	id := p.Post(`{"type":"t","payload":{"n":1}}`)
	dump := filepath.Join(dir, "redrive.dump")
	run(exec.Command("pg_dump", "-Fc", "--file", dump, dsn), "")
	p.Stop(syscall.SIGTERM)

	run(exec.Command("pg_restore", "--exit-on-error", "--dbname", restored, dump), "")
	run(rig.Command(t, dir, "doctor", "--db", restored), "ok")

	postgrestest.ExpireLease(t, restored) // the dump has the lease of the dashboard
	p = rig.Start(t, dir, "--db", restored)
	if got := rig.Get[rig.Detail](t, p.URL+"/api/v1/jobs/"+id).Job.State; got != "available" {
		t.Errorf("the job is %s", got)
	}
}

// The address that a dashboard has left in the database is an address of its own machine. A command
// elsewhere does not take it for one of its own, and sends its token only where a person
// says, or encrypted.
func TestPostgres_CommandsElsewhereAskNoOneElse(t *testing.T) {
	dsn, run := bareWithSchema(t)

	var asked atomic.Int32
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1) }))
	defer stranger.Close()

	here, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct {
		node, url, token, says string
	}{
		"its own machine is another one":    {"web-1:4711", stranger.URL, "secret", "answers on that machine only"},
		"another port of this machine":      {"web-1:4711", strings.Replace(stranger.URL, "127.0.0.1", "localhost", 1), "", "answers on that machine only"},
		"the token would not be encrypted":  {here + ":4711", "http://192.0.2.1:8080", "secret", "would not be encrypted"},
		"the token would not be encrypted ": {"web-1:4711", "http://db.example:8080", "secret", "would not be encrypted"},
	} {
		t.Run(name, func(t *testing.T) {
			run(fmt.Sprintf(`DELETE FROM nodes; INSERT INTO nodes (id, name, url, started_at, commits) VALUES ('n', '%s', '%s', now(), 0);
				INSERT INTO leases (name, holder, until) VALUES ('main', 'n', now() + interval '1 hour')
					ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until`, test.node, test.url))

			for _, command := range []string{"list", "user list", "token list"} {
				cmd := rig.Command(t, t.TempDir(), append(strings.Fields(command), "--db", dsn)...)
				if test.token != "" {
					cmd.Env = append(cmd.Env, "REDRIVE_TOKEN="+test.token)
				}

				code, stdout, stderr := rig.Finish(t, cmd)
				if code != 2 || !strings.Contains(stderr, test.says) || !strings.Contains(stderr, "--server") {
					t.Errorf("%s: exit %d: %s%s", command, code, stdout, stderr)
				}
			}
		})
	}

	if n := asked.Load(); n > 0 {
		t.Errorf("another program was asked %d times", n)
	}
}

// bareWithSchema is an empty database with its schema, and a function that runs statements in it.
func bareWithSchema(t *testing.T) (dsn string, run func(text string)) {
	t.Helper()

	dsn, run = postgrestest.Bare(t, "")
	p := rig.Start(t, t.TempDir(), "--db", dsn)
	p.Stop(syscall.SIGTERM)

	return dsn, run
}
