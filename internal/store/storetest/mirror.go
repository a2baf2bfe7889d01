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
	"redrive/internal/retry"
	"redrive/internal/source"
	"redrive/internal/stats"
)

var mirroring = []func(*kit){
	Mirror_ARecordIsADeadLetter, Mirror_AKeyThatIsNoTextIsOneRecord, Mirror_TheSameRecordChangesNothing,
	Mirror_KnowsWhatASourceDoesNotCount, Mirror_WhatASourceDoesNotSayStaysUnknown,
	Mirror_AttemptsAreExhaustedWhereTheSourceSaysSo, Mirror_AnUnknownNumberOfAttemptsMatchesNone, Mirror_ListsInTheOrderOfFailure,
	Mirror_DyingElsewhereIsTheNextRun, Mirror_ALineageIsOneJob, Mirror_ALineageGoesOnInOneRecordOfAPage, Mirror_APageIsTakenOverTogether, Mirror_IsAddedInTheOrderOfItsNumbers,
	Mirror_WhatVanishedIsGoneUntilItIsThereAgain, Mirror_IsListedBySource, Mirror_ATimeOutOfBoundsIsUnknown,
}

// deadAt is a record that is at a source.
func (k *kit) deadAt(key string) source.Record {
	return source.Record{
		Key: key, Lineage: "thread-" + key, Place: "failed", VersionToken: "1", Queue: "orders", Type: "charge",
		Payload: []byte(`{"order":` + key + `}`), Error: job.ErrorInfo{Type: "Declined", Message: "card declined"}, Trace: "at charge()",
		Attempts: 3, Limit: 3, FailedAt: k.now.Add(-time.Hour), CreatedAt: k.now.Add(-2 * time.Hour), Warnings: []string{"Mind the step."},
	}
}

// mirror takes records over, and returns the jobs of the source, the newest first.
func (k *kit) mirror(want int, records ...source.Record) []job.Job {
	k.Helper()
	n, err := k.Mirror.Update(k.ctx, k.now, "shop", records)
	k.check(err)
	k.same("jobs that came or changed", n, want)
	jobs := k.all(filter.Filter{Source: "shop"}, 100)
	slices.SortFunc(jobs, func(a, b job.Job) int { return cmp.Compare(b.Seq, a.Seq) })

	return jobs
}

// Mirror_AKeyThatIsNoTextIsOneRecord: whatever bytes a source names its records by, the
// second look finds what the first one kept.
func Mirror_AKeyThatIsNoTextIsOneRecord(k *kit) {
	odd := []source.Record{k.deadAt("1"), k.deadAt("2"), k.deadAt("3"), k.deadAt("4")}
	for i, key := range []string{"a\x00b", "\xff\xfe", "c\x00", "well"} {
		odd[i].Key, odd[i].Lineage, odd[i].VersionToken = key, key, key
	}

	k.mirror(4, odd...)
	k.mirror(0, odd...)
	unseen, err := k.Sources.Unseen(k.ctx, "shop", odd)
	k.check(err)
	k.same("unseen", len(unseen), 0)
	duplicates, err := k.Sources.Duplicates(k.ctx, "shop", odd)
	k.check(err)
	k.same("records under another key", len(duplicates), 0)

	odd[0].VersionToken = "it died again"
	j := k.mirror(1, odd...)
	k.same("jobs", len(j), 4)

	// One that left and died again under another key is known by the name of its job.
	left := j[2].Seq
	_, err = k.Mirror.Vanished(k.ctx, k.now, "shop", []int64{left})
	k.check(err)
	k.pass(time.Minute)

	odd[1].Key, odd[1].VersionToken = "later", "later"
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
	k.same("where it is", []any{d.Mirrored.Place, d.Mirrored.Key, d.Mirrored.Present, d.Mirrored.Warnings}, []any{"failed", "7", true, r.Warnings})
	k.same("counters", k.Snapshot().Totals, stats.Totals{})
	k.same("dead letters", k.Snapshot().Depths[job.StatusDeadLetter], int64(1))
	k.same("nothing to claim", len(k.claim("orders@shop", 10)), 0)
	k.restart()
	k.same("dead letters after a restart", k.Snapshot().Depths[job.StatusDeadLetter], int64(1))
}

