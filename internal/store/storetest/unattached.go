package storetest

import (
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retention"
	"redrive/internal/source"
)

// unattaching are the behaviours of dead letters whose source is no longer attached.
var unattaching = []func(*kit){
	Unattached_ADiscardIsRedrivesAlone, Unattached_WhatTheSourceStillHasComesBack, Unattached_WhatDiedAgainIsARunMore,
	Unattached_AnOperationDiscards, Unattached_OthersAreStillAsked,
}

// unattached is the one source of the contract that is not attached.
const unattached = "closed"

// Attached reports whether a source is attached, as far as the contract goes: stores are
// opened with it.
func Attached(name string) bool { return name != unattached }

// ofUnattached takes over records of the source that is not attached, from when it was, and
// returns their jobs.
func (k *kit) ofUnattached(want int, records ...source.Record) []job.Job {
	k.Helper()
	n, err := k.Mirror.Update(k.ctx, k.now, unattached, records)
	k.check(err)
	k.same("jobs that came or changed", n, want)

	return k.all(filter.Filter{Source: unattached}, 100)
}

// Unattached_ADiscardIsRedrivesAlone: nothing waits for the source, and the trash is purged.
func Unattached_ADiscardIsRedrivesAlone(k *kit) {
	j := k.ofUnattached(1, k.deadAt("7"))[0]
	_, err := k.Discard(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	k.same("the job", k.job(j.ID).Status(), job.StatusTrashed)

	waiting, err := k.Sources.Waiting(k.ctx, unattached)
	k.check(err)
	k.same("an act waits for the source", waiting, false)

	m := k.detail(j.ID).Mirrored
	act := m.Acts[0]
	k.same("the ledger", []any{m.Present, len(m.Acts), act.Kind, act.State, act.By, act.EndedAt.Equal(k.now)},
		[]any{false, 1, source.Discard, source.NotTold, "eve", true})

	k.pass(day)
	limits := retention.Limits{Trash: day / 2}
	k.same("forecast", k.foresee(limits, retention.Trash).Soon, int64(1))
	k.same("purged", k.sweep(limits).Of(retention.Trash), int64(1))
}

// Unattached_WhatTheSourceStillHasComesBack: once its record is mirrored again, the job is
// the dead letter that it was.
func Unattached_WhatTheSourceStillHasComesBack(k *kit) {
	r := k.deadAt("7")
	j := k.job(k.ofUnattached(1, r)[0].ID)
	_, err := k.Discard(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)

	k.pass(day)
	k.ofUnattached(1, r)
	k.same("the job", k.job(j.ID), j)
	k.ofUnattached(0, r)
}

// Unattached_WhatDiedAgainIsARunMore: the job was replayed elsewhere meanwhile.
func Unattached_WhatDiedAgainIsARunMore(k *kit) {
	r := k.deadAt("7")
	j := k.ofUnattached(1, r)[0]
	_, err := k.Discard(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)

	k.pass(day)
	r.VersionToken, r.FailedAt = "2", k.now
	k.ofUnattached(1, r)
	got := k.job(j.ID)
	k.same("the job", []any{got.Status(), got.Run}, []any{job.StatusDeadLetter, 2})
}

// Unattached_AnOperationDiscards: all of the source's dead letters at once.
func Unattached_AnOperationDiscards(k *kit) {
	k.ofUnattached(5, k.present(5)...)
	o := k.operate(operation.Discard, filter.Filter{Source: unattached})
	k.run(o.ID, operation.Pace{})
	o = k.workAll(o.ID)
	k.same("the end", []any{o.State, o.Done}, []any{operation.Finished, int64(5)})
	k.same("dead letters left", k.Snapshot().Depths[job.StatusDeadLetter], int64(0))

	waiting, err := k.Sources.Waiting(k.ctx, unattached)
	k.check(err)
	k.same("an act waits for the source", waiting, false)
}

// Unattached_OthersAreStillAsked: one operation on the dead letters of both sources.
func Unattached_OthersAreStillAsked(k *kit) {
	k.ofUnattached(1, k.deadAt("7"))
	k.mirror(1, k.deadAt("7"))
	o := k.operate(operation.Discard, filter.Filter{})
	made, err := k.Operations.Breakdown(k.ctx, o.ID)
	k.check(err)
	k.same("the sources in its scope", made.Sources, []operation.SourcePart{{Name: unattached, Count: 1}, {Name: "shop", Count: 1}})
	k.run(o.ID, operation.Pace{})
	k.same("done", k.workAll(o.ID).Done, int64(2))

	open := func(want map[string]int64) {
		k.Helper()
		acts, err := k.Sources.Open(k.ctx)
		k.check(err)
		k.same("acts that have not ended", acts, want)
	}
	open(map[string]int64{"shop": 1})

	act := k.asked(1)[0]
	k.same("the act", act.Kind, source.Discard)
	open(map[string]int64{"shop": 1})
	k.answer(act, source.Unknown, "")
	open(map[string]int64{})
}
