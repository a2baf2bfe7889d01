package storetest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/source"
)

var mirroring = []func(*kit){
	Mirror_ARecordIsADeadLetter, Mirror_AKeyThatIsNoTextIsOneRecord, Mirror_TheSameRecordIsNoNews, Mirror_KnowsWhatASourceDoesNotCount,
	Mirror_WhatASourceDoesNotSayStaysUnknown, Mirror_AttemptsAreExhaustedWhereTheSourceSaysSo,
	Mirror_AnUnknownNumberOfAttemptsMatchesNone, Mirror_ListsInTheOrderOfFailure, Mirror_DyingElsewhereIsTheNextRun,
	Mirror_AThreadIsOneJob, Mirror_APageIsTakenOverTogether, Mirror_WhatVanishedIsGoneUntilItLiesThereAgain, Mirror_IsListedBySource,
	Source_AReplayIsAskedOfIt, Source_AReplayThatFailsAgainEndsItsRun, Source_ARefusedReplayComesBack, Source_AReplayOfWhatIsGoneEndsTheJob,
	Source_ADiscardIsAskedOfIt, Source_ARefusedDiscardComesBack, Source_AnActEndsOnce, Source_ActsEndTogether, Source_AnActUnderWayLeavesTheJobAlone,
	Source_JobsCannotBeChanged, Source_AReplayHasAnotherPayloadLater, Source_ARefusedEditIsTakenBack,
	Source_WhatIsNotBackIsReturnedAndKeptAsCompleted, Source_OperationsActThere,
	Source_AnActKnowsTheLimitOfTheFirstRun, Mirror_ATimeOutOfBoundsIsUnknown,
}

// deadAt is a record that lies at a source.
func (k *kit) deadAt(key string) source.Record {
	return source.Record{
		Key: key, Thread: "thread-" + key, Place: "failed", Witness: "1", Queue: "orders", Type: "charge",
		Payload: []byte(`{"order":` + key + `}`), Error: job.ErrorInfo{Type: "Declined", Message: "card declined"}, Trace: "at charge()",
		Attempts: 3, Limit: 3, FailedAt: k.now.Add(-time.Hour), CreatedAt: k.now.Add(-2 * time.Hour), Warnings: []string{"Mind the step."},
	}
}

// mirror takes records over, and returns the jobs of the source, the newest first.
func (k *kit) mirror(want int, records ...source.Record) []job.Job {
	k.Helper()
	n, err := k.Mirror(k.ctx, k.now, "shop", records)
	k.check(err)
	k.same("jobs that came or changed", n, want)
	jobs := k.all(filter.Filter{Source: "shop"}, 100)
	slices.SortFunc(jobs, func(a, b job.Job) int { return cmp.Compare(b.Seq, a.Seq) })
	return jobs
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
	k.check(k.SettleActs(k.ctx, k.now, []source.Result{{ID: act.ID, State: state, Why: why}}))
}

// Mirror_AKeyThatIsNoTextIsOneRecord: whatever bytes a source names its records by, the
// second look finds what the first one kept.
func Mirror_AKeyThatIsNoTextIsOneRecord(k *kit) {
	odd := []source.Record{k.deadAt("1"), k.deadAt("2"), k.deadAt("3"), k.deadAt("4")}
	for i, key := range []string{"a\x00b", "\xff\xfe", "c\x00", "well"} {
		odd[i].Key, odd[i].Thread, odd[i].Witness = key, key, key
	}
	k.mirror(4, odd...)
	k.mirror(0, odd...)
	news, err := k.Sources.News(k.ctx, "shop", odd)
	k.check(err)
	k.same("news", len(news), 0)
	twins, err := k.Sources.Twins(k.ctx, "shop", odd)
	k.check(err)
	k.same("records under another key", len(twins), 0)

	odd[0].Witness = "it died again"
	j := k.mirror(1, odd...)
	k.same("jobs", len(j), 4)

	// One that left and died again under another key is known by the name of its job.
	left := j[2].Seq
	_, err = k.Vanished(k.ctx, k.now, "shop", []int64{left})
	k.check(err)
	k.pass(time.Minute)
	odd[1].Key, odd[1].Witness = "later", "later"
	for _, j := range k.mirror(1, odd...) {
		if j.Seq == left {
			k.same("its run, and the status", []any{j.Run, j.Status()}, []any{2, job.StatusDeadLetter})
		}
	}
	k.same("jobs", len(k.mirror(0, odd...)), 4)
}

