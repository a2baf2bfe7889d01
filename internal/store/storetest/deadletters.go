package storetest

import (
	"errors"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/stats"
)

var deadLettering = []func(*kit){
	QuarantineIsADeadLetterAtOnce, QuarantineCanBeReplayed, MessageOfALiveJobIsARepeat, MessageOfAnEndedJobIsNew,
	SettleKeepsWhatARuleSaid, SettleKeepsTheCauseOfADeadLetter, SettleKeepsWhereADeadLetterWent, ForwardedDeadLetterIsStored,
	ForwardedDeadLetterCanBeRefusedAgain, ForwardedNeedsARefusedDeadLetter, UsageCountsOpenDeadLetters, FillOfTheDayFollowsTheFailure, PruneByAge, PruneByCount,
	PruneSparesTheNewest, PruneSparesWhatIsNotInTheQueue, PruneRemovesTheWholeJob,
}

// poison is an envelope that cannot be read.
func poison() job.Job {
	j := simple()
	j.Type, j.State, j.Reason = "babelqueue.envelope", job.Discarded, retry.MissingURN
	j.Error = job.ErrorInfo{Type: "envelope.missing_urn", Message: "it has neither job nor urn"}
	j.Payload, j.Envelope = []byte("{\xff"), []byte("{\xff")

	return j
}

// QuarantineIsADeadLetterAtOnce: a job that comes as discarded never ran, and
// its dead letter is open; no cycle is counted.
func QuarantineIsADeadLetterAtOnce(k *kit) {
	j := k.add(poison())[0]
	d := k.detail(j.ID)
	k.same("the job", d.Job, j)
	k.same("status", j.Status(), job.StatusDeadLetter)
	k.same("attempts", len(d.Attempts), 0)
	k.same("letters", d.DeadLetters, []job.DeadLetter{{
		JobID: j.ID, Run: 1, Reason: retry.MissingURN, Error: "it has neither job nor urn", Exception: "envelope.missing_urn",
		FailedAt: k.now, Queue: "orders",
	}})
	k.same("open letters", len(k.deadLetters(filter.Filter{}, 10)), 1)
	k.same("totals", k.Snapshot().Totals, stats.Totals{})
	k.same("depth", k.Snapshot().Depths[job.StatusDeadLetter], int64(1))
}

// QuarantineCanBeReplayed: as any dead letter can.
func QuarantineCanBeReplayed(k *kit) {
	j := k.add(poison())[0]
	got, err := k.Replay(k.ctx, k.now, j.ID, 1, audit.Actor{Name: "ana"})
	k.check(err)
	k.same("state", got.State, job.Available)
	k.same("payload", string(got.Payload), "{\xff")
	k.same("depth", k.Snapshot().Depths[job.StatusDeadLetter], int64(0))
}

// envelope is a job that came as one.
func envelope(id string) job.Job {
	j := simple()
	j.MessageID, j.Envelope = id, []byte(`{"meta":{"id":"`+id+`"}}`)
	return j
}

// MessageOfALiveJobIsARepeat: until the first job has ended it answers for
// every envelope with its message id in its queue, in one batch and later, but
// not for one that is set aside.
func MessageOfALiveJobIsARepeat(k *kit) {
	elsewhere := envelope("m1")
	elsewhere.Queue = "mail"
	done, err := k.Enqueue(k.ctx, k.now, []job.Job{envelope("m1"), envelope("m1"), elsewhere})
	k.check(err)
	k.same("the second is a repeat", done[1].Repeat, true)
	k.same("the first job", done[1].Job.ID, done[0].Job.ID)
	k.same("in another queue it is a repeat", done[2].Repeat, false)
	k.claim("orders", 1)
	later, err := k.Enqueue(k.ctx, k.now, []job.Job{envelope("m1")})
	k.check(err)
	k.same("while it runs it is a repeat", later[0].Repeat, true)
	k.same("the job that answers", later[0].Job.ID, done[0].Job.ID)
	k.same("its envelope", string(later[0].Job.Envelope), `{"meta":{"id":"m1"}}`)

	elsewhere.Queue = "third"
	bad := poison()
	bad.MessageID = "m1"
	others, err := k.Enqueue(k.ctx, k.now, []job.Job{elsewhere, bad})
	k.check(err)
	k.same("repeats in a third queue and of what is set aside", []bool{others[0].Repeat, others[1].Repeat}, []bool{false, false})
}

