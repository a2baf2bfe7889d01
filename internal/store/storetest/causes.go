package storetest

import (
	"maps"
	"slices"
	"strings"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
)

// byCause is what an operation on many jobs knows of why they had failed.
var byCause = []func(*kit){
	Operation_TheCanaryHasAJobOfEachCause, Operation_TheCanaryTakesWhatIsStillDead,
	Operation_ASmallCanaryHasTheMostFrequentCauses, Operation_TheUsualCanaryCoversTheCauses,
	Operation_TheCanaryIsJudgedByCause, Operation_TheGuardNamesWhatCameBack, Operation_ATypeWithoutAGroupIsACause,
	Operation_OnlyTheCausesThatPassedGoOn, Operation_NoCausePassed, Operation_ACanaryThatRunsHasNotPassed, Operation_AGroupOfTwoTypesIsOneCause,
}

// classes are the error classes of which jobs died, by their ids.
type classes map[string]string

// diesOf lets n jobs die of an error of this class, one after the other.
func (k *kit) diesOf(class string, n int) classes {
	k.Helper()

	died := classes{}
	for range n {
		died[k.failing(simple(), class, class+" came up").ID] = class
	}

	return died
}

// died lets jobs die of errors, as many of each class, and in this order.
func (k *kit) died(numbers ...any) classes {
	k.Helper()

	all := classes{}
	for i := 0; i < len(numbers); i += 2 {
		maps.Copy(all, k.diesOf(numbers[i].(string), numbers[i+1].(int)))
	}

	return all
}

// of are the classes of items, sorted.
func (c classes) of(items []operation.Item) string {
	var all []string
	for _, it := range items {
		all = append(all, c[it.Job.ID])
	}

	slices.Sort(all)

	return strings.Join(all, " ")
}

// Operation_TheCanaryHasAJobOfEachCause: it begins with the oldest job of each, the most
// frequent cause first, and goes on with the oldest of the others. Nothing is lost or done
// twice by that.
func Operation_TheCanaryHasAJobOfEachCause(k *kit) {
	all := k.died("a.Often", 7, "b.Seldom", 1, "c.Middle", 3)
	o := k.operate(operation.Replay, filter.Filter{})
	before := k.items(o.ID, operation.ItemFilter{})
	k.same("causes", k.operation(o.ID).Causes, int64(3))

	k.run(o.ID, operation.Pace{Canary: 4})
	o = k.workAll(o.ID)
	k.same("the canary", []any{o.State, o.Done}, []any{operation.Paused, int64(4)})
	canary := k.items(o.ID, operation.ItemFilter{State: operation.ItemDone})
	k.same("its causes", all.of(canary), "a.Often a.Often b.Seldom c.Middle")

	for _, want := range []int64{before[0].Job.Seq, before[7].Job.Seq, before[8].Job.Seq} {
		found := false
		for _, it := range canary {
			found = found || it.Job.Seq == want
		}

		k.same("the oldest one of its cause is in it", found, true)
	}

	_, err := k.Operations.Resume(k.ctx, k.now, o.ID, ana)
	k.check(err)
	o = k.workAll(o.ID)
	k.same("at the end", []any{o.State, o.Done, o.Skipped}, []any{operation.Finished, int64(11), int64(0)})

	seen := map[int64]bool{}
	for i, it := range k.items(o.ID, operation.ItemFilter{}) {
		k.same("numbers", it.N, int64(i+1))
		seen[it.Job.Seq] = true
	}

	k.same("jobs", len(seen), 11)
}

// Operation_TheCanaryTakesWhatIsStillDead: of a cause whose oldest jobs were replayed or
// discarded after the preview, it has the next one.
func Operation_TheCanaryTakesWhatIsStillDead(k *kit) {
	all := k.died("a.Often", 7, "b.Seldom", 1, "c.Middle", 3)
	o := k.operate(operation.Replay, filter.Filter{})
	items := k.items(o.ID, operation.ItemFilter{})
	replayed, discarded, next := items[8].Job, items[9].Job, items[10].Job
	_, err := k.Replay(k.ctx, k.now, replayed.ID, 1, ana)
	k.check(err)
	_, err = k.Discard(k.ctx, k.now, discarded.ID, 1, ana)
	k.check(err)

	k.run(o.ID, operation.Pace{Canary: 3})
	k.workAll(o.ID)
	canary := k.items(o.ID, operation.ItemFilter{State: operation.ItemDone})
	k.same("its causes", all.of(canary), "a.Often b.Seldom c.Middle")
	has := slices.ContainsFunc(canary, func(it operation.Item) bool { return it.Job.ID == next.ID })
	k.same("the one that is still dead is in it", has, true)
}