// Mirror_TheSameRecordChangesNothing.
func Mirror_TheSameRecordChangesNothing(k *kit) {
	r := k.deadAt("7")
	k.mirror(1, r)
	k.mirror(0, r)
	unseen, err := k.Sources.Unseen(k.ctx, "shop", []source.Record{r, k.deadAt("8")})
	k.check(err)
	k.same("unseen", []any{len(unseen), unseen[0].Key}, []any{1, "8"})
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
	l := k.deadLetters(filter.Filter{}, 10)[0]
	k.same("its letter", []any{l.FailedAt, l.Attempts, l.Reason}, []any{time.Time{}, 0, retry.ReasonUnknown})
	k.same("the letter of its run", k.detail(j.ID).DeadLetters[0].FailedAt, time.Time{})

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
		r.VersionToken, r.Attempts, r.Limit, r.FailedAt = "2", 0, 0, k.now
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
		k.same(text, len(k.deadLetters(f, 10)), want)
	}
}

// Mirror_ListsInTheOrderOfFailure: what was read in one look, and later what failed before.
func Mirror_ListsInTheOrderOfFailure(k *kit) {
	at := func(key string, minutes int) source.Record {
		r := k.deadAt(key)
		r.FailedAt, r.Lineage = k.now.Add(-time.Duration(minutes)*time.Minute), key
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
		k.same("its letter and attempts", []time.Time{d.DeadLetters[0].FailedAt, d.Attempts[0].FinishedAt, d.Attempts[1].FinishedAt}, make([]time.Time, 3))
	}
}

// Mirror_DyingElsewhereIsTheNextRun: the job was replayed elsewhere, and it died again.
func Mirror_DyingElsewhereIsTheNextRun(k *kit) {
	r := k.deadAt("7")
	k.mirror(1, r)
	k.pass(time.Minute)
	r.VersionToken, r.FailedAt, r.Error.Message = "2", k.now, "no answer"
	j := k.mirror(1, r)[0]
	k.same("run, status, error", []any{j.Run, j.Status(), j.Error.Message}, []any{2, job.StatusDeadLetter, "no answer"})
	d := k.detail(j.ID)
	k.same("who replayed it", []any{len(d.Replays), d.Replays[0].By}, []any{1, "the source shop"})
	k.same("dead letters", k.Snapshot().Depths[job.StatusDeadLetter], int64(1))
}

// Mirror_ALineageIsOneJob: a record with another key and the same lineage is the next run
// of a job that has left, and another job beside one that is still there.
func Mirror_ALineageIsOneJob(k *kit) {
	r := k.deadAt("7")
	first := k.mirror(1, r)[0]
	present, err := k.Sources.PresentKeys(k.ctx, "shop", k.now.Add(time.Second), 0, 10)
	k.check(err)
	_, err = k.Mirror.Vanished(k.ctx, k.now, "shop", []int64{present[0].Seq})
	k.check(err)
	k.pass(time.Minute)
	r.Key, r.VersionToken, r.FailedAt = "19", "19", k.now
	all := k.mirror(1, r)
	k.same("jobs", []any{len(all), all[0].ID, all[0].Run}, []any{1, first.ID, 2})
	k.pass(time.Minute)
	r.Key, r.VersionToken, r.FailedAt = "23", "23", k.now
	all = k.mirror(1, r)
	k.same("jobs of two records", []any{len(all), all[0].Run, all[1].ID, all[1].Run}, []any{2, 1, first.ID, 2})
}

// Mirror_ALineageGoesOnInOneRecordOfAPage: of two records that a job has left behind, the one
// that failed first is its next run, and the other one is another job. That is what becomes of
// them when each is read as it dies. A page has the newest first.
func Mirror_ALineageGoesOnInOneRecordOfAPage(k *kit) {
	r := k.deadAt("7")
	first := k.mirror(1, r)[0]
	_, err := k.Mirror.Vanished(k.ctx, k.now, "shop", []int64{first.Seq})
	k.check(err)
	k.pass(time.Hour)

	older, newer := r, r
	older.Key, older.VersionToken, older.FailedAt = "19", "19", k.now.Add(-2*time.Minute)
	newer.Key, newer.VersionToken, newer.FailedAt = "23", "23", k.now.Add(-time.Minute)
	all := k.mirror(2, newer, older)
	if len(all) != 2 {
		k.Fatalf("%d jobs, want 2", len(all))
	}

	k.same("which of them goes on", []any{all[1].ID, all[1].Run, all[0].Run}, []any{first.ID, 2, 1})
	k.same("their records", []string{k.detail(all[1].ID).Mirrored.Key, k.detail(all[0].ID).Mirrored.Key}, []string{"19", "23"})
	k.same("dead letters", k.Snapshot().Depths[job.StatusDeadLetter], int64(2))
	k.same("jobs after another scan", len(k.mirror(0, newer, older)), 2)
}

