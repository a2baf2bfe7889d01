package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/stats"
)

var acting = []func(*kit){
	ReplayStartsTheNextRun, ReplayOnceNamesTheFirst, ReplayInParallelHappensOnce, ReplayKeepsHistory,
	ReplayOfRetryableAndCancelled, ReplayOfARefusedDeadLetter, ReplayNeedsAnEndedRun, ReplayOfAnUnknownJob,
	DiscardEndsAWaitingJob, DiscardResolvesADeadLetter, DiscardNeedsAWaitingJob, CancelFencesTheExecution,
	CancelEndsAWaitingJob, CancelNeedsALivingJob, PauseKeepsWhoWasFirst, ResumeOfAnUnknownQueue,
}

// conflict returns the *job.Conflict that err has to be.
func (k *kit) conflict(err error) *job.Conflict {
	k.Helper()

	var c *job.Conflict
	if !errors.As(err, &c) {
		k.Fatalf("got %v, want a conflict", err)
	}

	return c
}

// ReplayStartsTheNextRun: same id and payload, run 2, no attempts, available
// now, nothing left of the failure; the dead letter says who replayed it.
func ReplayStartsTheNextRun(k *kit) {
	was := k.dead(simple())
	k.pass(time.Hour)
	got, err := k.Replay(k.ctx, k.now, was.ID, 1, audit.Actor{Name: "eve"})
	k.check(err)

	want := was
	want.Run, want.State, want.DeadLetter, want.Attempts, want.Reason, want.Error = 2, job.Available, "", 0, "", job.ErrorInfo{}
	want.RunAt, want.ChangedAt, want.FinishedAt, want.Group = k.now, k.now, time.Time{}, 0
	k.same("the job", got, want)
	d := k.detail(was.ID)
	k.same("the stored job", d.Job, want)
	k.same("replays", d.Replays, []history.Replay{{Run: 1, State: job.Discarded, Reason: retry.AttemptsExhausted, Attempts: 1, At: k.now, By: "eve"}})
	k.same("the letter's replay", []any{d.DeadLetters[0].ReplayedAt, d.DeadLetters[0].ReplayedBy}, []any{k.now, "eve"})
	page, err := k.DeadLetters(k.ctx, filter.Filter{}, filter.Cursor{}, 10)
	k.check(err)
	k.same("open letters", len(page.DeadLetters), 0)
	k.same("totals", k.Snapshot().Totals, stats.Totals{Failed: 1, FailedPermanently: 1, Replayed: 1})
}

// ReplayOnceNamesTheFirst: a second replay of the same run changes nothing and
// says who was first and when, however far the job has come.
func ReplayOnceNamesTheFirst(k *kit) {
	was := k.dead(simple())
	at := k.now
	_, err := k.Replay(k.ctx, at, was.ID, 1, audit.Actor{Name: "eve"})
	k.check(err)
	k.settle(k.claim("orders", 1)[0], job.Failed) // with one attempt only: dead again
	k.pass(time.Minute)
	before := k.detail(was.ID)
	_, err = k.Replay(k.ctx, k.now, was.ID, 1, audit.Actor{Name: "adam"})
	c := k.conflict(err)
	k.same("first", []any{c.ReplayedBy, c.ReplayedAt, c.Job}, []any{"eve", at, before.Job})
	k.same("the sentence", c.Problem, "run 1 was replayed by eve at 2026-03-04 05:06:07 UTC; the job is discarded in run 2")
	k.same("the job", k.detail(was.ID), before)
}

// ReplayInParallelHappensOnce: of a hundred replays of one run at the same
// time, one happens.
func ReplayInParallelHappensOnce(k *kit) {
	was := k.dead(simple())

	errs := make([]error, 100)
	var people sync.WaitGroup
	for i := range errs {
		people.Go(func() { _, errs[i] = k.Replay(k.ctx, k.now, was.ID, 1, audit.Actor{Name: fmt.Sprint("person ", i)}) })
	}

	people.Wait()

	winner := k.detail(was.ID).Replays[0].By
	won := 0
	for i, err := range errs {
		if err == nil {
			won++

			k.same("the winner", fmt.Sprint("person ", i), winner)
			continue
		}

		k.same("who was first", k.conflict(err).ReplayedBy, winner)
	}

	k.same("replays that happened", won, 1)
	k.same("run", k.job(was.ID).Run, 2)
	k.same("jobs_replayed", k.Snapshot().Totals.Replayed, int64(1))
}

