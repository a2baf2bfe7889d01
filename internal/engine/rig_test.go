package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"redrive/internal/audit"
	"redrive/internal/engine"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/databasetest"
	"redrive/internal/store/location"
)

// options keeps test tables short.
type options = engine.Options

func TestMain(m *testing.M) {
	if path := os.Getenv("REDRIVE_TEST_DIES"); path != "" {
		fmt.Fprintln(os.Stderr, dying(path))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// rig is an engine on a real database. Inside a synctest bubble its hours take
// milliseconds.
type rig struct {
	*testing.T
	path   string // of the database, or its address
	store  *store.Store
	engine *engine.Engine
	all    atomic.Pointer[[]*engine.Engine] // that get to know commits

	mu       sync.Mutex
	handlers map[string]engine.Handler
	settled  []job.Settlement
}

// bubble runs a test in a synctest bubble. The database is made outside: those of a server are
// handed from test to test.
func bubble(t *testing.T, test func(r *rig)) {
	t.Helper()
	database := databasetest.New(t)
	synctest.Test(t, func(t *testing.T) { test(newRigAt(t, database)) })
}

func newRig(t *testing.T) *rig {
	return newRigAt(t, databasetest.New(t))
}

func newRigAt(t *testing.T, path string) *rig {
	t.Helper()
	r := &rig{T: t, path: path, handlers: map[string]engine.Handler{}}
	r.all.Store(&[]*engine.Engine{})
	changed := func(changes []job.Change) {
		for _, e := range *r.all.Load() {
			e.Changed(changes)
		}
	}
	s, err := store.Open(t.Context(), store.Options{
		Database: location.Of(path).Database(true), OnCommit: changed,
		CheckEvery: time.Hour, // hours pass in a moment here
	})
	if err != nil {
		t.Fatal(err)
	}
	r.store = s
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return r
}

// on sets the handler of a type.
func (r *rig) on(typ string, h engine.Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handlers[typ] = h
}

func (r *rig) lookup(typ string) (engine.Handler, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, ok := r.handlers[typ]
	return h, ok
}

func (r *rig) options() engine.Options {
	return engine.Options{
		Store:    r.store,
		Queues:   r.store,
		Handlers: r.lookup,
		Workers:  func(string) int { return 10 },
		Random:   rand.Float64,
		Name:     "w1",
		Grace:    10 * time.Second,
		Settled: func(_ job.Job, s job.Settlement) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.settled = append(r.settled, s)
		},
	}
}

// start starts an engine, and stops it when the test ends.
func (r *rig) start(changes ...func(*engine.Options)) *engine.Engine {
	r.Helper()
	o := r.options()
	for _, change := range changes {
		change(&o)
	}
	e, err := engine.New(o)
	if err != nil {
		r.Fatal(err)
	}
	all := append(*r.all.Load(), e)
	r.all.Store(&all)
	if err := e.Start(r.Context()); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { e.Stop(r.Context()) })
	r.engine = e
	return e
}

// steady is the Open Job Spec's default without jitter.
func steady(changes ...func(*retry.Policy)) retry.Policy {
	p := retry.Default()
	p.Jitter = retry.Jitter{}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func ofType(typ string) job.Job {
	return job.Job{Type: typ, Queue: "default", Payload: []byte(`{}`), Policy: steady()}
}

func (r *rig) enqueue(jobs ...job.Job) []string {
	r.Helper()
	done, err := r.store.Enqueue(r.Context(), time.Now(), jobs)
	if err != nil {
		r.Fatal(err)
	}
	ids := make([]string, len(done))
	for i, d := range done {
		ids[i] = d.Job.ID
	}
	return ids
}

func (r *rig) detail(id string) history.Detail {
	r.Helper()
	d, err := r.store.Job(context.WithoutCancel(r.Context()), id)
	if err != nil {
		r.Fatal(err)
	}
	return d
}

// cancel takes a job back, as a person does.
func (r *rig) cancel(id string) {
	r.Helper()
	if _, err := r.store.Cancel(r.Context(), time.Now(), id, 1, audit.Actor{Name: "anna"}); err != nil {
		r.Fatal(err)
	}
}

// replay starts a job's next run, as a person does.
func (r *rig) replay(id string, run int) {
	r.Helper()
	if _, err := r.store.Replay(r.Context(), time.Now(), id, run, audit.Actor{Name: "anna"}); err != nil {
		r.Fatal(err)
	}
}

// want checks where a job stands, and returns its attempts.
func (r *rig) want(id string, status job.Status, attempts int) []job.Attempt {
	r.Helper()
	d := r.detail(id)
	if d.Job.Status() != status || d.Job.Attempts != attempts {
		r.Errorf("job is %s after %d attempts (%s: %s), want %s after %d",
			d.Job.Status(), d.Job.Attempts, d.Job.Error.Type, d.Job.Error.Message, status, attempts)
	}
	return d.Attempts
}

func succeed(context.Context, job.Job) error { return nil }

// fails answers with the same error each time.
func fails(err error) engine.Handler {
	return func(context.Context, job.Job) error { return err }
}

// untilTold works until its context ends, as a good handler does.
func untilTold(ctx context.Context, _ job.Job) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func failure(typ string) *job.Failure {
	return &job.Failure{ErrorInfo: job.ErrorInfo{Type: typ, Message: "no luck"}}
}

// only keeps the dead letters of some queues and refuses the others.
func only(kept func(queue string) bool) func(context.Context, job.Job, job.DeadLetter) job.Delivery {
	return func(_ context.Context, j job.Job, _ job.DeadLetter) job.Delivery {
		return job.InDeadLetters(j.Queue, kept(j.Queue))
	}
}