// Operation_ASmallCanaryHasTheMostFrequentCauses: where it has room for less than all.
func Operation_ASmallCanaryHasTheMostFrequentCauses(k *kit) {
	all := k.died("a.Seldom", 1, "b.Often", 3, "c.Middle", 2)
	o := k.operate(operation.Replay, filter.Filter{})
	k.run(o.ID, operation.Pace{Canary: 2})
	k.workAll(o.ID)
	canary := k.items(o.ID, operation.ItemFilter{State: operation.ItemDone})
	k.same("its causes", all.of(canary), "b.Often c.Middle")
}

// Operation_TheUsualCanaryCoversTheCauses: it has five jobs, or one of each cause, and not
// more than twenty.
func Operation_TheUsualCanaryCoversTheCauses(k *kit) {
	for causes, want := range map[int64]int64{0: 5, 1: 5, 5: 5, 8: 8, 20: 20, 480: 20} {
		k.same("the usual canary", operation.Pace{Canary: -1}.Settle(operation.Replay, 1000, causes).Canary, want)
	}

	k.same("that of a few jobs", operation.Pace{Canary: -1}.Settle(operation.Replay, 100, 8).Canary, int64(0))

	k.deads(95)

	for _, class := range []string{"a", "b", "c", "d", "e", "f"} {
		k.diesOf(class, 1)
	}

	o := k.begun(operation.Request{
		Kind: operation.Replay, Filter: filter.Filter{Status: job.StatusDeadLetter}, Pace: operation.Pace{Canary: -1},
	})
	k.same("of a preview", o.Planned().Canary, int64(7))
	k.run(o.ID, operation.Pace{Canary: -1})
	k.same("of the operation", k.workAll(o.ID).Done, int64(7))
}

// Operation_TheCanaryIsJudgedByCause: a cause whose jobs failed again says nothing about one
// whose jobs succeeded, even if its group is removed or its jobs are in another group since.
func Operation_TheCanaryIsJudgedByCause(k *kit) {
	all := k.died("a.Broken", 3, "b.Mended", 2, "c.Rare", 1)
	o := k.operate(operation.Replay, filter.Filter{})
	made, err := k.Operations.Breakdown(k.ctx, o.ID)
	k.check(err)

	var parts []any
	for _, p := range made.Causes {
		parts = append(parts, p.Class, p.Type, p.Count, p.Group != "")
	}

	k.same("the scope by cause", parts, []any{
		"a.Broken", simple().Type, int64(3), true, "b.Mended", simple().Type, int64(2), true, "c.Rare", simple().Type, int64(1), true,
	})

	k.run(o.ID, operation.Pace{Canary: 3})
	o = k.workAll(o.ID)
	k.pass(time.Second)

	for _, c := range k.claim("orders", 3) {
		end := k.ending(job.Failed)
		switch all[c.ID] {
		case "a.Broken":
			end.Error = job.ErrorInfo{Type: "d.Other", Message: "it fails otherwise now"}
		case "b.Mended":
			end = k.ending(job.Succeeded)
		default:
			continue // it runs
		}

		k.settleAs(c.Settle(end, nil))
	}

	p, err := k.Operations.Progress(k.ctx, k.now, o)
	k.check(err)

	var verdicts []any
	for _, c := range p.Canary.Causes {
		verdicts = append(verdicts, c.Class, c.Done, c.Succeeded, c.Relapsed, c.Unsettled())
	}

	k.same("the canary by cause", verdicts, []any{
		"a.Broken", int64(1), int64(0), int64(1), int64(0),
		"b.Mended", int64(1), int64(1), int64(0), int64(0),
		"c.Rare", int64(1), int64(0), int64(0), int64(1),
	})
	alone, err := k.Operations.CanaryCauses(k.ctx, o)
	k.check(err)
	k.same("the causes alone", alone, p.Canary.Causes)
}

