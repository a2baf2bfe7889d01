package storetest

import (
	"errors"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retention"
	"redrive/internal/retry"
)

var trashing = []func(*kit){
	RestoreBringsADeadLetterBack, RestoreBringsARefusedDeadLetterBack, RestoreBringsWhatWaitsBack, RestoreNeedsTheTrash,
	RestoreHappensOnce, RestoreOfAHeldJobIsAvailable, ReplayTakesAJobOutOfTheTrash, TrashIsListed, TrashIsPurgedByAge, TrashLeavesNoNumberToOthers,
	TrashHoldsNoJobThatItsPolicyDiscarded, TrashWaitsForOperations, TrashTellsWhoDiscarded,
}

// discard puts a job into the trash.
func (k *kit) discard(id string) job.Job {
	k.Helper()
	j, err := k.Discard(k.ctx, k.now, id, k.job(id).Run, eve)
	k.check(err)
	return j
}

// comesBack discards a job a minute later, restores it after another hour, and
// fails unless everything is as it was before.
func (k *kit) comesBack(id string) {
	k.Helper()
	before, depths := k.detail(id), k.Snapshot().Depths
	reasons, err := k.Counters.Reasons(k.ctx)
	k.check(err)
	k.pass(time.Minute)
	k.same("status in the trash", k.discard(id).Status(), job.StatusTrashed)
	k.same("in the trash", k.Snapshot().Depths[job.StatusTrashed], int64(1))
	k.pass(time.Hour)
	got, err := k.Restore(k.ctx, k.now, id, before.Job.Run, audit.Actor{Name: "ana"})
	k.check(err)
	k.same("the job", got, before.Job)
	k.same("what is known of it", k.detail(id), before)
	k.same("depths", k.Snapshot().Depths, depths)
	k.restart()
	k.same("depths after a restart", k.Snapshot().Depths, depths)
	after, err := k.Counters.Reasons(k.ctx)
	k.check(err)
	k.same("reasons", after, reasons)
}

// RestoreBringsADeadLetterBack: the dead letter is open again, at its old place in
// the list, with its old reason, and it no longer counts as discarded.
func RestoreBringsADeadLetterBack(k *kit) {
	j := k.dead(simple())
	k.pass(time.Second)
	k.dead(simple())
	list := k.deadLetters(filter.Filter{}, 10)
	k.comesBack(j.ID)
	k.same("open letters", k.deadLetters(filter.Filter{}, 10), list)
}

// RestoreBringsARefusedDeadLetterBack: it is refused again, with its problem, and no
// dead letter is open.
func RestoreBringsARefusedDeadLetterBack(k *kit) {
	j := k.refused()
	k.comesBack(j.ID)
	k.same("open letters", len(k.deadLetters(filter.Filter{}, 10)), 0)
}

// RestoreBringsWhatWaitsBack: an available job is available, a scheduled and a
// retryable one wait for their old times, and are claimed when these have come.
func RestoreBringsWhatWaitsBack(k *kit) {
	later := in("later")
	later.RunAt = k.now.Add(90 * time.Minute)
	scheduled := k.add(later)[0]

	retrying := k.settle(k.begin(in("again")), job.Failed)
	available := k.add(in("now"))[0]
	for _, j := range []job.Job{scheduled, retrying, available} {
		k.comesBack(j.ID)
	}

	k.pass(time.Hour)

	for _, j := range []job.Job{scheduled, retrying, available} {
		k.same("claimed from "+j.Queue, ids(k.claim(j.Queue, 5)), []string{j.ID})
	}
}

// RestoreNeedsTheTrash: a job that is not there, in the run that the caller
// saw, is a conflict that says where it is; an unknown one is job.ErrNotFound.
func RestoreNeedsTheTrash(k *kit) {
	j := k.add(simple())[0]
	_, err := k.Restore(k.ctx, k.now, j.ID, 1, eve)
	k.same("the sentence", k.conflict(err).Problem, "run 1 is not in the trash; the job is available in run 1")
	k.discard(j.ID)
	_, err = k.Restore(k.ctx, k.now, j.ID, 2, eve)
	k.same("the sentence", k.conflict(err).Problem, "run 2 is not in the trash; the job is trashed in run 1")

	_, err = k.Restore(k.ctx, k.now, job.NewID(), 1, eve)
	if !errors.Is(err, job.ErrNotFound) {
		k.Errorf("an unknown job gave %v", err)
	}

	k.same("the job", k.job(j.ID).Status(), job.StatusTrashed)
}