// ReplayKeepsHistory: attempts, dead letters and replays of every run stay.
func ReplayKeepsHistory(k *kit) {
	j := lasting(2)
	id := k.begin(j).ID
	k.restartExecution(id)

	for run := 1; run <= 3; run++ {
		for range 2 {
			k.settle(k.claim("orders", 1)[0], job.Failed)
			k.pass(time.Second)
		}

		_, err := k.Replay(k.ctx, k.now, id, run, audit.Actor{Name: "eve"})
		k.check(err)
	}

	k.restart()

	d := k.detail(id)
	var got []string
	for _, a := range d.Attempts {
		got = append(got, fmt.Sprintf("%d.%d %s", a.Run, a.Number, a.Outcome))
	}

	k.same("attempts", got, []string{"1.0 interrupted", "1.1 failed", "1.2 failed", "2.1 failed", "2.2 failed", "3.1 failed", "3.2 failed"})
	k.same("letters", len(d.DeadLetters), 3)
	k.same("replays", len(d.Replays), 3)

	for i := range 3 {
		k.same("runs", []int{d.DeadLetters[i].Run, d.Replays[i].Run}, []int{i + 1, i + 1})
	}
}

// restartExecution releases an active job without counting.
func (k *kit) restartExecution(id string) {
	k.Helper()
	k.settle(k.job(id), job.Interrupted)
}

// ReplayOfRetryableAndCancelled: a job that waits for a retry, or was
// cancelled, can be replayed too.
func ReplayOfRetryableAndCancelled(k *kit) {
	retrying := k.settle(k.begin(simple()), job.Failed)
	cancelled := k.add(simple())[0]
	_, err := k.Cancel(k.ctx, k.now, cancelled.ID, cancelled.Run, audit.Actor{Name: "eve"})
	k.check(err)

	for _, id := range []string{retrying.ID, cancelled.ID} {
		got, err := k.Replay(k.ctx, k.now, id, 1, audit.Actor{Name: "eve"})
		k.check(err)
		k.same("state", []any{got.State, got.Run, got.Reason}, []any{job.Available, 2, retry.Reason("")})
	}

	due, err := k.NextDue(k.ctx, k.now)
	k.check(err)
	k.same("NextDue", due, time.Time{})
}

// ReplayOfARefusedDeadLetter: a job whose dead letter was refused leaves the alarm.
func ReplayOfARefusedDeadLetter(k *kit) {
	j := k.begin(lasting(1))
	k.settleAs(j.Settle(k.ending(job.Failed), nil).Delivered(job.InDeadLetters(j.Queue, false)))
	_, err := k.Replay(k.ctx, k.now, j.ID, 1, audit.Actor{Name: "eve"})
	k.check(err)
	k.same("depth", k.Snapshot().Depths[job.StatusDLQFailed], int64(0))
	k.same("the letter's replay", k.detail(j.ID).DeadLetters[0].ReplayedBy, "eve")
	reasons, err := k.Counters.Reasons(k.ctx)
	k.check(err)
	k.same("reasons", len(reasons), 0)
}

// ReplayNeedsAnEndedRun: a job in any other state, and a run that does not
// exist, are conflicts that say so.
func ReplayNeedsAnEndedRun(k *kit) {
	active := k.begin(simple())
	waiting := k.add(simple())[0]
	for _, c := range []struct {
		id   string
		run  int
		want string
	}{
		{active.ID, 1, "run 1 is active; only a dead letter, a job that was cancelled or discarded, or one that waits for a retry can be replayed"},
		{waiting.ID, 1, "run 1 is available; only a dead letter, a job that was cancelled or discarded, or one that waits for a retry can be replayed"},
		{active.ID, 2, "the job has no run 2; it is active in run 1"},
	} {
		_, err := k.Replay(k.ctx, k.now, c.id, c.run, audit.Actor{Name: "eve"})
		k.same("the sentence", k.conflict(err).Problem, c.want)
	}

	k.same("jobs_replayed", k.Snapshot().Totals.Replayed, int64(0))
}

