package storetest

import (
	"slices"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
)

var prefetching = []func(*kit){
	ClaimPrefetches, BeginningAfterPrefetchIsWrittenDown, GivenBackJobsKeepTheirPlace, ADoubtfulExecutionCountsTheNextTime,
	CancelledWhilePrefetchedIsForgotten, DispatchOnCommit_ClaimsInTheSameCommit, DispatchOnCommit_LeavesWhatCannotBeClaimed, DispatchOnCommit_AFailureIsAnswered,
	DispatchOnCommit_EndsPermanently,
}

// prefetched claims some jobs that begin and some that do not.
func (k *kit) prefetched(free, ahead int, began ...job.Token) []job.Job {
	k.Helper()
	claimed, _, err := k.Exchange(k.ctx, nil, job.Claim{
		Worker: "worker-1", Now: k.now, Lease: time.Minute, Began: began,
		Free: map[string]int{"orders": free}, Prefetch: map[string]int{"orders": ahead},
	})
	k.check(err)

	return claimed
}

func unbegun(jobs []job.Job) []bool {
	all := make([]bool, len(jobs))
	for i, j := range jobs {
		all[i] = j.Unbegun
	}

	return all
}

// ClaimPrefetches: beside what can start at once, a claim takes the next jobs
// prefetched. They are active and leased, and not known to have begun.
func ClaimPrefetches(k *kit) {
	want := k.add(many(5)...)
	got := k.prefetched(1, 2)
	k.same("the claimed jobs", ids(got), ids(want[:3]))
	k.same("those that have not begun", unbegun(got), []bool{false, true, true})

	for _, j := range got {
		stored := k.job(j.ID)
		k.same("the stored job", []any{stored.State, stored.Unbegun, stored.LeaseUntil}, []any{job.Active, j.Unbegun, k.now.Add(time.Minute)})
	}

	leases, err := k.Leases(k.ctx, time.Time{})
	k.check(err)
	k.same("the leases", unbegun(leases), []bool{false, true, true})
}

// BeginningAfterPrefetchIsWrittenDown: what has begun is noted with a claim, also
// after a restart. An execution that was fenced off since is passed over.
func BeginningAfterPrefetchIsWrittenDown(k *kit) {
	k.add(many(3)...)
	held := k.prefetched(0, 3)
	_, err := k.Cancel(k.ctx, k.now, held[2].ID, 1, audit.Actor{Name: "eve"})
	k.check(err)
	k.prefetched(0, 0, held[1].Token, held[2].Token)
	k.restart()
	leases, err := k.Leases(k.ctx, time.Time{})
	k.check(err)
	k.same("the leases", ids(leases), ids(held[:2]))
	k.same("those that have not begun", unbegun(leases), []bool{true, false})
	k.pass(time.Second)

	done := held[0]
	done.StartedAt = k.now.Add(-time.Millisecond)
	k.settle(done, job.Succeeded)
	attempts := k.detail(done.ID).Attempts
	k.same("when it began", attempts[0].StartedAt, done.StartedAt)
	k.same("after its end", k.job(done.ID).Unbegun, false)
}

// GivenBackJobsKeepTheirPlace: a prefetched job that is given back is the next one
// again, and nothing is recorded of its execution.
func GivenBackJobsKeepTheirPlace(k *kit) {
	all := k.add(many(3)...)
	held := k.prefetched(0, 2)
	k.pass(time.Second)

	for _, j := range held {
		k.settleAs(j.GiveBack())
	}

	back := k.detail(held[0].ID)
	k.same("the job", []any{back.Job.State, back.Job.Unbegun, back.Job.RunAt, back.Job.Attempts}, []any{job.Available, false, all[0].RunAt, 0})
	k.same("its attempts", len(back.Attempts), 0)
	k.same("claimed again", ids(k.claim("orders", 3)), ids(all))
}

// ADoubtfulExecutionCountsTheNextTime: what a dead process had prefetched loses no
// attempt and keeps its place; the next time it is prefetched it counts as begun.
func ADoubtfulExecutionCountsTheNextTime(k *kit) {
	retried := k.settle(k.begin(simple()), job.Failed)
	k.pass(time.Second)

	all := append(k.add(many(1)...), retried)
	for _, j := range k.prefetched(0, 2) {
		k.settleAs(j.Settle(job.Ending{Outcome: job.Interrupted, Doubtful: true, FinishedAt: k.now, Error: job.ErrorInfo{Type: "not_begun"}}, nil))
	}

	for i, j := range all {
		d := k.detail(j.ID)
		k.same("the job", []any{d.Job.State, d.Job.Unbegun, d.Job.Attempts}, []any{job.Available, true, i})
		last := d.Attempts[len(d.Attempts)-1]
		k.same("its record", []any{last.Outcome, last.Number, last.Error.Type}, []any{job.Interrupted, 0, "not_begun"})
	}

	k.same("prefetched again", unbegun(k.prefetched(0, 2)), []bool{false, false})
	leases, err := k.Leases(k.ctx, time.Time{})
	k.check(err)
	k.same("as it is stored", unbegun(leases), []bool{false, false})
	j := leases[slices.IndexFunc(leases, func(j job.Job) bool { return j.ID == all[0].ID })]
	k.same("after a failure", k.settle(j, job.Lost).Unbegun, false)
}

