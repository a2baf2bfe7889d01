package storetest

import (
	"fmt"
	"slices"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retry"
	"redrive/internal/stats"
)

var counting = []func(*kit){
	SnapshotOfNothing, SnapshotRisesWithEachCommit, DepthsAreTheStates, QueuesTellAll, QueuesSayWhatWaits,
	ReasonsCountOpenDeadLetters, TalliesByQueueAndType, TalliesAreBounded, RestartKeepsEverything,
}

// SnapshotOfNothing: every status is there, as zero.
func SnapshotOfNothing(k *kit) {
	want := stats.Depths{}
	for _, status := range job.Statuses() {
		want[status] = 0
	}

	k.same("the depths", k.Snapshot().Depths, want)
	k.same("the totals", k.Snapshot().Totals, stats.Totals{})
}

// SnapshotRisesWithEachCommit: the number rises with every change, never falls
// at a restart, and stays when nothing changes. Who has a snapshot can do with
// it what he wants.
func SnapshotRisesWithEachCommit(k *kit) {
	last := k.Snapshot().Seq
	rises := func(what string, want bool) {
		k.Helper()

		if now := k.Snapshot().Seq; now > last != want || now < last {
			k.Errorf("%s: the snapshot went from %d to %d", what, last, now)
		}

		last = k.Snapshot().Seq
		k.Snapshot().Depths[job.StatusHeld] = 77
	}
	j := k.begin(simple())

	rises("claim", true)
	k.settle(j, job.Failed)
	rises("settle", true)
	k.claim("orders", 1)
	rises("empty claim", false)

	_, err := k.Replay(k.ctx, k.now, j.ID, 5, audit.Actor{Name: "eve"})
	k.conflict(err)
	rises("conflict", false)
	k.check(k.Accounts.Record(k.ctx, audit.Entry{At: k.now, Actor: ana, Action: "worker.quiet"}))
	rises("an entry of the audit log", true)
	k.restart()
	rises("restart", false)
	k.add(simple())
	rises("enqueue after the restart", true)
	k.same("held", k.Snapshot().Depths[job.StatusHeld], int64(0))
}

// depths counts jobs the long way.
func depths(jobs []job.Job) stats.Depths {
	d := stats.Depths{}
	for _, status := range job.Statuses() {
		d[status] = 0
	}

	for _, j := range jobs {
		d[job.Status(j.State)]++
		if j.Status() != job.Status(j.State) {
			d[j.Status()]++
		}
	}

	return d
}

// DepthsAreTheStates: after all sorts of changes the depths, by queue and over
// all queues, are what counting the jobs gives.
func DepthsAreTheStates(k *kit) {
	jobs := k.variety()
	k.same("the depths", k.Snapshot().Depths, depths(jobs))
	k.same("all jobs", k.Snapshot().Depths.Jobs(), int64(len(jobs)))
	queues, err := k.Counters.Queues(k.ctx, k.now, k.QueueNames())
	k.check(err)

	for _, q := range queues {
		want := depths(slices.DeleteFunc(slices.Clone(jobs), func(j job.Job) bool { return j.Queue != q.Name }))
		for status, n := range want {
			if q.Depths[status] != n {
				k.Errorf("queue %s has %d jobs %s, want %d", q.Name, q.Depths[status], status, n)
			}
		}
	}
}

// QueuesTellAll: every queue by name, with totals that add up to the
// snapshot's, and an hour that adds up to the last hour's.
func QueuesTellAll(k *kit) {
	k.variety()
	queues, err := k.Counters.Queues(k.ctx, k.now, k.QueueNames())
	k.check(err)
	hour, err := k.Counters.LastHour(k.ctx, k.now)
	k.check(err)
	var names []string

	var totals stats.Totals
	sums := make([]stats.Totals, 60)
	for _, q := range queues {
		names = append(names, q.Name)
		totals = totals.Add(q.Totals)
		for i, t := range q.LastHour {
			sums[i] = sums[i].Add(t)
		}
	}

	k.same("the names", names, []string{"mail", "mail.slow", "orders"})
	k.same("the totals", totals, k.Snapshot().Totals)
	k.same("the hour", sums, hour)
}

