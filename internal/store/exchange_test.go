package store

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// A job that succeeds costs little garbage: nearly all of it is what the driver makes
// of the columns that it reads and writes.
func TestExchange_AllocatesLittleForEachJob(t *testing.T) {
	const batch, runs, most = 100, 10, 15
	s := open(t, Options{})
	enqueue(t, s, batch*(runs+2))
	claim := job.Claim{Worker: "w", Now: testTime.Add(time.Second), Lease: time.Minute, Free: map[string]int{"orders": batch}}
	end := job.Ending{Outcome: job.Succeeded, FinishedAt: claim.Now}
	var settle []job.Settlement
	each := testing.AllocsPerRun(runs, func() {
		claimed, stale, err := s.Exchange(t.Context(), settle, claim)
		if check(t, err); len(claimed) != batch || len(stale) > 0 {
			t.Fatalf("%d jobs claimed, %d settlements were stale", len(claimed), len(stale))
		}
		settle = settle[:0]
		for _, j := range claimed {
			settle = append(settle, j.Settle(end, nil))
		}
	}) / batch
	if each > most {
		t.Errorf("%.1f allocations for each job, want %d at most", each, most)
	}
}

// A job that a claim holds in the commit under way is let go too: its type was not
// known when the claim asked, and is by the time of the reload.
func TestUnhold_WaitsForAClaimUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{})
		enqueue(t, s, 1)
		asked, reloaded := make(chan struct{}), make(chan struct{})
		ask := sync.OnceFunc(func() { close(asked); <-reloaded })
		claim := job.Claim{
			Worker: "w", Now: testTime.Add(time.Second), Lease: time.Minute, Free: map[string]int{"orders": 1},
			Knows: func(string) bool { ask(); return false },
		}
		var claims, reload sync.WaitGroup
		claims.Go(func() {
			if _, _, err := s.Exchange(t.Context(), nil, claim); err != nil {
				t.Error(err)
			}
		})
		<-asked
		var freed int
		reload.Go(func() {
			var err error
			if freed, err = s.Unhold(t.Context(), func(string) bool { return true }); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait() // the reload waits, or has ended
		close(reloaded)
		claims.Wait()
		reload.Wait()
		if held := s.Snapshot().Depths[job.StatusHeld]; freed != 1 || held != 0 {
			t.Errorf("%d jobs were let go, %d are held", freed, held)
		}
	})
}

// Many failures of one exchange leave their dead letters with few statements.
func TestExchange_WritesDeadLettersTogether(t *testing.T) {
	const batch = 100
	s, recorded := openRecorded(t)
	once := retry.Default()
	once.MaxAttempts = 1
	jobs := make([]job.Job, batch)
	for i := range jobs {
		jobs[i] = job.Job{Queue: "orders", Type: "email.send", Policy: once, Timeout: time.Minute}
	}
	_, err := s.Enqueue(t.Context(), testTime, jobs)
	check(t, err)
	claimed, _, err := s.Exchange(t.Context(), nil, job.Claim{
		Worker: "w", Now: testTime, Lease: time.Minute, Free: map[string]int{"orders": batch},
	})
	check(t, err)

	var settle []job.Settlement
	for _, j := range claimed {
		end := job.Ending{Outcome: job.Failed, FinishedAt: testTime.Add(time.Second)}
		end.Error.Message = "the mail server is down"
		settle = append(settle, j.Settle(end, nil))
	}

	recorded.forget()
	_, _, err = s.Exchange(t.Context(), settle, job.Claim{Now: testTime.Add(time.Second)})
	check(t, err)

	together := 0
	for _, text := range recorded.all() {
		if strings.Contains(text, "INSERT INTO dead_letters") {
			together += strings.Count(text, "(?")
		}
	}
	if together != batch {
		t.Errorf("the statements that store dead letters have room for %d, want %d", together, batch)
	}
}
