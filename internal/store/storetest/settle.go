package storetest

import (
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/stats"
)

var settling = []func(*kit){
	TextsOfAnyBytes,
	SettleSuccess, SettleRetry, SettleRetryAtOnce, SettleDeadLetter, SettleRefusedDeadLetter, SettleDiscard, SettleInterrupted,
	SettleSuccessClearsTheError, SettleKeepsTheExplanation, SettleCountsByTheMinute,
	SettleIsFencedByANewerClaim, SettleIsFencedByCancel, SettleTwiceIsStale, SettleOfStrangersIsStale,
	SettleAndClaimShareATransaction, SettleManyAtOnce, SettleUnderAPolicyBeyondTheLimit,
}

// SettleRetryAtOnce: a job whose retry is due when its attempt ends is available, and
// waits for a worker alone. It counts as requeued, and keeps its error. That a clock
// is more exact than the store changes nothing.
func SettleRetryAtOnce(k *kit) {
	k.now = k.now.Add(789 * time.Nanosecond)
	j := simple()
	j.Policy.Strategy = retry.Immediate
	before := k.Snapshot().Totals.Requeued
	got := k.settle(k.begin(j), job.Failed)
	k.same("the job", []any{got.State, got.Attempts, got.Error.Type, got.RunAt}, []any{job.Available, 1, "http.503", k.now.Truncate(time.Microsecond)})
	k.same("requeued", k.Snapshot().Totals.Requeued-before, int64(1))
	k.same("waiting for their time", k.Snapshot().Depths[job.Status(job.Retryable)], int64(0))
	next := k.add(simple())[0]
	k.same("claimed", ids(k.claim("orders", 2)), []string{got.ID, next.ID})
}

// SettleSuccess: the job is completed, its attempt recorded, the success
// counted; its lease is gone.
func SettleSuccess(k *kit) {
	j := k.begin(simple())
	k.pass(time.Second)
	got := k.settle(j, job.Succeeded)
	want := j
	want.State, want.Attempts, want.FinishedAt, want.ChangedAt = job.Completed, 1, k.now, k.now
	want.Worker, want.LeaseUntil, want.LastSeen = "", time.Time{}, time.Time{}
	k.same("the job", got, want)
	k.same("attempts", k.detail(j.ID).Attempts, []job.Attempt{{
		Run: 1, Number: 1, Execution: 1, Worker: "worker-1", StartedAt: j.StartedAt, FinishedAt: k.now,
		Outcome: job.Succeeded, Action: retry.Complete, DecidedBy: "handler:success",
	}})
	k.same("totals", k.Snapshot().Totals, stats.Totals{Succeeded: 1})
}

// SettleRetry: the job is retryable, with its next time, its error and the
// whole attempt; a failure and a requeueing are counted.
func SettleRetry(k *kit) {
	j := k.begin(simple())
	k.pass(time.Second)
	s := j.Settle(k.ending(job.Failed), nil)
	got := k.settleAs(s)
	k.same("state", got.State, job.Retryable)
	k.same("RunAt", got.RunAt, k.now.Add(time.Second))
	k.same("Attempts", got.Attempts, 1)
	k.same("Error", got.Error, job.ErrorInfo{Type: "http.503", Message: "Service Unavailable"})
	k.same("FinishedAt", got.FinishedAt, time.Time{})
	k.same("attempts", k.detail(j.ID).Attempts, []job.Attempt{s.Attempt})
	k.same("totals", k.Snapshot().Totals, stats.Totals{Failed: 1, Requeued: 1})
}

// SettleDeadLetter: the job is discarded, and its dead letter is in the list of
// open ones, in the same transaction.
func SettleDeadLetter(k *kit) {
	j := k.dead(simple())
	k.same("status", j.Status(), job.StatusDeadLetter)
	k.same("FinishedAt", j.FinishedAt, k.now)
	want := job.DeadLetter{
		JobID: j.ID, Run: 1, Reason: retry.AttemptsExhausted, Error: "Service Unavailable", Exception: "http.503",
		FailedAt: k.now, Queue: "orders", Attempts: 1,
	}
	k.same("dead letters", k.detail(j.ID).DeadLetters, []job.DeadLetter{want})
	page, err := k.DeadLetters(k.ctx, filter.Filter{}, filter.Cursor{}, 10)
	k.check(err)
	k.same("open letters", page, filter.DeadLetterList{DeadLetters: []filter.DeadLetterRow{{DeadLetter: want, Job: j}}})
	k.same("totals", k.Snapshot().Totals, stats.Totals{Failed: 1, FailedPermanently: 1})
}

