package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retry"
	"redrive/internal/stats"
)

var naming = []func(*kit){
	NewQueuesAreRefusedAtTheLimit, QueuesOfOneCommitShareTheLimit, ReplaysIntoANewQueueAreRefusedAtTheLimit,
	DeadLettersAreCountedOutWhereTheyWereCountedIn, TypesNewAtTheBoundInOneCommitDoNotDrift, LabelsStayAfterARestart,
	RemovedQueuesAreForgotten, RemovedQueuesKeepTheirTotals, QueuesThatAreNotEmptyStay, RemovedQueuesMakeRoom,
	QueuesTellOfThoseThatAreNamed, FullestQueuesComeFirst, DepthsByLabelAddUp,
}

// queueLimit is how many queues there may be unless the options set another limit.
const queueLimit = 1000

// manyQueues makes n new queues, each with a job.
func (k *kit) manyQueues(n int) {
	k.Helper()

	jobs := many(n)
	for i := range jobs {
		jobs[i].Queue = fmt.Sprintf("q%04d", i)
	}

	k.add(jobs...)
}

// full fails unless the error says that a queue would be one too many.
func (k *kit) full(err error, queue string) {
	k.Helper()

	var full *queues.Full
	if !errors.As(err, &full) || full.Queue != queue || full.Limit != queueLimit {
		k.Errorf("%v does not say that %s is one queue too many", err, queue)
	}
}

// NewQueuesAreRefusedAtTheLimit: a job in a queue that would be one too many is
// refused with all that came with it; queues that exist go on, also after a
// restart.
func NewQueuesAreRefusedAtTheLimit(k *kit) {
	k.manyQueues(queueLimit)

	for range 2 {
		before := k.Snapshot().Depths.Jobs()
		_, err := k.Enqueue(k.ctx, k.now, []job.Job{in("q0001"), in("late")})
		k.full(err, "late")
		k.same("the jobs", k.Snapshot().Depths.Jobs(), before)
		k.add(in("q0001"), in("q0999"))
		k.same("the queues", len(k.QueueNames()), queueLimit)
		k.restart()
	}
}

// QueuesOfOneCommitShareTheLimit: however many callers bring new queues at once,
// no more are admitted than fit, and a caller who is refused takes no place.
func QueuesOfOneCommitShareTheLimit(k *kit) {
	k.manyQueues(queueLimit - 3)

	var callers sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		callers.Go(func() {
			jobs := []job.Job{in(fmt.Sprintf("new-%d", i))}
			if i%2 == 0 { // too many for whatever is left
				jobs = append(jobs, in(fmt.Sprintf("a-%d", i)), in(fmt.Sprintf("b-%d", i)), in(fmt.Sprintf("c-%d", i)))
			}

			_, errs[i] = k.Enqueue(k.ctx, k.now, jobs)
		})
	}

	callers.Wait()

	admitted := 0
	for _, err := range errs {
		if err == nil {
			admitted++
		} else if !errors.As(err, new(*queues.Full)) {
			k.Error(err)
		}
	}

	k.same("admitted callers and queues", []int{admitted, len(k.QueueNames())}, []int{3, queueLimit})
}

// ReplaysIntoANewQueueAreRefusedAtTheLimit: the job stays as it was, and can be
// replayed into a queue that exists.
func ReplaysIntoANewQueueAreRefusedAtTheLimit(k *kit) {
	j := k.dead(in("q0000"))
	k.manyQueues(queueLimit)
	_, err := k.ReplayWith(k.ctx, k.now, j.ID, 1, job.Edit{Queue: "late"}, audit.Actor{Name: "eve"})
	k.full(err, "late")
	k.same("the job", k.job(j.ID), j)
	_, err = k.ReplayWith(k.ctx, k.now, j.ID, 1, job.Edit{Queue: "q0007"}, audit.Actor{Name: "eve"})
	k.check(err)
}

// poison makes open dead letters of types, which raise no counter.
func (k *kit) poison(types ...string) []job.Job {
	k.Helper()

	var jobs []job.Job
	for _, typ := range types {
		j := simple()
		j.Type, j.State, j.Reason, j.Error = typ, job.Discarded, retry.MissingURN, job.ErrorInfo{Type: "poison", Message: "unread"}
		jobs = append(jobs, j)
	}

	return k.add(jobs...)
}

// typesTo names n types.
func typesTo(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("type-%04d", i)
	}

	return all
}

