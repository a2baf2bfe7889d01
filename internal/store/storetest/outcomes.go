package storetest

import (
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
)

// outcomes is what becomes of the runs that an operation started, and what
// follows from it.
var outcomes = []func(*kit){
	Operation_CanaryPauses, Operation_GuardPauses, Operation_OutcomesAreCounted, Operation_RestoredRunsAreNotDropped,
}

// Operation_CanaryPauses: after the canary a person decides, once.
func Operation_CanaryPauses(k *kit) {
	k.deads(150)
	o := k.operate(operation.Replay, filter.Filter{})
	k.run(o.ID, operation.Pace{Canary: -1})
	o = k.workAll(o.ID)
	k.same("the canary", []any{o.State, o.Done, o.Pace.Canary}, []any{operation.Paused, int64(operation.UsualCanary), int64(operation.UsualCanary)})
	_, err := k.Operations.Resume(k.ctx, k.now, o.ID, ana)
	k.check(err)
	k.same("the rest", k.workAll(o.ID).Done, int64(150))
}

// Operation_GuardPauses: when most of the replays that ended last failed for
// good as before, the operation pauses and says so. A person may go on.
func Operation_GuardPauses(k *kit) {
	k.deads(40)
	o := k.operate(operation.Replay, filter.Filter{})
	k.run(o.ID, operation.Pace{Guard: true})
	k.work(o.ID, 12)
	k.pass(time.Second)
	k.dieAll(5, job.Succeeded)
	k.dieAll(5, job.Failed)
	k.same("five of ten", k.work(o.ID, 1).Operation.State, operation.Running)
	k.dieAll(1, job.Failed)
	w := k.work(o.ID, 10)
	k.same("six of eleven", []any{w.Operation.State, w.Operation.Why, w.Items},
		[]any{operation.Paused, "http.503 came back in 6 of the last 11 replays", 0})
	k.pass(time.Second)
	_, err := k.Operations.Resume(k.ctx, k.now, o.ID, ana)
	k.check(err)
	k.same("goes on", k.work(o.ID, 10).Items, 10)
}

// Operation_OutcomesAreCounted: how a replayed run ends is written to its item
// and to the meter, in the transaction that ends it; later runs of the job are
// not counted.
func Operation_OutcomesAreCounted(k *kit) {
	k.deads(5)
	o := k.operate(operation.Replay, filter.Filter{})
	k.run(o.ID, operation.Pace{})
	k.workAll(o.ID)
	k.pass(time.Second)
	k.dieAll(2, job.Succeeded)
	relapsed := k.dieAll(1, job.Failed)[0]
	cancelled := k.claim("orders", 1)[0]
	_, err := k.Cancel(k.ctx, k.now, cancelled.ID, cancelled.Run, sam)
	k.check(err)

	meters := func() []int64 {
		o := k.operation(o.ID)
		return []int64{o.Succeeded, o.Relapsed, o.Dropped, o.Unsettled()}
	}
	k.same("the meters", meters(), []int64{2, 1, 1, 1})
	k.same("relapsed items", len(k.items(o.ID, operation.ItemFilter{Outcome: operation.RunRelapsed})), 1)
	k.same("unsettled items", len(k.items(o.ID, operation.ItemFilter{Outcome: operation.RunUnsettled})), 1)
	_, err = k.Replay(k.ctx, k.now, relapsed.ID, 2, sam)
	k.check(err)
	k.dieAll(1, job.Succeeded)
	k.dieAll(1, job.Succeeded)
	k.same("the meters", meters(), []int64{3, 1, 1, 0})
	k.restart()
	k.same("the meters", meters(), []int64{3, 1, 1, 0})
}

// Operation_RestoredRunsAreNotDropped: a run that was discarded and came back
// out of the trash is open again, however it ends then; one that had failed for
// good before stays what it was.
func Operation_RestoredRunsAreNotDropped(k *kit) {
	k.deads(3)
	o := k.operate(operation.Replay, filter.Filter{})
	k.run(o.ID, operation.Pace{})
	k.workAll(o.ID)
	k.pass(time.Second)
	relapsed := k.dieAll(1, job.Failed)[0]
	items := k.items(o.ID, operation.ItemFilter{Outcome: operation.RunUnsettled})
	all := []string{relapsed.ID, items[0].Job.ID, items[1].Job.ID}
	meters := func() []int64 {
		o := k.operation(o.ID)
		return []int64{o.Succeeded, o.Relapsed, o.Dropped, o.Unsettled()}
	}

	for _, id := range all {
		k.discard(id)
	}

	k.same("the meters with three in the trash", meters(), []int64{0, 1, 2, 0})
	_, err := k.Restore(k.ctx, k.now, all[1], 2, eve)
	k.check(err)
	k.same("the meters after one came back", meters(), []int64{0, 1, 1, 1})
	restore := k.operate(operation.Restore, filter.Filter{})
	k.run(restore.ID, operation.Pace{})
	k.workAll(restore.ID)
	k.same("the meters after all came back", meters(), []int64{0, 1, 0, 2})
	k.same("unsettled items", len(k.items(o.ID, operation.ItemFilter{Outcome: operation.RunUnsettled})), 2)
	k.dieAll(2, job.Succeeded)
	k.same("the meters at the end", meters(), []int64{2, 1, 0, 0})
}
