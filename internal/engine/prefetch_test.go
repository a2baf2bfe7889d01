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
	"testing/synctest"
	"time"

	"redrive/internal/audit"
	"redrive/internal/engine"
	"redrive/internal/job"
	"redrive/internal/store"
)

// slowly is a store on a disk whose commits take long.
type slowly struct {
	*store.Store
	commit time.Duration
}

func (s slowly) Exchange(ctx context.Context, settle []job.Settlement, claim job.Claim) ([]job.Job, []job.Token, error) {
	time.Sleep(s.commit)
	return s.Store.Exchange(ctx, settle, claim)
}

// startSlowly starts an engine with so many workers whose commits take 10 ms.
func (r *rig) startSlowly(workers int) *engine.Engine {
	return r.start(func(o *options) {
		o.Store, o.Workers = slowly{r.store, 10 * time.Millisecond}, func(string) int { return workers }
	})
}

// held lists the jobs that are in hand, as the database has them.
func (r *rig) held() (ids []string) {
	r.Helper()
	for _, j := range r.leases() {
		if j.Unbegun {
			ids = append(ids, j.ID)
		}
	}
	return ids
}

func (r *rig) leases() []job.Job {
	r.Helper()
	leases, err := r.store.Leases(r.Context(), time.Time{})
	if err != nil {
		r.Fatal(err)
	}
	return leases
}

// Workers that are quicker than a commit have the next jobs in hand, not many, and
// do not wait for the commit.
func TestHand_WorkersDoNotWaitForCommits(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("quick", func(context.Context, job.Job) error { time.Sleep(time.Millisecond); return nil })
		r.enqueue(repeat(ofType("quick"), 200)...)
		begin := time.Now()
		r.startSlowly(2)
		most := 0
		for r.store.Snapshot().Totals.Succeeded < 200 {
			time.Sleep(time.Millisecond)
			most = max(most, int(r.store.Snapshot().Depths[job.Status(job.Active)]))
		}
		if most > 2+2*4*2 {
			t.Errorf("%d jobs were claimed at once", most)
		}
		// With two for each commit it would take a second.
		if took := time.Since(begin); took > 400*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// blocked has two workers that were quick once and have jobs in hand, but do not end
// the jobs that they have now until they are let go.
func blocked(r *rig) (held []string, release func()) {
	r.Helper()
	gate := make(chan struct{})
	var began atomic.Int64
	r.on("quick", func(context.Context, job.Job) error {
		if began.Add(1) > 40 {
			<-gate
		}
		time.Sleep(time.Millisecond)
		return nil
	})
	r.enqueue(repeat(ofType("quick"), 100)...)
	r.startSlowly(2)
	time.Sleep(500 * time.Millisecond)
	if held = r.held(); len(held) == 0 {
		r.Fatal("nothing is in hand")
	}
	release = sync.OnceFunc(func() { close(gate) })
	r.Cleanup(release)
	return held, release
}

func TestHand_JobsOfAHigherPriorityOvertake(t *testing.T) {
	bubble(t, func(r *rig) {
		held, release := blocked(r)
		var before atomic.Int64 // what was in hand
		r.on("urgent", func(context.Context, job.Job) error {
			if len(r.held()) >= len(held)-2 {
				before.Add(1)
			}
			return nil
		})
		urgent := ofType("urgent")
		urgent.Priority = 5
		most := urgent
		most.Priority = 9
		r.enqueue(urgent, most)
		time.Sleep(100 * time.Millisecond)
		release()
		time.Sleep(time.Second)
		if before.Load() != 2 {
			t.Errorf("%d of two jobs overtook what was in hand", before.Load())
		}
		if n := r.store.Snapshot().Totals.Succeeded; n != 102 {
			t.Errorf("%d jobs succeeded", n)
		}
	})
}

// A job that has not begun within a second is given back, unnoticed.
func TestHand_WhatDoesNotBeginIsGivenBack(t *testing.T) {
	bubble(t, func(r *rig) {
		held, _ := blocked(r)
		time.Sleep(2 * time.Second)
		if left := r.held(); len(left) > 0 {
			t.Errorf("%d jobs are still in hand", len(left))
		}
		for _, id := range held {
			if attempts := r.want(id, "available", 0); len(attempts) != 0 {
				t.Errorf("attempts %+v", attempts)
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, s := range r.settled {
			if s.Attempt.Outcome != job.Succeeded {
				t.Errorf("settled %+v", s)
			}
		}
	})
}

// Pauses and stops act on what is in hand at once.
func TestHand_IsGivenBackWhenNothingMayBegin(t *testing.T) {
	ana := audit.Actor{Name: "ana"}
	for name, stop := range map[string]func(r *rig) error{
		"a pause of the queue":  func(r *rig) error { return r.store.Pause(r.Context(), time.Now(), "default", ana) },
		"a pause of the engine": func(r *rig) error { r.engine.Pause(); return nil },
		"a stop":                func(r *rig) error { go r.engine.Stop(r.Context()); synctest.Wait(); return nil },
		"a shortage": func(r *rig) error {
			r.on("starved", fails(&job.Shortage{Of: job.Memory}))
			j := once("starved")
			j.Queue = "other"
			r.enqueue(j)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				held, release := blocked(r)
				if err := stop(r); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				done := r.store.Snapshot().Totals.Succeeded
				release()
				time.Sleep(1500 * time.Millisecond)
				if n := r.store.Snapshot().Totals.Succeeded - done; n != 2 {
					t.Errorf("%d jobs ended, want the two that ran", n)
				}
				for _, id := range held {
					if attempts := r.want(id, "available", 0); len(attempts) != 0 {
						t.Errorf("attempts %+v", attempts)
					}
				}
			})
		})
	}
}

