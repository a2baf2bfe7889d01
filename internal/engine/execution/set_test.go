package execution_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/engine/execution"
	"redrive/internal/engine/outcome"
	"redrive/internal/job"
)

// set is a set with what is to be written of it.
type set struct {
	*execution.Set
	unwritten outcome.Unwritten
}

func newSet() *set {
	s := &set{}
	s.Set = execution.NewSet(&s.unwritten, time.Minute)
	return s
}

// execute is the execution n of a job.
func execute(n int) *execution.Execution {
	return &execution.Execution{Job: &job.Job{Token: job.Token{ID: "a", Run: 1, Execution: n}, Queue: "mail"}}
}

func succeed(context.Context, job.Job) error { return nil }

// begin lets an execution begin, and returns what it waits for.
func (s *set) begin(x *execution.Execution, h execution.Handler) (*execution.Wait, bool) {
	now := time.Now()
	return s.Admit(x, execution.NewTask(h, time.Second, now), now)
}

// The first who decides how an execution ends decides it.
func TestSet_DecidesOnceHowAnExecutionEnds(t *testing.T) {
	s := newSet()
	x := execute(1)
	if _, begun := s.begin(x, succeed); !begun {
		t.Fatal("it does not begin")
	}
	x.Call()
	if x.Ending.Outcome != job.Succeeded || s.Returned(x) {
		t.Errorf("it ended as %v", x.Ending.Outcome)
	}
	if cause := s.Decide(x, outcome.Outcome{Job: x.Job}); cause != nil || s.unwritten.Count() != 1 {
		t.Errorf("decided before for %v, %d to write", cause, s.unwritten.Count())
	}
	if s.Fence(x.Job.Token, execution.ErrCancelled) != nil {
		t.Error("it was cancelled after it had ended")
	}

	// Another one is cancelled before its handler returns.
	x = execute(2)
	s.begin(x, succeed)
	if s.Fence(x.Job.Token, execution.ErrCancelled) != x || s.Has(x.Job.Token) {
		t.Error("it is not cancelled")
	}
	x.Call()
	if cause := s.Decide(x, outcome.Outcome{Job: x.Job}); !errors.Is(cause, execution.ErrCancelled) || s.unwritten.Count() != 1 {
		t.Errorf("decided before for %v, %d to write", cause, s.unwritten.Count())
	}
}

// The next execution of a job waits for a handler that was given up.
func TestSet_AnExecutionWaitsForAnEarlierHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet()
		first, second := execute(1), execute(2)
		s.begin(first, succeed)
		time.Sleep(time.Second + execution.ReturnLimit)
		if given := s.AbandonOverdue(time.Now()); len(given) != 1 || len(s.Stuck()) != 1 {
			t.Errorf("%d given up, %d stuck", len(given), len(s.Stuck()))
		}

		w, begun := s.begin(second, succeed)
		if begun || w == nil || len(s.DueWaits(time.Now())) != 0 {
			t.Fatalf("begun %v, waits %v", begun, w)
		}
		if _, ok := s.Began(second.Job.Token); ok {
			t.Error("it has begun")
		}

		s.Decide(first, outcome.Outcome{}) // its handler returns
		if due := s.DueWaits(time.Now()); len(due) != 1 || due[0] != w {
			t.Fatalf("%d waits are over", len(due))
		}
		begun, late := s.AdmitWaiting(w, execution.NewTask(succeed, time.Second, time.Now()), time.Now())
		if !begun || late {
			t.Errorf("begun %v, late %v", begun, late)
		}
	})
}

// A set that is closed gives back what would begin.
func TestSet_NothingBeginsAfterItIsClosed(t *testing.T) {
	s := newSet()
	s.Close()
	if _, begun := s.begin(execute(1), succeed); begun {
		t.Error("it begins")
	}
	all := s.unwritten.Take(nil)
	if len(all) != 1 || !all[0].Settlement.GivenBack {
		t.Errorf("to write: %+v", all)
	}
}
