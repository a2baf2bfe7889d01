package storetest

import (
	"errors"
	"strconv"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
)

var operating = []func(*kit){
	Operation_WorksInOrderAndAddsUp, Operation_ItemsAndTheirJobsAreOfOneMoment, Operation_SkipsWhatMovedOn, Operation_TwoOverOneScope, Operation_AbortLeavesTheRest,
	Operation_PauseSurvivesARestart, Operation_PreviewExpires, Operation_KeyAnswersWithTheFirst, Operation_KeyBelongsToItsCaller, Operation_SpreadBecomesARate,
	Operation_FailedItemIsPassed, Operation_Discards, Operation_StartsByItself,
}

// deads enqueues jobs that die at once, and returns them as they were claimed.
func (k *kit) deads(n int) []job.Job {
	k.Helper()

	jobs := many(n)
	for i := range jobs {
		jobs[i].Policy = policy(1)
	}

	k.add(jobs...)

	return k.dieAll(n, job.Failed)
}

// dieAll claims n jobs, ends their executions, and returns the jobs as they were claimed.
func (k *kit) dieAll(n int, o job.Outcome) []job.Job {
	k.Helper()

	var all []job.Job
	for len(all) < n {
		claimed := k.claim("orders", n-len(all))
		if len(claimed) == 0 {
			k.Fatalf("%d of %d jobs could be claimed", len(all), n)
		}

		var ends []job.Settlement
		for _, c := range claimed {
			ends = append(ends, c.Settle(k.ending(o), nil))
		}

		k.settleAll(ends)

		all = append(all, claimed...)
	}

	return all
}

// operate makes an operation over a filter and collects it.
func (k *kit) operate(kind operation.Kind, f filter.Filter) operation.Operation {
	k.Helper()

	f, err := kind.Scope(f)
	k.check(err)

	return k.begun(operation.Request{Kind: kind, Filter: f})
}

func (k *kit) begun(n operation.Request) operation.Operation {
	k.Helper()
	o, err := k.Operations.New(k.ctx, k.now, n, ana)
	k.check(err)
	k.collect(o.ID)

	return k.operation(o.ID)
}

func (k *kit) collect(id int64) {
	k.Helper()

	for more := true; more; {
		var err error
		more, err = k.Operations.Collect(k.ctx, k.now, id)
		k.check(err)
	}
}

func (k *kit) operation(id int64) operation.Operation {
	k.Helper()
	o, err := k.Operations.Get(k.ctx, id)
	k.check(err)

	if o.Total != o.Pending+o.Done+o.Skipped+o.Failed {
		k.Errorf("the meters of %+v do not add up", o)
	}

	return o
}

func (k *kit) run(id int64, p operation.Pace) {
	k.Helper()
	_, err := k.Operations.Start(k.ctx, k.now, id, p, ana)
	k.check(err)
}

// work works through n items.
func (k *kit) work(id int64, n int) operation.Step {
	k.Helper()
	w, err := k.Operations.Work(k.ctx, func() time.Time { return k.now }, id, n)
	k.check(err)
	return w
}

// workAll works until nothing is left to do.
func (k *kit) workAll(id int64) operation.Operation {
	k.Helper()

	for k.work(id, 500).Operation.State == operation.Running {
		continue
	}

	return k.operation(id)
}

func (k *kit) items(id int64, f operation.ItemFilter) []operation.Item {
	k.Helper()
	list, err := k.Operations.Items(k.ctx, id, f, 0, 10_000)
	k.check(err)
	return list.Items
}

var (
	ana = audit.Actor{Name: "ana", Address: "10.0.0.1"}
	sam = audit.Actor{Name: "sam"}
)

