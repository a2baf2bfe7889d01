package commands_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"redrive/internal/operation"
	"redrive/test/rig"
)

// breakable is a service whose jobs fail until it is mended.
const breakable = `
policy: {max_attempts: 5, jitter: false, initial_interval: PT0.1S, non_retryable_errors: [http.500]}
workers: 50
handlers:
  ship: {http: {url: "%s"}}
`

// shipments is a program whose n jobs have died, and whose service works again.
func shipments(t *testing.T, n int) (*rig.Process, string, *mendable) {
	t.Helper()
	service := &mendable{seen: map[string]map[int]bool{}}
	web := httptest.NewServer(service)
	t.Cleanup(web.Close)
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", fmt.Sprintf(breakable, web.URL))
	p := rig.Start(t, dir, "--relaxed")
	const batch = 1000
	for sent := 0; sent < n; sent += batch {
		job := `{"type":"ship"}`
		body := `{"jobs":[` + job + strings.Repeat(","+job, min(batch, n-sent)-1) + `]}`
		response, err := http.Post(p.URL+"/api/v1/jobs/batch", "application/json", strings.NewReader(body))
		if err != nil || response.StatusCode != http.StatusCreated {
			t.Fatalf("%v, %v", response, err)
		}
		response.Body.Close()
	}
	p.Until(func(now rig.Totals) bool { return now.States["dead_letter"] == n })
	service.works.Store(true)
	return p, dir, service
}

// mendable is a service that fails until it works.
type mendable struct {
	works atomic.Bool
	mu    sync.Mutex
	seen  map[string]map[int]bool // runs, by job
}

func (m *mendable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	run, err := strconv.Atoi(r.Header.Get("Redrive-Job-Run"))
	if err != nil || !m.works.Load() {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id := r.Header.Get("Redrive-Job-Id")
	if m.seen[id] == nil {
		m.seen[id] = map[int]bool{}
	}
	m.seen[id][run] = true
}

// runs are those that were called since it works, by job.
func (m *mendable) runs() map[string]map[int]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen
}

// Jobs are replayed at a rate; the program is killed half way and
// started again. Each job has exactly one second run, and the meters add up.
func TestReplay_SurvivesAKillHalfWay(t *testing.T) { survivesAKillHalfWay(t, 2000) }

func TestLong_ReplaySurvivesAKillHalfWay(t *testing.T) { survivesAKillHalfWay(t, 10_000) }

func survivesAKillHalfWay(t *testing.T, all int) {
	t.Parallel()
	p, dir, service := shipments(t, all)
	code, out, problems := rig.Finish(t, rig.Command(t, dir, "replay", "--server", p.URL, "--filter", "type:ship", "--dry-run"))
	if code != 0 || !strings.Contains(out, strconv.Itoa(all)+" eligible") || !strings.Contains(out, "Nothing was done") {
		t.Fatalf("a dry run: exit %d, %s%s", code, out, problems)
	}
	watching := rig.Command(t, dir, "replay", "--server", p.URL, "--filter", "type:ship", "--rate", strconv.Itoa(all/5)+"/s", "--canary", "0", "--yes")
	if err := watching.Start(); err != nil {
		t.Fatal(err)
	}
	p.Until(func(now rig.Totals) bool { return now.States["dead_letter"] <= all/2 })
	p.Stop(syscall.SIGKILL)
	if err := watching.Wait(); err == nil {
		t.Error("the command did not notice that the dashboard is gone")
	}

	p = rig.Start(t, dir, "--relaxed")
	if o := p.Operation(2).Operation; o.State != operation.Running || o.Pending == 0 {
		t.Errorf("after the restart it is %s with %d to go", o.State, o.Pending)
	}
	now := p.Until(func(now rig.Totals) bool { return now.States["completed"] == all })
	if now.States["dead_letter"] != 0 || now.Failed < all || now.Succeeded != all {
		t.Errorf("at the end: %+v", now)
	}
	if o := p.Operation(2).Operation; o.State != operation.Finished || o.Done != int64(all) || o.Succeeded != int64(all) || o.Unsettled != 0 {
		t.Errorf("at the end: %+v", o)
	}
	runs := service.runs()
	if len(runs) != all {
		t.Errorf("%d jobs were called", len(runs))
	}
	for id, seen := range runs {
		if len(seen) != 1 || !seen[2] {
			t.Errorf("job %s had the runs %v", id, seen)
		}
	}
	p.Stop(syscall.SIGTERM)
}

// The command waits for the runs of the canary, and does not offer to go on before
// their cause is known.
func TestReplay_SaysThatItsCanaryFailed(t *testing.T) {
	t.Parallel()
	p, dir, service := shipments(t, 10)
	service.works.Store(false)
	code, out, problems := rig.Finish(t, rig.Command(t, dir, "replay", "--server", p.URL, "--filter", "type:ship", "--canary", "2", "--yes"))
	if code != 1 || !strings.Contains(problems, "its canary failed: 0 of 2 succeeded. Fix the cause") || !strings.Contains(problems, "/abort") {
		t.Errorf("exit %d, %s%s", code, out, problems)
	}
	p.Stop(syscall.SIGTERM)
}