// Mirror_ARecordIsADeadLetter: at the time when it died, with everything that the
// source says, and nothing of it counts as a failure of a worker of Redrive.
func Mirror_ARecordIsADeadLetter(k *kit) {
	r := k.deadAt("7")
	r.History = []source.Failure{{Number: 1, At: k.now.Add(-90 * time.Minute), Error: job.ErrorInfo{Message: "first"}}}
	j := k.mirror(1, r)[0]
	k.same("queue, type, status", []any{j.Queue, j.Type, j.Status()}, []any{"orders@shop", "charge", job.StatusDeadLetter})
	k.same("reason, error", []any{j.Reason, j.Error}, []any{retry.AttemptsExhausted, r.Error})
	k.same("attempts", []int{j.Attempts, j.Policy.Limit()}, []int{3, 3})
	k.same("times", []time.Time{j.EnqueuedAt, j.FinishedAt, j.ChangedAt}, []time.Time{r.CreatedAt, r.FailedAt, r.FailedAt})
	d := k.detail(j.ID)
	k.same("payload", string(d.Job.Payload), `{"order":7}`)
	k.same("attempts that are known", []string{d.Attempts[0].Error.Message, d.Attempts[1].Error.Message, d.Attempts[1].Trace},
		[]string{"first", "card declined", "at charge()"})
	k.same("where it lies", []any{d.Mirrored.Place, d.Mirrored.Key, d.Mirrored.Lies, d.Mirrored.Warnings}, []any{"failed", "7", true, r.Warnings})
	k.same("counters", k.Snapshot().Totals, job.Totals{})
	k.same("dead letters", k.Snapshot().Depths[job.StatusDeadLetter], int64(1))
	k.same("nothing to claim", len(k.claim("orders@shop", 10)), 0)
	k.restart()
	k.same("dead letters after a restart", k.Snapshot().Depths[job.StatusDeadLetter], int64(1))
}

// Mirror_TheSameRecordIsNoNews.
func Mirror_TheSameRecordIsNoNews(k *kit) {
	r := k.deadAt("7")
	k.mirror(1, r)
	k.mirror(0, r)
	news, err := k.Sources.News(k.ctx, "shop", []source.Record{r, k.deadAt("8")})
	k.check(err)
	k.same("news", []any{len(news), news[0].Key}, []any{1, "8"})
	k.same("dead letters", k.Snapshot().Depths[job.StatusDeadLetter], int64(1))
}

// Mirror_WhatASourceDoesNotSayStaysUnknown: times, attempts, their limit, the reason and the
// policy. Only when the job came where it is must be known: when Redrive saw it first.
func Mirror_WhatASourceDoesNotSayStaysUnknown(k *kit) {
	j := k.mirror(1, source.Record{Key: "k", Queue: "orders", Type: "charge"})[0]
	k.same("times", []time.Time{j.EnqueuedAt, j.RunAt, j.FinishedAt, j.StartedAt}, make([]time.Time, 4))
	k.same("since when it is where it is", j.ChangedAt, k.now)
	k.same("attempts", []int{j.Attempts, j.MaxAttempts()}, []int{0, 0})
	k.same("reason, time limit, policy", []any{j.Reason, j.Timeout, j.Policy}, []any{retry.ReasonUnknown, time.Duration(0), retry.Policy{}})
	a := k.detail(j.ID).Attempts[0]
	k.same("its attempt", []any{a.Number, a.StartedAt, a.FinishedAt, a.Outcome}, []any{0, time.Time{}, time.Time{}, job.Failed})
	l := k.letters(filter.Filter{}, 10)[0]
	k.same("its letter", []any{l.FailedAt, l.Attempts, l.Reason}, []any{time.Time{}, 0, retry.ReasonUnknown})
	k.same("the letter of its run", k.detail(j.ID).Letters[0].FailedAt, time.Time{})

	k.pass(time.Minute)
	r := k.deadAt("8")
	r.CreatedAt = time.Time{}
	j = k.mirror(1, r)[0]
	k.same("times of one that says only when it failed", []time.Time{j.EnqueuedAt, j.RunAt, j.FinishedAt}, []time.Time{{}, {}, r.FailedAt})
}