// ReplayOfAnUnknownJob: is job.ErrNotFound, as are the other acts.
func ReplayOfAnUnknownJob(k *kit) {
	id := job.NewID()
	_, replay := k.Replay(k.ctx, k.now, id, 1, audit.Actor{Name: "eve"})
	_, discard := k.Discard(k.ctx, k.now, id, 1, audit.Actor{Name: "eve"})

	_, cancel := k.Cancel(k.ctx, k.now, id, 1, audit.Actor{Name: "eve"})
	_, read := k.Job(k.ctx, id)
	for i, err := range []error{replay, discard, cancel, read} {
		if !errors.Is(err, job.ErrNotFound) {
			k.Errorf("act %d gave %v", i, err)
		}
	}
}

// DiscardEndsAWaitingJob: it is discarded by hand, without a dead letter, and
// counts as no failure.
func DiscardEndsAWaitingJob(k *kit) {
	j := k.add(simple())[0]
	k.pass(time.Second)
	got, err := k.Discard(k.ctx, k.now, j.ID, j.Run, audit.Actor{Name: "eve"})
	k.check(err)

	want := j
	want.State, want.DeadLetter, want.Reason, want.FinishedAt, want.ChangedAt = job.Discarded, job.DeadLetterTrashed, retry.Manual, k.now, k.now
	k.same("the job", got, want)
	k.same("the stored job", k.job(j.ID), want)
	k.same("totals", k.Snapshot().Totals, stats.Totals{})
	k.same("claimed", len(k.claim("orders", 5)), 0)
}

// DiscardResolvesADeadLetter: the dead letter is no longer open and says who
// discarded it; the job stays discarded and can still be replayed.
func DiscardResolvesADeadLetter(k *kit) {
	j := k.dead(simple())
	k.pass(time.Second)
	got, err := k.Discard(k.ctx, k.now, j.ID, j.Run, audit.Actor{Name: "eve"})
	k.check(err)
	k.same("the job", []any{got.State, got.DeadLetter, got.Reason}, []any{job.Discarded, job.DeadLetterTrashed, retry.Manual})
	deadLetter := k.detail(j.ID).DeadLetters[0]
	k.same("the letter", []any{deadLetter.DiscardedAt, deadLetter.DiscardedBy, deadLetter.Reason}, []any{k.now, "eve", retry.AttemptsExhausted})
	reasons, err := k.Counters.Reasons(k.ctx)
	k.check(err)
	k.same("reasons", len(reasons), 0)
	_, err = k.Discard(k.ctx, k.now, j.ID, j.Run, audit.Actor{Name: "eve"})
	k.conflict(err)
	_, err = k.Replay(k.ctx, k.now, j.ID, 1, audit.Actor{Name: "eve"})
	k.check(err)
}

// DiscardNeedsAWaitingJob: a job that runs or is over cannot be discarded.
func DiscardNeedsAWaitingJob(k *kit) {
	active := k.begin(simple())
	done := k.settle(k.begin(simple()), job.Succeeded)
	for _, j := range []job.Job{active, done} {
		_, err := k.Discard(k.ctx, k.now, j.ID, j.Run, audit.Actor{Name: "eve"})
		k.same("the job in the conflict", k.conflict(err).Job, j)
	}
}

