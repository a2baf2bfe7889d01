package storetest

import (
	"fmt"
	"strconv"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/source"
	"redrive/internal/stats"
)

var asking = []func(*kit){
	Source_AReplayIsAskedOfIt, Source_AReplayThatFailsAgainEndsItsRun, Source_ARefusedReplayComesBack,
	Source_AReplayOfWhatIsGoneEndsTheJob, Source_ADiscardIsAskedOfIt, Source_ARefusedDiscardComesBack, Source_AnActEndsOnce,
	Source_ActsEndTogether, Source_AnActUnderWayLeavesTheJobAlone, Source_JobsCannotBeChanged,
	Source_AReplayHasAnotherPayloadLater, Source_ARefusedEditIsTakenBack, Source_WhatIsNotBackIsReturnedAndKeptAsCompleted,
	Source_OperationsActThere, Source_AnActKnowsTheLimitOfTheFirstRun, Source_IsWhereItsJobsAreFrom,
}

// asked takes the acts that the source is asked for.
func (k *kit) asked(want int) []source.Act {
	k.Helper()
	acts, err := k.Sources.Take(k.ctx, "shop", 100)
	k.check(err)

	if len(acts) != want {
		k.Fatalf("%d acts are asked for, want %d", len(acts), want)
	}

	return acts
}

func (k *kit) answer(act source.Act, state source.State, why string) {
	k.Helper()
	k.check(k.Mirror.SettleActs(k.ctx, k.now, []source.Result{{ID: act.ID, State: state, Why: why}}))
}

// Source_AReplayIsAskedOfIt: the job is returning in its next run, and the act names what
// the person saw.
func Source_AReplayIsAskedOfIt(k *kit) {
	j := k.mirror(1, k.deadAt("7"))[0]
	k.pass(time.Minute)
	to, err := k.ReplayWith(k.ctx, k.now, j.ID, 1, job.Edit{Mode: string(source.Fresh)}, eve)
	k.check(err)
	k.same("the job", []any{to.State, to.Run}, []any{job.Returning, 2})
	act := k.asked(1)[0]
	k.same("the act", []any{act.Kind, act.Mode, act.Key, act.VersionToken, act.JobID, act.Run, act.By},
		[]any{source.Replay, source.Fresh, "7", "1", j.ID, 2, eve.Name})
	k.asked(0)
	begun, err := k.Sources.Begun(k.ctx, "shop", 10)
	k.check(err)
	k.same("begun", len(begun), 1)
	k.answer(act, source.Done, "")
	k.same("the job", k.job(j.ID).State, job.Returned)
	k.same("it is there", k.detail(j.ID).Mirrored.Present, false)
	k.same("replayed", k.Snapshot().Totals, stats.Totals{Replayed: 1})
	_, err = k.Cancel(k.ctx, k.now, j.ID, 2, eve)
	k.conflict(err)
}

// Source_AnActKnowsTheLimitOfTheFirstRun: a replay can have raised it at the source.
func Source_AnActKnowsTheLimitOfTheFirstRun(k *kit) {
	r := k.deadAt("7")
	j := k.mirror(1, r)[0]
	for run := 1; run <= 3; run++ {
		k.pass(time.Minute)
		_, err := k.Replay(k.ctx, k.now, j.ID, run, eve)
		k.check(err)
		act := k.asked(1)[0]
		k.same("the limit", act.Limit, 3)
		k.answer(act, source.Done, "")
		r.VersionToken, r.FailedAt = strconv.Itoa(run+1), k.now.Add(time.Second)
		r.Attempts, r.Limit = r.Attempts+3, r.Limit+3

		k.pass(time.Minute)
		k.mirror(1, r)
	}
}