// Operation_TheGuardNamesWhatCameBack: the error that came back most often.
func Operation_TheGuardNamesWhatCameBack(k *kit) {
	all := k.died("a.Broken", 9, "b.Broken", 3, "c.Mended", 8)
	o := k.operate(operation.Replay, filter.Filter{})
	k.run(o.ID, operation.Pace{Guard: true})
	k.work(o.ID, 15)
	k.pass(time.Second)

	for _, c := range k.claim("orders", 15) {
		end := k.ending(job.Failed)
		end.Error = job.ErrorInfo{Type: "a.Broken", Message: "a.Broken came up"}
		switch all[c.ID] {
		case "b.Broken":
			end.Error = job.ErrorInfo{Type: "b.Broken", Message: "b.Broken came up"}
		case "c.Mended":
			end = k.ending(job.Succeeded)
		}

		k.settleAs(c.Settle(end, nil))
	}

	w := k.work(o.ID, 1)
	k.same("the guard", []any{w.Operation.State, w.Operation.Guarded, w.Operation.Why},
		[]any{operation.Paused, true, "a.Broken came back in 9 of the last 15 replays"})
	k.same("as it is kept", k.operation(o.ID).Guarded, true)
	p, err := k.Operations.Progress(k.ctx, k.now, w.Operation)
	k.check(err)
	k.same("what it saw", []any{p.Ended, p.Same, p.BackN, p.Back.Class, p.Back.Group != ""}, []any{int64(15), int64(12), int64(9), "a.Broken", true})

	resumed, err := k.Operations.Resume(k.ctx, k.now, o.ID, ana)
	k.check(err)
	k.same("after a person resumed it", []any{resumed.State, resumed.Guarded}, []any{operation.Running, false})
}

// Operation_ATypeWithoutAGroupIsACause: jobs that never failed have no error group.
func Operation_ATypeWithoutAGroupIsACause(k *kit) {
	a, b := simple(), simple()
	b.Type = "other.type"
	for _, j := range k.add(a, a, b) {
		_, err := k.Cancel(k.ctx, k.now, j.ID, 1, sam)
		k.check(err)
	}

	o := k.operate(operation.Replay, filter.Filter{Status: job.Status(job.Cancelled)})
	made, err := k.Operations.Breakdown(k.ctx, o.ID)
	k.check(err)
	k.same("the scope by cause", made.Causes, []operation.CausePart{
		{Cause: operation.Cause{Type: a.Type}, Count: 2}, {Cause: operation.Cause{Type: b.Type}, Count: 1},
	})
}

// canaryOf makes an operation over all dead letters, and ends its canary: the jobs of the
// classes succeed, all others fail again.
func (k *kit) canaryOf(all classes, size int64, succeed ...string) operation.Operation {
	k.Helper()
	o := k.operate(operation.Replay, filter.Filter{})
	k.run(o.ID, operation.Pace{Canary: size})
	k.workAll(o.ID)
	k.pass(time.Second)

	for _, c := range k.claim("orders", int(size)) {
		end := k.ending(job.Failed)
		if slices.Contains(succeed, all[c.ID]) {
			end = k.ending(job.Succeeded)
		}

		k.settleAs(c.Settle(end, nil))
	}

	return k.operation(o.ID)
}

