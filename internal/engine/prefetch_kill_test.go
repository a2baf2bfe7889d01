package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"redrive/internal/engine"
	"redrive/internal/job"
	"redrive/internal/store"
	"redrive/internal/store/databasetest"
	"redrive/internal/store/location"
)

// dyingWorkers is how many workers the dying process has.
const dyingWorkers = 250

// A process that is killed while a thousand jobs are prefetched has begun some: these have
// lost an attempt afterwards, and no others have.
func TestPrefetch_AKillChargesNothingThatHadNotBegun(t *testing.T) {
	var r *rig
	var running, prefetched map[string]bool

	// Prefetched jobs may be given back between the last look at them and the kill.
	for tries := 0; len(running) != dyingWorkers || len(prefetched) < 4*dyingWorkers; tries++ {
		if tries == 20 {
			t.Fatal("no process was killed with enough jobs prefetched")
		}
		r = newRig(t) // jobs that an earlier process has claimed have an attempt more
		r.enqueue(repeat(dies(), 10_000)...)
		r.restartAfter(r.die)
		running, prefetched = map[string]bool{}, map[string]bool{}
		for _, j := range r.leases() {
			if j.Unbegun {
				prefetched[j.ID] = true
			} else {
				running[j.ID] = true
			}
		}
		t.Logf("%d jobs ran and %d were prefetched when the process was killed", len(running), len(prefetched))
	}
	var log journal
	r.start(func(o *options) {
		o.Workers, o.Log = func(string) int { return 0 }, slog.New(slog.NewTextHandler(&log, nil))
	})
	for _, want := range []string{
		fmt.Sprintf(`were settled as lost." jobs=%d`, len(running)), fmt.Sprintf(`had not begun were put back." jobs=%d`, len(prefetched)),
	} {
		if !log.has(want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	for id := range prefetched {
		if attempts := r.want(id, "available", 0); len(attempts) != 1 || attempts[0].Outcome != job.Interrupted {
			t.Errorf("attempts of a job that had not begun: %+v", attempts)
		}
	}
	for id := range running {
		if attempts := r.want(id, "retryable", 1); len(attempts) != 1 || attempts[0].Outcome != job.Lost {
			t.Errorf("attempts of a job that ran: %+v", attempts)
		}
	}
}

// dies is a job whose next attempt is far away.
func dies() job.Job {
	j := ofType("dies")
	j.Policy.InitialInterval, j.Policy.MaxInterval = time.Hour, time.Hour
	return j
}

// restartAfter opens the store again after something that needs its file.
func (r *rig) restartAfter(do func()) {
	r.Helper()
	if err := r.store.Close(); err != nil {
		r.Fatal(err)
	}
	do()
	databasetest.Died(r, r.path)
	*r = *newRigAt(r.T, r.path)
}

// die runs a process that works off jobs until it is killed with enough jobs prefetched.
func (r *rig) die() {
	r.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "REDRIVE_TEST_DIES="+r.path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		r.Log(lines.Text())
	}
	err = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		r.Fatalf("the process was not killed: %v", err)
	}
}

// dying is the process that die starts. Its jobs return at once, until all workers
// have one that does not: then as many as possible are prefetched, unless that took so long
// that they were given back, and everything starts again from the beginning.
func dying(path string) error {
	r := &mortal{gate: make(chan struct{})}
	s, err := store.Open(context.Background(), store.Options{Database: location.Of(path).Database(false), OnCommit: func(changes []job.Change) {
		if e := r.engine.Load(); e != nil {
			e.Changed(changes)
		}
	}})
	if err != nil {
		return err
	}
	e, err := engine.New(engine.Options{
		Store: slowly{s, 100 * time.Millisecond}, Queues: s, Name: "dying", Random: func() float64 { return 0.5 },
		Handlers: func(string) (engine.Handler, bool) { return r.handle, true }, Workers: func(string) int { return dyingWorkers },
	})
	if err != nil {
		return err
	}
	r.engine.Store(e)
	if err := e.Start(context.Background()); err != nil {
		return err
	}
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if r.blocked.Load() < dyingWorkers {
			continue
		}
		leases, err := s.Leases(context.Background(), time.Time{})
		if err != nil {
			return err
		}
		prefetched := len(slices.DeleteFunc(slices.Clone(leases), func(j job.Job) bool { return !j.Unbegun }))
		if prefetched >= 4*dyingWorkers && len(leases)-prefetched == dyingWorkers {
			fmt.Println("killed with", prefetched, "jobs prefetched and", len(leases)-prefetched, "begun")
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if prefetched > 0 {
			continue // it is not yet given back
		}
		if _, err := s.Enqueue(context.Background(), time.Now(), repeat(dies(), 4*dyingWorkers)); err != nil {
			return err
		}
		r.lift()
	}
	return fmt.Errorf("there were never enough jobs prefetched")
}

// mortal has the handlers of the dying process.
type mortal struct {
	engine  atomic.Pointer[engine.Engine]
	began   atomic.Int64
	blocked atomic.Int64

	mu   sync.Mutex
	gate chan struct{}
}

func (m *mortal) handle(context.Context, job.Job) error {
	if m.began.Add(1) < 3*dyingWorkers {
		return nil
	}
	m.mu.Lock()
	gate := m.gate
	m.mu.Unlock()
	m.blocked.Add(1)
	<-gate
	m.blocked.Add(-1)
	return nil
}

// lift lets all blocked handlers go.
func (m *mortal) lift() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began.Store(0)
	close(m.gate)
	m.gate = make(chan struct{})
}
