package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// small is enough to prove that a measurement counts real work.
var small = Size{Backlog: 50, Failing: 50, Enqueued: 100, Batch: 50, WorkOff: time.Minute, Enqueue: time.Minute}

// open starts what a system needs, and skips the test when that is missing, which
// in CI is an error.
func open(t *testing.T, name string, makeSystem func(context.Context, string) (System, error)) System {
	t.Helper()
	dir, err := tempDir() // not t.TempDir, which a server of another user cannot enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s, err := makeSystem(t.Context(), dir)
	if errors.Is(err, errMissing) && os.Getenv("CI") == "" {
		t.Skipf("%s: %v", name, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if s.Close != nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return s
}

func TestWorkloads_CountRealWork(t *testing.T) {
	for _, sys := range systems {
		t.Run(sys.name, func(t *testing.T) {
			s := open(t, sys.name, sys.make)
			for _, w := range Workloads {
				if w.Batch && s.Single {
					continue
				}
				t.Run(w.Name, func(t *testing.T) { runSmall(t, s, w) })
			}
		})
	}
}

// runSmall runs a workload and asks the queue afterwards.
func runSmall(t *testing.T, s System, w Workload) {
	q, err := s.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}()
	size := small
	if s.Single {
		size.Batch = 1
	}
	rate, err := w.Run(t.Context(), q, size)
	if err != nil || rate <= 0 {
		t.Fatalf("%s: %v %s, %v", s.Name, rate, w.Unit, err)
	}
	want := 0
	if strings.HasPrefix(w.Name, "enqueue") {
		want = size.Enqueued
	}
	if strings.HasPrefix(w.Name, "work off") {
		if err := q.Enqueue(t.Context(), newJobs(0, 1)); err != nil { // an asynq without a queue has no count
			t.Fatal(err)
		}
		want = 1
	}
	if left, err := q.Left(t.Context()); err != nil || left != want {
		t.Errorf("%s: %d jobs are left, %v; want %d", s.Name, left, err, want)
	}
}

func TestJob_HasTheSameSizeWhateverItsNumber(t *testing.T) {
	for _, n := range []int{0, 9, 10, 999_999} {
		payload, err := encode(newJob(n))
		if err != nil || len(payload) != payloadSize {
			t.Errorf("job %d is %d bytes, %v; want %d", n, len(payload), err, payloadSize)
		}
	}
}

// faulty is a queue that says that so many jobs are left, and runs each job so
// often.
type faulty struct{ left, runs int }

func (faulty) Enqueue(context.Context, []Job) error { return nil }
func (f faulty) Left(context.Context) (int, error)  { return f.left, nil }
func (faulty) Close() error                         { return nil }

func (f faulty) Work(_ context.Context, _ int, handle Handler) (func() error, error) {
	for range f.runs {
		for _, j := range newJobs(0, small.Backlog) {
			_ = handle(j) // whatever it says, the job is run again
		}
	}
	return func() error { return nil }, nil
}

func TestEnqueue_RefusesAQueueThatLosesJobs(t *testing.T) {
	if _, err := enqueue(t.Context(), faulty{left: 99}, small, 1, 1); err == nil {
		t.Error("100 jobs were enqueued, 99 are there, and there was no error")
	}
}

func TestWorkOff_RefusesAQueueThatRunsJobsTwice(t *testing.T) {
	if _, err := workOff(t.Context(), faulty{runs: 2}, small, 1); err == nil {
		t.Error("every job was run twice, and there was no error")
	}
}

func TestWorkOff_CountsWhatIsFinishedAtTheLimit(t *testing.T) {
	done, _, err := load{jobs: 50, batch: 50, limit: time.Millisecond}.run(t.Context(), faulty{left: 20})
	if err != nil || done != 30 {
		t.Errorf("%d jobs, %v; want 30", done, err)
	}
}

func TestReport_SetsOffARowInWhichAPeerIsAhead(t *testing.T) {
	b := &bench{
		rounds: 3, syncs: []float64{1000, 3000, 2000}, workloads: []Workload{{Name: "ahead"}, {Name: "behind"}, {Name: "not there"}},
		systems: []System{{Name: "Redrive"}, {Name: "peer", Settings: "all on"}},
		rates: map[cell][]float64{
			{0, 0}: {4000, 6000, 2000}, {0, 1}: {1000, 1000, 1000},
			{1, 0}: {500, 600, 700}, {1, 1}: {1000, 1000, 1000},
			{2, 0}: {10, 10, 10},
		},
	}
	report := b.report()
	for _, want := range []string{
		"| ahead | 4 (2–6) |", "| behind | **0.6 (0.5–0.7)** |", "| not there | – |",
		"| ahead | 4,000 (2,000–6,000) | 1,000 (1,000–1,000) |", "- **peer**: all on", "2,000 (1,000–3,000) times a second",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
}

func TestWriteSection_LeavesTheRestAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.md")
	if err := os.WriteFile(path, []byte("before\n"+sectionBegin+"old\n"+sectionEnd+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeSection(path, "new\n"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if want := "before\n" + sectionBegin + "new\n" + sectionEnd + "\nafter\n"; err != nil || string(text) != want {
		t.Errorf("the document is %q, %v; want %q", text, err, want)
	}
	if err := writeSection(os.DevNull, "new\n"); err == nil {
		t.Error("a document without markers was written")
	}
}