// SettleRefusedDeadLetter: a job whose dead letter was not accepted stays, marked
// so, and counts as jobs_dlq_failed; its dead letter is recorded as refused and is
// not open.
func SettleRefusedDeadLetter(k *kit) {
	j := k.begin(lasting(1))
	got := k.settleAs(j.Settle(k.ending(job.Failed), nil).Delivered(job.InDeadLetters(j.Queue, false)))
	k.same("status", got.Status(), job.StatusDLQFailed)

	deadLetters := k.detail(j.ID).DeadLetters
	if len(deadLetters) != 1 || !deadLetters[0].Refused {
		k.Errorf("letters are %+v", deadLetters)
	}

	page, err := k.DeadLetters(k.ctx, filter.Filter{}, filter.Cursor{}, 10)
	k.check(err)
	k.same("open letters", len(page.DeadLetters), 0)
	k.same("totals", k.Snapshot().Totals, stats.Totals{Failed: 1, FailedPermanently: 1, DLQFailed: 1})
	k.same("depth", k.Snapshot().Depths[job.StatusDLQFailed], int64(1))
}

// SettleDiscard: a job that ends without a dead letter is discarded with the
// reason.
func SettleDiscard(k *kit) {
	j := k.begin(simple())
	e := k.ending(job.Failed)
	e.Answer.Code = retry.CodeDiscard
	got := k.settleAs(j.Settle(e, nil))
	k.same("status", got.Status(), job.Status(job.Discarded))
	k.same("reason", got.Reason, retry.HandlerDiscard)
	k.same("letters", len(k.detail(j.ID).DeadLetters), 0)
	k.same("totals", k.Snapshot().Totals, stats.Totals{Failed: 1, FailedPermanently: 1})
}

// SettleInterrupted: a job released by a graceful stop is available again; the
// execution is recorded and does not count.
func SettleInterrupted(k *kit) {
	k.settle(k.begin(simple()), job.Failed)
	k.pass(time.Second)
	j := k.claim("orders", 1)[0]
	got := k.settle(j, job.Interrupted)
	k.same("state", got.State, job.Available)
	k.same("Attempts", got.Attempts, 1)
	k.same("Error", got.Error.Type, "http.503")
	attempts := k.detail(j.ID).Attempts
	k.same("outcome", attempts[1].Outcome, job.Interrupted)
	k.same("number", attempts[1].Number, 0)
	k.same("totals", k.Snapshot().Totals, stats.Totals{Failed: 1, Requeued: 1})
	k.same("executions", k.claim("orders", 1)[0].Execution, 3)
}

// SettleSuccessClearsTheError: the error on the job is that of a job that is
// not yet well.
func SettleSuccessClearsTheError(k *kit) {
	j := k.settle(k.begin(simple()), job.Panicked)
	k.pass(time.Second)
	got := k.settle(k.claim("orders", 1)[0], job.Succeeded)
	k.same("Error", got.Error, job.ErrorInfo{})
	k.same("Attempts", got.Attempts, 2)
	k.same("number of attempts kept", len(k.detail(j.ID).Attempts), 2)
}

// SettleKeepsTheExplanation: every step of the delay's calculation is kept, and
// who decided.
func SettleKeepsTheExplanation(k *kit) {
	j := simple()
	j.Policy = retry.Default()
	s := k.begin(j).Settle(k.ending(job.TimedOut), func() float64 { return 1.0 / 3 })
	k.settleAs(s)
	k.restart()
	got := k.detail(s.ID).Attempts[0]
	k.same("the attempt", got, s.Attempt)
	k.same("who decided", got.DecidedBy, "policy:retry:1/3")
}