// Operation_WorksInOrderAndAddsUp: each step takes the next items, and nothing
// is replayed before its turn.
func Operation_WorksInOrderAndAddsUp(k *kit) {
	dead := k.deads(10)
	o := k.operate(operation.Replay, filter.Filter{})
	k.run(o.ID, operation.Pace{Rate: 5})
	w := k.work(o.ID, 4)
	k.same("worked", w.Items, 4)
	o = k.operation(o.ID)
	k.same("the meters", []int64{o.Pending, o.Done}, []int64{6, 4})
	k.same("available jobs", k.Snapshot().Depths[job.Status(job.Available)], int64(4))
	k.same("counted replays", k.Snapshot().Totals.Replayed, int64(4))
	first := k.items(o.ID, operation.ItemFilter{State: operation.ItemDone})[0]
	k.same("the first job", first.Job.ID, dead[0].ID)
	k.same("its run", first.Job.Run, 2)
	d := k.detail(dead[0].ID)
	k.same("its replay", []any{d.Replays[0].Run, d.Replays[0].By, d.DeadLetters[0].ReplayedBy}, []any{1, "ana", "ana"})
	k.same("the end", k.workAll(o.ID).State, operation.Finished)
	k.same("dead letters left", k.Snapshot().Depths[job.StatusDeadLetter], int64(0))
	reasons, err := k.Counters.Reasons(k.ctx)
	k.check(err)
	k.same("open letters by reason", len(reasons), 0)
}

// Operation_ItemsAndTheirJobsAreOfOneMoment: an item that waits is never shown with the run
// that its replay began.
func Operation_ItemsAndTheirJobsAreOfOneMoment(k *kit) {
	const many = 200
	k.deads(many)
	o := k.operate(operation.Replay, filter.Filter{})

	k.run(o.ID, operation.Pace{Rate: many})

	worked := make(chan error)
	go func() {
		var err error
		for n := 0; n < many && err == nil; n++ {
			_, err = k.Operations.Work(k.ctx, func() time.Time { return k.now }, o.ID, 1)
		}

		worked <- err
	}()

	for {
		for _, it := range k.items(o.ID, operation.ItemFilter{}) {
			if run := map[operation.ItemState]int{operation.ItemPending: 1, operation.ItemDone: 2}[it.State]; it.Job.Run != run {
				k.Errorf("item %d is %s, and its job in run %d", it.N, it.State, it.Job.Run)
			}
		}

		select {
		case err := <-worked:
			k.check(err)
			return
		default:
		}
	}
}

// Operation_SkipsWhatMovedOn: an item whose job is no longer what the person
// saw is skipped, and says why.
func Operation_SkipsWhatMovedOn(k *kit) {
	dead := k.deads(4)
	o := k.operate(operation.Replay, filter.Filter{})
	_, err := k.Replay(k.ctx, k.now, dead[0].ID, 1, sam)
	k.check(err)
	k.settle(k.claim("orders", 1)[0], job.Succeeded)
	_, err = k.Discard(k.ctx, k.now, dead[1].ID, dead[1].Run, sam)
	k.check(err)
	k.run(o.ID, operation.Pace{})
	o = k.workAll(o.ID)
	items := k.items(o.ID, operation.ItemFilter{})
	k.same("the first item", []any{items[0].State, items[0].Code, items[0].Why}, []any{operation.ItemSkipped, operation.SkipReplayed, "replayed already by sam, run 2"})
	k.same("replays of the first job", len(k.detail(dead[0].ID).Replays), 1)
	b, err := k.Operations.Breakdown(k.ctx, o.ID)
	k.check(err)
	k.same("the first reason to skip", b.Skips[0].Count >= 1, true)
	k.same("skipped by the breakdown", len(b.Skipped), int(o.Skipped))
	k.same("the scope by queue and type", b.Scope, []operation.ScopePart{{Queue: "orders", Type: "email.send", Count: 4}})
}