// Mirror_AttemptsAreExhaustedWhereTheSourceSaysSo: where it counts them, up to a limit.
func Mirror_AttemptsAreExhaustedWhereTheSourceSaysSo(k *kit) {
	for i, c := range []struct {
		used, limit, shown int
		reason             retry.Reason
	}{
		{3, 3, 3, retry.AttemptsExhausted}, {4, 3, 4, retry.AttemptsExhausted}, {1, 3, 3, retry.ReasonUnknown},
		{0, 3, 3, retry.ReasonUnknown}, {3, 0, 0, retry.ReasonUnknown},
	} {
		r := k.deadAt(strconv.Itoa(i))
		r.Attempts, r.Limit, r.FailedAt = c.used, c.limit, k.now
		j := k.mirror(1, r)[0]
		k.same(fmt.Sprint(c), []any{j.Attempts, j.MaxAttempts(), j.Reason}, []any{c.used, c.shown, c.reason})
		k.pass(time.Second)

		// And when it dies again, of which it says nothing.
		r.Witness, r.Attempts, r.Limit, r.FailedAt = "2", 0, 0, k.now
		j = k.mirror(1, r)[0]
		k.same(fmt.Sprint(c, " again"), []any{j.Run, j.Attempts, j.Reason}, []any{2, 0, retry.ReasonUnknown})
		k.pass(time.Second)
	}
}

// Mirror_AnUnknownNumberOfAttemptsMatchesNone: neither a small one nor a large one.
func Mirror_AnUnknownNumberOfAttemptsMatchesNone(k *kit) {
	unknown, known := k.deadAt("1"), k.deadAt("2")
	unknown.Attempts = 0
	k.mirror(2, unknown, known)
	k.dead(simple())
	for text, want := range map[string]int{"attempts:<9": 2, "attempts:<=2": 1, "attempts:>0": 2, "attempts:3": 1, "attempts:>3": 0, "": 3} {
		f, err := filter.Parse("state:dead_letter "+text, k.now)
		k.check(err)
		k.same(text, len(k.letters(f, 10)), want)
	}
}

// Mirror_ListsInTheOrderOfFailure: what was read in one look, and later what failed before.
func Mirror_ListsInTheOrderOfFailure(k *kit) {
	at := func(key string, minutes int) source.Record {
		r := k.deadAt(key)
		r.FailedAt, r.Thread = k.now.Add(-time.Duration(minutes)*time.Minute), key
		return r
	}
	keys := func(jobs []job.Job) (all []string) {
		for _, j := range jobs {
			all = append(all, k.detail(j.ID).Mirrored.Key)
		}
		return all
	}
	k.mirror(3, at("new", 10), at("old", 30), at("middle", 20))
	k.same("all jobs", keys(k.all(filter.Filter{}, 1)), []string{"new", "middle", "old"})
	k.mirror(1, at("older", 40))
	want := []string{"new", "middle", "old", "older"}
	k.same("of the source", keys(k.all(filter.Filter{Source: "shop"}, 1)), want)
	k.same("of its queue", keys(k.all(filter.Filter{Queue: "orders@shop"}, 3)), want)
	slices.Reverse(want)
	k.same("oldest first", keys(k.all(filter.Filter{Source: "shop", Sort: filter.Oldest}, 2)), want)
}

