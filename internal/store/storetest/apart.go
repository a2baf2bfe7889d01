package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/source"
)

// apart are the behaviours that keep the dead letters of a source apart from our own: a
// source takes no room from ours, and none of its dead letters is removed as if it were ours.
var apart = []func(*kit){
	Retention_DeadLettersOfASourceTakeNoRoomFromOurs, Retention_TheNewestDeadLetterIsOneOfOurs,
	Retention_ASourceDoesNotHoldUpTheRemovalOfOurs, Retention_OursThatAreNoLongerTooManyStay, Retention_WhatIsAtASourceHasNoAge, Retention_WhatDiedAgainAtItsSourceStays,
	Retention_AReplayUnderWayKeepsItsJob, Retention_WhatLeftItsSourceGoesByAge, Trash_ADiscardThatTheSourceWasNotToldOfStays,
	Trash_ADiscardThatTheSourceCarriedOutIsPurged,
	Source_ItsQueuesTakeNoPlaceFromOurs, Source_QueuesBeyondItsBoundShareOne, Source_AReplayFromTheSharedQueueNamesItsRecord,
	Source_ItsQueuesTakeNoPlaceFromAnotherSource, Source_ItsQueuesAndTypesTakeNoLabelFromOurs, Source_ItsCausesTakeNoGroupFromOurs,
}

// lying are records that are at the source shop, each failed an hour ago.
func (k *kit) present(n int) []source.Record {
	all := make([]source.Record, n)
	for i := range all {
		all[i] = k.deadAt(fmt.Sprint(i))
	}

	return all
}

// usage is how full the dead-letter queue is.
func (k *kit) usage() retention.Usage {
	k.Helper()
	u, err := k.Sweep.DeadLetterUsage(k.ctx, k.now)
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

	k.mirror(20, k.present(20)...)

	limits := retention.Limits{Count: 3}

	k.same("the fill", k.usage(), retention.Usage{Open: 3, LastDay: 3, Oldest: k.job(own[0]).ChangedAt, AtSources: 20})
	k.same("too many", k.foresee(limits, retention.OverCount), retention.Outlook{Kind: retention.OverCount})
	k.same("dead letters in the forecast", k.foresee(limits, retention.DeadLetters).Jobs, int64(3))
	k.pass(time.Minute)
	k.same("removed", k.sweep(limits), removed("", 0))
	k.pass(time.Second)
	k.dead(simple())
	k.same("too many with one more of our own", k.foresee(limits, retention.OverCount).Soon, int64(1))
	k.pass(time.Minute)
	k.same("removed", k.sweep(limits), removed(retention.OverCount, 1))

	if _, err := k.Job(k.ctx, own[0]); !errors.Is(err, job.ErrNotFound) {
		k.Errorf("the oldest of our own: %v", err)
	}

	k.same("dead letters of the source", len(k.all(filter.Filter{Source: "shop"}, 100)), 20)
	k.restart()
	k.same("the fill after a restart", []int64{k.usage().Open, k.usage().LastDay, k.usage().AtSources}, []int64{3, 3, 20})
}

// Retention_TheNewestDeadLetterIsOneOfOurs: it stays, however many newer ones are at a
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
	k.same("announced", k.foresee(limits, retention.OverCount).Soon, int64(1))
	k.mirror(5, k.present(5)...)
	k.same("removed", k.sweep(limits), removed(retention.OverCount, 1))
}

// Retention_OursThatAreNoLongerTooManyStay: however many dead letters are at a source, those
// that were announced stay when others have left before the sweep.
func Retention_OursThatAreNoLongerTooManyStay(k *kit) {
	deadLetters := k.deads(3)
	limits := retention.Limits{Count: 2}
	k.same("announced", k.foresee(limits, retention.OverCount).Soon, int64(1))
	k.mirror(5, k.present(5)...)
	k.discard(deadLetters[2].ID)
	k.same("removed", k.sweep(limits), removed("", 0))
}

// Retention_WhatIsAtASourceHasNoAge: it is not removed, not counted again in its group,
// and the audit log does not grow.
func Retention_WhatIsAtASourceHasNoAge(k *kit) {
	records := k.present(5)
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
	k.completed(simple())

	limits := retention.Limits{Ages: retention.Ages{retention.Completed: time.Hour}}
	k.same("forecast, with one of our own", k.foresee(limits, retention.Completed).Soon, int64(1))
	k.same("removed", k.sweep(limits), removed("", 0))
	r.VersionToken, r.FailedAt = "2", k.now
	k.mirror(1, r)
	k.same("the job", []any{k.job(j.ID).Status(), k.job(j.ID).Run}, []any{job.StatusDeadLetter, 2})
}