// deadLetterTypes counts the open dead letters by type.
func (k *kit) deadLetterTypes() map[string]int64 {
	k.Helper()
	facets, err := k.Counters.Facets(k.ctx, filter.Filter{Status: job.StatusDeadLetter})
	k.check(err)

	all := map[string]int64{}
	for _, t := range facets.Types {
		all[t.Name] = t.Count
	}

	return all
}

// DeadLettersAreCountedOutWhereTheyWereCountedIn: a dead letter that was counted as
// "other" is so when it leaves, although places have become free and the store was
// opened again.
func DeadLettersAreCountedOutWhereTheyWereCountedIn(k *kit) {
	first := k.poison(typesTo(1000)...)
	late := k.poison("late")[0]
	k.same("the other letters", k.deadLetterTypes()["other"], int64(1))

	for _, j := range first[3:5] {
		_, err := k.Discard(k.ctx, k.now, j.ID, 1, audit.Actor{Name: "eve"})
		k.check(err)
	}

	k.restart()
	_, err := k.Replay(k.ctx, k.now, late.ID, 1, audit.Actor{Name: "eve"})
	k.check(err)
	counts := k.deadLetterTypes()
	k.same("types, late and other", []int64{int64(len(counts)), counts["late"], counts["other"]}, []int64{998, 0, 0})
}

// TypesNewAtTheBoundInOneCommitDoNotDrift: of those that come together the first
// is kept, and each is counted out where it was counted in.
func TypesNewAtTheBoundInOneCommitDoNotDrift(k *kit) {
	k.poison(typesTo(999)...)
	all := k.poison("late-1", "late-2", "late-3")
	counts := k.deadLetterTypes()
	k.same("late-1 and other", []int64{counts["late-1"], counts["other"]}, []int64{1, 2})

	for _, j := range slices.Backward(all) {
		_, err := k.Replay(k.ctx, k.now, j.ID, 1, audit.Actor{Name: "eve"})
		k.check(err)
		k.restart()
	}

	counts = k.deadLetterTypes()
	k.same("types, late-1 and other", []int64{int64(len(counts)), counts["late-1"], counts["other"]}, []int64{999, 0, 0})
}

// LabelsStayAfterARestart: the queues that metrics tell apart are the ones that
// came first, whatever comes before them in the alphabet.
func LabelsStayAfterARestart(k *kit) {
	k.manyQueues(queueLimit - 1)
	k.add(in("z"))
	k.same("known", k.Counters.Label("z"), "z")
	k.restart()
	k.same("known after the restart", []string{k.Counters.Label("z"), k.Counters.Label("nobody")}, []string{"z", "other"})
}

// RemovedQueuesAreForgotten: a queue with nothing but finished jobs goes with
// these, its pause included; the audit log says who did so.
func RemovedQueuesAreForgotten(k *kit) {
	done := k.settle(k.begin(in("old")), job.Succeeded)
	k.add(simple())
	k.check(k.Pause(k.ctx, k.now, "old", audit.Actor{Name: "eve"}))
	n, err := k.RemoveQueue(k.ctx, k.now, "old", audit.Actor{Name: "eve"})
	k.check(err)
	k.same("removed jobs", n, int64(1))

	for range 2 {
		k.same("the queues", k.QueueNames(), []string{"orders"})

		_, err = k.Job(k.ctx, done.ID)
		if !errors.Is(err, job.ErrNotFound) {
			k.Errorf("the finished job is still there: %v", err)
		}

		_, err = k.RemoveQueue(k.ctx, k.now, "old", audit.Actor{Name: "eve"})
		if !errors.Is(err, job.ErrNotFound) {
			k.Errorf("a second removal: %v", err)
		}

		k.restart()
	}

	k.add(in("old"))
	k.same("claimed of a new queue with the name", len(k.claim("old", 1)), 1)
	log, err := k.Accounts.Audit(k.ctx, audit.Filter{Subject: "old"}, 0, 10)
	k.check(err)

	var actions []string
	for _, e := range log.Entries {
		actions = append(actions, e.Action)
	}

	k.same("the log", actions, []string{"queue.remove", "queue.purge", "queue.pause"})
}

