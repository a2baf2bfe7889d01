package storetest

import (
	"context"
	"errors"
	"time"

	"redrive/internal/job"
)

// BulkWatcher is how operations went so far.
type BulkWatcher interface {
	Progress(ctx context.Context, now time.Time, o job.Operation) (job.Progress, error)
	Early(ctx context.Context, o job.Operation) (job.Progress, error)
}

var progressing = []func(*kit){Operation_ItemsArePruned, Operation_TellsHowItGoes}

// Operation_ItemsArePruned: long after an operation has ended its items are
// removed, in as many transactions as it takes; what they added up to stays, as
// do the items of operations that are younger or have not ended.
func Operation_ItemsArePruned(k *kit) {
	k.deads(601)
	old := k.operate(job.OpReplay, job.Filter{})
	k.run(old.ID, job.Pace{})
	old = k.workAll(old.ID)
	k.dieAll(601, job.Failed)
	waiting := k.operate(job.OpReplay, job.Filter{})
	k.pass(time.Hour)
	young := k.operate(job.OpReplay, job.Filter{})
	k.run(young.ID, job.Pace{})
	young = k.workAll(young.ID)
	old = k.operation(old.ID)
	done, err := k.Prune(k.ctx, k.now.Add(time.Hour), job.Retention{Age: 90 * time.Minute})
	k.check(err)
	k.same("items removed", done.Items, 601)
	k.same("the old one", k.operation(old.ID), old)
	k.same("items left", []int{len(k.items(old.ID, job.ItemFilter{})), len(k.items(waiting.ID, job.ItemFilter{})), len(k.items(young.ID, job.ItemFilter{}))},
		[]int{0, 601, 601})
	b, err := k.Breakdown(k.ctx, old.ID)
	k.check(err)
	k.same("its scope", b.Scope, []job.ScopePart{{Queue: "orders", Type: "email.send", Count: 601}})
	_, err = k.NewOperation(k.ctx, k.now, job.NewOperation{Kind: job.OpReplay, Relapsed: old.ID}, ana)
	k.same("a conflict", errors.As(err, new(*job.Conflict)), true)
}

// Operation_TellsHowItGoes: how many were done in each step of its time, what
// became of its canary, and what its guard sees.
func Operation_TellsHowItGoes(k *kit) {
	progress := func(id int64) job.Progress {
		o := k.operation(id)
		p, err := k.Progress(k.ctx, k.now, o)
		k.check(err)
		early, err := k.Early(k.ctx, o)
		k.check(err)
		k.same("what is cheap", []any{early.Canary, early.Ended, early.Same}, []any{p.Canary, p.Ended, p.Same})
		return p
	}
	k.deads(12)
	o := k.operate(job.OpReplay, job.Filter{})
	k.same("before it starts", progress(o.ID), job.Progress{})
	k.run(o.ID, job.Pace{Canary: 2, Guard: true})
	k.same("the canary", k.work(o.ID, 5).Items, 2)
	k.pass(time.Second)
	for i, c := range k.claim("orders", 2) {
		k.settle(c, []job.Outcome{job.Succeeded, job.Failed}[i])
	}
	p := progress(o.ID)
	k.same("after the canary", []any{p.Canary.Done, p.Canary.Succeeded, p.Canary.Relapsed, p.Canary.EndedAt.IsZero(), p.Ended, p.Same},
		[]any{int64(2), int64(1), int64(1), false, int64(2), int64(1)})
	k.pass(89 * time.Second)
	_, err := k.ResumeOperation(k.ctx, k.now, o.ID, sam)
	k.check(err)
	k.workAll(o.ID)
	p = progress(o.ID)
	var all int64
	for _, n := range p.Rate.Done {
		all += n
	}
	k.same("the rate", []any{p.Rate.Step, p.Rate.Done[0], p.Rate.Done[len(p.Rate.Done)-1], all}, []any{2 * time.Second, int64(2), int64(10), int64(12)})
	k.same("the canary alone", []any{p.Canary.Done, p.Canary.Unsettled(), p.Ended, p.Pruned}, []any{int64(2), int64(0), int64(0), false})
	_, err = k.Prune(k.ctx, k.now.Add(time.Hour), job.Retention{Age: time.Minute})
	k.check(err)
	k.same("pruned", progress(o.ID).Pruned, true)
}
