package storetest

import (
	"errors"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/source"
)

// apart are the behaviours that keep what lies at a source apart from what is ours: a
// source takes nothing from anybody else, and nothing of it is removed as if it were ours.
var apart = []func(*kit){
	Retention_DeadLettersOfASourceTakeNoRoomFromOurs, Retention_TheNewestDeadLetterIsOneOfOurs,
	Retention_ASourceDoesNotHoldUpTheRemovalOfOurs, Retention_WhatLiesAtASourceHasNoAge, Retention_WhatDiedAgainAtItsSourceStays,
	Retention_AReplayUnderWayKeepsItsJob, Retention_WhatLeftItsSourceGoesByAge, Trash_ADiscardThatTheSourceWasNotToldOfStays,
	Trash_ADiscardThatTheSourceCarriedOutIsPurged,
}

// lying are records that lie at the source shop, each failed an hour ago.
func (k *kit) lying(n int) []source.Record {
	all := make([]source.Record, n)
	for i := range all {
		all[i] = k.deadAt(fmt.Sprint(i))
	}
	return all
}

// usage is how full the dead-letter queue is.
func (k *kit) usage() retention.Usage {
	k.Helper()
	u, err := k.LetterUsage(k.ctx, k.now)
	k.check(err)
	return u
}

// entries are the entries of the audit log about an action.
func (k *kit) entries(action string) []audit.Entry {
	k.Helper()
	list, err := k.Accounts.Audit(k.ctx, audit.Filter{Action: action}, 0, 100)
	k.check(err)
	return list.Entries
}

// Retention_DeadLettersOfASourceTakeNoRoomFromOurs: max_dead_letters bounds what is held
// here alone, and so do the fill and the forecast.
func Retention_DeadLettersOfASourceTakeNoRoomFromOurs(k *kit) {
	var own []string
	for range 3 {
		own = append(own, k.dead(simple()).ID)
	}
	k.mirror(20, k.lying(20)...)
	limits := retention.Limits{Count: 3}
	k.same("the fill", k.usage(), retention.Usage{Open: 3, LastDay: 3, Oldest: k.job(own[0]).ChangedAt, AtSources: 20})
	k.same("too many", k.foresee(limits, retention.Excess), retention.Outlook{Kind: retention.Excess})
	k.same("dead letters in the forecast", k.foresee(limits, retention.DeadLetters).Jobs, int64(3))
	k.pass(time.Minute)
	k.same("removed", k.sweep(limits), removed("", 0))
	k.pass(time.Second)
	k.dead(simple())
	k.same("too many with one more of our own", k.foresee(limits, retention.Excess).Soon, int64(1))
	k.pass(time.Minute)
	k.same("removed", k.sweep(limits), removed(retention.Excess, 1))
	if _, err := k.Job(k.ctx, own[0]); !errors.Is(err, job.ErrNotFound) {
		k.Errorf("the oldest of our own: %v", err)
	}
	k.same("dead letters of the source", len(k.all(filter.Filter{Source: "shop"}, 100)), 20)
	k.restart()
	k.same("the fill after a restart", []int64{k.usage().Open, k.usage().LastDay, k.usage().AtSources}, []int64{3, 3, 20})
}

// Retention_TheNewestDeadLetterIsOneOfOurs: it stays, however many newer ones lie at a
// source.
func Retention_TheNewestDeadLetterIsOneOfOurs(k *kit) {
	old, newest := k.dead(simple()), k.dead(simple())
	k.pass(time.Minute)
	r := k.deadAt("7")
	r.FailedAt = k.now
	k.mirror(1, r)
	k.pass(1000 * time.Hour)
	limits := retention.Limits{Ages: retention.Ages{retention.DeadLetters: time.Hour}}
	k.same("removed", k.sweep(limits), removed(retention.DeadLetters, 1))
	k.same("left", k.left(map[string]job.Job{"old": old, "newest": newest}), []string{"newest"})
}

// Retention_ASourceDoesNotHoldUpTheRemovalOfOurs: a record that failed long ago does not
// end an announcement of what is too many of our own.
func Retention_ASourceDoesNotHoldUpTheRemovalOfOurs(k *kit) {
	k.dead(simple())
	k.dead(simple())
	limits := retention.Limits{Count: 1}
	k.same("announced", k.foresee(limits, retention.Excess).Soon, int64(1))
	k.mirror(5, k.lying(5)...)
	k.same("removed", k.sweep(limits), removed(retention.Excess, 1))
}

