package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/queues"
)

var claiming = []func(*kit){
	ClaimStartsAnExecution, ClaimReadsEachJobAsItIs, ClaimTakesPriorityThenAge, ClaimsOfManyPriorities, ClaimMeetsWhatComesBefore, ClaimTakesDueJobsDirectly,
	ClaimLeavesPausedQueues, ClaimTakesNoMoreThanFree, ClaimHoldsUnknownTypes, UnholdLetsKnownTypesGo, ClaimNeverGivesAJobTwice,
	NextDueIsTheEarliest, LeasesEndByTime, ExtendMovesTheLease,
}

// ClaimStartsAnExecution: a claimed job is active, its execution counted, its
// lease running; its attempts are not touched.
func ClaimStartsAnExecution(k *kit) {
	want := k.add(simple())[0]
	k.pass(time.Second)
	got := k.claim("orders", 5)
	want.State, want.Execution, want.Worker = job.Active, 1, "worker-1"
	want.StartedAt, want.ChangedAt, want.LastSeen, want.LeaseUntil = k.now, k.now, k.now, k.now.Add(time.Minute)
	k.same("the claimed jobs", got, []job.Job{want})
	k.same("the stored job", k.job(want.ID), want)
}

// ClaimReadsEachJobAsItIs: jobs that are claimed one after the other have nothing of
// each other, neither their payloads nor the times from which they may run.
func ClaimReadsEachJobAsItIs(k *kit) {
	jobs := many(4)
	for i := range jobs {
		jobs[i].Payload = fmt.Appendf(nil, `{"n":%d}`, i)
		jobs[i].RunAt = k.now.Add(time.Duration(i) * time.Hour)
	}

	stored := k.add(jobs...)
	k.pass(4 * time.Hour)

	got := append(k.claim("orders", 3), k.claim("orders", 3)...)
	for i, j := range got {
		k.same("the payload", string(j.Payload), fmt.Sprintf(`{"n":%d}`, i))
		k.same("the times", []time.Time{j.RunAt, j.EnqueuedAt}, []time.Time{stored[i].RunAt, stored[i].EnqueuedAt})
	}

	k.same("the number of jobs", len(got), len(stored))
}

// ClaimTakesPriorityThenAge: higher priorities first, then earlier times, then
// the order of enqueueing.
func ClaimTakesPriorityThenAge(k *kit) {
	jobs := many(6)
	jobs[4].Priority, jobs[5].Priority, jobs[0].Priority = 5, 9, -1
	stored := k.add(jobs...)
	want := []string{stored[5].ID, stored[4].ID, stored[1].ID, stored[2].ID, stored[3].ID, stored[0].ID}

	got := append(ids(k.claim("orders", 2)), ids(k.claim("orders", 10))...)
	k.same("the order", got, want)
}

// ClaimsOfManyPriorities: jobs of more and fewer priorities come between claims of more and fewer
// jobs. Each claim takes the next ones of all that wait.
func ClaimsOfManyPriorities(k *kit) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	k.Logf("seed %d", seed)

	var waiting []job.Job
	for range 60 {
		k.pass(time.Second)

		// Few priorities for a while, then many.
		coming := many(random.IntN(12))
		priorities := 1 + random.IntN(15)
		for i := range coming {
			coming[i].Priority = random.IntN(priorities) - 5
		}

		waiting = append(waiting, k.add(coming...)...)
		slices.SortStableFunc(waiting, func(a, b job.Job) int { return cmp.Compare(b.Priority, a.Priority) })

		n := min(random.IntN(15), len(waiting))
		k.same("the claimed jobs", ids(k.claim("orders", n)), ids(waiting[:n]))
		waiting = waiting[n:]
	}
}