// Mirror_KnowsWhatASourceDoesNotCount: attempts are zero, and times that are
// to come are now.
func Mirror_KnowsWhatASourceDoesNotCount(k *kit) {
	r := source.Record{Key: "k", FailedAt: k.now.Add(time.Hour), Type: "t\x00\xff"}
	j := k.mirror(1, r)[0]
	k.same("queue and type", []string{j.Queue, j.Type}, []string{"default@shop", "t\uFFFD\uFFFD"})
	k.same("attempts", j.Attempts, 0)
	k.same("when it failed", j.ChangedAt, k.now)
}

// Mirror_ATimeOutOfBoundsIsUnknown: before 1970, after the year 9999, or so large that it
// overflows.
func Mirror_ATimeOutOfBoundsIsUnknown(k *kit) {
	for i, at := range []time.Time{
		time.Unix(0, 5000), time.Unix(-1, 0), time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Unix(253402300800, 0),
		time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0), time.Unix(math.MaxInt64/1000, 0),
	} {
		r := k.deadAt(strconv.Itoa(i))
		r.FailedAt, r.CreatedAt = at, at
		r.History = []source.Failure{{Number: 1, At: at}}
		j := k.mirror(1, r)[0]
		k.same(fmt.Sprint("times for ", at.Unix()), []time.Time{j.EnqueuedAt, j.RunAt, j.FinishedAt}, make([]time.Time, 3))
		k.same("since when it is where it is", j.ChangedAt, k.now)
		d := k.detail(j.ID)
		k.same("its letter and attempts", []time.Time{d.Letters[0].FailedAt, d.Attempts[0].FinishedAt, d.Attempts[1].FinishedAt}, make([]time.Time, 3))
	}
}

// Mirror_DyingElsewhereIsTheNextRun: somebody replayed it elsewhere, and it died again.
func Mirror_DyingElsewhereIsTheNextRun(k *kit) {
	r := k.deadAt("7")
	k.mirror(1, r)
	k.pass(time.Minute)
	r.Witness, r.FailedAt, r.Error.Message = "2", k.now, "no answer"
	j := k.mirror(1, r)[0]
	k.same("run, status, error", []any{j.Run, j.Status(), j.Error.Message}, []any{2, job.StatusDeadLetter, "no answer"})
	d := k.detail(j.ID)
	k.same("who replayed it", []any{len(d.Replays), d.Replays[0].By}, []any{1, "the source shop"})
	k.same("dead letters", k.Snapshot().Depths[job.StatusDeadLetter], int64(1))
}

// Mirror_AThreadIsOneJob: a record with another key and the same thread is the next run
// of a job that has left, and another job beside one that still lies there.
func Mirror_AThreadIsOneJob(k *kit) {
	r := k.deadAt("7")
	first := k.mirror(1, r)[0]
	lying, err := k.Sources.Lies(k.ctx, "shop", k.now.Add(time.Second), 0, 10)
	k.check(err)
	_, err = k.Vanished(k.ctx, k.now, "shop", []int64{lying[0].Seq})
	k.check(err)
	k.pass(time.Minute)
	r.Key, r.Witness, r.FailedAt = "19", "19", k.now
	all := k.mirror(1, r)
	k.same("jobs", []any{len(all), all[0].ID, all[0].Run}, []any{1, first.ID, 2})
	k.pass(time.Minute)
	r.Key, r.Witness, r.FailedAt = "23", "23", k.now
	all = k.mirror(1, r)
	k.same("jobs of two records", []any{len(all), all[0].Run, all[1].ID, all[1].Run}, []any{2, 1, first.ID, 2})
}

