package storetest

import (
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/source"
	"redrive/internal/stats"
)

var doubting = []func(*kit){
	Source_AnUnknownReplayWhoseRecordIsThereIsNoFailure, Source_AnUnknownReplayThatDiedAgainIsAFailure,
	Source_AnUnknownReplayThatSucceededIsASuccess, Source_AnUnknownEditIsTakenBack, Source_AnUnknownDiscardComesBack,
	Source_AnUnknownReplayIsAskedFor, Source_ACopyBesideItsRecordIsAnotherJob, Source_AnOperationCountsUnknownReplays,
	Source_AnUnknownReplayThatDiedUnderAnotherKeyIsAFailure, Source_ADoubtThatHasEndedDoesNotComeBack,
}

// inDoubt replays a job of the source, which does not answer: whether it took the job is unknown.
func (k *kit) inDoubt(key string) job.Job {
	k.Helper()
	return k.inDoubtOf(k.deadAt(key))
}

// inDoubtOf is inDoubt for a record that is new.
func (k *kit) inDoubtOf(r source.Record) job.Job {
	k.Helper()
	j := k.mirror(1, r)[0]
	k.pass(time.Minute)
	_, err := k.Replay(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	k.answer(k.asked(1)[0], source.Unknown, "a copy may be in its queue")

	return k.job(j.ID)
}

// Source_AnUnknownReplayWhoseRecordIsThereIsNoFailure: the job is a dead letter again, with
// the words of the ledger, and nothing is counted or invented.
func Source_AnUnknownReplayWhoseRecordIsThereIsNoFailure(k *kit) {
	before := k.mirror(1, k.deadAt("7"))[0]
	failures := k.group(before).Failures
	r := k.deadAt("7")
	k.pass(time.Minute)
	_, err := k.Replay(k.ctx, k.now, before.ID, 1, eve)
	k.check(err)
	k.answer(k.asked(1)[0], source.Unknown, "a copy may be in its queue")
	j := k.job(before.ID)
	k.same("while nothing is known", []any{j.Status(), j.Run, j.Unbegun, j.Worker}, []any{job.Status(job.Returned), 2, true, "shop"})

	k.pass(time.Minute)
	k.mirror(1, r)
	d := k.detail(before.ID)
	k.same("the job", []any{d.Job.Status(), d.Job.Run, d.Job.Unbegun, d.Job.Attempts, d.Job.Error, d.Job.Group},
		[]any{job.StatusDeadLetter, 2, false, before.Attempts, before.Error, before.Group})
	k.same("when it failed, and when it came back", []time.Time{d.Job.FinishedAt, d.DeadLetters[1].FailedAt, d.Job.ChangedAt},
		[]time.Time{r.FailedAt, r.FailedAt, k.now})
	k.same("attempts", []any{len(d.Attempts), d.Attempts[0].Run}, []any{1, 1})
	k.same("why", d.DeadLetters[1].Problem, "a copy may be in its queue")
	k.same("the ledger", d.Mirrored.Acts[0].State, source.Unknown)
	k.same("it is there", d.Mirrored.Present, true)
	k.same("counters", k.Snapshot().Totals, stats.Totals{Replayed: 1})
	g := k.group(before)
	k.same("the group", []int64{g.Failures, g.Dead, g.Relapsed}, []int64{failures, 1, 0})
	k.mirror(0, r)
	_, err = k.Replay(k.ctx, k.now, before.ID, 2, eve)
	k.check(err)
}

// Source_AnUnknownReplayThatDiedAgainIsAFailure: its record has another version.
func Source_AnUnknownReplayThatDiedAgainIsAFailure(k *kit) {
	j := k.inDoubt("7")
	k.pass(time.Minute)
	r := k.deadAt("7")
	r.VersionToken, r.FailedAt = "2", k.now
	k.mirror(1, r)
	d := k.detail(j.ID)
	k.same("the job", []any{d.Job.Status(), d.Job.Run, d.Job.Unbegun, len(d.Attempts)}, []any{job.StatusDeadLetter, 2, false, 2})
	k.same("the ledger", d.Mirrored.Acts[0].State, source.Done)
}

// Source_AnUnknownReplayThatSucceededIsASuccess: the source is asked for it.
func Source_AnUnknownReplayThatSucceededIsASuccess(k *kit) {
	j := k.inDoubt("7")
	k.pass(time.Minute)
	k.same("successes", k.succeeded(k.returned(source.ReplayedJob{}, 10)...), 1)
	d := k.detail(j.ID)
	k.same("the job", []any{d.Job.State, d.Job.Run, d.Job.Unbegun}, []any{job.Completed, 2, false})
	k.same("the ledger", d.Mirrored.Acts[0].State, source.Done)
}

// Source_AnUnknownEditIsTakenBack: what is at the source has the payload that it had.
func Source_AnUnknownEditIsTakenBack(k *kit) {
	j := k.job(k.mirror(1, k.deadAt("7"))[0].ID)
	_, err := k.edited(j, `{"order":8}`, time.Time{})
	k.check(err)
	k.answer(k.asked(1)[0], source.Unknown, "the line broke")
	k.same("while nothing is known", string(k.job(j.ID).Payload), `{"order":8}`)
	k.mirror(1, k.deadAt("7"))
	k.same("afterwards", string(k.job(j.ID).Payload), `{"order":7}`)
}

// Source_AnUnknownDiscardComesBack: the record was not deleted, so the job is a dead letter as before.
func Source_AnUnknownDiscardComesBack(k *kit) {
	r := k.deadAt("7")
	j := k.job(k.mirror(1, r)[0].ID)
	_, err := k.Discard(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	k.answer(k.asked(1)[0], source.Unknown, "the line broke")
	k.same("while nothing is known", k.job(j.ID).Status(), job.StatusTrashed)
	k.mirror(1, r)
	k.same("the job", k.job(j.ID), j)
	k.mirror(0, r)
}

// Source_AnUnknownReplayIsAskedFor: after a restart, too.
func Source_AnUnknownReplayIsAskedFor(k *kit) {
	j := k.inDoubt("7")
	k.restart()
	h := k.returned(source.ReplayedJob{}, 10)
	k.same("handed", []any{len(h), h[0].Seq, h[0].Run}, []any{1, j.Seq, 2})
	k.same("returned", source.Returned(k.job(j.ID), k.now.Add(time.Hour)), false)
}

// Source_ACopyBesideItsRecordIsAnotherJob: the replay happened, its copy died, and its dead
// letter was not removed. Both are there.
func Source_ACopyBesideItsRecordIsAnotherJob(k *kit) {
	j := k.inDoubt("7")
	k.pass(time.Minute)
	original, second := k.deadAt("7"), k.deadAt("7")
	original.FailedAt = original.FailedAt.Add(-time.Minute)
	second.Key, second.VersionToken, second.FailedAt = "8", "2", k.now
	all := k.mirror(2, second, original)
	k.same("jobs", len(all), 2)
	k.same("the first", []any{k.job(j.ID).Status(), k.job(j.ID).Run, len(k.detail(j.ID).Attempts)}, []any{job.StatusDeadLetter, 2, 1})
	k.mirror(0, second, original)
}

// Source_AnOperationCountsUnknownReplays: apart, and neither as failures nor as pending, until
// the source says more.
func Source_AnOperationCountsUnknownReplays(k *kit) {
	k.mirror(3, k.deadAt("0"), k.deadAt("1"), k.deadAt("2"))
	k.pass(time.Minute)
	o := k.operate(operation.Replay, filter.Filter{Status: job.StatusDeadLetter, Source: "shop"})
	k.run(o.ID, operation.Pace{Guard: true, Canary: 2})
	k.workAll(o.ID)

	count := func(what string, want ...int64) {
		k.Helper()
		o, p := k.operation(o.ID), operation.Progress{}
		p, err := k.Operations.Progress(k.ctx, k.now, o)
		k.check(err)
		k.same(what, []int64{o.Succeeded, o.Relapsed, o.Dropped, o.Unknown, o.Unsettled(), p.Canary.Unknown, p.Canary.Unsettled(), p.Ended}, want)
	}
	acts := k.asked(2)
	k.answer(acts[0], source.Unknown, "the line broke")
	count("while nothing is known", 0, 0, 0, 1, 1, 1, 1, 0)
	k.answer(acts[1], source.Unknown, "the line broke")
	k.mirror(2, k.deadAt(acts[0].Key), k.deadAt(acts[1].Key))
	count("when both are there again", 0, 0, 0, 2, 0, 2, 0, 0)

	items := k.items(o.ID, operation.ItemFilter{Outcome: operation.RunUnknown})
	k.same("items", []any{len(items), items[0].Outcome, items[0].EndedAt}, []any{2, operation.RunUnknown, time.Time{}})
	first := items[0].Job
	_, err := k.Replay(k.ctx, k.now, first.ID, first.Run, eve)
	k.check(err)
	count("when one is replayed again", 0, 0, 0, 2, 0, 2, 0, 0)
}

// Source_AnUnknownReplayThatDiedUnderAnotherKeyIsAFailure: its source gives each death a key,
// and tells nothing else by which two records of one job differ.
func Source_AnUnknownReplayThatDiedUnderAnotherKeyIsAFailure(k *kit) {
	r := k.deadAt("7")
	r.VersionToken, r.Raw = "", nil
	j := k.inDoubtOf(r)
	k.pass(time.Minute)
	r.Key, r.FailedAt = "8", k.now
	k.mirror(1, r)

	d := k.detail(j.ID)
	k.same("the job", []any{d.Job.Status(), d.Job.Run, d.Job.Unbegun, len(d.Attempts)}, []any{job.StatusDeadLetter, 2, false, 2})
	k.same("its record", []any{d.Mirrored.Key, d.Mirrored.Present}, []any{"8", true})
	k.same("the ledger", d.Mirrored.Acts[0].State, source.Done)
	k.mirror(0, r)
}

// Source_ADoubtThatHasEndedDoesNotComeBack: the record was found, went later, and is there once
// more, as it was. That is a new run, as for any other job.
func Source_ADoubtThatHasEndedDoesNotComeBack(k *kit) {
	again := func(what string, r source.Record, j job.Job, run int) {
		k.Helper()
		k.mirror(1, r)
		n, err := k.Mirror.Vanished(k.ctx, k.now, "shop", []int64{j.Seq})
		k.check(err)
		k.same(what+": gone", []any{n, k.job(j.ID).Status()}, []any{1, job.Status(job.Discarded)})
		k.pass(time.Minute)
		k.mirror(1, r)
		k.same(what+": there again", []any{k.job(j.ID).Status(), k.job(j.ID).Run}, []any{job.StatusDeadLetter, run})
	}

	replayed := k.deadAt("7")
	again("replayed", replayed, k.inDoubtOf(replayed), 3)

	discarded := k.deadAt("8")
	j := k.mirror(1, discarded)[0]
	_, err := k.Discard(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	k.answer(k.asked(1)[0], source.Unknown, "the line broke")
	again("discarded", discarded, j, 2)
}