// Source_AReplayThatFailsAgainEndsItsRun.
func Source_AReplayThatFailsAgainEndsItsRun(k *kit) {
	r := k.deadAt("7")
	j := k.mirror(1, r)[0]
	_, err := k.Replay(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	k.answer(k.asked(1)[0], source.Done, "")
	k.pass(time.Minute)
	r.VersionToken, r.FailedAt = "2", k.now
	k.mirror(1, r)
	got := k.job(j.ID)
	k.same("the job", []any{got.Status(), got.Run, got.ChangedAt}, []any{job.StatusDeadLetter, 2, k.now})
	k.same("failed attempts of Redrive's own", k.Snapshot().Totals.Failed, int64(0))
}

// Source_ARefusedReplayComesBack: to the dead letters, in the run that it began, with
// the error of the run before and what the source said.
func Source_ARefusedReplayComesBack(k *kit) {
	r := k.deadAt("7")
	j := k.mirror(1, r)[0]
	k.pass(time.Minute)
	_, err := k.Replay(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	k.answer(k.asked(1)[0], source.Refused, "no rights")
	got := k.detail(j.ID)
	k.same("the job", []any{got.Job.Status(), got.Job.Run, got.Job.Error, got.Job.Attempts}, []any{job.StatusDeadLetter, 2, r.Error, 3})
	k.same("its group", got.Job.Group, j.Group)
	k.same("why", got.DeadLetters[1].Problem, "no rights")
	k.same("it is there", got.Mirrored.Present, true)
	k.mirror(0, r)
}

// edited asks for a replay of a job with another payload, at a time to come.
func (k *kit) edited(j job.Job, payload string, at time.Time) (job.Job, error) {
	body := j.Body()
	body.Payload = []byte(payload)
	return k.ReplayWith(k.ctx, k.now, j.ID, j.Run, job.Edit{Body: &body, RunAt: at}, eve)
}

// Source_AReplayHasAnotherPayloadLater: the act has both, the job shows both, and the run
// before keeps what it had.
func Source_AReplayHasAnotherPayloadLater(k *kit) {
	j := k.job(k.mirror(1, k.deadAt("7"))[0].ID)
	at := k.now.Add(time.Hour)
	to, err := k.edited(j, `{"order":8}`, at)
	k.check(err)
	k.same("the job", []any{to.State, to.RunAt, string(k.job(j.ID).Payload)}, []any{job.Returning, at, `{"order":8}`})
	act := k.asked(1)[0]
	k.same("the act", []any{act.Due, string(act.Payload)}, []any{at, `{"order":8}`})
	k.same("the run before", string(k.detail(j.ID).Replays[0].Earlier.Body.Payload), `{"order":7}`)
	k.answer(act, source.Done, "")
	k.same("what the ledger keeps", k.detail(j.ID).Mirrored.Acts[0].Payload, []byte(nil))
}

// Source_ARefusedEditIsTakenBack: the record at the source has the payload that it had.
func Source_ARefusedEditIsTakenBack(k *kit) {
	j := k.job(k.mirror(1, k.deadAt("7"))[0].ID)
	_, err := k.edited(j, `{"order":8}`, time.Time{})
	k.check(err)
	k.answer(k.asked(1)[0], source.Refused, "no rights")
	got := k.job(j.ID)
	k.same("the job", []any{got.Status(), got.Run, string(got.Payload)}, []any{job.StatusDeadLetter, 2, `{"order":7}`})
	_, err = k.edited(got, `{"order":9}`, time.Time{})
	k.check(err)
	k.same("the act", string(k.asked(1)[0].Payload), `{"order":9}`)
}

// Source_WhatIsNotBackIsReturnedAndKeptAsCompleted: counted from when the source took the
// job, and not before it did. It is never said to have succeeded.
func Source_WhatIsNotBackIsReturnedAndKeptAsCompleted(k *kit) {
	j := k.mirror(1, k.deadAt("7"))[0]
	late := k.mirror(1, k.deadAt("8"))[0]
	_, err := k.Replay(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	_, err = k.Replay(k.ctx, k.now, late.ID, 1, eve)
	k.check(err)
	acts := k.asked(2)
	k.pass(30 * time.Minute)
	k.same("asked for", source.Returned(k.job(j.ID), k.now), false)
	k.answer(acts[0], source.Done, "")
	k.pass(source.ReturnedAfter - time.Millisecond)
	k.same("within ten minutes", source.Returned(k.job(j.ID), k.now), false)
	k.pass(time.Millisecond)
	k.same("not back", []any{source.Returned(k.job(j.ID), k.now), k.job(j.ID).State}, []any{true, job.Returned})

	limits := retention.Limits{Ages: retention.Ages{retention.Completed: day, retention.Discarded: time.Hour, retention.DeadLetters: time.Hour}}
	k.same("foreseen", k.foresee(limits, retention.Completed), retention.Outlook{
		Kind: retention.Completed, Jobs: 1, Oldest: k.now.Add(-source.ReturnedAfter), Soon: 1,
	})
	k.pass(day - source.ReturnedAfter)
	k.same("removed after a day", k.sweep(limits), removed("", 0))
	k.pass(time.Millisecond)
	k.same("removed", k.sweep(limits).Of(retention.Completed), int64(1))
	k.same("the one on its way", k.job(late.ID).State, job.Returning)
	k.answer(acts[1], source.Done, "")
	k.pass(time.Minute)
	r := k.deadAt("8")
	r.VersionToken, r.FailedAt = "2", k.now
	k.mirror(1, r)
	k.same("back", []any{k.job(late.ID).Status(), k.job(late.ID).Run}, []any{job.StatusDeadLetter, 2})
}

// Source_AReplayOfWhatIsGoneEndsTheJob.
func Source_AReplayOfWhatIsGoneEndsTheJob(k *kit) {
	j := k.mirror(1, k.deadAt("7"))[0]
	_, err := k.Replay(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	k.answer(k.asked(1)[0], source.Gone, "")
	got := k.job(j.ID)
	k.same("the job", []any{got.Status(), got.Reason, got.Run}, []any{job.Status(job.Discarded), retry.GoneAtSource, 2})
}

// Source_ADiscardIsAskedOfIt: the job is in the trash, from which no one can restore it.
func Source_ADiscardIsAskedOfIt(k *kit) {
	j := k.mirror(1, k.deadAt("7"))[0]
	_, err := k.Discard(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	act := k.asked(1)[0]
	k.same("the act", []any{act.Kind, act.Key}, []any{source.Discard, "7"})
	k.answer(act, source.Done, "")
	k.same("the job", k.job(j.ID).Status(), job.StatusTrashed)
	_, err = k.Restore(k.ctx, k.now, j.ID, 1, eve)
	k.conflict(err)
}

// Source_ARefusedDiscardComesBack.
func Source_ARefusedDiscardComesBack(k *kit) {
	j := k.job(k.mirror(1, k.deadAt("7"))[0].ID)
	_, err := k.Discard(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	k.answer(k.asked(1)[0], source.Refused, "no rights")
	k.same("the job", k.job(j.ID), j)
}

// Source_AnActEndsOnce: a second answer changes nothing.
func Source_AnActEndsOnce(k *kit) {
	j := k.mirror(1, k.deadAt("7"))[0]
	_, err := k.Replay(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	act := k.asked(1)[0]
	k.answer(act, source.Done, "")
	k.answer(act, source.Gone, "")
	k.same("the job", k.job(j.ID).State, job.Returned)
	acts, err := k.Sources.Acts(k.ctx, "shop", 10)
	k.check(err)
	k.same("the ledger", []any{len(acts), acts[0].State}, []any{1, source.Done})
}

// Source_ActsEndTogether: each as the source says, the replays that it carried out among
// others that it did not.
func Source_ActsEndTogether(k *kit) {
	said := []source.Result{
		{State: source.Done}, {State: source.Refused, Why: "it may not"}, {State: source.Done, Why: "it has died again since"},
		{State: source.Gone}, {State: source.Done}, {State: source.Unknown, Why: "the line broke"},
	}

	var page []source.Record
	for i := range said {
		page = append(page, k.deadAt(strconv.Itoa(i)))
	}

	jobs := map[string]job.Job{}
	for _, j := range k.mirror(len(said), page...) {
		jobs[k.detail(j.ID).Mirrored.Key] = j
	}

	for i := range said {
		j := jobs[strconv.Itoa(i)]
		if i == 4 {
			_, err := k.Discard(k.ctx, k.now, j.ID, 1, eve)
			k.check(err)
			continue
		}

		_, err := k.Replay(k.ctx, k.now, j.ID, 1, eve)
		k.check(err)
	}

	k.pass(time.Minute)

	for i, act := range k.asked(len(said)) {
		said[i].ID = act.ID
	}

	k.check(k.Mirror.SettleActs(k.ctx, k.now, append(said, said[0]))) // the first one is told twice
	acts, err := k.Sources.Acts(k.ctx, "shop", 10)
	k.check(err)

	ends := map[int64]source.Act{}
	for _, a := range acts {
		ends[a.ID] = a
	}

	for i, want := range []string{"returned in run 2, shop", "dead_letter in run 2, ", "returned in run 2, shop", "discarded in run 2, ", "trashed in run 1, ", "returned in run 2, shop"} {
		j, end := k.job(jobs[strconv.Itoa(i)].ID), ends[said[i].ID]
		k.same(fmt.Sprintf("job %d", i), fmt.Sprintf("%s in run %d, %s", j.Status(), j.Run, j.Worker), want)
		k.same(fmt.Sprintf("act %d", i), []any{end.State, end.Why, end.EndedAt}, []any{said[i].State, said[i].Why, k.now})
	}

	k.same("when the source took it", k.job(jobs["0"].ID).ChangedAt, k.now)
}

// Source_AnActUnderWayLeavesTheJobAlone: what is read of its record meanwhile changes
// nothing, and it does not vanish. An act that had begun can be asked for again.
func Source_AnActUnderWayLeavesTheJobAlone(k *kit) {
	r := k.deadAt("7")
	j := k.mirror(1, r)[0]
	_, err := k.Replay(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	act := k.asked(1)[0]
	r.VersionToken = "2"
	k.mirror(0, r)
	n, err := k.Mirror.Vanished(k.ctx, k.now, "shop", []int64{j.Seq})
	k.check(err)
	k.same("vanished", n, 0)
	k.restart()
	k.check(k.Sources.Reopen(k.ctx, []int64{act.ID}))
	k.answer(k.asked(1)[0], source.Changed, "it has died again since")
	k.mirror(1, r)
	k.same("the job", []any{k.job(j.ID).Status(), k.job(j.ID).Run}, []any{job.StatusDeadLetter, 2})
}

// Source_JobsCannotBeChanged: a job of a source is replayed as it is, and not moved.
func Source_JobsCannotBeChanged(k *kit) {
	j := k.job(k.mirror(1, k.deadAt("7"))[0].ID)
	five := 5
	for _, edit := range []job.Edit{{Queue: "other"}, {Priority: &five}} {
		_, err := k.ReplayWith(k.ctx, k.now, j.ID, 1, edit, eve)
		k.conflict(err)
	}

	k.same("the job", k.job(j.ID), j)
	k.asked(0)
}

// Source_OperationsActThere: an operation asks for each item, and its meter counts how
// the runs ended.
func Source_OperationsActThere(k *kit) {
	var records []source.Record
	for i := range 5 {
		records = append(records, k.deadAt(fmt.Sprint(i)))
	}

	k.mirror(5, records...)
	k.pass(time.Minute)
	o := k.operate(operation.Replay, filter.Filter{Status: job.StatusDeadLetter, Source: "shop"})
	k.run(o.ID, operation.Pace{})
	k.same("done", k.workAll(o.ID).Done, int64(5))

	for i, act := range k.asked(5) {
		k.same("the operation", act.Bulk, o.ID)
		k.answer(act, []source.State{source.Done, source.Gone, source.Done, source.Done, source.Done}[i], "")
	}

	k.pass(time.Minute)
	again := k.deadAt("0")
	again.VersionToken, again.FailedAt = "2", k.now
	k.mirror(1, again)
	k.same("successes", k.succeeded(k.returned(source.ReplayedJob{}, 10)...), 3)
	got := k.operation(o.ID)
	k.same("how the runs ended", []int64{got.Succeeded, got.Relapsed, got.Dropped, got.Unsettled()}, []int64{3, 1, 1, 0})
}

// Source_IsWhereItsJobsAreFrom: another address is noted only while no job is from the one
// before, or if the source was moved from there.
func Source_IsWhereItsJobsAreFrom(k *kit) {
	locate := func(name, address, movedFrom, want string) {
		k.Helper()
		earlier, err := k.Sources.Locate(k.ctx, name, address, movedFrom)
		k.check(err)
		k.same("the jobs are from", earlier, want)
	}
	locate("shop", "db0/shop", "", "")
	locate("shop", "db1/shop", "", "") // a typing error was mended before the first look

	j := k.mirror(1, k.deadAt("7"))[0]

	locate("shop", "db1/shop", "", "")
	locate("shop", "db2/shop", "", "db1/shop")
	locate("shop", "db2/shop", "db0/shop", "db1/shop")
	locate("outlet", "db2/shop", "", "")
	locate("shop", "db2/shop", "db1/shop", "")
	locate("shop", "db1/shop", "", "db2/shop")

	// An act that has not ended belongs to a job, and a job that has left is of the old place, too.
	_, err := k.Mirror.Vanished(k.ctx, k.now, "shop", []int64{j.Seq})
	k.check(err)
	locate("shop", "db3/shop", "", "db2/shop")
}
