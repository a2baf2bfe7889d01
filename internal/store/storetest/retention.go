package storetest

import (
	"errors"
	"slices"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retention"
	"redrive/internal/retry"
)

var retaining = []func(*kit){
	RetentionRemovesEachKindAfterItsAge, RetentionFollowsTypeThenQueue, RetentionKeepsForeverWhatHasNoAge,
	RetentionSparesWhatHasNotEnded, RetentionSparesWhatARunningOperationNeeds, RetentionSparesWhatWasReplayed,
	RetentionRemembersWhatItRemoved, RetentionForgetsAfterAsLong, RetentionIsAuditedOnceForEachSweep,
	RetentionCountsByKindAndQueue, RetentionRemovesManyInSteps, RetentionLeavesNothingToFind, ForecastTellsWhatGoesSoon,
	ForecastAnnouncesWhatIsTooMany, ForecastCountsNoDeadLetterTwice,
	Retention_ItsClockOutlivesARestart, Retention_ItsClockBeginsWithTheNewestTime,
}

const day = 24 * time.Hour

// removed is what a sweep of the queue orders removed: so many jobs of one kind.
func removed(kind retention.Kind, n int64) retention.Pruned {
	p := retention.Pruned{Jobs: map[retention.Part]int64{}}
	if n > 0 {
		p.Jobs[retention.Part{Kind: kind, Queue: "orders"}] = n
	}

	return p
}

// sweep removes what is over at the kit's time.
func (k *kit) sweep(l retention.Limits) retention.Pruned {
	k.Helper()
	done, err := k.Sweep.Prune(k.ctx, k.now, l)
	k.check(err)
	return done
}

// completed is a job that succeeded.
func (k *kit) completed(j job.Job) job.Job {
	k.Helper()
	return k.settle(k.begin(j), job.Succeeded)
}

// givenUp is a job that its policy discarded.
func (k *kit) givenUp(j job.Job) job.Job {
	k.Helper()

	j.Policy = policy(1)
	j.Policy.OnExhaustion = retry.Discard

	return k.settle(k.begin(j), job.Failed)
}

func (k *kit) cancelled(j job.Job) job.Job {
	k.Helper()
	j = k.add(j)[0]
	_, err := k.Cancel(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)

	return k.job(j.ID)
}

// left are the names of those jobs that are still there, in order.
func (k *kit) left(jobs map[string]job.Job) []string {
	k.Helper()

	names := []string{}
	for name, j := range jobs {
		if _, err := k.Job(k.ctx, j.ID); err == nil {
			names = append(names, name)
		} else if !errors.Is(err, job.ErrNotFound) {
			k.Fatal(err)
		}
	}

	slices.Sort(names)

	return names
}

// RetentionRemovesEachKindAfterItsAge: counted from when the job ended.
func RetentionRemovesEachKindAfterItsAge(k *kit) {
	started := k.begin(simple())
	k.pass(12 * time.Hour)
	jobs := map[string]job.Job{
		"completed": k.settle(started, job.Succeeded), "cancelled": k.cancelled(simple()), "discarded": k.givenUp(simple()), "dead": k.dead(simple()),
	}
	k.pass(time.Second)
	k.dead(in("newest"))

	limits := retention.Limits{Ages: retention.Ages{
		retention.Completed: day, retention.Cancelled: 2 * day, retention.Discarded: 3 * day, retention.DeadLetters: 4 * day,
	}}
	end := k.now.Add(-time.Second)
	k.now = end.Add(day)
	k.same("removed after a day to the second", k.sweep(limits), removed("", 0))

	want := []string{"cancelled", "completed", "dead", "discarded"}
	for _, kind := range []retention.Kind{retention.Completed, retention.Cancelled, retention.Discarded, retention.DeadLetters} {
		k.now = end.Add(limits.Ages[kind] + time.Millisecond)
		k.same("removed", k.sweep(limits), removed(kind, 1))

		gone := string(kind)
		if kind == retention.DeadLetters {
			gone = "dead"
		}

		want = slices.DeleteFunc(want, func(name string) bool { return name == gone })
		k.same("left", k.left(jobs), want)
	}

	k.same("depths", k.Snapshot().Depths[job.Status(job.Completed)], int64(0))
}