// Mirror_IsAddedInTheOrderOfItsNumbers: of records that are read together, whatever their
// order, the id of a job that comes before another one is older, too: when a job was added is read
// from its id, and lists are in the order of the numbers.
func Mirror_IsAddedInTheOrderOfItsNumbers(k *kit) {
	var page []source.Record
	for i := range 50 { // the newest first
		r := k.deadAt(strconv.Itoa(i))
		r.FailedAt = k.now.Add(-time.Duration(i) * time.Minute)
		page = append(page, r)
	}

	all := ids(k.mirror(50, page...))
	slices.Reverse(all)
	k.same("ids by their numbers", all, slices.Sorted(slices.Values(all)))
}

// Mirror_APageIsTakenOverTogether: of more records than one statement writes, those that
// are new, one that died again and one that is no unseen. The same key twice is one record.
func Mirror_APageIsTakenOverTogether(k *kit) {
	again, known := k.deadAt("1"), k.deadAt("2")
	k.mirror(2, again, known)
	k.pass(time.Minute)

	again.VersionToken, again.FailedAt, again.Error.Message = "2", k.now, "no answer"
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

		k.same("runs, letters and status of "+d.Mirrored.Key, []any{j.Run, len(d.DeadLetters), j.Status(), d.Mirrored.Present}, []any{runs, runs, job.StatusDeadLetter, true})
		k.same("payload of "+d.Mirrored.Key, string(d.Job.Payload), `{"order":`+d.Mirrored.Key+`}`)
		k.same("error of "+d.Mirrored.Key, d.Attempts[len(d.Attempts)-1].Error, j.Error)
	}

	k.mirror(0, page...)
}

// Mirror_WhatVanishedIsGoneUntilItIsThereAgain.
func Mirror_WhatVanishedIsGoneUntilItIsThereAgain(k *kit) {
	r := k.deadAt("7")
	j := k.mirror(1, r)[0]
	k.pass(time.Minute)
	present, err := k.Sources.PresentKeys(k.ctx, "shop", k.now, 0, 10)
	k.check(err)
	k.same("what is there", []any{len(present), present[0].Key}, []any{1, "7"})
	records, err := k.Sources.Present(k.ctx, []int64{present[0].Seq})
	k.check(err)
	k.same("its record", []any{len(records), records[0].Seq, records[0].VersionToken, string(records[0].Raw)}, []any{1, j.Seq, r.VersionToken, string(r.Raw)})
	n, err := k.Mirror.Vanished(k.ctx, k.now, "shop", []int64{present[0].Seq})
	k.check(err)
	k.same("gone", []any{n, k.job(j.ID).Status(), k.job(j.ID).Reason}, []any{1, job.Status(job.Discarded), retry.GoneAtSource})
	n, err = k.Mirror.Vanished(k.ctx, k.now, "shop", []int64{present[0].Seq})
	k.check(err)
	k.same("gone again", n, 0)
	records, err = k.Sources.Present(k.ctx, []int64{j.Seq})
	k.check(err)
	k.same("records of what is gone", len(records), 0)
	_, err = k.Replay(k.ctx, k.now, j.ID, 1, eve)
	k.conflict(err)
	k.pass(time.Minute)
	k.mirror(1, r)
	k.same("there again", []any{k.job(j.ID).Status(), k.job(j.ID).Run}, []any{job.StatusDeadLetter, 2})
}

// Mirror_IsListedBySource: among the jobs of others, and its dead letters and counts alone.
func Mirror_IsListedBySource(k *kit) {
	k.dead(simple())
	k.mirror(2, k.deadAt("1"), k.deadAt("2"))
	_, err := k.Mirror.Update(k.ctx, k.now, "mail", []source.Record{k.deadAt("1")})
	k.check(err)

	f := filter.Filter{Status: job.StatusDeadLetter, Source: "shop"}
	k.same("letters", len(k.deadLetters(f, 10)), 2)
	k.same("letters of all", len(k.deadLetters(filter.Filter{Status: job.StatusDeadLetter}, 10)), 4)
	t, complete, err := k.Counters.Known(k.ctx, f)
	k.check(err)
	k.same("counted", []any{t.Total, complete, len(t.Facets.Queues)}, []any{int64(2), true, 1})
}