// MessageOfAnEndedJobIsNew: systems send a message again under its id.
func MessageOfAnEndedJobIsNew(k *kit) {
	first := k.begin(envelope("m1"))
	k.settle(first, job.Succeeded)
	done, err := k.Enqueue(k.ctx, k.now, []job.Job{envelope("m1")})
	k.check(err)
	k.same("it is a repeat", done[0].Repeat, false)
}

// SettleKeepsWhatARuleSaid: the note of an attempt is kept.
func SettleKeepsWhatARuleSaid(k *kit) {
	j := k.begin(simple())
	e := k.ending(job.Failed)
	e.Ruling, e.Note = &retry.Ruling{Rule: "calm", Action: retry.DeadLetter}, "rule hasty failed: no such field, skipped"
	got := k.settleAs(j.Settle(e, nil))
	k.same("reason", got.Reason, retry.RuleDecided)
	attempt := k.detail(j.ID).Attempts[0]
	k.same("who decided", attempt.DecidedBy, "rule:calm")
	k.same("note", attempt.Note, e.Note)
}

// SettleKeepsTheCauseOfADeadLetter: whether the last attempt timed out or was lost.
func SettleKeepsTheCauseOfADeadLetter(k *kit) {
	for _, outcome := range []job.Outcome{job.TimedOut, job.Lost} {
		j := k.settle(k.begin(lasting(1)), outcome)
		k.same("cause", k.detail(j.ID).DeadLetters[0].Cause, outcome)
	}
}

// SettleKeepsWhereADeadLetterWent: a dead letter that was forwarded is kept here as well.
func SettleKeepsWhereADeadLetterWent(k *kit) {
	j := k.begin(lasting(1))
	k.settleAs(j.Settle(k.ending(job.Failed), nil).Delivered(job.Delivery{ForwardedTo: "https://hooks.example", ForwardedAt: k.now}))
	deadLetter := k.detail(j.ID).DeadLetters[0]
	k.same("where", deadLetter.ForwardedTo, "https://hooks.example")
	k.same("when", deadLetter.ForwardedAt, k.now)
	k.same("open letters", len(k.deadLetters(filter.Filter{}, 10)), 1)
}

// refused is a job whose dead letter was not accepted.
func (k *kit) refused() job.Job {
	k.Helper()
	return k.settleAs(k.begin(lasting(1)).Settle(k.ending(job.Failed), nil).Delivered(job.Delivery{Problem: "the hook answered 500"}))
}

// ForwardedDeadLetterIsStored: a refused dead letter that is accepted later is an open
// one like any other, and the alarm ends; what was counted stays.
func ForwardedDeadLetterIsStored(k *kit) {
	j := k.refused()
	k.same("problem", k.detail(j.ID).DeadLetters[0].Problem, "the hook answered 500")
	k.pass(time.Minute)
	got, err := k.Forwarded(k.ctx, k.now, j.ID, 1, job.Delivery{ForwardedTo: "https://hooks.example", ForwardedAt: k.now}, audit.Actor{Name: "eve"})
	k.check(err)
	k.same("status", got.Status(), job.StatusDeadLetter)
	deadLetter := k.detail(j.ID).DeadLetters[0]
	k.same("refused", deadLetter.Refused, false)
	k.same("problem", deadLetter.Problem, "")
	k.same("where", deadLetter.ForwardedTo, "https://hooks.example")
	k.same("open letters", len(k.deadLetters(filter.Filter{}, 10)), 1)
	depths := k.Snapshot().Depths
	k.same("depths", []int64{depths[job.StatusDLQFailed], depths[job.StatusDeadLetter], depths["discarded"]}, []int64{0, 1, 1})
	k.same("jobs_dlq_failed", k.Snapshot().Totals.DLQFailed, int64(1))
	reasons, err := k.Counters.Reasons(k.ctx)
	k.check(err)
	k.same("reasons", reasons, []filter.ReasonCount{{Reason: retry.AttemptsExhausted, Count: 1}})
}