// Operation_TwoOverOneScope: of two operations over the same jobs each job is
// replayed once, and the loser names the winner.
func Operation_TwoOverOneScope(k *kit) {
	k.deads(30)
	a, b := k.operate(operation.Replay, filter.Filter{}), k.operate(operation.Replay, filter.Filter{})
	k.run(a.ID, operation.Pace{})
	k.run(b.ID, operation.Pace{})
	k.work(a.ID, 10)
	k.work(b.ID, 25)
	a, b = k.workAll(a.ID), k.workAll(b.ID)
	k.same("replays", k.Snapshot().Totals.Replayed, int64(30))
	k.same("done by both", a.Done+b.Done, int64(30))
	k.same("skipped by both", a.Skipped+b.Skipped, int64(30))
	k.same("who was first", k.items(b.ID, operation.ItemFilter{State: operation.ItemSkipped})[0].Other, a.ID)
}

// Operation_AbortLeavesTheRest: an aborted operation leaves dead what it had
// not reached, and nothing starts it again.
func Operation_AbortLeavesTheRest(k *kit) {
	k.deads(10)
	o := k.operate(operation.Replay, filter.Filter{})
	k.run(o.ID, operation.Pace{})
	k.work(o.ID, 3)
	o, err := k.Operations.Abort(k.ctx, k.now, o.ID, sam)
	k.check(err)
	k.same("the operation", []any{o.State, o.Why, o.Pending, o.Done}, []any{operation.Aborted, "aborted by sam", int64(7), int64(3)})
	k.same("worked after that", k.work(o.ID, 500).Items, 0)
	k.same("dead letters left", k.Snapshot().Depths[job.StatusDeadLetter], int64(7))
	_, err = k.Operations.Resume(k.ctx, k.now, o.ID, ana)
	k.same("a conflict", errors.As(err, new(*job.Conflict)), true)
}

// Operation_PauseSurvivesARestart: a paused operation stays so until a person
// resumes it.
func Operation_PauseSurvivesARestart(k *kit) {
	k.deads(10)
	o := k.operate(operation.Replay, filter.Filter{})
	k.run(o.ID, operation.Pace{Rate: 7})
	k.work(o.ID, 3)
	_, err := k.Operations.Pause(k.ctx, k.now, o.ID, sam)
	k.check(err)
	k.restart()
	o = k.operation(o.ID)
	k.same("the operation", []any{o.State, o.Why, o.Pace.Rate}, []any{operation.Paused, "paused by sam", 7.0})
	k.same("worked meanwhile", k.work(o.ID, 500).Items, 0)
	_, err = k.Operations.Resume(k.ctx, k.now, o.ID, ana)
	k.check(err)
	k.same("the end", k.workAll(o.ID).Done, int64(10))
}

// Operation_PreviewExpires: a preview that no one starts within an hour is over.
func Operation_PreviewExpires(k *kit) {
	k.deads(2)
	o := k.operate(operation.Replay, filter.Filter{})
	next, err := k.Operations.Expire(k.ctx, k.now)
	k.check(err)
	k.same("the end of the preview", next.Equal(k.now.Add(operation.PreviewFor)), true)
	k.pass(operation.PreviewFor)
	_, err = k.Operations.Expire(k.ctx, k.now)
	k.check(err)
	o = k.operation(o.ID)
	k.same("the operation", []any{o.State, o.Why}, []any{operation.Aborted, "never started"})
	_, err = k.Operations.Start(k.ctx, k.now, o.ID, operation.Pace{}, ana)
	k.same("a conflict", errors.As(err, new(*job.Conflict)), true)
}

// Operation_KeyAnswersWithTheFirst: a request that is repeated makes no second
// operation.
func Operation_KeyAnswersWithTheFirst(k *kit) {
	k.deads(2)

	f, err := operation.Replay.Scope(filter.Filter{})
	k.check(err)

	var seen []operation.Operation
	for range 2 {
		o, err := k.Operations.New(k.ctx, k.now, operation.Request{Kind: operation.Replay, Filter: f, Key: "once"}, ana)
		k.check(err)

		seen = append(seen, o)
	}

	k.same("the second one", seen[1].ID, seen[0].ID)
	k.same("repeats", []bool{seen[0].Repeat, seen[1].Repeat}, []bool{false, true})
	k.reusedFor(strconv.FormatInt(seen[0].ID, 10), func() error {
		_, err := k.Operations.New(k.ctx, k.now, operation.Request{Kind: operation.Discard, Filter: f, Key: "once"}, ana)
		return err
	})
}