// SettleCountsByTheMinute: a settlement counts in the minute in which the
// execution ended, over all queues and by queue.
func SettleCountsByTheMinute(k *kit) {
	for i := range 3 {
		j := k.begin(in(fmt.Sprint("q", i)))
		k.settle(j, job.Succeeded)
		k.pass(time.Minute)
	}

	k.pass(57 * time.Minute) // the first is 60 minutes ago: out; the others are in
	minutes, err := k.Counters.LastHour(k.ctx, k.now)
	k.check(err)

	want := make([]stats.Totals, 60)
	want[0].Succeeded, want[1].Succeeded = 1, 1
	k.same("the last hour", minutes, want)
	queues, err := k.Counters.Queues(k.ctx, k.now, k.QueueNames())
	k.check(err)
	k.same("queue q1's hour", queues[1].LastHour[0], stats.Totals{Succeeded: 1})
	k.same("queue q1's totals", queues[1].Totals, stats.Totals{Succeeded: 1})
}

// SettleIsFencedByANewerClaim: a worker that lost its lease settles nothing of
// the execution that followed.
func SettleIsFencedByANewerClaim(k *kit) {
	old := k.begin(simple())
	k.settle(old, job.Interrupted)
	fresh := k.claim("orders", 1)[0]
	before := k.Snapshot()
	_, stale := k.exchange([]job.Settlement{old.Settle(k.ending(job.Succeeded), nil)}, "", 0)
	k.same("stale", stale, []job.Token{old.Token})
	k.same("the job", k.job(old.ID), fresh)
	k.same("attempts", len(k.detail(old.ID).Attempts), 1)
	k.same("the snapshot", k.Snapshot(), before)
}

// SettleIsFencedByCancel: a cancelled execution settles nothing, also after a
// replay.
func SettleIsFencedByCancel(k *kit) {
	j := k.begin(simple())
	_, err := k.Cancel(k.ctx, k.now, j.ID, j.Run, audit.Actor{Name: "eve"})
	k.check(err)
	late := j.Settle(k.ending(job.Succeeded), nil)
	_, stale := k.exchange([]job.Settlement{late}, "", 0)
	k.same("stale", stale, []job.Token{j.Token})
	_, err = k.Replay(k.ctx, k.now, j.ID, 1, audit.Actor{Name: "eve"})
	k.check(err)
	again := k.claim("orders", 1)[0]
	_, stale = k.exchange([]job.Settlement{late}, "", 0)
	k.same("stale after the replay", stale, []job.Token{j.Token})
	k.same("the job", k.job(j.ID), again)
}

// SettleTwiceIsStale: the second settlement of one execution changes nothing,
// in the same exchange or a later one.
func SettleTwiceIsStale(k *kit) {
	j := k.begin(simple())
	s := j.Settle(k.ending(job.Succeeded), nil)
	for range 2 {
		_, stale := k.exchange([]job.Settlement{s, s}, "", 0)
		if k.Snapshot().Totals.Succeeded != 1 || len(stale) == 0 {
			k.Errorf("%d stale, totals %+v", len(stale), k.Snapshot().Totals)
		}
	}

	k.same("attempts", len(k.detail(j.ID).Attempts), 1)
}

// SettleOfStrangersIsStale: an unknown job, or another run or execution of a
// known one, changes nothing; the other settlements of the exchange do.
func SettleOfStrangersIsStale(k *kit) {
	j := k.begin(simple())

	good := j.Settle(k.ending(job.Succeeded), nil)
	var strangers []job.Settlement
	for _, token := range []job.Token{{ID: job.NewID(), Run: 1, Execution: 1}, {ID: j.ID, Run: 2, Execution: 1}, {ID: j.ID, Run: 1, Execution: 2}} {
		s := good
		s.Token = token
		strangers = append(strangers, s)
	}

	_, stale := k.exchange(append(strangers, good), "", 0)
	k.same("stale", stale, []job.Token{strangers[0].Token, strangers[1].Token, strangers[2].Token})
	k.same("the job's state", k.job(j.ID).State, job.Completed)
}

// SettleAndClaimShareATransaction: a job that is released can be claimed in the
// same exchange, as a new execution.
func SettleAndClaimShareATransaction(k *kit) {
	j := k.begin(simple())
	claimed, stale := k.exchange([]job.Settlement{j.Settle(k.ending(job.Interrupted), nil)}, "orders", 1)
	k.same("stale", len(stale), 0)
	k.same("claimed", ids(claimed), []string{j.ID})
	k.same("execution", claimed[0].Execution, 2)
	k.settle(claimed[0], job.Succeeded)
}