// Retention_WhatLiesAtASourceHasNoAge: it is not removed, not counted again in its group,
// and the audit log does not grow.
func Retention_WhatLiesAtASourceHasNoAge(k *kit) {
	records := k.lying(5)
	jobs := k.mirror(5, records...)
	k.pass(1000 * day)
	limits := retention.Limits{Ages: retention.Ages{
		retention.Completed: time.Hour, retention.Cancelled: time.Hour, retention.Discarded: time.Hour, retention.DeadLetters: time.Hour,
	}}
	k.same("forecast", k.foresee(limits, retention.DeadLetters), retention.Outlook{Kind: retention.DeadLetters})
	for range 3 {
		k.pass(time.Minute)
		k.same("removed", k.sweep(limits), removed("", 0))
		k.mirror(0, records...)
	}
	k.same("status", k.job(jobs[0].ID).Status(), job.StatusDeadLetter)
	k.same("failures of its group", k.group(jobs[0]).Failures, int64(5))
	k.same("entries of the audit log", len(k.entries("retention.sweep")), 0)
}

// Retention_WhatDiedAgainAtItsSourceStays: the source has a newer record of the job, which
// was not read yet. The job is not counted as one that was returned.
func Retention_WhatDiedAgainAtItsSourceStays(k *kit) {
	r := k.deadAt("7")
	j := k.mirror(1, r)[0]
	_, err := k.Replay(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	k.answer(k.asked(1)[0], source.Changed, "it has died again since")
	k.pass(30 * day)
	limits := retention.Limits{Ages: retention.Ages{retention.Completed: time.Hour}}
	k.same("forecast", k.foresee(limits, retention.Completed).Soon, int64(0))
	k.same("removed", k.sweep(limits), removed("", 0))
	r.Witness, r.FailedAt = "2", k.now
	k.mirror(1, r)
	k.same("the job", []any{k.job(j.ID).Status(), k.job(j.ID).Run}, []any{job.StatusDeadLetter, 2})
}

// Retention_AReplayUnderWayKeepsItsJob: also in a later run, when the source had taken the
// run before.
func Retention_AReplayUnderWayKeepsItsJob(k *kit) {
	j := k.replayedAtSource("7")
	k.pass(time.Minute)
	r := k.deadAt("7")
	r.Witness, r.FailedAt = "2", k.now
	k.mirror(1, r)
	_, err := k.Replay(k.ctx, k.now, j.ID, 2, eve)
	k.check(err)
	k.pass(30 * day)
	limits := retention.Limits{Ages: retention.Ages{retention.Completed: time.Hour}}
	k.same("removed while it is asked for", k.sweep(limits), removed("", 0))
	act := k.asked(1)[0]
	k.same("removed while it is under way", k.sweep(limits), removed("", 0))
	k.answer(act, source.Done, "")
	k.pass(time.Hour + time.Second)
	k.same("removed when the source has it", k.sweep(limits).Of(retention.Completed), int64(1))
}

// Retention_WhatLeftItsSourceGoesByAge: as other discarded jobs do.
func Retention_WhatLeftItsSourceGoesByAge(k *kit) {
	j := k.mirror(1, k.deadAt("7"))[0]
	_, err := k.Vanished(k.ctx, k.now, "shop", []int64{j.Seq})
	k.check(err)
	k.pass(time.Hour + time.Second)
	limits := retention.Limits{Ages: retention.Ages{retention.Discarded: time.Hour}}
	k.same("forecast", k.foresee(limits, retention.Discarded).Soon, int64(1))
	k.same("removed", k.sweep(limits).Of(retention.Discarded), int64(1))
}

// Trash_ADiscardThatTheSourceWasNotToldOfStays: it is carried out when the source answers
// again, however long that takes, and the record never comes back as a dead letter.
func Trash_ADiscardThatTheSourceWasNotToldOfStays(k *kit) {
	r := k.deadAt("7")
	j := k.mirror(1, r)[0]
	_, err := k.Discard(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	k.pass(30 * day)
	limits := retention.Limits{Trash: time.Minute}
	k.same("forecast", k.foresee(limits, retention.Trash).Soon, int64(0))
	k.same("purged while it is asked for", k.sweep(limits), removed("", 0))
	act := k.asked(1)[0]
	k.restart()
	k.same("purged while it is under way", k.sweep(limits), removed("", 0))
	k.mirror(0, r)
	k.same("the job", k.job(j.ID).Status(), job.StatusTrashed)
	k.answer(act, source.Done, "")
	k.same("purged when the source carried it out", k.sweep(limits).Of(retention.Trash), int64(1))
}

// Trash_ADiscardThatTheSourceCarriedOutIsPurged: beside one that the source was not told of.
func Trash_ADiscardThatTheSourceCarriedOutIsPurged(k *kit) {
	jobs := k.mirror(3, k.lying(3)...)
	for _, j := range jobs {
		_, err := k.Discard(k.ctx, k.now, j.ID, 1, eve)
		k.check(err)
	}
	acts := k.asked(3)
	k.answer(acts[0], source.Done, "")
	k.answer(acts[1], source.Gone, "")
	k.pass(time.Hour)
	limits := retention.Limits{Trash: time.Minute}
	k.same("forecast", k.foresee(limits, retention.Trash).Soon, int64(2))
	k.same("purged", k.sweep(limits).Of(retention.Trash), int64(2))
	k.same("left", k.job(acts[2].JobID).Status(), job.StatusTrashed)
}
