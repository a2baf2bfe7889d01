package engine_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/engine"
	"redrive/internal/job"
)

// stubborn is a handler whose first execution ignores its context for a time;
// the others return at once.
type stubborn struct {
	returns time.Duration

	mu    sync.Mutex
	began []time.Time
	ttrs  []time.Duration
}

func (s *stubborn) handle(ctx context.Context, _ job.Job) error {
	deadline, _ := ctx.Deadline()
	s.mu.Lock()
	s.began = append(s.began, time.Now())
	s.ttrs = append(s.ttrs, time.Until(deadline))
	first := len(s.began) == 1
	s.mu.Unlock()
	if first {
		time.Sleep(s.returns)
	}
	return nil
}

func (s *stubborn) starts() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began
}

// journal keeps what is logged.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// has reports whether one line has all parts.
func (j *journal) has(parts ...string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.text.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			return true
		}
	}
	return false
}

// stick lets the first execution of a job be given up, 12 seconds after now,
// and the next one be claimed, a second later. It gives the handler's first
// execution so long to return.
func (r *rig) stick(returns time.Duration, changes ...func(*options)) (id string, s *stubborn) {
	s = &stubborn{returns: returns}
	r.on("stubborn", s.handle)
	r.start(changes...)
	j := ofType("stubborn")
	j.Timeout = 10 * time.Second
	id = r.enqueue(j)[0]
	time.Sleep(13 * time.Second)
	synctest.Wait()
	return id, s
}