// ForwardedDeadLetterCanBeRefusedAgain: it stays where it is, with the new problem.
func ForwardedDeadLetterCanBeRefusedAgain(k *kit) {
	j := k.refused()
	got, err := k.Forwarded(k.ctx, k.now, j.ID, 1, job.Delivery{Problem: "the hook answered 410"}, audit.Actor{Name: "eve"})
	k.check(err)
	k.same("status", got.Status(), job.StatusDLQFailed)
	k.same("problem", k.detail(j.ID).DeadLetters[0].Problem, "the hook answered 410")
}

// ForwardedNeedsARefusedDeadLetter: of this run, and not yet accepted.
func ForwardedNeedsARefusedDeadLetter(k *kit) {
	j := k.refused()
	_, err := k.Forwarded(k.ctx, k.now, j.ID, 2, job.Delivery{}, audit.Actor{Name: "eve"})
	k.conflict(err)
	_, err = k.Forwarded(k.ctx, k.now, j.ID, 1, job.Delivery{}, audit.Actor{Name: "eve"})
	k.check(err)
	_, err = k.Forwarded(k.ctx, k.now, j.ID, 1, job.Delivery{}, audit.Actor{Name: "eve"})
	k.conflict(err)
}

// UsageCountsOpenDeadLetters: how many, since when, and how many within a day.
func UsageCountsOpenDeadLetters(k *kit) {
	fill := func() retention.Usage {
		f, err := k.Sweep.DeadLetterUsage(k.ctx, k.now)
		k.check(err)
		return f
	}
	k.same("the fill", fill(), retention.Usage{})
	oldest := k.now
	k.dead(simple())
	k.pass(25 * time.Hour)
	k.dead(simple())
	k.refused()
	k.same("the fill", fill(), retention.Usage{Open: 2, LastDay: 1, Oldest: oldest})
}