// An abort leaves dead what was not reached, also after a restart.
func TestReplay_AbortLeavesTheRestDead(t *testing.T) {
	t.Parallel()
	const all = 300
	p, dir, _ := shipments(t, all)
	code, out, problems := rig.Finish(t, rig.Command(t, dir, "replay", "--server", p.URL, "--filter", "type:ship", "--rate", "1/m", "--canary", "1", "--yes"))
	if code != 1 || !strings.Contains(problems, "canary, which passed: 1 of 1 succeeded") {
		t.Fatalf("exit %d, %s%s", code, out, problems)
	}
	p.Until(func(now rig.Totals) bool { return now.States["completed"] == 1 })
	response, err := http.Post(p.URL+"/api/v1/operations/1/abort", "", nil)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", response, err)
	}
	response.Body.Close()
	p.Stop(syscall.SIGTERM)
	p = rig.Start(t, dir, "--relaxed")
	now := p.Until(func(now rig.Totals) bool { return now.States["completed"] == 1 })
	if now.States["dead_letter"] != all-1 {
		t.Errorf("after the abort: %+v", now)
	}
	if o := p.Operation(1).Operation; o.State != operation.Aborted || o.Pending != all-1 {
		t.Errorf("it is %+v", o)
	}
	p.Stop(syscall.SIGTERM)
}

func TestReplay_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	p, dir, _ := shipments(t, 2)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--filter", "type:ship"}, 2, "is not a terminal"},
		{[]string{"--filter", "color:red", "--yes"}, 2, "qualifier"},
		{[]string{"--filter", "state:active", "--yes"}, 2, "can take part"},
		{[]string{"--filter", "type:ship", "--rate", "fast", "--yes"}, 2, "20/s"},
		{[]string{"--filter", "type:ship", "--rate", "1/s", "--spread", "1m", "--yes"}, 2, "cannot be used together"},
		{[]string{"--filter", "type:ship", "--server", "http://127.0.0.1:1", "--yes"}, 1, "is it running"},
		{[]string{"--filter", "", "--yes"}, 2, "state:dead_letter for all"},
		{[]string{"--filter", "type:ship", "--rate", "1e9/s", "--dry-run"}, 2, "10000 jobs a second"},
		{[]string{"--filter", "type:ship", "--spread", "900d", "--dry-run"}, 2, "30 days"},
		{[]string{"--filter", "type:ship", "--canary", "999999999", "--dry-run"}, 2, "canary"},
	} {
		args := c.args
		if !strings.Contains(strings.Join(args, " "), "--server") {
			args = append(args, "--server", p.URL)
		}
		code, _, problems := rig.Finish(t, rig.Command(t, dir, append([]string{"replay"}, args...)...))
		if code != c.code || !strings.Contains(problems, c.want) {
			t.Errorf("%q: exit %d, %s", c.args, code, problems)
		}
	}
	code, out, problems := rig.Finish(t, rig.Command(t, dir, "discard", "--server", p.URL, "--filter", "type:ship", "--yes"))
	if code != 0 || !strings.Contains(out, "2 of 2: 2 done") {
		t.Errorf("a discard: exit %d, %s%s", code, out, problems)
	}
	p.Stop(syscall.SIGTERM)
}

// Who answers the question with an interrupt says no.
func TestReplay_InterruptIsNoConfirmation(t *testing.T) {
	t.Parallel()
	p, dir, _ := shipments(t, 2)
	person, stdin := rig.Terminal(t)
	cmd := rig.Command(t, dir, "replay", "--server", p.URL, "--filter", "type:ship")
	said := rig.NewTranscript()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said.Await(t, "Type yes")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	said.Await(t, "not confirmed; nothing was done")
	fmt.Fprintln(person, "yes")
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v: %s", err, said)
	}
	if o := p.Operation(1).Operation; o.State != operation.Aborted || o.Done != 0 {
		t.Errorf("the operation is %s, %d done", o.State, o.Done)
	}
}

// A user who interrupts the command leaves the operation running, and is told how to
// end it.
func TestReplay_InterruptLeavesItRunning(t *testing.T) {
	t.Parallel()
	p, dir, _ := shipments(t, 50)
	cmd := rig.Command(t, dir, "replay", "--server", p.URL, "--filter", "type:ship", "--rate", "1/m", "--yes")
	said := rig.NewTranscript()
	cmd.Stdout = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said.Await(t, "1 of 50")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "operations/1/abort") {
		t.Errorf("it ended with %v and said %q", err, said)
	}
	if o := p.Operation(1).Operation; o.State != operation.Running {
		t.Errorf("the operation is %s", o.State)
	}
	p.Stop(syscall.SIGTERM)
}