func TestEngine_WaitsForAHandlerThatWasGivenUp(t *testing.T) {
	bubble(t, func(r *rig) {
		begin := time.Now()
		id, s := r.stick(2 * time.Minute)
		since, until, ok := r.engine.Waiting(id)
		if !ok || since.Sub(begin) != 12*time.Second || until.Sub(begin) != 13*time.Second+5*time.Minute {
			t.Errorf("waiting: %v, since %v until %v", ok, since, until)
		}
		time.Sleep(106 * time.Second) // several leases
		if j := r.detail(id).Job; j.State != job.Active || j.Attempts != 1 || len(s.starts()) != 1 {
			t.Errorf("meanwhile it is %s after %d attempts; %d executions began", j.State, j.Attempts, len(s.starts()))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		attempts := r.want(id, "completed", 2)
		if took := attempts[1].StartedAt.Sub(begin); took != 2*time.Minute || s.ttrs[1] != 10*time.Second {
			t.Errorf("began after %v with a ttr of %v", took, s.ttrs[1])
		}
		if _, _, waits := r.engine.Waiting(id); waits {
			t.Error("it still waits")
		}
	})
}

func TestEngine_RunsAgainAfterTheCap(t *testing.T) {
	bubble(t, func(r *rig) {
		begin := time.Now()
		var log journal
		id, s := r.stick(time.Hour, func(o *options) {
			o.StuckAfter = 187 * time.Second
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
		})
		r.on("ok", succeed)
		other := ofType("ok")
		other.Timeout = 30 * time.Second // the end of its ttr comes in between
		r.enqueue(other)
		time.Sleep(187 * time.Second)
		synctest.Wait()
		r.want(id, "completed", 2)
		if got := s.starts()[1].Sub(begin); got != 200*time.Second {
			t.Errorf("began after %v", got)
		}
		if !log.has("waited as long as it should") {
			t.Error("the log does not say so")
		}
		if running := r.engine.Running()["default"]; running != 1 {
			t.Errorf("%d workers are in use, want the one of the old handler", running)
		}
		time.Sleep(time.Hour)
	})
}

// A job that waited began when its wait was over: from then on its ttr counts.
func TestEngine_KnowsWhenAJobThatWaitedBegan(t *testing.T) {
	bubble(t, func(r *rig) {
		begin := time.Now()
		id, s := r.stick(2 * time.Minute)
		token := r.detail(id).Job.Token
		if at, ok := r.engine.Began(token); ok {
			t.Errorf("while it waits it began at %v", at)
		}
		r.on("stubborn", func(ctx context.Context, j job.Job) error { time.Sleep(5 * time.Second); return s.handle(ctx, j) })
		time.Sleep(110 * time.Second) // the old handler returned three seconds ago
		if at, ok := r.engine.Began(token); !ok || at.Sub(begin) != 2*time.Minute {
			t.Errorf("began: %v, at %v", ok, at)
		}
		time.Sleep(10 * time.Second)
		if at, ok := r.engine.Began(token); ok {
			t.Errorf("in the end it began at %v", at)
		}
	})
}

// One cap is enough for one handler: later executions do not wait again.
func TestEngine_WaitsOnceForTheSameHandler(t *testing.T) {
	bubble(t, func(r *rig) {
		id, s := r.stick(time.Hour, func(o *options) { o.StuckAfter = 50 * time.Second })
		r.on("stubborn", fails(failure("x")))
		time.Sleep(50 * time.Second) // the second execution fails
		synctest.Wait()
		r.want(id, "retryable", 2)
		r.on("stubborn", s.handle)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		r.want(id, "completed", 3)
		time.Sleep(time.Hour)
	})
}

// The handler of a cancelled job that does not listen is waited for by the
// job's next run.
func TestEngine_TheNextRunWaitsToo(t *testing.T) {
	bubble(t, func(r *rig) {
		s := &stubborn{returns: time.Minute}
		r.on("stubborn", s.handle)
		r.start()
		id := r.enqueue(ofType("stubborn"))[0]
		synctest.Wait()
		r.cancel(id)
		r.replay(id, 1)
		time.Sleep(59 * time.Second)
		if _, _, ok := r.engine.Waiting(id); !ok || len(s.starts()) != 1 {
			t.Errorf("waiting: %v, %d executions began", ok, len(s.starts()))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		r.want(id, "completed", 1)
	})
}

func TestEngine_CancelsAJobThatWaits(t *testing.T) {
	bubble(t, func(r *rig) {
		id, s := r.stick(2 * time.Minute)
		r.cancel(id)
		if _, _, ok := r.engine.Waiting(id); ok {
			t.Error("it still waits")
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if r.want(id, "cancelled", 1); len(s.starts()) != 1 {
			t.Errorf("%d executions began", len(s.starts()))
		}
	})
}

func TestEngine_StopReleasesAJobThatWaits(t *testing.T) {
	bubble(t, func(r *rig) {
		id, s := r.stick(15 * time.Second) // returns within the grace
		if err := r.engine.Stop(r.Context()); err != nil {
			t.Errorf("Stop: %v", err)
		}
		attempts := r.want(id, "available", 1)
		if len(s.starts()) != 1 || attempts[1].Outcome != job.Interrupted || attempts[1].Number != 0 {
			t.Errorf("%d executions began, attempts %+v", len(s.starts()), attempts)
		}
	})
}

// A job that waits leaves its worker to others; when its wait is over it is
// the next one.
func TestEngine_AJobThatWaitsTakesNoWorker(t *testing.T) {
	bubble(t, func(r *rig) {
		id, s := r.stick(2*time.Minute, func(o *options) {
			o.Workers = func(string) int { return 2 }
			o.StuckAfter = time.Minute
		})
		r.on("long", func(context.Context, job.Job) error { time.Sleep(90 * time.Second); return nil })
		others := r.enqueue(ofType("long"), ofType("long"))
		time.Sleep(89 * time.Second)
		if got := r.engine.Running()["default"]; got != 2 || len(s.starts()) != 1 {
			t.Errorf("%d handlers run, %d executions of the job began", got, len(s.starts()))
		}
		if since, until, ok := r.engine.Waiting(id); !ok || !since.IsZero() || !until.IsZero() {
			t.Errorf("waiting for a worker: %v, since %v until %v", ok, since, until)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		r.want(others[0], "completed", 1)
		r.want(id, "completed", 2)
		time.Sleep(time.Hour)
		r.want(others[1], "completed", 1)
	})
}

// A cancellation can come in the moment in which the wait ends.
func TestEngine_CancelsAJobThatIsAboutToBegin(t *testing.T) {
	bubble(t, func(r *rig) {
		var id string
		var late atomic.Bool
		id, s := r.stick(time.Minute, func(o *options) {
			o.Handlers = func(typ string) (engine.Handler, bool) {
				if late.CompareAndSwap(true, false) {
					r.cancel(id)
				}
				return r.lookup(typ)
			}
		})
		time.Sleep(30 * time.Second)
		synctest.Wait()
		late.Store(true)
		time.Sleep(time.Hour)
		synctest.Wait()
		if r.want(id, "cancelled", 1); len(s.starts()) != 1 || len(r.engine.Running()) != 0 {
			t.Errorf("%d executions began, running: %v", len(s.starts()), r.engine.Running())
		}
	})
}

// A job that failed once does not expire, however long it waits.
func TestEngine_AJobThatWaitsDoesNotExpire(t *testing.T) {
	bubble(t, func(r *rig) {
		s := &stubborn{returns: 2 * time.Minute}
		r.on("stubborn", s.handle)
		r.start()
		j := ofType("stubborn")
		j.Timeout, j.ExpiresAt = 10*time.Second, time.Now().Add(time.Minute)
		id := r.enqueue(j)[0]
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		r.want(id, "completed", 2)
	})
}

// What a handler returns after its execution was ended is written to the log, with
// the reason why it was ended.
func TestEngine_LogsWhatComesTooLate(t *testing.T) {
	bubble(t, func(r *rig) {
		var log journal
		r.on("deaf", func(context.Context, job.Job) error { time.Sleep(time.Minute); return failure("x") })
		r.start(func(o *options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		slow := once("deaf")
		slow.Timeout = 10 * time.Second
		ids := r.enqueue(slow, ofType("deaf"), ofType("deaf"))
		synctest.Wait()
		r.cancel(ids[1])
		r.seize(ids[2])
		time.Sleep(time.Minute)
		synctest.Wait()
		for i, cause := range []string{"ran longer than its ttr", "was cancelled", "lease of the job was lost"} {
			if !log.has("Its result was dropped", "job="+ids[i], "outcome=", cause) {
				t.Errorf("job %d: the log does not say that %s:\n%s", i, cause, log.text.String())
			}
		}
	})
}