// ClaimMeetsWhatComesBefore: a job that comes before those that were claimed is the next one,
// however it came there, and however many wait behind it.
func ClaimMeetsWhatComesBefore(k *kit) {
	urgent := func() job.Job {
		j := simple()
		j.Priority = 9
		return j
	}
	emails := func(typ string) bool { return strings.HasPrefix(typ, "email.") }

	// Each prepares an urgent job, and returns what lets it wait in the queue.
	for _, way := range []struct {
		name    string
		prepare func() (id string, comes func())
	}{
		{"new", func() (string, func()) {
			j := urgent()
			j.ID = job.NewID()
			return j.ID, func() { k.add(j) }
		}},
		{"restored", func() (string, func()) {
			gone := k.discard(k.add(urgent())[0].ID)
			return gone.ID, func() {
				_, err := k.Restore(k.ctx, k.now, gone.ID, gone.Run, eve)
				k.check(err)
			}
		}},
		{"replayed", func() (string, func()) {
			dead := k.dead(urgent())
			return dead.ID, func() {
				_, err := k.Replay(k.ctx, k.now, dead.ID, dead.Run, eve)
				k.check(err)
			}
		}},
		{"replayed with others", func() (string, func()) {
			dead := k.dead(urgent())
			return dead.ID, func() {
				all := k.operate(operation.Replay, filter.Filter{Status: job.StatusDeadLetter})
				k.run(all.ID, operation.Pace{})
				k.workAll(all.ID)
			}
		}},
		{"let go", func() (string, func()) {
			j := urgent()
			j.Type = "report.make"
			held := k.add(j)[0]
			_, _, err := k.Exchange(k.ctx, nil, job.Claim{Now: k.now, Lease: time.Minute, Free: map[string]int{"orders": 1}, Knows: emails})
			k.check(err)

			return held.ID, func() {
				_, err := k.Unhold(k.ctx, func(string) bool { return true })
				k.check(err)
			}
		}},
		{"given back", func() (string, func()) {
			begun := k.begin(urgent())
			return begun.ID, func() { k.settleAs(begun.GiveBack()) }
		}},
		{"given back to those of its priority", func() (string, func()) {
			begun := k.begin(simple())
			return begun.ID, func() { k.settleAs(begun.GiveBack()) }
		}},
		{"to run now", func() (string, func()) {
			j := urgent()
			j.RunAt = k.now.Add(time.Hour)
			later := k.add(j)[0]

			return later.ID, func() { k.reschedule(later, k.now) }
		}},
	} {
		id, comes := way.prepare()

		// Claims have come as far as the first of a backlog.
		k.add(many(12)...)
		k.same("claimed before", len(k.claim("orders", 2)), 2)
		k.same("claimed before", len(k.claim("orders", 2)), 2)

		k.pass(time.Second)
		comes()
		k.same("next when one is "+way.name, ids(k.claim("orders", 1)), []string{id})

		k.claim("orders", 100)
	}
}

// ClaimTakesDueJobsDirectly: scheduled and retryable jobs are claimed when
// their time has come, not a microsecond earlier, among the available ones by
// priority and time.
func ClaimTakesDueJobsDirectly(k *kit) {
	retrying := k.settle(k.begin(simple()), job.Failed) // runs again in a second
	scheduled := simple()
	scheduled.RunAt, scheduled.Priority = k.now.Add(time.Second), 1
	due := k.add(scheduled)[0]
	k.pass(time.Second - time.Microsecond)
	k.same("jobs that are not due", ids(k.claim("orders", 5)), []string{})
	k.pass(time.Microsecond)
	available := k.add(simple())[0]
	k.same("the order", ids(k.claim("orders", 5)), []string{due.ID, retrying.ID, available.ID})
}

// ClaimLeavesPausedQueues: nothing is claimed from a paused queue, also after a
// restart, until it is resumed.
func ClaimLeavesPausedQueues(k *kit) {
	k.add(in("a"))
	k.check(k.Pause(k.ctx, k.now, "a", audit.Actor{Name: "eve"}))
	k.same("claimed while paused", len(k.claim("a", 5)), 0)
	k.restart()
	k.same("claimed after a restart", len(k.claim("a", 5)), 0)
	k.check(k.Resume(k.ctx, k.now, "a", audit.Actor{Name: "ana"}))
	k.same("claimed when resumed", len(k.claim("a", 5)), 1)
}

// ClaimTakesNoMoreThanFree: each queue gives as many as it has free workers,
// and queues that were not asked for give none.
func ClaimTakesNoMoreThanFree(k *kit) {
	for range 5 {
		k.add(in("a"), in("b"), in("c"))
	}

	claimed, _, err := k.Exchange(k.ctx, nil, job.Claim{
		Worker: "w", Now: k.now, Lease: time.Minute, Free: map[string]int{"a": 2, "b": 9, "c": 0, "d": 3},
	})
	k.check(err)

	got := map[string]int{}
	for _, j := range claimed {
		got[j.Queue]++
	}

	k.same("claimed", got, map[string]int{"a": 2, "b": 5})
}

// ClaimHoldsUnknownTypes: a job of a type without a handler is held: available,
// but no claim looks at it again, and the next ones are claimed in its place.
func ClaimHoldsUnknownTypes(k *kit) {
	var unknown []job.Job
	for range 7 {
		j := simple()
		j.Type = "report.make"
		unknown = append(unknown, j)
	}

	held := k.add(unknown...)
	known := k.add(many(3)...)
	knows := func(typ string) bool { return strings.HasPrefix(typ, "email.") }
	claimed, _, err := k.Exchange(k.ctx, nil, job.Claim{
		Worker: "w", Now: k.now, Lease: time.Minute, Free: map[string]int{"orders": 2}, Knows: knows,
	})
	k.check(err)
	k.same("claimed", ids(claimed), ids(known[:2]))
	k.same("status", k.job(held[0].ID).Status(), job.StatusHeld)
	types, err := k.Counters.Held(k.ctx, "", 100)
	k.check(err)
	k.same("held types", types, []queues.Held{{Queue: "orders", Type: "report.make", Count: 7}})
	k.same("claimed by somebody who knows all", ids(k.claim("orders", 10)), ids(known[2:]))
}