// CancelledWhilePrefetchedIsForgotten: a job that a person takes back while it is prefetched is
// an ordinary one when it is replayed.
func CancelledWhilePrefetchedIsForgotten(k *kit) {
	k.add(simple())
	j := k.prefetched(0, 1)[0]
	_, err := k.Cancel(k.ctx, k.now, j.ID, 1, audit.Actor{Name: "eve"})
	k.check(err)
	_, err = k.Replay(k.ctx, k.now, j.ID, 1, audit.Actor{Name: "eve"})
	k.check(err)
	k.same("prefetched again", unbegun(k.prefetched(0, 1)), []bool{true})
}

// worker is a dispatcher with workers.
type worker struct {
	k     *kit
	free  int
	asked [][]string
	took  [][]string
	knows func(string) bool
}

func (t *worker) reserve(queues []string) job.Claim {
	t.asked = append(t.asked, queues)
	free := map[string]int{}
	for _, queue := range queues {
		free[queue] = t.free
	}

	return job.Claim{Worker: "worker-1", Now: t.k.now, Lease: time.Minute, Free: free, Knows: t.knows}
}

func (t *worker) start(_ job.Claim, claimed []job.Job) { t.took = append(t.took, ids(claimed)) }

// serve lets a worker have what becomes available.
func (k *kit) serve(free int) (t *worker, end func()) {
	t = &worker{k: k, free: free}
	return t, k.DispatchOnCommit(t.reserve, t.start)
}

// DispatchOnCommit_ClaimsInTheSameCommit: what becomes available is claimed by the
// transaction that makes it so, as far as the worker has workers: new jobs, replays,
// and what was let go. The caller gets its job as it was enqueued.
func DispatchOnCommit_ClaimsInTheSameCommit(k *kit) {
	dead := k.dead(simple())

	t, end := k.serve(2)
	defer end()

	seq := k.Snapshot().Seq
	added := k.add(many(3)...)
	k.same("commits", k.Snapshot().Seq-seq, int64(1))
	k.same("the answer", added[0].State, job.Available)
	k.same("asked", t.asked, [][]string{{"orders"}})
	k.same("taken", t.took, [][]string{ids(added[:2])})

	for i, state := range []job.State{job.Active, job.Active, job.Available} {
		j := k.job(added[i].ID)
		k.same("the stored job", []any{j.State, j.Unbegun}, []any{state, false})
	}

	_, err := k.Replay(k.ctx, k.now, dead.ID, 1, audit.Actor{Name: "eve"})
	k.check(err)
	k.same("taken after a replay", t.took[1], []string{dead.ID, added[2].ID})
}

// DispatchOnCommit_LeavesWhatCannotBeClaimed: nothing is dispatched of a queue that is paused, of
// jobs whose time has not come, and of types that no worker knows.
func DispatchOnCommit_LeavesWhatCannotBeClaimed(k *kit) {
	t, end := k.serve(5)
	defer end()

	k.check(k.Pause(k.ctx, k.now, "paused", audit.Actor{Name: "eve"}))

	later := simple()
	later.RunAt = k.now.Add(time.Minute)
	k.add(in("paused"), later)

	t.knows = func(string) bool { return false }

	k.add(in("unknown"))
	k.same("asked", t.asked, [][]string{{"paused"}, {"unknown"}})
	k.same("taken", t.took, [][]string{{}, {}})
	k.same("active", k.Snapshot().Depths[job.Status(job.Active)], int64(0))
}

// DispatchOnCommit_AFailureIsAnswered: the worker that was asked hears that nothing was taken
// when the transaction fails.
func DispatchOnCommit_AFailureIsAnswered(k *kit) {
	t, end := k.serve(5)
	defer end()

	taken := k.add(simple())[0]

	again := simple()
	again.ID = taken.ID
	if _, err := k.Enqueue(k.ctx, k.now, []job.Job{simple(), again}); err == nil {
		k.Error("an id was used twice")
	}

	k.same("taken", t.took[0], []string{taken.ID})

	for _, took := range t.took[1:] {
		k.same("taken by what failed", took, []string{})
	}

	k.same("answers", len(t.took), len(t.asked))
}

// DispatchOnCommit_EndsPermanently: once the end has returned, no worker is reserved, and the end
// of an earlier one does not end a later one.
func DispatchOnCommit_EndsPermanently(k *kit) {
	first, endFirst := k.serve(1)
	second, endSecond := k.serve(1)

	endFirst()
	k.add(simple())
	endSecond()
	k.add(simple())
	k.same("asked", []int{len(first.asked), len(second.asked)}, []int{0, 1})
}