func TestHand_ACancelledJobDoesNotBegin(t *testing.T) {
	bubble(t, func(r *rig) {
		held, release := blocked(r)
		r.cancel(held[0])
		release()
		time.Sleep(time.Second)
		r.want(held[0], "cancelled", 0)
		if n := r.store.Snapshot().Totals.Succeeded; n != 99 {
			t.Errorf("%d jobs succeeded", n)
		}
	})
}

// The time to live and the ttr of a job in hand are looked at when it begins.
func TestHand_ClocksBeginWithTheJob(t *testing.T) {
	bubble(t, func(r *rig) {
		_, release := blocked(r)
		var deadline time.Duration
		r.on("timed", func(ctx context.Context, j job.Job) error {
			at, _ := ctx.Deadline()
			deadline = time.Until(at)
			if at, ok := r.engine.Began(j.Token); !ok || !at.Equal(time.Now()) {
				t.Errorf("began at %v, %v", at, ok)
			}
			return nil
		})
		expired, timed := ofType("timed"), ofType("timed")
		expired.Priority, timed.Priority, timed.Timeout = 2, 1, time.Minute
		expired.ExpiresAt = time.Now().Add(200 * time.Millisecond)
		ids := r.enqueue(expired, timed)
		time.Sleep(300 * time.Millisecond)
		for _, j := range r.leases() {
			if _, ok := r.engine.Began(j.Token); ok == j.Unbegun {
				t.Errorf("job %s began: %v, and is not known to have: %v", j.ID, ok, j.Unbegun)
			}
		}
		release()
		time.Sleep(time.Second)
		r.want(ids[0], "dead_letter", 1)
		r.want(ids[1], "completed", 1)
		if deadline != time.Minute {
			t.Errorf("the job had %v", deadline)
		}
	})
}

// crowd is how many workers the dying process has.
const crowd = 250