// RetentionFollowsTypeThenQueue: the exact type says it before a prefix, the prefix
// before the queue, the queue before all.
func RetentionFollowsTypeThenQueue(k *kit) {
	of := func(queue, typ string) job.Job {
		j := in(queue)
		j.Type = typ
		return k.completed(j)
	}

	jobs := map[string]job.Job{
		"all": of("other", "a.b"), "queue": of("orders", "a.b"), "prefix": of("orders", "mail.send"), "type": of("orders", "mail.bulk"),
	}
	limits := retention.Limits{
		Ages:   retention.Ages{retention.Completed: 4 * time.Hour},
		Queues: map[string]retention.Ages{"orders": {retention.Completed: 3 * time.Hour}},
		Types:  map[string]retention.Ages{"mail.*": {retention.Completed: 2 * time.Hour}, "mail.bulk": {retention.Completed: time.Hour}},
	}
	for _, want := range [][]string{{"all", "prefix", "queue"}, {"all", "queue"}, {"all"}, {}} {
		k.pass(time.Hour + time.Second)
		k.sweep(limits)
		k.same("left", k.left(jobs), want)
	}
}

// RetentionKeepsForeverWhatHasNoAge: no age, or one of zero for the queue or type.
func RetentionKeepsForeverWhatHasNoAge(k *kit) {
	jobs := map[string]job.Job{"cancelled": k.cancelled(simple()), "exempt": k.completed(in("projections")), "removed": k.completed(simple())}
	k.pass(1000 * day)
	k.sweep(retention.Limits{
		Ages:   retention.Ages{retention.Completed: day, retention.Cancelled: 0},
		Queues: map[string]retention.Ages{"projections": {retention.Completed: 0}},
	})
	k.same("left", k.left(jobs), []string{"cancelled", "exempt"})
}

// hourly keeps everything for an hour.
func hourly() retention.Limits {
	return retention.Limits{Ages: retention.Ages{
		retention.Completed: time.Hour, retention.Cancelled: time.Hour, retention.Discarded: time.Hour, retention.DeadLetters: time.Hour,
	}, Trash: time.Hour}
}

// RetentionSparesWhatHasNotEnded: what waits or runs, refused dead letters and the
// newest dead letter.
func RetentionSparesWhatHasNotEnded(k *kit) {
	later := in("later")
	later.RunAt = k.now.Add(1000 * day)
	jobs := map[string]job.Job{
		"scheduled": k.add(later)[0], "active": k.begin(in("active")), "retryable": k.settle(k.begin(in("again")), job.Failed),
		"refused": k.refused(), "newest": k.dead(simple()), "available": k.add(in("idle"))[0],
	}
	k.pass(500 * day)
	k.same("removed", k.sweep(hourly()), removed("", 0))
	k.same("left", len(k.left(jobs)), 6)
}

// RetentionSparesWhatARunningOperationNeeds: until the operation has ended.
func RetentionSparesWhatARunningOperationNeeds(k *kit) {
	dead := k.deads(4)
	o := k.operate(operation.Replay, filter.Filter{})
	k.run(o.ID, operation.Pace{})
	k.work(o.ID, 1)
	k.settle(k.claim("orders", 1)[0], job.Succeeded)
	k.pass(2 * day)
	k.dead(in("newest"))
	k.pass(2 * time.Hour)

	limits := hourly()
	limits.Count = 1
	k.foresee(limits, retention.OverCount)
	k.same("removed beside the operation", k.sweep(limits), removed("", 0))
	_, err := k.Operations.Abort(k.ctx, k.now, o.ID, sam)
	k.check(err)
	done := k.sweep(limits)
	k.same("removed afterwards", []int64{done.Of(retention.DeadLetters), done.Of(retention.Completed)}, []int64{3, 1})

	for _, j := range dead {
		if _, err := k.Job(k.ctx, j.ID); !errors.Is(err, job.ErrNotFound) {
			k.Errorf("job %s: %v", j.ID, err)
		}
	}
}

