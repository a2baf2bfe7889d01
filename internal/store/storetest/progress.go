package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retention"
)

var progressing = []func(*kit){
	Operation_ItemsArePruned, Operation_TellsHowItGoes, Operation_TellsItsRateForWeeks, Operation_IsAudited, Operation_ListsAreComplete, Operation_CountsThoseUnderWay,
}

// Operation_ItemsArePruned: long after an operation has ended its items are
// removed, in as many transactions as it takes; what they added up to stays, as
// do the items of operations that are younger or have not ended.
func Operation_ItemsArePruned(k *kit) {
	const n = 501 // more than one transaction removes
	k.deads(n)
	old := k.operate(operation.Replay, filter.Filter{})
	k.run(old.ID, operation.Pace{})
	old = k.workAll(old.ID)
	k.dieAll(n, job.Failed)
	waiting := k.operate(operation.Replay, filter.Filter{})
	k.pass(time.Hour)
	young := k.operate(operation.Replay, filter.Filter{})
	k.run(young.ID, operation.Pace{})
	young = k.workAll(young.ID)
	old = k.operation(old.ID)
	done, err := k.Sweep.Prune(k.ctx, k.now.Add(time.Hour), retention.Limits{Ages: retention.Ages{retention.DeadLetters: 90 * time.Minute}})
	k.check(err)
	k.same("items removed", done.Items, n)
	k.same("the old one", k.operation(old.ID), old)
	k.same("items left", []int{len(k.items(old.ID, operation.ItemFilter{})), len(k.items(waiting.ID, operation.ItemFilter{})), len(k.items(young.ID, operation.ItemFilter{}))},
		[]int{0, n, n})
	b, err := k.Operations.Breakdown(k.ctx, old.ID)
	k.check(err)
	k.same("its scope", b.Scope, []operation.ScopePart{{Queue: "orders", Type: "email.send", Count: n}})
	_, err = k.Operations.New(k.ctx, k.now, operation.Request{Kind: operation.Replay, Relapsed: old.ID}, ana)
	k.same("a conflict", errors.As(err, new(*job.Conflict)), true)
}

// Operation_TellsHowItGoes: how many were done in each step of its time, what
// became of its canary, and what its guard sees.
func Operation_TellsHowItGoes(k *kit) {
	progress := func(id int64) operation.Progress {
		o := k.operation(id)
		p, err := k.Operations.Progress(k.ctx, k.now, o)
		k.check(err)
		early, err := k.Operations.CheapProgress(k.ctx, k.now, o)
		k.check(err)

		p.Canary.Causes = nil // which are not
		k.same("what is cheap", []any{early.Canary, early.Ended, early.Same}, []any{p.Canary, p.Ended, p.Same})

		return p
	}

	k.deads(12)
	o := k.operate(operation.Replay, filter.Filter{})
	k.same("before it starts", progress(o.ID), operation.Progress{})
	k.run(o.ID, operation.Pace{Canary: 2, Guard: true})
	k.same("the canary", k.work(o.ID, 5).Items, 2)
	k.pass(time.Second)

	for i, c := range k.claim("orders", 2) {
		k.settle(c, []job.Outcome{job.Succeeded, job.Failed}[i])
	}

	p := progress(o.ID)
	k.same("after the canary", []any{p.Canary.Done, p.Canary.Succeeded, p.Canary.Relapsed, p.Canary.EndedAt.IsZero(), p.Ended, p.Same},
		[]any{int64(2), int64(1), int64(1), false, int64(2), int64(1)})
	k.pass(89 * time.Second)
	_, err := k.Operations.Resume(k.ctx, k.now, o.ID, sam)
	k.check(err)
	k.workAll(o.ID)

	p = progress(o.ID)
	var all int64
	for _, n := range p.Rate.Done {
		all += n
	}

	k.same("the rate", []any{p.Rate.Step, p.Rate.Done[0], p.Rate.Done[len(p.Rate.Done)-1], all}, []any{2 * time.Second, int64(2), int64(10), int64(12)})
	k.same("the canary alone", []any{p.Canary.Done, p.Canary.Unsettled(), p.Ended, p.Pruned}, []any{int64(2), int64(0), int64(0), false})
	_, err = k.Sweep.Prune(k.ctx, k.now.Add(time.Hour), retention.Limits{Ages: retention.Ages{retention.DeadLetters: time.Minute}})
	k.check(err)
	k.same("pruned", progress(o.ID).Pruned, true)
}