// A process that is killed with a thousand jobs in hand has begun some: these have
// lost an attempt afterwards, and no others have.
func TestHand_AKillChargesNothingThatHadNotBegun(t *testing.T) {
	var r *rig
	var running, held map[string]bool
	for tries := 0; len(running) != crowd || len(held) < 4*crowd; tries++ { // the hand may be given back between the last look at it and the kill
		if tries == 20 {
			t.Fatal("no process was killed with its hand full")
		}
		r = newRig(t) // jobs that an earlier process has claimed have an attempt more
		r.enqueue(repeat(dies(), 10_000)...)
		r.restartAfter(r.die)
		running, held = map[string]bool{}, map[string]bool{}
		for _, j := range r.leases() {
			if j.Unbegun {
				held[j.ID] = true
			} else {
				running[j.ID] = true
			}
		}
		t.Logf("%d jobs ran and %d were in hand when the process was killed", len(running), len(held))
	}
	var log journal
	r.start(func(o *options) {
		o.Workers, o.Log = func(string) int { return 0 }, slog.New(slog.NewTextHandler(&log, nil))
	})
	for _, want := range []string{
		fmt.Sprintf(`were settled as lost." jobs=%d`, len(running)), fmt.Sprintf(`had not begun were put back." jobs=%d`, len(held)),
	} {
		if !log.has(want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	for id := range held {
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
	*r = *newRigAt(r.T, r.path)
}

// die runs a process that works off jobs until it is killed with its hand full.
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
// have one that does not: then the hand is full, unless that took so long that it
// was given back, and everything starts again from the beginning.
func dying(path string) error {
	r := &mortal{gate: make(chan struct{})}
	s, err := store.Open(context.Background(), store.Options{Database: databaseAt(path), OnCommit: func(changes []job.Change) {
		if e := r.engine.Load(); e != nil {
			e.Changed(changes)
		}
	}})
	if err != nil {
		return err
	}
	e, err := engine.New(engine.Options{
		Store: slowly{s, 100 * time.Millisecond}, Queues: s, Name: "dying", Random: func() float64 { return 0.5 },
		Handlers: func(string) (engine.Handler, bool) { return r.handle, true }, Workers: func(string) int { return crowd },
	})
	if err != nil {
		return err
	}
	r.engine.Store(e)
	if err := e.Start(context.Background()); err != nil {
		return err
	}
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if r.blocked.Load() < crowd {
			continue
		}
		leases, err := s.Leases(context.Background(), time.Time{})
		if err != nil {
			return err
		}
		held := len(slices.DeleteFunc(slices.Clone(leases), func(j job.Job) bool { return !j.Unbegun }))
		if held >= 4*crowd && len(leases)-held == crowd {
			fmt.Println("killed with", held, "jobs in hand and", len(leases)-held, "begun")
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if held > 0 {
			continue // it is not yet given back
		}
		if _, err := s.Enqueue(context.Background(), time.Now(), repeat(dies(), 4*crowd)); err != nil {
			return err
		}
		r.lift()
	}
	return fmt.Errorf("the hand was never full")
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
	if m.began.Add(1) < 3*crowd {
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

// While all queues together may run no more, none has jobs in hand: another queue
// would never have a place.
func TestHand_LeavesPlacesToOtherQueues(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("quick", func(context.Context, job.Job) error { time.Sleep(time.Millisecond); return nil })
		other := ofType("quick")
		other.Queue = "other"
		r.enqueue(repeat(ofType("quick"), 300)...)
		r.enqueue(repeat(other, 10)...)
		r.start(func(o *options) {
			o.Store, o.Workers, o.MaxRunning = slowly{r.store, 10 * time.Millisecond}, func(string) int { return 2 }, 2
		})
		for r.store.Snapshot().Totals.Succeeded < 310 {
			time.Sleep(time.Millisecond)
			if held := r.held(); len(held) > 0 {
				t.Fatalf("%d jobs are in hand", len(held))
			}
		}
	})
}

// A worker that became free while jobs were taken in hand starts one of them.
func TestHand_FreeWorkersStartWhatIsInHand(t *testing.T) {
	bubble(t, func(r *rig) {
		_, release := blocked(r)
		release()
		time.Sleep(900 * time.Millisecond) // before anything is given back
		if n := r.store.Snapshot().Totals.Succeeded; n != 100 {
			t.Errorf("%d jobs succeeded", n)
		}
		if held := r.held(); len(held) > 0 {
			t.Errorf("%d jobs are in hand", len(held))
		}
	})
}