// Mirror_APageIsTakenOverTogether: of more records than one statement writes, those that
// are new, one that died again and one that is no news. The same key twice is one record.
func Mirror_APageIsTakenOverTogether(k *kit) {
	again, known := k.deadAt("1"), k.deadAt("2")
	k.mirror(2, again, known)
	k.pass(time.Minute)
	again.Witness, again.FailedAt, again.Error.Message = "2", k.now, "no answer"
	page := []source.Record{again, known}
	for i := range 90 {
		page = append(page, k.deadAt(strconv.Itoa(100+i)))
	}
	all := k.mirror(91, append(page, page[50])...)
	k.same("jobs", len(all), 92)
	k.same("dead letters", k.Snapshot().Depths[job.StatusDeadLetter], int64(92))
	for _, j := range all {
		d := k.detail(j.ID)
		runs := 1
		if d.Mirrored.Key == "1" {
			runs = 2
		}
		k.same("runs, letters and status of "+d.Mirrored.Key, []any{j.Run, len(d.Letters), j.Status(), d.Mirrored.Lies}, []any{runs, runs, job.StatusDeadLetter, true})
		k.same("payload of "+d.Mirrored.Key, string(d.Job.Payload), `{"order":`+d.Mirrored.Key+`}`)
		k.same("error of "+d.Mirrored.Key, d.Attempts[len(d.Attempts)-1].Error, j.Error)
	}
	k.mirror(0, page...)
}

// Mirror_WhatVanishedIsGoneUntilItLiesThereAgain.
func Mirror_WhatVanishedIsGoneUntilItLiesThereAgain(k *kit) {
	r := k.deadAt("7")
	j := k.mirror(1, r)[0]
	k.pass(time.Minute)
	lying, err := k.Sources.Lies(k.ctx, "shop", k.now, 0, 10)
	k.check(err)
	k.same("what lies there", []any{len(lying), lying[0].Key}, []any{1, "7"})
	records, err := k.Sources.Lying(k.ctx, []int64{lying[0].Seq})
	k.check(err)
	k.same("its record", []any{len(records), records[0].Seq, records[0].Witness, string(records[0].Raw)}, []any{1, j.Seq, r.Witness, string(r.Raw)})
	n, err := k.Vanished(k.ctx, k.now, "shop", []int64{lying[0].Seq})
	k.check(err)
	k.same("gone", []any{n, k.job(j.ID).Status(), k.job(j.ID).Reason}, []any{1, job.Status(job.Discarded), retry.GoneAtSource})
	n, err = k.Vanished(k.ctx, k.now, "shop", []int64{lying[0].Seq})
	k.check(err)
	k.same("gone again", n, 0)
	records, err = k.Sources.Lying(k.ctx, []int64{j.Seq})
	k.check(err)
	k.same("records of what is gone", len(records), 0)
	_, err = k.Replay(k.ctx, k.now, j.ID, 1, eve)
	k.conflict(err)
	k.pass(time.Minute)
	k.mirror(1, r)
	k.same("there again", []any{k.job(j.ID).Status(), k.job(j.ID).Run}, []any{job.StatusDeadLetter, 2})
}

// Mirror_IsListedBySource: among the jobs of others, and its letters and counts alone.
func Mirror_IsListedBySource(k *kit) {
	k.dead(simple())
	k.mirror(2, k.deadAt("1"), k.deadAt("2"))
	_, err := k.Mirror(k.ctx, k.now, "mail", []source.Record{k.deadAt("1")})
	k.check(err)
	f := filter.Filter{Status: job.StatusDeadLetter, Source: "shop"}
	k.same("letters", len(k.letters(f, 10)), 2)
	k.same("letters of all", len(k.letters(filter.Filter{Status: job.StatusDeadLetter}, 10)), 4)
	t, complete, err := k.Counters.Known(k.ctx, f)
	k.check(err)
	k.same("counted", []any{t.Total, complete, len(t.Facets.Queues)}, []any{int64(2), true, 1})
}