// QueuesSayWhatWaits: Oldest is the time since when the job that is claimed
// next could run; zero when none could.
func QueuesSayWhatWaits(k *kit) {
	oldest := func() time.Time {
		queues, err := k.Counters.Queues(k.ctx, k.now, k.QueueNames())
		k.check(err)
		return queues[0].Oldest
	}
	later := simple()
	later.RunAt = k.now.Add(time.Hour)
	k.add(later)
	k.same("with a job that is not due", oldest(), time.Time{})
	k.pass(2 * time.Hour)
	k.same("with a job that came due", oldest(), later.RunAt)
	since := k.now
	k.add(simple())
	k.pass(time.Minute)
	k.same("with an available job", oldest(), since)

	// The next one is that of the highest priority, also where claims have come to a lower one.
	k.claim("orders", 1)
	k.add(many(3)...)
	k.claim("orders", 1)

	urgent := simple()
	urgent.Priority = 5
	behind := k.now
	k.pass(time.Minute)
	k.add(urgent)
	k.same("with an urgent job", oldest(), k.now)
	k.claim("orders", 1)
	k.same("without an urgent job", oldest(), behind)
	k.claim("orders", 3)
	k.same("with jobs that run", oldest(), time.Time{})
}

// ReasonsCountOpenDeadLetters: by reason, the most frequent first.
func ReasonsCountOpenDeadLetters(k *kit) {
	for range 3 {
		k.dead(simple())
	}

	for range 2 {
		e := k.ending(job.Failed)
		e.Answer.Code = retry.CodeDeadLetter
		k.settleAs(k.begin(simple()).Settle(e, nil))
	}

	got, err := k.Counters.Reasons(k.ctx)
	k.check(err)
	k.same("the reasons", got, []filter.ReasonCount{{Reason: retry.AttemptsExhausted, Count: 3}, {Reason: retry.HandlerDeadLetter, Count: 2}})
}

// TalliesByQueueAndType: the counters of each pair.
func TalliesByQueueAndType(k *kit) {
	j := in("b")
	j.Type = "report"
	k.settle(k.begin(j), job.Succeeded)
	k.settle(k.begin(in("b")), job.Failed)
	k.dead(in("a"))
	got, err := k.Counters.Tallies(k.ctx)
	k.check(err)
	k.same("the tallies", got, []queues.Tally{
		{Queue: "a", Type: "email.send", Totals: stats.Totals{Failed: 1, FailedPermanently: 1}},
		{Queue: "b", Type: "email.send", Totals: stats.Totals{Failed: 1, Requeued: 1}},
		{Queue: "b", Type: "report", Totals: stats.Totals{Succeeded: 1}},
	})
}

// TalliesAreBounded: past a thousand types the rest counts under "other", also
// after a restart; nothing is lost from the totals.
func TalliesAreBounded(k *kit) {
	for round := range 3 {
		jobs := many(500)
		for i := range jobs {
			jobs[i].Type = fmt.Sprintf("type-%d-%d", round, i)
		}

		k.add(jobs...)

		var settle []job.Settlement
		for _, j := range k.claim("orders", 500) {
			settle = append(settle, j.Settle(k.ending(job.Succeeded), nil))
		}

		k.exchange(settle, "", 0)
		k.restart()
	}

	got, err := k.Counters.Tallies(k.ctx)
	k.check(err)

	var sum, other int64
	for _, t := range got {
		sum += t.Totals.Succeeded
		if t.Type == "other" {
			other = t.Totals.Succeeded
		}
	}

	k.same("tallies", len(got), 1001)
	k.same("the sum and other", []int64{sum, other, k.Snapshot().Totals.Succeeded}, []int64{1500, 500, 1500})
}

// RestartKeepsEverything: what the store told before, it tells after it was
// closed and opened again.
func RestartKeepsEverything(k *kit) {
	k.variety()
	k.check(k.Pause(k.ctx, k.now, "mail", audit.Actor{Name: "eve"}))

	tell := func() []any {
		var all []any
		add := func(v any, err error) {
			k.check(err)

			all = append(all, v)
		}
		for _, j := range k.all(filter.Filter{}, 1000) {
			add(k.Job(k.ctx, j.ID))
		}

		add(k.Counters.Queues(k.ctx, k.now, k.QueueNames()))
		add(k.Counters.LastHour(k.ctx, k.now))
		add(k.Counters.Reasons(k.ctx))
		add(k.Counters.Held(k.ctx, "", 100))
		add(k.Counters.Tallies(k.ctx))
		add(k.Leases(k.ctx, time.Time{}))
		add(k.NextDue(k.ctx, k.now))
		add(k.Snapshot(), nil)

		return all
	}
	before := tell()

	k.restart()
	k.same("everything", tell(), before)

	for _, j := range before[len(before)-3].([]job.Job) {
		k.settle(j, job.Succeeded) // leases survive too
	}
}
