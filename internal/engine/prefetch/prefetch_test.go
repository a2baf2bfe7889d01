package prefetch_test

import (
	"slices"
	"testing"
	"time"

	"redrive/internal/engine/execution"
	"redrive/internal/engine/prefetch"
	"redrive/internal/job"
)

var start = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// execute is an execution of a job with a priority.
func execute(id string, priority int) *execution.Execution {
	return &execution.Execution{Job: &job.Job{Token: job.Token{ID: id}, Queue: "mail", Priority: priority}, Prefetched: true}
}

func ids(all []*execution.Execution) (ids []string) {
	for _, x := range all {
		ids = append(ids, x.Job.ID)
	}
	return ids
}

func TestJobs_StartByPriorityThenInTheirOrder(t *testing.T) {
	p := prefetch.New()
	for i, x := range []*execution.Execution{execute("a", 0), execute("b", 0), execute("c", 5), execute("d", 5), execute("e", 1)} {
		p.Add(x, start.Add(time.Duration(i)))
	}
	if p.Count("mail") != 5 || p.Total() != 5 || !slices.Equal(p.Queues(), []string{"mail"}) {
		t.Errorf("count %d of %d in %q", p.Count("mail"), p.Total(), p.Queues())
	}
	if !p.IsOvertakenBy(job.Change{Queue: "mail", Priority: 1}) || p.IsOvertakenBy(job.Change{Queue: "mail"}) ||
		p.IsOvertakenBy(job.Change{Queue: "other", Priority: 9}) {
		t.Error("a job overtakes those of a lower priority in its queue, and no others")
	}

	var got []*execution.Execution
	for p.Count("mail") > 0 {
		got = append(got, p.Next("mail"))
	}
	if !slices.Equal(ids(got), []string{"c", "d", "e", "a", "b"}) {
		t.Errorf("they start in the order %q", ids(got))
	}
	if p.Next("mail") != nil || len(p.Queues()) != 0 {
		t.Error("something is left")
	}
}

func TestJobs_AreLateInTheOrderOfTheirClaims(t *testing.T) {
	p := prefetch.New()
	dropped := execute("dropped", 9)
	p.Add(execute("first", 0), start)
	p.Add(execute("second", 5), start.Add(100*time.Millisecond))
	p.Add(dropped, start.Add(-time.Minute))
	p.Drop(dropped)

	if at := p.LateAt(); !at.Equal(start.Add(prefetch.For)) {
		t.Errorf("the first is late at %v", at)
	}
	if late := p.TakeLate("mail", start.Add(prefetch.For-1)); len(late) != 0 {
		t.Errorf("late too early: %q", ids(late))
	}
	if late := p.TakeLate("mail", start.Add(prefetch.For)); !slices.Equal(ids(late), []string{"first"}) {
		t.Errorf("late: %q", ids(late))
	}
	if all := p.TakeAll("mail"); !slices.Equal(ids(all), []string{"second"}) || !p.LateAt().IsZero() {
		t.Errorf("left: %q, and late at %v", ids(all), p.LateAt())
	}
}

// As many jobs are worth a claim in advance as the workers end meanwhile, within a bound.
func TestPace_IsWhatWorkersEndDuringACommit(t *testing.T) {
	var p prefetch.Pace
	p.Measure(10 * time.Millisecond)
	for commit, want := range map[time.Duration]int{
		0: 0, time.Millisecond: 0, 5 * time.Millisecond: 1, 20 * time.Millisecond: 4, time.Second: 2 * prefetch.PerWorker,
	} {
		if n := p.During(commit, 2); n != want || !p.Ended {
			t.Errorf("during %v two workers end %d jobs, want %d", commit, n, want)
		}
	}
}