// UnholdLetsKnownTypesGo: when a handler appears, the held jobs of its type can
// be claimed, however many; others stay held.
func UnholdLetsKnownTypesGo(k *kit) {
	jobs := many(1203)
	for i := range jobs {
		jobs[i].Type = []string{"a", "b", "c"}[i%3]
	}

	k.add(jobs...)

	noTypes := func(string) bool { return false }
	for k.Snapshot().Depths[job.StatusHeld] < 1203 {
		_, _, err := k.Exchange(k.ctx, nil, job.Claim{Now: k.now, Lease: time.Minute, Free: map[string]int{"orders": 500}, Knows: noTypes})
		k.check(err)
	}

	n, err := k.Unhold(k.ctx, func(typ string) bool { return typ != "b" })
	k.check(err)
	k.same("let go", n, 802)
	types, err := k.Counters.Held(k.ctx, "", 100)
	k.check(err)
	k.same("held types", types, []queues.Held{{Queue: "orders", Type: "b", Count: 401}})
	k.same("claimed", len(k.claim("orders", 2000)), 802)
}

// ClaimNeverGivesAJobTwice: parallel claims share the jobs among them.
func ClaimNeverGivesAJobTwice(k *kit) {
	k.add(many(300)...)
	var workers sync.WaitGroup

	var mu sync.Mutex
	var all []string
	for range 10 {
		workers.Go(func() {
			for {
				jobs, _, err := k.Exchange(k.ctx, nil, job.Claim{Now: k.now, Lease: time.Minute, Free: map[string]int{"orders": 7}})
				if err != nil || len(jobs) == 0 {
					if err != nil {
						k.Error(err)
					}
					return
				}

				mu.Lock()

				all = append(all, ids(jobs)...)
				mu.Unlock()
			}
		})
	}

	workers.Wait()
	slices.Sort(all)
	k.same("claims", len(all), 300)
	k.same("distinct jobs", len(slices.Compact(all)), 300)
}

// NextDueIsTheEarliest: the earliest time after a moment of a scheduled or
// retryable job in a queue that is not paused; zero when there is none.
func NextDueIsTheEarliest(k *kit) {
	due := func() time.Time {
		at, err := k.NextDue(k.ctx, k.now)
		k.check(err)
		return at
	}

	k.add(in("a"))
	k.same("without waiting jobs", due(), time.Time{})

	late, early := in("a"), in("b")
	late.RunAt, early.RunAt = k.now.Add(time.Hour), k.now.Add(time.Minute)
	k.add(late, early)
	k.same("the earliest", due(), early.RunAt)
	k.settle(k.claim("a", 1)[0], job.Failed)
	k.same("a retry", due(), k.now.Add(time.Second))
	k.check(k.Pause(k.ctx, k.now, "a", audit.Actor{Name: "eve"}))
	k.same("with queue a paused", due(), early.RunAt)
	k.check(k.Resume(k.ctx, k.now, "a", audit.Actor{Name: "ana"}))
	k.pass(time.Minute)
	k.same("when the early ones are due", due(), late.RunAt)
}

// LeasesEndByTime: the active jobs whose lease ends at a time or before; all of
// them for the zero time.
func LeasesEndByTime(k *kit) {
	first := k.begin(simple())
	k.pass(time.Second)

	second := k.begin(simple())
	for _, c := range []struct {
		by   time.Time
		want []string
	}{
		{first.LeaseUntil.Add(-time.Microsecond), []string{}},
		{first.LeaseUntil, []string{first.ID}},
		{second.LeaseUntil, []string{first.ID, second.ID}},
		{time.Time{}, []string{first.ID, second.ID}},
	} {
		jobs, err := k.Leases(k.ctx, c.by)
		k.check(err)
		k.same("leases", ids(jobs), c.want)
	}
}

// ExtendMovesTheLease: a heartbeat moves the lease and the last sign of life of
// the executions that hold theirs, and returns the others.
func ExtendMovesTheLease(k *kit) {
	mine := k.begin(simple())
	lost := k.begin(simple())
	k.settle(lost, job.Succeeded)
	k.pass(30 * time.Second)
	until := k.now.Add(time.Minute)
	stale, err := k.Extend(k.ctx, k.now, until, []job.Token{mine.Token, lost.Token, {ID: job.NewID(), Run: 1, Execution: 1}})
	k.check(err)
	k.same("the number of stale tokens", len(stale), 2)
	k.same("the first stale token", stale[0], lost.Token)

	want := mine
	want.LeaseUntil, want.LastSeen = until, k.now
	k.same("the job", k.job(mine.ID), want)
}