// RemovedQueuesKeepTheirTotals: what a removed queue counted stays in the totals,
// and no series of metrics jumps for it.
func RemovedQueuesKeepTheirTotals(k *kit) {
	k.settle(k.begin(in("old")), job.Succeeded)
	k.settle(k.begin(simple()), job.Succeeded)

	for _, name := range []string{"old", "older"} {
		k.settle(k.begin(in(name)), job.Succeeded)
		_, err := k.RemoveQueue(k.ctx, k.now, name, audit.Actor{Name: "eve"})
		k.check(err)
	}

	for range 2 {
		k.same("the total", k.Snapshot().Totals.Succeeded, int64(4))
		tallies, err := k.Counters.Tallies(k.ctx)
		k.check(err)
		k.same("the tallies", tallies, []queues.Tally{{Queue: "orders", Type: "email.send", Totals: stats.Totals{Succeeded: 1}}})
		k.restart()
	}
}

// QueuesThatAreNotEmptyStay: a queue with a job that waits, runs, or that a
// person could bring back is a *job.Conflict, and nothing in it is removed.
func QueuesThatAreNotEmptyStay(k *kit) {
	later := in("scheduled")
	later.RunAt = k.now.Add(time.Hour)
	k.add(in("available"), later)
	k.begin(in("active"))
	k.settle(k.begin(in("retryable")), job.Failed)
	k.dead(in("dead"))
	_, err := k.Discard(k.ctx, k.now, k.dead(in("trashed")).ID, 1, audit.Actor{Name: "eve"})
	k.check(err)

	for _, name := range []string{"available", "scheduled", "active", "retryable", "dead", "trashed"} {
		if name != "active" {
			first := in(name)
			first.Priority = 9
			k.add(first)
			k.settle(k.claim(name, 1)[0], job.Succeeded)
		}

		before := k.Snapshot().Depths.Jobs()
		_, err := k.RemoveQueue(k.ctx, k.now, name, audit.Actor{Name: "eve"})
		k.conflict(err)
		k.same("the jobs", k.Snapshot().Depths.Jobs(), before)
	}
}

// RemovedQueuesMakeRoom: for another one, under the limit and among those that
// metrics tell apart.
func RemovedQueuesMakeRoom(k *kit) {
	k.manyQueues(queueLimit)
	_, err := k.Cancel(k.ctx, k.now, k.claim("q0500", 1)[0].ID, 1, audit.Actor{Name: "eve"})
	k.check(err)
	_, err = k.RemoveQueue(k.ctx, k.now, "q0500", audit.Actor{Name: "eve"})
	k.check(err)
	k.add(in("late"))
	k.same("its label", k.Counters.Label("late"), "late")
	_, err = k.Enqueue(k.ctx, k.now, []job.Job{in("q0500")})
	k.full(err, "q0500")
}

// QueuesTellOfThoseThatAreNamed: by name, each once; an unknown name is left out.
func QueuesTellOfThoseThatAreNamed(k *kit) {
	k.add(in("a"), in("b"), in("c"), in("c"))
	k.check(k.Pause(k.ctx, k.now, "paused", audit.Actor{Name: "eve"}))
	all, err := k.Counters.Queues(k.ctx, k.now, []string{"c", "nobody", "paused", "a", "c"})
	k.check(err)

	var names []string
	for _, q := range all {
		names = append(names, fmt.Sprint(q.Name, q.Depths[job.Status(job.Available)]))
	}

	k.same("the queues", names, []string{"a1", "c2", "paused0"})
}

// FullestQueuesComeFirst: by the first statuses, then by the next.
func FullestQueuesComeFirst(k *kit) {
	k.add(in("a"), in("b"), in("b"), in("c"), in("done"))
	k.dead(in("c"))
	k.settle(k.claim("done", 1)[0], job.Succeeded)

	available, dead := []job.Status{job.Status(job.Available)}, []job.Status{job.StatusDeadLetter}
	byDeadLetters, err := k.Counters.Fullest(k.ctx, 5, dead, available)
	k.check(err)
	k.same("by dead letters", byDeadLetters, []string{"c", "b", "a"})
	byAvailable, err := k.Counters.Fullest(k.ctx, 2, available)
	k.check(err)
	k.same("the two with the most available jobs", byAvailable, []string{"b", "a"})
}

// DepthsByLabelAddUp: to all jobs.
func DepthsByLabelAddUp(k *kit) {
	k.variety()

	labelled, err := k.Counters.DepthsByLabel(k.ctx)
	k.check(err)

	sum := stats.Depths{}
	for _, depths := range labelled {
		for status, n := range depths {
			sum[status] += n
		}
	}

	for status, n := range k.Snapshot().Depths {
		k.same(string(status), sum[status], n)
	}
}
