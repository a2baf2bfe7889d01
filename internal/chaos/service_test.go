//go:build linux

package chaos

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// execution names one execution as its handler sees it.
type execution struct {
	job          string
	run, attempt int
}

// service carries out jobs over HTTP, and has a script that does so as a program.
// It writes down what it was asked to do.
type service struct {
	t    *testing.T
	dir  string // of the program's log and locks
	url  string
	mu   sync.Mutex
	open map[string]*http.Request // by job: what is under way
	seen []execution
	both []string // jobs that were run twice at once
}

// program holds a lock while it runs, it and whatever it started: the kernel
// frees the lock when the last of them has ended.
const program = `#!/bin/sh
facts="$REDRIVE_JOB_ID $REDRIVE_JOB_RUN $REDRIVE_JOB_ATTEMPT"
exec 9>"$1/$REDRIVE_JOB_ID.lock"
flock -n 9 || { echo "twice $facts" >>"$1/log"; exit 1; }
echo "began $facts" >>"$1/log"
sleep 0.3
`

func startService(t *testing.T) *service {
	t.Helper()
	s := &service{t: t, dir: t.TempDir(), open: map[string]*http.Request{}}
	if err := os.WriteFile(s.script(), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + listener.Addr().String()
	web := &http.Server{Handler: s}
	go web.Serve(listener)
	t.Cleanup(func() { web.Close() })
	return s
}

func (s *service) script() string { return filepath.Join(s.dir, "program") }

// configuration lets jobs fail often enough for every kill, and again soon.
func (s *service) configuration() string {
	return fmt.Sprintf(`workers: %d
policy: {max_attempts: 200, strategy: constant, initial_interval: 100ms, jitter: false}
types:
  service.dead: {policy: {max_attempts: 2}}
handlers:
  "service.*": {http: {url: "%s", timeout: 20s}}
  program: {exec: {command: [%s, %s], timeout: 20s}}
`, workers, s.url, s.script(), s.dir)
}

// ServeHTTP does a job in up to 30 ms. One in five fails, one in ten succeeds with
// a body that never ends; service.dead fails until it is replayed.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := execution{job: r.Header.Get("Redrive-Job-Id"), run: number(r, "Run"), attempt: number(r, "Attempt")}
	s.begin(e, r)
	defer s.finish(e, r)
	n := len(e.job) * 7
	for _, c := range e.job[max(0, len(e.job)-4):] {
		n = n*31 + int(c)
	}
	n += e.attempt
	select {
	case <-time.After(time.Duration(n%30) * time.Millisecond):
	case <-r.Context().Done():
		return
	}
	switch dies := r.Header.Get("Redrive-Job-Type") == "service.dead"; {
	case dies && e.run == 1, !dies && n%5 == 0:
		http.Error(w, "the shop is closed", http.StatusInternalServerError)
	case n%10 == 1:
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush() // an error: the caller is gone
		s.finish(e, r)                            // the job is done, its answer has begun
		<-r.Context().Done()
	}
}

func number(r *http.Request, name string) int {
	n, err := strconv.Atoi(r.Header.Get("Redrive-Job-" + name))
	if err != nil {
		return -1 // the verdict finds no attempt of this number
	}
	return n
}

// begin writes down that an execution began. Another one of the same job must be
// over, or its caller gone: the news of that may take a moment.
func (s *service) begin(e execution, r *http.Request) {
	s.mu.Lock()
	before := s.open[e.job]
	s.open[e.job] = r
	s.seen = append(s.seen, e)
	s.mu.Unlock()
	if before == nil {
		return
	}
	select {
	case <-before.Context().Done():
	case <-time.After(30 * time.Second):
		s.mu.Lock()
		s.both = append(s.both, e.job)
		s.mu.Unlock()
	}
}

func (s *service) finish(e execution, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[e.job] == r {
		delete(s.open, e.job)
	}
}

// runs is what the service and the program wrote down.
type runs struct {
	seen  []execution
	twice []string // jobs that were run twice at once
}

// log joins both logs.
func (s *service) log() runs {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := runs{seen: s.seen, twice: s.both}
	file, err := os.Open(filepath.Join(s.dir, "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var what string
		var e execution
		if _, err := fmt.Sscan(strings.TrimSpace(lines.Text()), &what, &e.job, &e.run, &e.attempt); err != nil {
			s.t.Fatalf("the program's log: %q: %v", lines.Text(), err)
		}
		all.seen = append(all.seen, e)
		if what == "twice" {
			all.twice = append(all.twice, e.job)
		}
	}
	return all
}