// Operation_TellsItsRateForWeeks: what was done is counted in each step of its
// time, however long an operation takes, also when its items were removed.
func Operation_TellsItsRateForWeeks(k *kit) {
	const n = 30
	k.deads(n)
	o := k.operate(operation.Replay, filter.Filter{})
	k.run(o.ID, operation.Pace{})
	begin := k.now

	var at []time.Time
	look := func() {
		p, err := k.Operations.Progress(k.ctx, k.now, k.operation(o.ID))
		k.check(err)

		want := make([]int64, len(p.Rate.Done))
		for _, done := range at {
			want[done.Sub(p.Rate.From)/p.Rate.Step]++
		}

		k.same("the rate after "+k.now.Sub(begin).String(), p.Rate.Done, want)
	}
	for i := range n {
		k.same("a step", k.work(o.ID, 1).Items, 1)
		at = append(at, k.now)

		look()
		k.pass(time.Duration(i*i*i) * 7 * time.Second)
	}

	k.same("the end", k.operation(o.ID).State, operation.Finished)
	look()

	_, err := k.Sweep.Prune(k.ctx, k.now.Add(time.Hour), retention.Limits{Ages: retention.Ages{retention.DeadLetters: time.Minute}})
	k.check(err)
	look()
}

// Operation_IsAudited: what people and the operation itself did is in the audit
// log, the filter and the count with it.
func Operation_IsAudited(k *kit) {
	k.deads(10)
	o := k.operate(operation.Replay, filter.Filter{Queue: "orders"})
	k.run(o.ID, operation.Pace{Canary: 2})
	k.workAll(o.ID)
	_, err := k.Operations.Resume(k.ctx, k.now, o.ID, sam)
	k.check(err)
	_, err = k.Operations.SetRate(k.ctx, k.now, o.ID, operation.Pace{Rate: 3}, sam)
	k.check(err)
	k.workAll(o.ID)
	log, err := k.Operations.Log(k.ctx, o.ID)
	k.check(err)

	var lines []string
	for _, e := range log {
		lines = append(lines, fmt.Sprintf("%s by %s, %d: %s", e.Action, e.Actor.Name, e.Count, e.Filter))
	}

	const filter = "state:dead_letter queue:orders"
	k.same("the log", lines, []string{
		"operation.finish by ana, 10: " + filter,
		"operation.rate by sam, 10: " + filter,
		"operation.resume by sam, 10: " + filter,
		"operation.pause by the canary, 10: " + filter,
		"operation.start by ana, 10: " + filter,
		"operation.preview by ana, 10: " + filter,
		"operation.new by ana, 0: " + filter,
	})
}

// Operation_ListsAreComplete: pages of operations and items hold each once.
func Operation_ListsAreComplete(k *kit) {
	k.deads(5)

	var want, got []int64
	for range 5 {
		want = append(want, k.operate(operation.Replay, filter.Filter{}).ID)
	}

	for before := int64(0); ; {
		page, err := k.Operations.List(k.ctx, before, 2)
		k.check(err)

		for _, o := range page.Operations {
			got = append(got, o.ID)
		}

		before = page.Next
		if before == 0 {
			break
		}
	}

	slices.Reverse(got)
	k.same("the operations", got, want)

	var numbers []int64
	for after := int64(0); ; {
		page, err := k.Operations.Items(k.ctx, want[0], operation.ItemFilter{}, after, 2)
		k.check(err)

		for _, it := range page.Items {
			numbers = append(numbers, it.N)
		}

		after = page.Next
		if after == 0 {
			break
		}
	}

	k.same("the items", numbers, []int64{1, 2, 3, 4, 5})
	open, err := k.Operations.Unfinished(k.ctx)
	k.check(err)
	k.same("open operations", len(open), 5)
}

// Operation_CountsThoseUnderWay: the snapshot says how many operations collect, run
// or are paused.
func Operation_CountsThoseUnderWay(k *kit) {
	k.deads(3)
	o := k.operate(operation.Replay, filter.Filter{})
	k.same("while it is previewed", k.Snapshot().Operations, int64(0))
	k.run(o.ID, operation.Pace{})
	k.same("while it runs", k.Snapshot().Operations, int64(1))
	_, err := k.Operations.Pause(k.ctx, k.now, o.ID, ana)
	k.check(err)
	k.same("while it is paused", k.Snapshot().Operations, int64(1))
	k.restart()
	k.same("after a restart", k.Snapshot().Operations, int64(1))
	_, err = k.Operations.Resume(k.ctx, k.now, o.ID, ana)
	k.check(err)
	k.workAll(o.ID)
	k.same("at the end", k.Snapshot().Operations, int64(0))
}
