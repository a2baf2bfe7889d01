package store

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store/db"
)

// failing is a job whose group is known, in its next execution, and the fingerprint of the
// group.
func failing(t *testing.T, s *Store) (running job.Job, fingerprint string) {
	t.Helper()

	first := dead(t, s, 1)[0]
	d, err := s.Job(t.Context(), first.ID)
	check(t, err)

	return claimOne(t, s), d.Group.Fingerprint
}

// claimOne enqueues a job and claims it.
func claimOne(t *testing.T, s *Store) job.Job {
	t.Helper()

	enqueue(t, s, 1)
	claimed, _, err := s.Exchange(t.Context(), nil, job.Claim{Worker: "w", Now: testTime, Lease: time.Minute, Free: map[string]int{"orders": 1}})
	check(t, err)

	return claimed[0]
}

// fail lets the execution fail as those of dead do.
func fail(s *Store, running job.Job) func(context.Context) error {
	return func(ctx context.Context) error {
		end := job.Ending{Outcome: job.Failed, FinishedAt: testTime.Add(time.Second), Answer: retry.Answer{Code: retry.CodeDeadLetter}}
		_, _, err := s.Exchange(ctx, []job.Settlement{running.Settle(end, nil)}, job.Claim{})

		return err
	}
}

// decide lets a person decide about the group.
func decide(s *Store, fingerprint string, to failures.Decision) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.Groups.Decide(ctx, testTime.Add(time.Second), fingerprint, to, audit.Actor{Name: "eve"})
		return err
	}
}

// A failure opens a group only if it comes after what a person decided, also when both are
// in one commit; and so many more failures are counted from the decision on.
func TestReopening_FollowsTheOrderWithinACommit(t *testing.T) {
	resolve := failures.Decision{State: failures.Resolved}
	oneMore := failures.Decision{State: failures.Ignored, More: 1}

	for _, test := range []struct {
		name     string
		decision failures.Decision
		first    bool // the decision, before the failure
		want     failures.State
		because  failures.Reopening
	}{
		{"it is resolved after the failure", resolve, false, failures.Resolved, ""},
		{"it fails after it was resolved", resolve, true, failures.Open, failures.ByFailure},
		{"it is ignored for one more after the failure", oneMore, false, failures.Ignored, ""},
		{"it fails once more", oneMore, true, failures.Open, failures.ByCount},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, Options{})
				running, fingerprint := failing(t, s)

				calls := []func(context.Context) error{fail(s, running), decide(s, fingerprint, test.decision)}
				if test.first {
					calls[0], calls[1] = calls[1], calls[0]
				}

				together(t, s, calls...)

				g, err := s.Groups.Get(t.Context(), testTime, fingerprint)
				check(t, err)

				if g.State != test.want || g.ReopenedBy != test.because || g.Failures != 2 {
					t.Errorf("it is %s, reopened by %q, after %d failures; want %s, %q, 2", g.State, g.ReopenedBy, g.Failures, test.want, test.because)
				}

				open := map[bool]int64{true: 1}[test.want == failures.Open]
				if got := s.Snapshot().OpenGroups; got != open {
					t.Errorf("%d groups are open, want %d", got, open)
				}
			})
		})
	}
}

// What decides is what is written of the group, and not what the process remembers of it:
// another one may have written it.
func TestReopening_IsDecidedByWhatIsWritten(t *testing.T) {
	for name, written := range map[failures.Reopening]string{
		failures.ByFailure: `state = 'resolved'`,
		failures.ByDate:    `state = 'ignored', until = 1`,
		failures.ByCount:   `state = 'ignored', until_count = failures + 1`,
		failures.ByRate:    `state = 'ignored', until_rate = 2`,
		"":                 `state = 'ignored', until_rate = 3, until_count = failures + 2`,
	} {
		t.Run("by "+string(name), func(t *testing.T) {
			s := open(t, Options{})
			running, fingerprint := failing(t, s)

			_, err := db.Write(t.Context(), s.writer, 1, func(tx *db.Tx) (struct{}, error) {
				return struct{}{}, tx.ExecExactly(1, `UPDATE groups SET `+written)
			})
			check(t, err)
			check(t, fail(s, running)(t.Context()))

			g, err := s.Groups.Get(t.Context(), testTime, fingerprint)
			check(t, err)

			if g.ReopenedBy != name || (g.State == failures.Open) != (name != "") {
				t.Errorf("it is %s, reopened by %q; want %q", g.State, g.ReopenedBy, name)
			}
		})
	}
}

// Several failures of one commit, some of them in an earlier hour, count like those of several
// commits: the hour in which as many came as the group was ignored for opens it.
func TestReopening_LooksAtEachHourOfACommit(t *testing.T) {
	s := open(t, Options{})
	_, fingerprint := failing(t, s)
	check(t, decide(s, fingerprint, failures.Decision{State: failures.Ignored, Patience: failures.Patience{Rate: 3}})(t.Context()))

	next := testTime.Truncate(time.Hour).Add(time.Hour)
	settle := failuresAt(t, s, next, next.Add(time.Minute), next.Add(2*time.Minute), next.Add(time.Hour))
	_, _, err := s.Exchange(t.Context(), settle, job.Claim{})
	check(t, err)

	g, err := s.Groups.Get(t.Context(), testTime, fingerprint)
	check(t, err)

	if g.State != failures.Open || g.ReopenedBy != failures.ByRate {
		t.Errorf("it is %s, reopened by %q", g.State, g.ReopenedBy)
	}
}

// A group that was resolved opened with the first failure after that.
func TestReopening_TellsTheFirstFailure(t *testing.T) {
	s := open(t, Options{})
	_, fingerprint := failing(t, s)
	check(t, decide(s, fingerprint, failures.Decision{State: failures.Resolved})(t.Context()))

	first := testTime.Add(time.Hour)
	_, _, err := s.Exchange(t.Context(), failuresAt(t, s, first.Add(time.Minute), first), job.Claim{})
	check(t, err)

	g, err := s.Groups.Get(t.Context(), testTime, fingerprint)
	check(t, err)

	if !g.ReopenedAt.Equal(first) {
		t.Errorf("it opened at %v, want %v", g.ReopenedAt, first)
	}
}

// failuresAt are the failures of new jobs, at these times.
func failuresAt(t *testing.T, s *Store, times ...time.Time) (settle []job.Settlement) {
	t.Helper()

	for _, at := range times {
		end := job.Ending{Outcome: job.Failed, FinishedAt: at, Answer: retry.Answer{Code: retry.CodeDeadLetter}}
		settle = append(settle, claimOne(t, s).Settle(end, nil))
	}

	return settle
}