// Retention_AReplayUnderWayKeepsItsJob: also in a later run, when the source had taken the
// run before.
func Retention_AReplayUnderWayKeepsItsJob(k *kit) {
	j := k.replayedAtSource("7")
	k.pass(time.Minute)
	r := k.deadAt("7")
	r.VersionToken, r.FailedAt = "2", k.now
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
	_, err := k.Mirror.Vanished(k.ctx, k.now, "shop", []int64{j.Seq})
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
	jobs := k.mirror(3, k.present(3)...)
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

// inQueues are records of a source in as many queues, and of as many types and causes.
func (k *kit) inQueues(n int) []source.Record {
	all := k.present(n)
	for i := range all {
		name := "n" + strings.Map(func(r rune) rune { return r + 'a' - '0' }, fmt.Sprintf("%04d", i)) // digits are alike to a fingerprint
		all[i].Queue, all[i].Type, all[i].Error.Type = name, "type."+name, "Error"+name
	}

	return all
}

// Source_ItsQueuesTakeNoPlaceFromOurs: neither before they come nor after.
func Source_ItsQueuesTakeNoPlaceFromOurs(k *kit) {
	k.manyQueues(queueLimit - 1)
	k.mirror(250, k.inQueues(250)...)
	k.restart()
	k.add(in("last"))
	k.same("the name under which the last queue is counted", k.Counters.Label("last"), "last")
	_, err := k.Enqueue(k.ctx, k.now, []job.Job{in("late")})
	k.full(err, "late")
	k.same("records, with one that came later", len(k.mirror(1, k.deadAt("9999"))), 251)
}

// Source_QueuesBeyondItsBoundShareOne: everything is shown, the queue of each record stays
// in its metadata, and queues that have their places go on.
func Source_QueuesBeyondItsBoundShareOne(k *kit) {
	records := k.inQueues(130)
	records[129].Meta = []byte(`{"queue":"x","tries":12345678901234567890}`)
	k.mirror(130, records...)
	k.restart()
	k.mirror(0, records...)
	k.same("queues", len(k.QueueNames()), 101)
	shared := k.all(filter.Filter{Queue: source.Overflow("shop")}, 100)
	k.same("jobs in the shared queue", len(shared), 30)

	meta := map[string]string{}
	for _, j := range shared {
		d := k.detail(j.ID)
		meta[d.Mirrored.Key] = string(d.Job.Meta)
	}

	k.same("metadata", []string{meta["100"], meta["129"]},
		[]string{`{"queue":"` + records[100].Queue + `"}`, `{"queue":"x","source_queue":"` + records[129].Queue + `","tries":12345678901234567890}`})
	again := k.deadAt("more")
	again.Queue = records[7].Queue
	k.mirror(1, again)
	k.same("jobs in a queue with a place", len(k.all(filter.Filter{Queue: source.Queue("shop", again.Queue)}, 10)), 2)
	k.same("dead letters", k.Snapshot().Depths[job.StatusDeadLetter], int64(131))
}

// Source_AReplayFromTheSharedQueueNamesItsRecord: an act finds its record by its key.
func Source_AReplayFromTheSharedQueueNamesItsRecord(k *kit) {
	records := k.inQueues(101)
	k.mirror(101, records...)
	j := k.all(filter.Filter{Queue: source.Overflow("shop")}, 10)[0]
	_, err := k.Replay(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	act := k.asked(1)[0]
	k.same("the act", []any{act.Key, act.Place, act.VersionToken}, []any{records[100].Key, records[100].Place, records[100].VersionToken})
	k.answer(act, source.Done, "")
	k.pass(time.Minute)

	r := records[100]
	r.VersionToken, r.FailedAt = "2", k.now
	k.mirror(1, r)
	got := k.job(j.ID)
	k.same("when it failed again", []any{got.Queue, got.Status(), got.Run}, []any{source.Overflow("shop"), job.StatusDeadLetter, 2})
}

// Source_ItsQueuesTakeNoPlaceFromAnotherSource.
func Source_ItsQueuesTakeNoPlaceFromAnotherSource(k *kit) {
	k.mirror(150, k.inQueues(150)...)
	_, err := k.Mirror.Update(k.ctx, k.now, "mail", k.inQueues(5))
	k.check(err)

	for _, j := range k.all(filter.Filter{Source: "mail"}, 10) {
		k.same("shared", j.Queue == source.Overflow("mail"), false)
	}
}

// Source_ItsQueuesAndTypesTakeNoLabelFromOurs: what grows with the names tells ours apart
// as if there were no source, and what is counted in is counted out.
func Source_ItsQueuesAndTypesTakeNoLabelFromOurs(k *kit) {
	for page := range 3 {
		records := k.inQueues(1500)[page*500 : (page+1)*500]
		k.mirror(500, records...)
	}

	k.same("types of our own", k.Counters.CountedTypes(), 0)

	own := in("orders")
	own.Type = "type.of.ours"
	k.dead(own)
	k.same("the queue of our own", k.Counters.Label("orders"), "orders")
	k.restart()
	facets, err := k.Counters.Facets(k.ctx, filter.Filter{Status: job.StatusDeadLetter, Queue: "orders"})
	k.check(err)
	k.same("types of dead letters", facets.Types, []filter.NameCount{{Name: "type.of.ours", Count: 1}})
	facets, err = k.Counters.Facets(k.ctx, filter.Filter{Status: job.StatusDeadLetter, Queue: source.Overflow("shop")})
	k.check(err)
	k.same("types of the source beyond its places", facets.Types, []filter.NameCount{{Name: "other", Count: 1400}})

	gone := k.all(filter.Filter{Source: "shop"}, 100)
	seqs := make([]int64, len(gone))
	for i, j := range gone {
		seqs[i] = j.Seq
	}

	_, err = k.Mirror.Vanished(k.ctx, k.now, "shop", seqs)
	k.check(err)
	k.same("dead letters", k.Snapshot().Depths[job.StatusDeadLetter], int64(1))
}

// Source_ItsCausesTakeNoGroupFromOurs: a source has a tenth as many beside ours.
func Source_ItsCausesTakeNoGroupFromOurs(k *kit) {
	before := k.Groups.Size()
	for page := range 3 {
		k.mirror(500, k.inQueues(1500)[page*500:(page+1)*500]...)
	}

	k.same("groups that count against ours, with the one for all others", k.Groups.Size()-before, 1)
	k.same("open groups", k.Snapshot().OpenGroups, int64(1001))
	k.restart()
	k.same("groups after a restart", []any{k.Groups.Size() - before, k.Snapshot().OpenGroups}, []any{1, int64(1001)})
}
