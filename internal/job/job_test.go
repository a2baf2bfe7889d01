package job_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/stats"
)

var noon = time.Date(2026, 3, 12, 12, 0, 0, 0, time.UTC)

func half() float64 { return 0.5 }

// running is a job in its second attempt of three.
func running() job.Job {
	return job.Job{
		Token: job.Token{ID: "0195f0c0-0000-7000-8000-000000000001", Run: 1, Execution: 2},
		Queue: "orders", Type: "order.pay", State: job.Active, Attempts: 1, Policy: retry.Default(),
		StartedAt: noon, LastSeen: noon.Add(20 * time.Second), LeaseUntil: noon.Add(time.Minute), Worker: "w1",
	}
}

func ending(o job.Outcome) job.Ending {
	e := job.Ending{Outcome: o, FinishedAt: noon.Add(90 * time.Second)}
	if o != job.Succeeded {
		e.Error = job.ErrorInfo{Type: "upstream", Message: "503"}
	}
	return e
}

func TestJobSettle_CountsEachCompletedCycleOnce(t *testing.T) {
	tests := []struct {
		outcome job.Outcome
		number  int
		state   job.State
	}{
		{job.Succeeded, 2, job.Completed},
		{job.Failed, 2, job.Retryable},
		{job.Panicked, 2, job.Retryable},
		{job.TimedOut, 2, job.Retryable},
		{job.Lost, 2, job.Retryable},
		{job.Interrupted, 0, job.Available},
	}
	for _, test := range tests {
		s := running().Settle(ending(test.outcome), half)
		if s.Attempt.Number != test.number || s.State != test.state {
			t.Errorf("%s: number %d, state %s; want %d, %s", test.outcome, s.Attempt.Number, s.State, test.number, test.state)
		}
		if s.Token != running().Token || s.Attempt.Execution != 2 || s.Attempt.Worker != "w1" {
			t.Errorf("%s: the settlement names %+v, execution %d by %s", test.outcome, s.Token, s.Attempt.Execution, s.Attempt.Worker)
		}
	}
}

func TestJobSettle_LostCountsItsDelayFromTheLastSignOfLife(t *testing.T) {
	const delay = 2 * time.Second // second retry of the default policy, jitter factor 1
	if got, want := running().Settle(ending(job.Lost), half).RunAt, noon.Add(20*time.Second+delay); !got.Equal(want) {
		t.Errorf("lost: RunAt = %v, want %v", got, want)
	}
	if got, want := running().Settle(ending(job.Failed), half).RunAt, noon.Add(90*time.Second+delay); !got.Equal(want) {
		t.Errorf("failed: RunAt = %v, want %v", got, want)
	}
}

func TestJobSettle_DeadLetterIsStoredOrRefused(t *testing.T) {
	j := running()
	j.Attempts = 2
	tests := []struct {
		problem    string
		deadLetter job.DeadLetterState
		totals     stats.Totals
	}{
		{"", job.DeadLetterStored, stats.Totals{Failed: 1, FailedPermanently: 1}},
		{"the queue orders has no dead-letter queue", job.DeadLetterRefused, stats.Totals{Failed: 1, FailedPermanently: 1, DLQFailed: 1}},
	}
	for _, test := range tests {
		s := j.Settle(ending(job.Failed), half).Delivered(job.InDeadLetters("orders", test.problem == ""))
		if s.State != job.Discarded || s.DeadLetter != test.deadLetter || s.Reason != retry.AttemptsExhausted || stats.Of(s) != test.totals {
			t.Errorf("with problem %q: %s, letter %q, reason %s, %+v", test.problem, s.State, s.DeadLetter, s.Reason, stats.Of(s))
		}
		deadLetter, ok := s.NewDeadLetter(j.Queue)
		want := job.DeadLetter{
			JobID: j.ID, Run: 1, Reason: retry.AttemptsExhausted, Error: "503", Exception: "upstream",
			FailedAt: noon.Add(90 * time.Second), Queue: "orders", Attempts: 3, Refused: test.problem != "", Problem: test.problem,
		}
		if !ok || deadLetter != want {
			t.Errorf("DeadLetter = %+v, %v; want %+v", deadLetter, ok, want)
		}
	}
}