// RestoreHappensOnce: the second one is a conflict, and counts nothing.
func RestoreHappensOnce(k *kit) {
	j := k.dead(simple())
	k.discard(j.ID)
	_, err := k.Restore(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	_, err = k.Restore(k.ctx, k.now, j.ID, 1, eve)
	k.conflict(err)
	reasons, err := k.Counters.Reasons(k.ctx)
	k.check(err)
	k.same("reasons", reasons, []filter.ReasonCount{{Reason: retry.AttemptsExhausted, Count: 1}})
}

// RestoreOfAHeldJobIsAvailable: in the meantime a handler may have come; where
// none has, the next claim holds the job again.
func RestoreOfAHeldJobIsAvailable(k *kit) {
	j := k.add(simple())[0]
	none := job.Claim{Now: k.now, Lease: time.Minute, Free: map[string]int{"orders": 9}, Knows: func(string) bool { return false }}
	_, _, err := k.Exchange(k.ctx, nil, none)
	k.check(err)
	k.same("before", k.job(j.ID).Status(), job.StatusHeld)
	k.discard(j.ID)
	got, err := k.Restore(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	k.same("after", got.Status(), job.Status(job.Available))
	_, _, err = k.Exchange(k.ctx, nil, none)
	k.check(err)
	k.same("after the next claim", k.job(j.ID).Status(), job.StatusHeld)
}

// ReplayTakesAJobOutOfTheTrash: the next run starts as after any other end; the
// dead letter says that it was replayed, no longer that it was discarded.
func ReplayTakesAJobOutOfTheTrash(k *kit) {
	j := k.dead(simple())
	k.discard(j.ID)
	got, err := k.Replay(k.ctx, k.now, j.ID, 1, audit.Actor{Name: "ana"})
	k.check(err)
	k.same("the job", []any{got.State, got.Run, got.DeadLetter}, []any{job.Available, 2, job.NoDeadLetter})
	deadLetter := k.detail(j.ID).DeadLetters[0]
	k.same("the letter", []any{deadLetter.ReplayedBy, deadLetter.DiscardedBy, deadLetter.DiscardedAt}, []any{"ana", "", time.Time{}})
	k.same("in the trash", k.Snapshot().Depths[job.StatusTrashed], int64(0))
	_, err = k.Restore(k.ctx, k.now, j.ID, 1, eve)
	k.conflict(err)
	_, err = k.Discard(k.ctx, k.now, j.ID, 2, eve)
	k.check(err)
	_, err = k.Restore(k.ctx, k.now, j.ID, 2, eve)
	k.check(err)
}

// TrashIsListed: newest first, with who discarded each job, when, and where it
// was.
func TrashIsListed(k *kit) {
	deadLetter, waiting := k.dead(simple()), k.add(in("mail"))[0]
	k.discard(deadLetter.ID)
	at := k.now
	k.pass(time.Second)
	k.discard(waiting.ID)
	page, err := k.Jobs(k.ctx, filter.Filter{Status: job.StatusTrashed}, filter.Cursor{}, 10)
	k.check(err)
	k.same("the trash", ids(page.Jobs), []string{waiting.ID, deadLetter.ID})
	was, err := k.Trashed(k.ctx, append(page.Jobs, k.add(simple())...))
	k.check(err)
	k.same("where they were", was, map[int64]history.Trashed{
		deadLetter.Seq: {At: at, By: "eve", State: job.Discarded, DeadLetter: job.DeadLetterStored, Reason: retry.AttemptsExhausted},
		waiting.Seq:    {At: k.now, By: "eve", State: job.Available},
	})
}

// TrashIsPurgedByAge: with everything that is known of the jobs, in as many
// transactions as it takes; what came later stays.
func TrashIsPurgedByAge(k *kit) {
	const n = 501
	for _, j := range k.add(many(n)...) {
		_, err := k.Discard(k.ctx, k.now, j.ID, j.Run, eve)
		k.check(err)
	}

	old := k.dead(simple())
	k.discard(old.ID)
	k.pass(time.Hour)
	young := k.dead(simple())
	k.discard(young.ID)
	done, err := k.Sweep.Prune(k.ctx, k.now.Add(time.Hour), retention.Limits{Trash: 90 * time.Minute})
	k.check(err)
	k.same("removed", done, removed(retention.Trash, n+1))

	if _, err := k.Job(k.ctx, old.ID); !errors.Is(err, job.ErrNotFound) {
		k.Errorf("the old job: %v", err)
	}

	k.same("left", k.Snapshot().Depths.Jobs(), int64(1))
	k.same("in the trash", k.Snapshot().Depths[job.StatusTrashed], int64(1))
	_, err = k.Restore(k.ctx, k.now, young.ID, 1, eve)
	k.check(err)
}

// TrashWaitsForOperations: what an operation that runs or is paused is about to
// bring back is not purged under its hands, however much there is; what an
// operation was aborted over is.
func TrashWaitsForOperations(k *kit) {
	const n = 510
	k.deads(n)
	discard := k.operate(operation.Discard, filter.Filter{})
	k.run(discard.ID, operation.Pace{})
	k.workAll(discard.ID)
	k.pass(time.Second)
	loose := k.dead(simple())
	k.discard(loose.ID)
	k.pass(time.Hour)
	restore := k.operate(operation.Restore, filter.Filter{})
	k.run(restore.ID, operation.Pace{Rate: 2})
	k.work(restore.ID, 3)
	_, err := k.Operations.Pause(k.ctx, k.now, restore.ID, sam)
	k.check(err)

	purge := func() int {
		done, err := k.Sweep.Prune(k.ctx, k.now, retention.Limits{Trash: time.Minute})
		k.check(err)
		return int(done.Of(retention.Trash))
	}
	k.same("purged beside the operation", purge(), 0)
	_, err = k.Operations.Resume(k.ctx, k.now, restore.ID, sam)
	k.check(err)
	k.work(restore.ID, 500)
	k.same("purged beside the operation", purge(), 0)
	_, err = k.Operations.Abort(k.ctx, k.now, restore.ID, sam)
	k.check(err)
	k.same("purged after the operation", purge(), n+1-503)
	k.same("restored", k.Snapshot().Depths[job.StatusDeadLetter], int64(503))
}

// TrashTellsWhoDiscarded: of a job that an operation discarded, its history names
// the operation and who started it; and so does what the log keeps when the job is
// gone.
func TrashTellsWhoDiscarded(k *kit) {
	dead := k.deads(1)[0]
	o := k.operate(operation.Discard, filter.Filter{})
	k.run(o.ID, operation.Pace{})
	k.workAll(o.ID)
	k.same("what operations did", k.detail(dead.ID).Bulk, []operation.Act{{Operation: o.ID, Kind: operation.Discard, Run: 1, At: k.now, By: "ana"}})
	was, err := k.Trashed(k.ctx, []job.Job{dead})
	k.check(err)
	k.same("where it was", was[dead.Seq].Bulk, o.ID)
	_, err = k.Sweep.Prune(k.ctx, k.now.Add(time.Hour), retention.Limits{Trash: time.Minute})
	k.check(err)
	log, err := k.Accounts.Audit(k.ctx, audit.Filter{Subject: dead.ID}, 0, 10)
	k.check(err)
	k.same("entries", len(log.Entries), 1)
	k.same("the entry", []string{log.Entries[0].Actor.Name, log.Entries[0].After},
		[]string{"the retention", "discarded by ana with operation 1 at 2026-03-04 05:06:07 UTC"})
}

// TrashLeavesNoNumberToOthers: what remembers a purged job is never taken for a job
// that was enqueued after it.
func TrashLeavesNoNumberToOthers(k *kit) {
	old := k.dead(simple())
	k.discard(old.ID)
	_, err := k.Sweep.Prune(k.ctx, k.now.Add(time.Hour), retention.Limits{Trash: time.Minute})
	k.check(err)
	k.restart()

	if young := k.add(simple())[0]; young.Seq <= old.Seq {
		k.Errorf("the next job has the number %d, the purged one had %d", young.Seq, old.Seq)
	}
}

// TrashHoldsNoJobThatItsPolicyDiscarded: those end without a dead letter, and no
// person has to look after them.
func TrashHoldsNoJobThatItsPolicyDiscarded(k *kit) {
	j := lasting(1)
	j.Policy.OnExhaustion = retry.Discard
	got := k.settle(k.begin(j), job.Failed)
	k.same("status", got.Status(), job.Status(job.Discarded))
	_, err := k.Restore(k.ctx, k.now, got.ID, 1, eve)
	k.conflict(err)
	done, err := k.Sweep.Prune(k.ctx, k.now.Add(time.Hour), retention.Limits{Trash: time.Minute})
	k.check(err)
	k.same("removed", done, removed(retention.DeadLetters, 0))
}