// FillOfTheDayFollowsTheFailure: a dead letter counts by when its job failed, whatever
// was before and after.
func FillOfTheDayFollowsTheFailure(k *kit) {
	j := simple()
	j.Policy = policy(1)
	j = k.begin(j)
	k.pass(30 * time.Hour)
	j = k.settle(j, job.Failed)
	day := func(what string, want int64) {
		k.Helper()
		f, err := k.Sweep.DeadLetterUsage(k.ctx, k.now)
		k.check(err)
		k.same(what, f.LastDay, want)
	}

	k.pass(20 * time.Hour)
	day("failed 20 hours ago", 1)
	k.restart()
	day("after a restart", 1)
	k.discard(j.ID)
	day("discarded", 0)

	_, err := k.Restore(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	day("restored", 1)
	k.pass(5 * time.Hour)
	day("failed 25 hours ago", 0)

	_, err = k.Replay(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	k.pass(-5 * time.Hour)
	day("replayed", 0)
}

// PruneByAge: dead letters that are older than the retention says are removed.
func PruneByAge(k *kit) {
	old := k.dead(simple())
	k.pass(time.Hour)
	young := k.dead(simple())
	done, err := k.Sweep.Prune(k.ctx, k.now.Add(time.Hour), retention.Limits{Ages: retention.Ages{retention.DeadLetters: 90 * time.Minute}, Count: 1})
	k.check(err)
	k.same("removed", done, removed(retention.DeadLetters, 1))

	if _, err := k.Job(k.ctx, old.ID); !errors.Is(err, job.ErrNotFound) {
		k.Errorf("the old job: %v", err)
	}

	k.same("the young one", k.job(young.ID), young)
	k.same("depth", k.Snapshot().Depths[job.StatusDeadLetter], int64(1))
}

// PruneByCount: the oldest of too many are removed, in as many transactions as
// it takes.
func PruneByCount(k *kit) {
	const n = 1203

	jobs := many(n)
	for i := range jobs {
		jobs[i].Policy = policy(1)
	}

	k.add(jobs...)

	var settle []job.Settlement
	for _, j := range k.claim("orders", n) {
		settle = append(settle, j.Settle(k.ending(job.Failed), nil))
	}

	k.exchange(settle, "", 0)

	limits := retention.Limits{Count: 2}
	k.same("announced", k.foresee(limits, retention.OverCount).Soon, int64(n-2))
	done, err := k.Sweep.Prune(k.ctx, k.now.Add(time.Second), limits)
	k.check(err)
	k.same("removed", done, removed(retention.OverCount, n-2))
	left := k.deadLetters(filter.Filter{}, 10)
	k.same("left", len(left), 2)
	k.same("the newest", left[0].JobID, k.all(filter.Filter{}, 10)[0].ID)
	k.same("depths", k.Snapshot().Depths[job.StatusDeadLetter], int64(2))
	reasons, err := k.Counters.Reasons(k.ctx)
	k.check(err)
	k.same("reasons", reasons, []filter.ReasonCount{{Reason: retry.AttemptsExhausted, Count: 2}})
}

// PruneSparesTheNewest: however old it is.
func PruneSparesTheNewest(k *kit) {
	k.dead(simple())
	newest := k.dead(simple())
	done, err := k.Sweep.Prune(k.ctx, k.now.Add(1000*time.Hour), retention.Limits{Ages: retention.Ages{retention.DeadLetters: time.Hour}})
	k.check(err)
	k.same("removed", done, removed(retention.DeadLetters, 1))
	k.same("left", k.deadLetters(filter.Filter{}, 10)[0].JobID, newest.ID)
}

// PruneSparesWhatIsNotInTheQueue: refused dead letters, replayed jobs, others.
func PruneSparesWhatIsNotInTheQueue(k *kit) {
	k.refused()
	replayed := k.dead(simple())
	_, err := k.Replay(k.ctx, k.now, replayed.ID, 1, audit.Actor{Name: "ana"})
	k.check(err)
	k.add(simple())

	limits := retention.Limits{Ages: retention.Ages{retention.DeadLetters: time.Hour}, Count: 1}
	k.foresee(limits, retention.OverCount)
	done, err := k.Sweep.Prune(k.ctx, k.now.Add(1000*time.Hour), limits)
	k.check(err)
	k.same("removed", done, removed(retention.DeadLetters, 0))
	k.same("jobs", len(k.all(filter.Filter{}, 10)), 3)
}

// PruneRemovesTheWholeJob: with its earlier runs; its key can be used again.
func PruneRemovesTheWholeJob(k *kit) {
	j := simple()
	j.Key = "order-1"
	old := k.dead(j)
	_, err := k.Replay(k.ctx, k.now, old.ID, 1, audit.Actor{Name: "ana"})
	k.check(err)
	k.settle(k.claim("orders", 1)[0], job.Failed)
	k.pass(time.Second)
	k.dead(simple())
	done, err := k.Sweep.Prune(k.ctx, k.now.Add(time.Hour), retention.Limits{Ages: retention.Ages{retention.DeadLetters: time.Minute}})
	k.check(err)
	k.same("removed", done, removed(retention.DeadLetters, 1))
	again, err := k.Enqueue(k.ctx, k.now, []job.Job{j})
	k.check(err)
	k.same("the key is a repeat", again[0].Repeat, false)
	k.same("what is known of the new job", k.detail(again[0].Job.ID), history.Detail{Job: again[0].Job})
}