// RetentionSparesWhatWasReplayed: the age is counted again from the end of the next run.
func RetentionSparesWhatWasReplayed(k *kit) {
	j := k.dead(simple())
	k.pass(2 * time.Hour)
	_, err := k.Replay(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	k.dead(in("newest"))
	k.same("removed while it waits", k.sweep(hourly()), removed("", 0))
	k.settle(k.claim("orders", 1)[0], job.Succeeded)
	k.pass(30 * time.Minute)
	k.same("removed half an hour after its end", k.sweep(hourly()), removed("", 0))
	k.pass(time.Hour)
	k.same("removed later", k.sweep(hourly()), removed(retention.Completed, 1))
}

// RetentionRemembersWhatItRemoved: a caller that asks for the job or acts on it is
// told when it was enqueued and removed, and why.
func RetentionRemembersWhatItRemoved(k *kit) {
	began := k.now
	j := k.completed(simple())
	k.pass(2 * time.Hour)
	k.sweep(hourly())
	k.restart()
	want := &retention.Removed{ID: j.ID, Kind: retention.Completed, EnqueuedAt: began, RemovedAt: k.now, Kept: time.Hour}

	_, reading := k.Job(k.ctx, j.ID)
	_, replaying := k.Replay(k.ctx, k.now, j.ID, 1, eve)
	for _, err := range []error{reading, replaying} {
		got, ok := errors.AsType[*retention.Removed](err)
		if !ok || !errors.Is(err, job.ErrNotFound) {
			k.Fatalf("the error is %v", err)
		}

		k.same("what is known", got, want)
	}

	if _, err := k.Job(k.ctx, job.NewID()); !errors.Is(err, job.ErrNotFound) || errors.As(err, new(*retention.Removed)) {
		k.Errorf("a job that never was: %v", err)
	}
}

// RetentionForgetsAfterAsLong: a removed job is remembered for as long as it was kept.
func RetentionForgetsAfterAsLong(k *kit) {
	j := k.completed(simple())
	k.pass(2 * time.Hour)
	k.sweep(hourly())
	k.pass(time.Hour)
	k.sweep(hourly())

	if _, err := k.Job(k.ctx, j.ID); !errors.As(err, new(*retention.Removed)) {
		k.Errorf("after an hour: %v", err)
	}

	k.pass(time.Second)
	k.sweep(hourly())

	if _, err := k.Job(k.ctx, j.ID); errors.As(err, new(*retention.Removed)) || !errors.Is(err, job.ErrNotFound) {
		k.Errorf("later: %v", err)
	}
}

// RetentionIsAuditedOnceForEachSweep: with what it removed from which queue; a sweep
// that found nothing has no entry.
func RetentionIsAuditedOnceForEachSweep(k *kit) {
	for range 3 {
		k.completed(simple())
	}

	k.completed(in("mail"))
	k.cancelled(simple())
	k.pass(2 * time.Hour)
	k.sweep(hourly())
	k.sweep(hourly())
	list, err := k.Accounts.Audit(k.ctx, audit.Filter{Action: "retention.sweep"}, 0, 10)
	k.check(err)

	if len(list.Entries) != 1 {
		k.Fatalf("%d entries, want 1: %+v", len(list.Entries), list.Entries)
	}

	e := list.Entries[0]
	k.same("the entry", []any{e.Actor.Name, e.Count, e.After, e.At},
		[]any{"the retention", int64(5), "completed: 4 (orders 3, mail 1); cancelled: 1 (orders 1)", k.now})
}

// RetentionCountsByKindAndQueue: since the beginning, also after a restart.
func RetentionCountsByKindAndQueue(k *kit) {
	k.completed(simple())
	k.pass(2 * time.Hour)
	k.sweep(hourly())
	k.completed(simple())
	k.cancelled(in("mail"))
	k.pass(2 * time.Hour)
	k.sweep(hourly())
	k.restart()
	got, err := k.Sweep.Removals(k.ctx)
	k.check(err)
	k.same("removals", got, []retention.Removal{
		{Part: retention.Part{Kind: retention.Cancelled, Queue: "mail"}, Jobs: 1, Last: k.now},
		{Part: retention.Part{Kind: retention.Completed, Queue: "orders"}, Jobs: 2, Last: k.now},
	})
}

// RetentionRemovesManyInSteps: as many as there are, and none that are younger.
func RetentionRemovesManyInSteps(k *kit) {
	const n = 1203
	succeed := func(n int) {
		k.add(many(n)...)

		var settle []job.Settlement
		for _, j := range k.claim("orders", n) {
			settle = append(settle, j.Settle(k.ending(job.Succeeded), nil))
		}

		k.exchange(settle, "", 0)
	}
	succeed(n)
	k.pass(2 * time.Hour)
	succeed(7)
	k.same("removed", k.sweep(hourly()), removed(retention.Completed, n))
	k.same("left", len(k.all(filter.Filter{}, 20)), 7)
	k.same("depth", k.Snapshot().Depths[job.Status(job.Completed)], int64(7))
}

// RetentionLeavesNothingToFind: neither by a text nor by a key, and the key is free.
func RetentionLeavesNothingToFind(k *kit) {
	j := simple()
	j.Key = "once"
	first := k.begin(j)
	k.settle(first, job.Failed)
	k.pass(time.Minute)
	k.settle(k.claim("orders", 1)[0], job.Succeeded)
	k.fill()
	k.same("found before", len(k.all(filter.Filter{Text: "unavailable"}, 10)), 1)
	k.pass(2 * time.Hour)
	k.same("removed", k.sweep(hourly()), removed(retention.Completed, 1))
	k.fill()
	k.same("found afterwards", len(k.all(filter.Filter{Text: "unavailable"}, 10)), 0)
	again, err := k.Enqueue(k.ctx, k.now, []job.Job{j})
	k.check(err)
	k.same("the key is a repeat", again[0].Repeat, false)
}