// Source_AReplayIsAskedOfIt: the job is pending in its next run, and the act names what
// the person saw.
func Source_AReplayIsAskedOfIt(k *kit) {
	j := k.mirror(1, k.deadAt("7"))[0]
	k.pass(time.Minute)
	to, err := k.ReplayWith(k.ctx, k.now, j.ID, 1, job.Edit{Mode: string(source.Fresh)}, eve)
	k.check(err)
	k.same("the job", []any{to.State, to.Run}, []any{job.Pending, 2})
	act := k.asked(1)[0]
	k.same("the act", []any{act.Kind, act.Mode, act.Key, act.Witness, act.JobID, act.Run, act.By},
		[]any{source.Replay, source.Fresh, "7", "1", j.ID, 2, eve.Name})
	k.asked(0)
	begun, err := k.Sources.Begun(k.ctx, "shop", 10)
	k.check(err)
	k.same("begun", len(begun), 1)
	k.answer(act, source.Done, "")
	k.same("the job", k.job(j.ID).State, job.Pending)
	k.same("it lies there", k.detail(j.ID).Mirrored.Lies, false)
	k.same("replayed", k.Snapshot().Totals, job.Totals{Replayed: 1})
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
		r.Witness, r.FailedAt = strconv.Itoa(run+1), k.now.Add(time.Second)
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
	r.Witness, r.FailedAt = "2", k.now
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
	k.same("why", got.Letters[1].Problem, "no rights")
	k.same("it lies there", got.Mirrored.Lies, true)
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
	k.same("the job", []any{to.State, to.RunAt, string(k.job(j.ID).Payload)}, []any{job.Pending, at, `{"order":8}`})
	act := k.asked(1)[0]
	k.same("the act", []any{act.Due, string(act.Payload)}, []any{at, `{"order":8}`})
	k.same("the run before", string(k.detail(j.ID).Replays[0].Earlier.Body.Payload), `{"order":7}`)
	k.answer(act, source.Done, "")
	k.same("what the ledger keeps", k.detail(j.ID).Mirrored.Acts[0].Payload, []byte(nil))
}

// Source_ARefusedEditIsTakenBack: what lies at the source has the payload that it had.
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
	k.same("not back", []any{source.Returned(k.job(j.ID), k.now), k.job(j.ID).State}, []any{true, job.Pending})
	limits := retention.Limits{Ages: retention.Ages{retention.Completed: day, retention.Discarded: time.Hour, retention.DeadLetters: time.Hour}}
	k.pass(day - source.ReturnedAfter)
	k.same("removed after a day", k.sweep(limits), removed("", 0))
	k.pass(time.Millisecond)
	k.same("removed", k.sweep(limits).Of(retention.Completed), int64(1))
	k.same("the one on its way", k.job(late.ID).State, job.Pending)
	k.answer(acts[1], source.Done, "")
	k.pass(time.Minute)
	r := k.deadAt("8")
	r.Witness, r.FailedAt = "2", k.now
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

// Source_ADiscardIsAskedOfIt: the job is in the trash, from which nobody can restore it.
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
	k.same("the job", k.job(j.ID).State, job.Pending)
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
	k.check(k.SettleActs(k.ctx, k.now, append(said, said[0]))) // the first one is told twice
	acts, err := k.Sources.Acts(k.ctx, "shop", 10)
	k.check(err)
	ends := map[int64]source.Act{}
	for _, a := range acts {
		ends[a.ID] = a
	}
	for i, want := range []string{"pending in run 2, shop", "dead_letter in run 2, ", "pending in run 2, shop", "discarded in run 2, ", "trashed in run 1, ", "pending in run 2, shop"} {
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
	r.Witness = "2"
	k.mirror(0, r)
	n, err := k.Vanished(k.ctx, k.now, "shop", []int64{j.Seq})
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
	again.Witness, again.FailedAt = "2", k.now
	k.mirror(1, again)
	k.same("successes", k.succeeded(k.handed(source.Handed{}, 10)...), 3)
	got := k.operation(o.ID)
	k.same("how the runs ended", []int64{got.Succeeded, got.Relapsed, got.Dropped, got.Unsettled()}, []int64{3, 1, 1, 0})
}