// SettleManyAtOnce: an exchange of many settlements of every kind does what
// single ones do.
func SettleManyAtOnce(k *kit) {
	const n = 300

	jobs := many(n)
	for i := range jobs {
		jobs[i].Policy = policy(1 + i%2)
	}

	k.add(jobs...)

	var settle []job.Settlement
	outcomes := []job.Outcome{job.Succeeded, job.Failed, job.Interrupted, job.Lost, job.Succeeded}
	for i, j := range k.claim("orders", n) {
		settle = append(settle, j.Settle(k.ending(outcomes[i%5]), nil).Delivered(job.InDeadLetters(j.Queue, i%4 != 0)))
	}

	_, stale := k.exchange(settle, "", 0)
	k.same("stale", len(stale), 0)

	var want stats.Totals
	for _, s := range settle {
		want = want.Add(stats.Of(s))
		d := k.detail(s.ID)
		k.same("state", d.Job.State, s.State)
		k.same("letter", d.Job.DeadLetter, s.DeadLetter)
		k.same("attempts", d.Attempts, []job.Attempt{s.Attempt})
	}

	k.same("totals", k.Snapshot().Totals, want)
}

// TextsOfAnyBytes: whatever bytes a producer, a handler or a person sends as
// text, the job is enqueued, settled, searched and read. Bytes that no database
// keeps as text (NUL, and what is not UTF-8) come back as U+FFFD; payloads stay
// as they are.
func TextsOfAnyBytes(k *kit) {
	const dirty, clean = "a\x00b\xffc", "a\uFFFDb\uFFFDc"
	j := simple()
	j.Type, j.TraceID, j.Note, j.Payload = "email."+dirty, dirty, dirty, []byte(dirty)
	j.Policy = policy(1)
	running := k.begin(j)
	e := k.ending(job.Failed)
	e.Error, e.Trace, e.Note = job.ErrorInfo{Type: dirty, Message: dirty}, dirty, dirty
	dead := k.settleAs(running.Settle(e, nil).Delivered(job.Delivery{Problem: dirty}))
	k.same("the texts of the job", []string{dead.Type, dead.TraceID, dead.Note, dead.Error.Type, dead.Error.Message},
		[]string{"email." + clean, clean, clean, clean, clean})
	k.same("the payload", string(dead.Payload), dirty)
	d := k.detail(dead.ID)
	k.same("the attempt", []string{d.Attempts[0].Error.Message, d.Attempts[0].Trace, d.Attempts[0].Note}, []string{clean, clean, clean})
	k.same("the letter", []string{d.DeadLetters[0].Error, d.DeadLetters[0].Problem}, []string{clean, clean})
	k.fill()
	k.same("what a search finds", ids(k.all(filter.Filter{Error: clean}, 10)), []string{dead.ID})
	_, err := k.Groups.Note(k.ctx, k.now, d.Group.Fingerprint, dirty, audit.Actor{Name: "ana"})
	k.check(err)
	k.check(k.Accounts.Record(k.ctx, audit.Entry{At: k.now, Actor: audit.Actor{Name: dirty}, Action: "job.reveal", Subject: dirty}))
	page, err := k.Accounts.Audit(k.ctx, audit.Filter{}, 0, 1)
	k.check(err)
	k.same("the audit log", []string{page.Entries[0].Actor.Name, page.Entries[0].Subject}, []string{clean, clean})
	_, err = k.Replay(k.ctx, k.now, dead.ID, 1, audit.Actor{Name: dirty})
	k.check(err)
	k.same("who replayed it", k.detail(dead.ID).Replays[0].By, clean)
}

// SettleUnderAPolicyBeyondTheLimit: a job that was stored with more attempts than a
// policy may have today is read, runs and is replayed as before.
func SettleUnderAPolicyBeyondTheLimit(k *kit) {
	j := k.begin(lasting(1_000_000_000_000_000_000))
	k.same("its state", k.settle(j, job.Failed).State, job.Retryable)
	next, err := k.Replay(k.ctx, k.now, j.ID, j.Run, audit.Actor{Name: "eve"})
	k.check(err)
	k.same("its policy in the next run", next.Policy.MaxAttempts, 1_000_000_000_000_000_000)
}
