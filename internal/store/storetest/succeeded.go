package storetest

import (
	"fmt"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/source"
	"redrive/internal/stats"
)

var succeeding = []func(*kit){
	Source_ItSaysThatAJobSucceeded, Source_WhatSucceededCanDieAgain, Source_ASuccessIsOfItsRun, Source_TheNewestReturnedComeFirst,
	Source_ACanaryPassesWhenItSaysSo, Source_ACanaryIsReturnedWhenNothingIsTold,
}

// handed is a page of the jobs that the source has.
func (k *kit) returned(before source.ReplayedJob, limit int) []source.ReplayedJob {
	k.Helper()
	all, err := k.Sources.Returned(k.ctx, "shop", before, limit)
	k.check(err)
	return all
}

// succeeded lets the source say that runs have succeeded, just now and in two attempts.
func (k *kit) succeeded(returned ...source.ReplayedJob) int {
	k.Helper()

	all := make([]source.Success, len(returned))
	for i, h := range returned {
		all[i] = source.Success{ReplayedJob: h, At: k.now, Attempts: 2}
	}

	n, err := k.Mirror.Succeeded(k.ctx, k.now, "shop", all)
	k.check(err)

	return n
}

// replayedAtSource replays a job, and the source takes it.
func (k *kit) replayedAtSource(key string) job.Job {
	k.Helper()
	j := k.mirror(1, k.deadAt(key))[0]
	k.pass(time.Minute)
	_, err := k.Replay(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	k.same("handed before the source took it", len(k.returned(source.ReplayedJob{}, 1)), 0)
	k.answer(k.asked(1)[0], source.Done, "")

	return k.job(j.ID)
}

// Source_ItSaysThatAJobSucceeded: the run is over at the time that the source says, and is
// counted as one that a worker of Redrive ended.
func Source_ItSaysThatAJobSucceeded(k *kit) {
	j := k.replayedAtSource("7")
	h := k.returned(source.ReplayedJob{}, 10)
	k.same("handed", []any{len(h), h[0].Seq, h[0].Run, h[0].Since, h[0].Key, h[0].Place}, []any{1, j.Seq, 2, k.now, "7", "failed"})
	k.pass(time.Minute)
	at := k.now
	k.pass(time.Minute)
	n, err := k.Mirror.Succeeded(k.ctx, k.now, "shop", []source.Success{{ReplayedJob: h[0], At: at, Attempts: 4}})
	k.check(err)
	k.same("jobs that changed", n, 1)
	got := k.job(j.ID)
	k.same("the job", []any{got.State, got.Run, got.Attempts, got.FinishedAt, got.ChangedAt}, []any{job.Completed, 2, 4, at, at})
	d := k.detail(j.ID)
	last := d.Attempts[len(d.Attempts)-1]
	k.same("attempts", []any{len(d.Attempts), last.Run, last.Number, last.Outcome, last.DecidedBy, last.FinishedAt},
		[]any{2, 2, 4, job.Succeeded, "source", at})
	k.same("counters", k.Snapshot().Totals, stats.Totals{Replayed: 1, Succeeded: 1})
	k.same("depths", []int64{k.Snapshot().Depths[job.Status(job.Completed)], k.Snapshot().Depths[job.Status(job.Returned)]}, []int64{1, 0})
	k.same("said twice", k.succeeded(h...), 0)
	k.same("handed", len(k.returned(source.ReplayedJob{}, 10)), 0)
	k.same("the group from which it was replayed", k.group(k.mirror(1, k.deadAt("8"))[0]).Recovered, int64(1))
}

// Source_WhatSucceededCanDieAgain: the job was run again elsewhere. Its success stays in
// its history.
func Source_WhatSucceededCanDieAgain(k *kit) {
	j := k.replayedAtSource("7")
	k.succeeded(k.returned(source.ReplayedJob{}, 10)...)
	k.pass(time.Minute)
	r := k.deadAt("7")
	r.VersionToken, r.FailedAt = "2", k.now
	k.mirror(1, r)
	d := k.detail(j.ID)
	k.same("the job", []any{d.Job.Status(), d.Job.Run}, []any{job.StatusDeadLetter, 3})
	k.same("attempts", []any{len(d.Attempts), d.Attempts[1].Outcome, d.Attempts[2].Outcome}, []any{3, job.Succeeded, job.Failed})
	k.same("runs", []any{len(d.Replays), d.Replays[1].State, d.Replays[1].By}, []any{2, job.Completed, "the source shop"})
	k.same("depths", k.Snapshot().Depths[job.Status(job.Completed)], int64(0))
}

// Source_ASuccessIsOfItsRun: one of a run that is over, of a job of another source, or of one
// that no longer exists, changes nothing. Its time is within those that are known here.
func Source_ASuccessIsOfItsRun(k *kit) {
	j := k.replayedAtSource("7")
	h := k.returned(source.ReplayedJob{}, 10)[0]
	n, err := k.Mirror.Succeeded(k.ctx, k.now, "mail", []source.Success{{ReplayedJob: h}})
	k.check(err)
	k.same("by another source", n, 0)

	earlier, removed := h, h
	earlier.Run, removed.Seq = 1, h.Seq+100
	k.same("of others", k.succeeded(earlier, removed), 0)
	k.pass(time.Minute)
	n, err = k.Mirror.Succeeded(k.ctx, k.now, "shop", []source.Success{{ReplayedJob: h, At: j.ChangedAt.Add(-time.Hour)}})
	k.check(err)
	k.same("by a clock that is behind", []any{n, k.job(j.ID).FinishedAt, k.job(j.ID).Attempts}, []any{1, j.ChangedAt, 0})
	other := k.replayedAtSource("8")
	_, err = k.Mirror.Succeeded(k.ctx, k.now, "shop", []source.Success{{ReplayedJob: k.returned(source.ReplayedJob{}, 10)[0], At: k.now.Add(time.Hour)}})
	k.check(err)
	k.same("by a clock that is ahead", k.job(other.ID).FinishedAt, k.now)
}

// Source_ACanaryPassesWhenItSaysSo: the operation does not wait until its jobs are returned.
func Source_ACanaryPassesWhenItSaysSo(k *kit) {
	k.mirror(3, k.deadAt("1"), k.deadAt("2"), k.deadAt("3"))
	k.pass(time.Minute)
	o := k.operate(operation.Replay, filter.Filter{Status: job.StatusDeadLetter, Source: "shop"})
	k.run(o.ID, operation.Pace{Canary: 2})
	k.same("after the canary", k.workAll(o.ID).State, operation.Paused)

	for _, act := range k.asked(2) {
		k.answer(act, source.Done, "")
	}

	canary := func() operation.Canary {
		p, err := k.Operations.Progress(k.ctx, k.now, k.operation(o.ID))
		k.check(err)

		p.Canary.Causes = nil

		return p.Canary
	}
	at := operation.SourceRuns{AtSource: 2, Source: "shop", Until: k.now.Add(source.ReturnedAfter)}
	k.same("under way", canary(), operation.Canary{Done: 2, SourceRuns: at})
	k.pass(time.Second)
	k.same("successes", k.succeeded(k.returned(source.ReplayedJob{}, 10)...), 2)
	k.same("passed", canary(), operation.Canary{Done: 2, Succeeded: 2, EndedAt: k.now})
}

// Source_ACanaryIsReturnedWhenNothingIsTold: its jobs are counted from when the source took
// them, until one of them is back.
func Source_ACanaryIsReturnedWhenNothingIsTold(k *kit) {
	k.mirror(3, k.deadAt("1"), k.deadAt("2"), k.deadAt("3"))
	k.pass(time.Minute)
	o := k.operate(operation.Replay, filter.Filter{Status: job.StatusDeadLetter, Source: "shop"})
	k.run(o.ID, operation.Pace{Canary: 2})
	k.workAll(o.ID)
	acts := k.asked(2)
	returned := func() [2]operation.SourceRuns {
		k.Helper()
		p, err := k.Operations.Progress(k.ctx, k.now, k.operation(o.ID))
		k.check(err)
		cheap, err := k.Operations.CheapProgress(k.ctx, k.now, k.operation(o.ID))
		k.check(err)

		p.Canary.Causes = nil // which are not
		k.same("what is cheap", cheap.Canary, p.Canary)

		return [2]operation.SourceRuns{p.Canary.SourceRuns, p.SourceRuns}
	}
	both := func(h operation.SourceRuns) [2]operation.SourceRuns { return [2]operation.SourceRuns{h, h} }

	k.same("asked for", returned(), both(operation.SourceRuns{}))
	k.answer(acts[0], source.Done, "")
	first := k.now.Add(source.ReturnedAfter)
	k.same("one is handed", returned(), both(operation.SourceRuns{AtSource: 1, Source: "shop", Until: first}))
	k.pass(time.Minute)
	k.answer(acts[1], source.Done, "")
	last := k.now.Add(source.ReturnedAfter)
	k.pass(source.ReturnedAfter - time.Minute)
	k.same("one is returned", returned(), both(operation.SourceRuns{AtSource: 2, Returned: 1, Source: "shop", Until: last}))
	k.pass(time.Minute)
	k.same("both are returned", returned(), both(operation.SourceRuns{AtSource: 2, Returned: 2, Source: "shop"}))

	r := k.deadAt(acts[0].Key)
	r.VersionToken, r.FailedAt = "2", k.now
	k.mirror(1, r)
	k.same("one is back", returned(), both(operation.SourceRuns{AtSource: 1, Returned: 1, Source: "shop"}))
	k.same("outcomes", []int64{k.operation(o.ID).Relapsed, k.operation(o.ID).Unsettled()}, []int64{1, 1})
}

// Source_TheNewestReturnedComeFirst: in pages.
func Source_TheNewestReturnedComeFirst(k *kit) {
	var want []int64
	for i := range 5 {
		j := k.mirror(1, k.deadAt(fmt.Sprint(i)))[0]
		_, err := k.Replay(k.ctx, k.now, j.ID, 1, eve)
		k.check(err)

		if k.answer(k.asked(1)[0], source.Done, ""); i%2 == 0 { // some at the same time
			k.pass(time.Minute)
		}

		want = append([]int64{j.Seq}, want...)
	}

	var got []int64
	for page := k.returned(source.ReplayedJob{}, 2); len(page) > 0; page = k.returned(page[len(page)-1], 2) {
		for _, h := range page {
			got = append(got, h.Seq)
		}
	}

	k.same("in pages of two", got, want)
}
