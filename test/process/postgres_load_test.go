package process_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"redrive/internal/freeport"
	"redrive/internal/store/postgres/postgrestest"
	"redrive/test/rig"
)

// supervised is the program as systemd runs it: it is started again when it ends with status 1.
type supervised struct {
	t      *testing.T
	dir    string
	dsn    string
	listen string
	log    *rig.Transcript // of all its starts
	ended  chan struct{}

	mu       sync.Mutex
	running  *exec.Cmd
	stopping bool
	lastCode int
}

// supervise starts the program, and returns once it works.
func supervise(t *testing.T, dir, dsn string) *supervised {
	t.Helper()

	listen := freeport.Address(freePort(t))
	s := &supervised{t: t, dir: dir, dsn: dsn, listen: listen, log: rig.NewTranscript(), ended: make(chan struct{})}
	s.start()
	t.Cleanup(s.stop)
	go s.attend()
	s.log.Await(t, "Redrive is ready.")

	return s
}

func (s *supervised) start() {
	s.running = rig.Command(s.t, s.dir, "--listen", s.listen, "--db", s.dsn)
	s.running.Stderr = s.log
	if err := s.running.Start(); err != nil {
		s.t.Error(err)
	}
}

// attend starts the program again until it is stopped.
func (s *supervised) attend() {
	defer close(s.ended)

	for {
		_ = s.running.Wait() // how it ended is in ProcessState

		s.mu.Lock()
		s.lastCode = s.running.ProcessState.ExitCode()
		again := !s.stopping && s.lastCode == 1
		if again {
			s.start()
		}
		s.mu.Unlock()

		if !again {
			return
		}
	}
}

// stop stops the program in order. A second call does nothing.
func (s *supervised) stop() {
	s.mu.Lock()
	stopped := s.stopping
	s.stopping = true
	_ = s.running.Process.Signal(syscall.SIGTERM)
	s.mu.Unlock()

	<-s.ended
	if !stopped && s.lastCode != 0 {
		s.t.Errorf("exit %d: %s", s.lastCode, s.log)
	}
}

// ready is what /readyz answers, empty when nothing does.
func (s *supervised) ready() string {
	response, err := http.Get("http://" + s.listen + "/readyz")
	if err != nil {
		return ""
	}
	defer response.Body.Close()

	text := make([]byte, 1<<10)
	n, _ := response.Body.Read(text)

	return string(text[:n])
}

// saysOnReady waits until /readyz says a text.
func (s *supervised) saysOnReady(text string) {
	s.t.Helper()
	rig.Eventually(s.t, "/readyz says "+text, func() bool { return strings.Contains(s.ready(), text) })
}

// load is jobs that are sent from several sides, until it ends.
type load struct {
	*supervised
	direct  string // the address of the server itself
	handler *rig.Holding
	over    chan struct{}
	senders sync.WaitGroup

	mu           sync.Mutex
	acknowledged []string
	refused      map[string]int // answers of the API by their code
}

// underLoad starts the program on a database, and sends it jobs whose handler counts its calls.
// through is the address by which the program reaches the database.
func underLoad(t *testing.T, through, direct, payload string) *load {
	t.Helper()

	l := &load{direct: direct, handler: rig.NewHolding(1), over: make(chan struct{}), refused: map[string]int{}}
	close(l.handler.Open)

	web := httptest.NewServer(l.handler)
	t.Cleanup(web.Close)

	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", fmt.Sprintf(working, web.URL))
	l.supervised = supervise(t, dir, through)

	for range 3 {
		l.senders.Go(func() { l.send(payload) })
	}
	l.untilMore(20)

	return l
}

// send sends jobs, one after the other. After a refusal it waits a little, as clients do.
func (l *load) send(payload string) {
	body := `{"type":"work.do","queue":"work","payload":"` + payload + `"}`

	for {
		wait := time.Duration(0)
		if !l.sendOne(body) {
			wait = 50 * time.Millisecond
		}

		select {
		case <-l.over:
			return
		case <-time.After(wait):
		}
	}
}

func (l *load) sendOne(body string) bool {
	response, err := http.Post("http://"+l.listen+"/api/v1/jobs", "application/json", strings.NewReader(body))
	if err != nil {
		return false
	}
	defer response.Body.Close()

	var answer struct {
		Job   struct{ ID string }
		Error struct{ Code string }
	}
	if json.NewDecoder(response.Body).Decode(&answer) != nil {
		return false
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	if response.StatusCode != http.StatusCreated {
		l.refused[answer.Error.Code]++
		return false
	}

	l.acknowledged = append(l.acknowledged, answer.Job.ID)

	return true
}

// untilMore waits until so many more jobs are acknowledged.
func (l *load) untilMore(n int) {
	l.t.Helper()

	want := l.count() + n
	rig.Eventually(l.t, fmt.Sprintf("%d more jobs are taken", n), func() bool { return l.count() >= want })
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()

	return len(l.acknowledged)
}

// untilRefused waits until a job is refused with a code.
func (l *load) untilRefused(code string) {
	l.t.Helper()
	rig.Eventually(l.t, "a job is refused as "+code, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()

		return l.refused[code] > 0
	})
}

// end ends the load and checks what has become of it: nothing that was acknowledged is lost, each
// call of a handler is an attempt of its job, an attempt follows only one that was lost or
// interrupted, and the counters are those of the rows.
func (l *load) end() {
	l.t.Helper()

	close(l.over)
	l.senders.Wait()
	l.saysOnReady("ready")
	rig.Eventually(l.t, "all jobs are done", func() bool {
		return postgrestest.Query(l.t, l.direct, `SELECT count(*) FROM jobs WHERE state <> 'completed'`) == "0"
	})

	seen := map[string]bool{}
	for _, id := range l.acknowledged {
		if seen[id] {
			l.t.Errorf("job %s was acknowledged twice", id)
		}
		seen[id] = true

		l.check(id, rig.Get[rig.Detail](l.t, "http://"+l.listen+"/api/v1/jobs/"+id))
	}

	l.stop()

	examine(l.t, l.dir, l.direct)
}

// check checks the history of a job.
func (l *load) check(id string, d rig.Detail) {
	l.t.Helper()

	for i, a := range d.Attempts {
		last := i == len(d.Attempts)-1
		if last != (a.Outcome == "succeeded") || !last && a.Outcome != "lost" && a.Outcome != "interrupted" {
			l.t.Errorf("the attempts of job %s: %+v", id, d.Attempts)
		}
	}

	if calls := l.handler.Calls[id]; calls < 1 || calls > len(d.Attempts) {
		l.t.Errorf("job %s was run %d times in %d attempts", id, calls, len(d.Attempts))
	}
}
