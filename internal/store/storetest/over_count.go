package storetest

import (
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retention"
)

var overCount = []func(*kit){
	PruneByCountRemovesOnlyWhatWasAnnounced, PruneByCountKeepsItsNoticeOverARestart, PruneByCountTakesItsNoticeBack,
	PruneByCountSparesWhatWasNotAnnounced, PruneByCountSparesWhatCameBack, PruneByCountSparesWhatBulkRestored,
	PruneByCountSparesWhatWasForwarded, PruneByCountSparesWhatCameLate, PruneByCountSparesWhatAnOperationHeld,
}

// PruneByCountRemovesOnlyWhatWasAnnounced: dead letters that came after the forecast stay
// until the sweep that follows the next one.
func PruneByCountRemovesOnlyWhatWasAnnounced(k *kit) {
	limits := retention.Limits{Count: 2}

	k.deads(4)
	k.same("removed before a forecast", k.sweep(limits), removed("", 0))
	k.foresee(limits, retention.OverCount)
	k.pass(time.Second)
	k.deads(6)
	k.same("removed after a forecast", k.sweep(limits), removed(retention.OverCount, 2))
	k.same("removed without a new forecast", k.sweep(limits), removed("", 0))
	k.same("announced", k.foresee(limits, retention.OverCount).Soon, int64(6))
	k.same("removed at last", k.sweep(limits), removed(retention.OverCount, 6))
}

// PruneByCountKeepsItsNoticeOverARestart: what was announced before the start goes, and what
// came back since does not.
func PruneByCountKeepsItsNoticeOverARestart(k *kit) {
	limits := retention.Limits{Count: 2}
	all := k.deads(6)
	k.discard(all[1].ID)
	k.same("announced", k.foresee(limits, retention.OverCount).Soon, int64(3))
	k.restart()
	_, err := k.Restore(k.ctx, k.now, all[1].ID, 1, eve)
	k.check(err)
	k.same("removed after the restart", k.sweep(limits), removed(retention.OverCount, 1))
	k.announcedFirst(limits, 3)
}

// PruneByCountTakesItsNoticeBack: once no dead letters are too many, what was announced stays,
// also when they become too many again.
func PruneByCountTakesItsNoticeBack(k *kit) {
	limits := retention.Limits{Count: 2}

	k.deads(4)
	k.same("announced", k.foresee(limits, retention.OverCount).Soon, int64(2))
	k.same("announced with a higher limit", k.foresee(retention.Limits{Count: 9}, retention.OverCount).Soon, int64(0))
	k.announcedFirst(limits, 2)
}

// PruneByCountSparesWhatWasNotAnnounced: when those that were announced are gone,
// others that are too many meanwhile do not go in their place.
func PruneByCountSparesWhatWasNotAnnounced(k *kit) {
	limits := retention.Limits{Count: 2}
	dead := k.deads(3)
	k.same("announced", k.foresee(limits, retention.OverCount).Soon, int64(1))
	k.discard(dead[0].ID)
	k.pass(time.Second)
	k.deads(2)
	k.same("removed", k.sweep(limits), removed("", 0))
}

// announcedFirst fails unless a sweep removes nothing of so many dead letters that are too
// many and came since the forecast, and the sweep after another one removes them.
func (k *kit) announcedFirst(l retention.Limits, n int64) {
	k.Helper()
	k.same("removed before it was announced", k.sweep(l), removed("", 0))
	k.same("announced", k.foresee(l, retention.OverCount).Soon, n)
	k.same("removed afterwards", k.sweep(l), removed(retention.OverCount, n))
}

// PruneByCountSparesWhatCameBack: a dead letter that is restored has its old place among
// those that were announced, and is announced itself first. Older ones go as announced.
func PruneByCountSparesWhatCameBack(k *kit) {
	limits := retention.Limits{Count: 2}
	dead := k.deads(5)
	k.discard(dead[1].ID)
	k.same("announced", k.foresee(limits, retention.OverCount).Soon, int64(2))
	_, err := k.Restore(k.ctx, k.now, dead[1].ID, 1, eve)
	k.check(err)
	k.same("removed", k.sweep(limits), removed(retention.OverCount, 1))
	k.announcedFirst(limits, 2)
}

// PruneByCountSparesWhatBulkRestored: also when an operation restores dead, and
// whether it has ended when the forecast is made.
func PruneByCountSparesWhatBulkRestored(k *kit) {
	limits := retention.Limits{Count: 2}

	k.deads(6)
	k.workAll(k.started(operation.Discard))
	k.pass(time.Second)
	k.deads(4)
	restore := k.started(operation.Restore)
	k.work(restore, 3)
	k.same("announced while it runs", k.foresee(limits, retention.OverCount).Soon, int64(3)) // the newest stays
	k.workAll(restore)
	k.announcedFirst(limits, 8)
}

// started is an operation on all jobs that it fits, which runs.
func (k *kit) started(kind operation.Kind) int64 {
	k.Helper()
	o := k.operate(kind, filter.Filter{})
	k.run(o.ID, operation.Pace{})
	return o.ID
}

// PruneByCountSparesWhatWasForwarded: a dead letter that was refused and is accepted
// keeps the time of its failure.
func PruneByCountSparesWhatWasForwarded(k *kit) {
	limits := retention.Limits{Count: 2}
	j := k.refused()
	k.pass(time.Second)
	k.deads(4)
	k.same("announced", k.foresee(limits, retention.OverCount).Soon, int64(2))
	_, err := k.Forwarded(k.ctx, k.now, j.ID, 1, job.Delivery{ForwardedTo: "https://hooks.example", ForwardedAt: k.now}, eve)
	k.check(err)
	k.announcedFirst(limits, 3)
}

// PruneByCountSparesWhatCameLate: a failure can be written down some time after it.
func PruneByCountSparesWhatCameLate(k *kit) {
	limits := retention.Limits{Count: 2}
	j := k.begin(lasting(1))
	late := j.Settle(k.ending(job.Failed), nil)
	k.pass(time.Second)
	k.deads(4)
	k.same("announced", k.foresee(limits, retention.OverCount).Soon, int64(2))
	k.settleAs(late)
	k.announcedFirst(limits, 3)
}

// PruneByCountSparesWhatAnOperationHeld: dead letters of an operation that ended are
// announced first.
func PruneByCountSparesWhatAnOperationHeld(k *kit) {
	limits := retention.Limits{Count: 2}

	k.deads(3)
	replay := k.started(operation.Replay)
	k.pass(time.Second)
	k.deads(4)
	k.same("announced while it runs", k.foresee(limits, retention.OverCount).Soon, int64(3))
	_, err := k.Operations.Abort(k.ctx, k.now, replay, sam)
	k.check(err)
	k.announcedFirst(limits, 5)
}