// Operation_KeyBelongsToItsCaller: under one key each caller has an operation of
// their own, and the same caller asks for the same or is refused.
func Operation_KeyBelongsToItsCaller(k *kit) {
	k.deads(2)

	f, err := operation.Replay.Scope(filter.Filter{})
	k.check(err)

	ask := func(caller, content string) (operation.Operation, error) {
		return k.Operations.New(k.ctx, k.now, operation.Request{
			Kind: operation.Replay, Filter: f, Key: "once", Caller: caller, Content: content,
		}, ana)
	}
	first, err := ask("a", "1")
	k.check(err)
	again, err := ask("a", "1")
	k.check(err)
	other, err := ask("b", "2")
	k.check(err)
	k.same("whose operation is whose", []bool{again.ID == first.ID, other.ID == first.ID, other.Repeat}, []bool{true, false, false})
	k.reusedFor(strconv.FormatInt(first.ID, 10), func() error { _, err := ask("a", "2"); return err })
}

// Operation_SpreadBecomesARate: all of it over a time is so many a second.
func Operation_SpreadBecomesARate(k *kit) {
	k.deads(30)
	o := k.operate(operation.Replay, filter.Filter{})
	k.run(o.ID, operation.Pace{Spread: time.Minute})
	k.same("the rate", k.operation(o.ID).Pace.Rate, 0.5)
	k.work(o.ID, 10)
	_, err := k.Operations.SetRate(k.ctx, k.now, o.ID, operation.Pace{Spread: 10 * time.Second}, ana)
	k.check(err)
	o = k.operation(o.ID)
	left, ok := o.Left()
	k.same("what is left", []any{o.Pace.Rate, left, ok}, []any{2.0, 10 * time.Second, true})
	k.work(o.ID, 10)
	left, _ = k.operation(o.ID).Left()
	k.same("what is left later", left, 5*time.Second)
}

// Operation_FailedItemIsPassed: an item that cannot be done is failed, and the
// others go on.
func Operation_FailedItemIsPassed(k *kit) {
	dead := k.deads(3)
	o := k.operate(operation.Replay, filter.Filter{})
	k.run(o.ID, operation.Pace{})
	k.check(k.Operations.FailItem(k.ctx, k.now, o.ID, "out of luck"))
	o = k.workAll(o.ID)
	k.same("the meters", []int64{o.Failed, o.Done}, []int64{1, 2})
	k.same("the failed item", k.items(o.ID, operation.ItemFilter{State: operation.ItemFailed})[0].Why, "out of luck")
	k.same("its job", k.job(dead[0].ID).Run, 1)
}

// Operation_Discards: an operation can give jobs up as well.
func Operation_Discards(k *kit) {
	k.deads(5)
	o := k.operate(operation.Discard, filter.Filter{})
	k.run(o.ID, operation.Pace{Canary: 1, Guard: true})
	o = k.workAll(o.ID)
	k.same("the end", []any{o.State, o.Done, o.Unsettled()}, []any{operation.Finished, int64(5), int64(0)})
	k.same("dead letters left", k.Snapshot().Depths[job.StatusDeadLetter], int64(0))
	k.same("discarded jobs", k.Snapshot().Depths[job.Status(job.Discarded)], int64(5))
}

// Operation_StartsByItself: who wants no preview gets none.
func Operation_StartsByItself(k *kit) {
	k.deads(3)

	f, err := operation.Replay.Scope(filter.Filter{})
	k.check(err)
	o := k.begun(operation.Request{Kind: operation.Replay, Filter: f, Start: true, Pace: operation.Pace{Rate: 2}})
	k.same("the operation", []any{o.State, o.Pace.Rate, o.StartedBy}, []any{operation.Running, 2.0, "ana"})

	f.Queue = "nobody"
	o = k.begun(operation.Request{Kind: operation.Replay, Filter: f, Start: true})
	k.same("one without jobs", o.State, operation.Finished)
}