// CancelFencesTheExecution: a running job is cancelled at once; its execution
// is recorded, does not count, and has lost its lease.
func CancelFencesTheExecution(k *kit) {
	j := k.begin(simple())
	k.pass(time.Second)
	got, err := k.Cancel(k.ctx, k.now, j.ID, j.Run, audit.Actor{Name: "eve"})
	k.check(err)
	k.same("the job", []any{got.State, got.Worker, got.LeaseUntil, got.FinishedAt}, []any{job.Cancelled, "", time.Time{}, k.now})
	k.same("attempts", k.detail(j.ID).Attempts, []job.Attempt{{
		Run: 1, Execution: 1, Worker: "worker-1", StartedAt: j.StartedAt, FinishedAt: k.now, Outcome: job.CancelledBy, DecidedBy: "manual:eve",
	}})
	stale, err := k.Extend(k.ctx, k.now, k.now.Add(time.Minute), []job.Token{j.Token})
	k.check(err)
	k.same("stale heartbeats", stale, []job.Token{j.Token})
	k.same("totals", k.Snapshot().Totals, stats.Totals{})
}

// CancelEndsAWaitingJob: scheduled, available, held and retryable jobs can be
// cancelled, and are not claimed any more.
func CancelEndsAWaitingJob(k *kit) {
	later := simple()
	later.RunAt = k.now.Add(time.Hour)
	retrying := k.settle(k.begin(simple()), job.Failed)
	held := k.add(simple())[0]
	_, _, err := k.Exchange(k.ctx, nil, job.Claim{Now: k.now, Free: map[string]int{"orders": 9}, Knows: func(string) bool { return false }})
	k.check(err)

	for _, id := range []string{k.add(later)[0].ID, k.add(simple())[0].ID, retrying.ID, held.ID} {
		got, err := k.Cancel(k.ctx, k.now, id, k.job(id).Run, audit.Actor{Name: "eve"})
		k.check(err)
		k.same("the job", []any{got.State, got.Held, got.Reason}, []any{job.Cancelled, false, retry.Manual})
	}

	k.pass(2 * time.Hour)
	k.same("claimed", len(k.claim("orders", 9)), 0)
	k.same("held", k.Snapshot().Depths[job.StatusHeld], int64(0))
}

// CancelNeedsALivingJob: what is over cannot be cancelled.
func CancelNeedsALivingJob(k *kit) {
	for _, j := range []job.Job{k.settle(k.begin(simple()), job.Succeeded), k.dead(simple())} {
		_, err := k.Cancel(k.ctx, k.now, j.ID, j.Run, audit.Actor{Name: "eve"})
		k.same("the job in the conflict", k.conflict(err).Job, j)
	}
}

// PauseKeepsWhoWasFirst: pausing a paused queue changes nothing; a queue can be
// paused before its first job, and is known from then on.
func PauseKeepsWhoWasFirst(k *kit) {
	at := k.now
	k.check(k.Pause(k.ctx, at, "new", audit.Actor{Name: "eve"}))
	k.pass(time.Minute)
	k.check(k.Pause(k.ctx, k.now, "new", audit.Actor{Name: "adam"}))
	queues, err := k.Counters.Queues(k.ctx, k.now, k.QueueNames())
	k.check(err)
	k.same("queues", len(queues), 1)
	k.same("the pause", []any{queues[0].Name, queues[0].PausedAt, queues[0].PausedBy}, []any{"new", at, "eve"})
	k.check(k.Resume(k.ctx, k.now, "new", audit.Actor{Name: "ana"}))
	queues, err = k.Counters.Queues(k.ctx, k.now, k.QueueNames())
	k.check(err)
	k.same("the pause", []any{queues[0].PausedAt, queues[0].PausedBy}, []any{time.Time{}, ""})
}

// ResumeOfAnUnknownQueue: is job.ErrNotFound; of one that was never paused,
// nothing.
func ResumeOfAnUnknownQueue(k *kit) {
	if err := k.Resume(k.ctx, k.now, "nowhere", audit.Actor{Name: "ana"}); !errors.Is(err, job.ErrNotFound) {
		k.Errorf("got %v", err)
	}

	k.add(in("a"))
	k.check(k.Resume(k.ctx, k.now, "a", audit.Actor{Name: "ana"}))
}