// Operation_OnlyTheCausesThatPassedGoOn: a person resumes those, and the jobs of all other
// causes, tested or not, are skipped as they are, before anything else is done, and across a
// restart.
func Operation_OnlyTheCausesThatPassedGoOn(k *kit) {
	all := k.died("a.Broken", 4, "b.Mended", 3, "c.Mended", 2, "d.Untested", 1)
	o := k.canaryOf(all, 3, "b.Mended", "c.Mended")
	k.pass(time.Second)
	o, err := k.Operations.ResumePassed(k.ctx, k.now, o.ID, ana)
	k.check(err)
	_, err = k.Operations.SetRate(k.ctx, k.now, o.ID, operation.Pace{Spread: time.Hour}, ana)
	k.conflict(err) // over how many jobs is not known yet
	k.check(k.Operations.FailItem(k.ctx, k.now, o.ID, "of an earlier step"))
	k.same("no item is given up meanwhile", k.operation(o.ID).Failed, int64(0))
	k.same("resumed", []any{o.State, o.Sift > 0, o.Pending}, []any{operation.Running, true, int64(7)})
	k.same("work before it is sifted", k.work(o.ID, 10).Items, 0)
	k.restart()

	k.check(k.Operations.Sift(k.ctx, k.now, o.ID))
	o = k.operation(o.ID)
	k.same("sifted", []any{o.State, o.Sift, o.Pending, o.Skipped}, []any{operation.Running, int64(0), int64(3), int64(4)})
	k.check(k.Operations.Sift(k.ctx, k.now, o.ID)) // a repeat does nothing
	o = k.workAll(o.ID)
	k.same("at the end", []any{o.State, o.Done, o.Skipped}, []any{operation.Finished, int64(6), int64(4)})
	skipped := k.items(o.ID, operation.ItemFilter{State: operation.ItemSkipped})
	k.same("skipped", all.of(skipped), "a.Broken a.Broken a.Broken d.Untested")
	k.same("why", []any{skipped[0].Code, skipped[0].Why}, []any{operation.SkipCause, "its cause did not pass the canary, or was not in it"})
	k.same("as they were", k.job(skipped[0].Job.ID).Status(), job.StatusDeadLetter)
	made, err := k.Operations.Breakdown(k.ctx, o.ID)
	k.check(err)
	k.same("counted", made.Skips, []operation.SkipCount{{Code: operation.SkipCause, Count: 4}})
	log, err := k.Operations.Log(k.ctx, o.ID)
	k.check(err)
	k.same("the log", []any{log[1].Action, log[1].Actor.Name, log[1].After}, []any{"operation.resume", ana.Name, "2 of 4 causes, which passed the canary"})
}

// Operation_NoCausePassed: then there is nothing to resume, and without a canary neither.
func Operation_NoCausePassed(k *kit) {
	all := k.died("a.Broken", 2, "b.Broken", 2)
	o := k.canaryOf(all, 2)
	_, err := k.Operations.ResumePassed(k.ctx, k.now, o.ID, ana)
	k.conflict(err)
	k.same("the operation", k.operation(o.ID).State, operation.Paused)
}

// Operation_ACanaryThatRunsHasNotPassed: what one cause shows early says nothing of the others.
func Operation_ACanaryThatRunsHasNotPassed(k *kit) {
	k.died("a.Mended", 2, "b.Mended", 2)
	o := k.operate(operation.Replay, filter.Filter{})
	k.run(o.ID, operation.Pace{Canary: 2})
	k.workAll(o.ID)
	k.pass(time.Second)
	k.settle(k.claim("orders", 1)[0], job.Succeeded)
	_, err := k.Operations.ResumePassed(k.ctx, k.now, o.ID, ana)
	k.conflict(err)

	k.settle(k.claim("orders", 1)[0], job.Succeeded)
	_, err = k.Operations.ResumePassed(k.ctx, k.now, o.ID, ana)
	k.check(err)
	k.check(k.Operations.Sift(k.ctx, k.now, o.ID))
	o = k.workAll(o.ID)
	k.same("at the end", []any{o.State, o.Done, o.Skipped}, []any{operation.Finished, int64(4), int64(0)})
}

// Operation_AGroupOfTwoTypesIsOneCause: a record of a source that comes back with another type
// stays in its group, and what is left out of it is left out once.
func Operation_AGroupOfTwoTypesIsOneCause(k *kit) {
	k.died("b.Mended", 3)
	first, second := k.deadAt("1"), k.deadAt("2")
	second.Type = first.Type
	k.mirror(2, first, second)
	k.pass(time.Second)
	second.Type, second.VersionToken, second.FailedAt = "another.type", "2", k.now
	k.mirror(1, second)

	o := k.operate(operation.Replay, filter.Filter{})
	made, err := k.Operations.Breakdown(k.ctx, o.ID)
	k.check(err)

	seen, jobs := map[string]bool{}, int64(0)
	for _, c := range made.Causes {
		k.same("the cause is listed before", seen[c.Group], false)
		seen[c.Group] = true
		jobs += c.Count
	}

	k.same("causes and jobs", []int64{k.operation(o.ID).Causes, jobs}, []int64{int64(len(made.Causes)), 5})
}