func TestJobSettle_DiscardLeavesNoDeadLetter(t *testing.T) {
	e := ending(job.Failed)
	e.Answer.Code = retry.CodeDiscard
	s := running().Settle(e, half)
	if _, ok := s.NewDeadLetter("orders"); ok || s.State != job.Discarded || stats.Of(s) != (stats.Totals{Failed: 1, FailedPermanently: 1}) {
		t.Errorf("settlement = %+v with totals %+v, want discarded without a letter", s, stats.Of(s))
	}
}

func TestJobSettle_BoundsWhatAHandlerSays(t *testing.T) {
	e := ending(job.Failed)
	long := strings.Repeat("ü", job.MaxTrace)
	e.Error, e.Trace = job.ErrorInfo{Type: long, Message: long + "\xff"}, long
	a := running().Settle(e, half).Attempt
	for name, got := range map[string]struct {
		text  string
		limit int
	}{
		"type": {a.Error.Type, retry.MaxErrorType}, "message": {a.Error.Message, job.MaxErrorMessage}, "trace": {a.Trace, job.MaxTrace},
	} {
		if len(got.text) > got.limit || !utf8.ValidString(got.text) || !strings.HasSuffix(got.text, "… [cut]") {
			t.Errorf("%s has %d bytes, limit %d, ends %q", name, len(got.text), got.limit, got.text[len(got.text)-12:])
		}
	}
}

// A source that does not say how often a job was tried says nothing of how often it may be.
func TestJobChanged_TellsNoAttemptsThatASourceDoesNotTell(t *testing.T) {
	for _, c := range []struct {
		source         string
		used, most, of int
	}{
		{"shop", 0, 3, 0}, {"shop", 2, 3, 3}, {"shop", 2, 0, 0}, {"", 0, 3, 3},
	} {
		change := job.Job{Source: c.source, Attempts: c.used, Policy: retry.Policy{MaxAttempts: c.most}}.Changed()
		if change.Attempts != c.used || change.MaxAttempts != c.of {
			t.Errorf("%+v: %d of %d attempts", c, change.Attempts, change.MaxAttempts)
		}
	}
}

// jobs_failed = jobs_requeued + jobs_failed_permanently, whatever happens.
func TestTotals_OfSettlementsAddUp(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	outcomes := []job.Outcome{job.Succeeded, job.Failed, job.Panicked, job.TimedOut, job.Lost, job.Interrupted}
	codes := []retry.Code{"", retry.CodeRetry, retry.CodeDiscard, retry.CodeDeadLetter, retry.CodeFail}
	var sum stats.Totals
	for range 10_000 {
		j := running()
		j.Attempts = random.IntN(4)
		e := ending(outcomes[random.IntN(len(outcomes))])
		e.Answer.Code = codes[random.IntN(len(codes))]
		sum = sum.Add(stats.Of(j.Settle(e, random.Float64).Delivered(job.InDeadLetters("orders", random.IntN(2) == 0))))
	}
	if sum.Failed != sum.Requeued+sum.FailedPermanently || sum.Failed == 0 || sum.Requeued == 0 || sum.DLQFailed == 0 {
		t.Errorf("totals do not add up: %+v", sum)
	}
}

func TestParseID(t *testing.T) {
	const id = "0195f0c0-0000-7000-8000-000000000001"
	if got, err := job.ParseID(strings.ToUpper(id)); err != nil || got != id {
		t.Errorf("ParseID in upper case = %q, %v", got, err)
	}
	for _, s := range []string{"", "1", "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), id + "x"} {
		if _, err := job.ParseID(s); err == nil {
			t.Errorf("ParseID(%q) is accepted", s)
		}
	}
}
