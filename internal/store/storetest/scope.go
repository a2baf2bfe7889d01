package storetest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
)

// scoping is what the scope of an operation is.
var scoping = []func(*kit){
	Operation_ScopeShownIsScopeRun, Operation_ScopeIsTheList, Operation_CollectsInChunksAcrossRestarts, Operation_NamedJobsBecomeItems,
	Operation_ReplaysTheRelapsedOnes, Operation_RefusesWhatDoesNotFit,
}

// Operation_ScopeShownIsScopeRun: what fails after an operation was made is not
// in it, whether its scope is still collected or previewed.
func Operation_ScopeShownIsScopeRun(k *kit) {
	before := ids(k.deads(600))
	f, err := operation.Replay.Scope(filter.Filter{Queue: "orders"})
	k.check(err)
	k.pass(time.Second)
	o, err := k.Operations.New(k.ctx, k.now, operation.Request{Kind: operation.Replay, Filter: f}, ana)
	k.check(err)
	k.pass(time.Second)
	_, err = k.Operations.Collect(k.ctx, k.now, o.ID)
	k.check(err)
	k.deads(3)
	k.collect(o.ID)
	k.deads(3)
	o = k.operation(o.ID)
	k.same("the scope", []any{o.State, o.Total, o.Pending}, []any{operation.Preview, int64(600), int64(600)})
	k.run(o.ID, operation.Pace{})
	k.same("what ran", k.workAll(o.ID).Done, int64(600))

	var ran []string
	for _, it := range k.items(o.ID, operation.ItemFilter{State: operation.ItemDone}) {
		ran = append(ran, it.Job.ID)
	}

	slices.Sort(before)
	slices.Sort(ran)
	k.same("the jobs that ran", ran, before)
	k.same("dead letters left", k.Snapshot().Depths[job.StatusDeadLetter], int64(6))
}

// Operation_CollectsInChunksAcrossRestarts: a restart goes on where the
// collection was, and no job is in the scope twice.
func Operation_CollectsInChunksAcrossRestarts(k *kit) {
	const n = 2001 // more than two transactions collect
	k.deads(n)

	f, err := operation.Replay.Scope(filter.Filter{})
	k.check(err)
	o, err := k.Operations.New(k.ctx, k.now, operation.Request{Kind: operation.Replay, Filter: f}, ana)
	k.check(err)

	for range 2 {
		more, err := k.Operations.Collect(k.ctx, k.now, o.ID)
		k.check(err)
		k.same("more to collect", more, true)
		k.restart()
	}

	more, err := k.Operations.Collect(k.ctx, k.now, o.ID)
	k.check(err)
	k.same("more to collect", more, false)
	o = k.operation(o.ID)
	k.same("the scope", []any{o.State, o.Total}, []any{operation.Preview, int64(n)})

	seen := map[string]bool{}
	for _, it := range k.items(o.ID, operation.ItemFilter{}) {
		seen[it.Job.ID] = true
	}

	k.same("jobs in the scope", len(seen), n)
}

// Operation_NamedJobsBecomeItems: jobs that a person ticked are the scope, each
// once; those that do not fit any more are skipped at once.
func Operation_NamedJobsBecomeItems(k *kit) {
	dead := k.deads(2)
	waiting := k.add(simple())[0]
	missing := job.NewID()
	o := k.begun(operation.Request{Kind: operation.Replay, Named: []operation.Named{
		{ID: dead[1].ID, Run: 1}, {ID: dead[0].ID, Run: 1}, {ID: dead[1].ID, Run: 1}, {ID: waiting.ID, Run: 1}, {ID: missing, Run: 1}, {ID: waiting.ID, Run: 7},
	}})
	k.same("the scope", []any{o.State, o.Total, o.Pending, o.Skipped}, []any{operation.Preview, int64(4), int64(2), int64(2)})
	items := k.items(o.ID, operation.ItemFilter{})
	k.same("the first job", items[0].Job.ID, dead[1].ID)
	k.same("who waits", []any{items[2].Code, items[2].Why}, []any{operation.Skip("available"), "available, run 1"})
	k.same("who is missing", []any{items[3].Code, items[3].Why}, []any{operation.SkipGone, "there is no job " + missing})
}

// Operation_ReplaysTheRelapsedOnes: what an operation replayed in vain can be
// the scope of another one.
func Operation_ReplaysTheRelapsedOnes(k *kit) {
	k.deads(6)
	first := k.operate(operation.Replay, filter.Filter{})
	_, err := k.Operations.New(k.ctx, k.now, operation.Request{Kind: operation.Replay, Relapsed: first.ID}, ana)
	k.same("a conflict", errors.As(err, new(*job.Conflict)), true)
	k.run(first.ID, operation.Pace{})
	k.workAll(first.ID)
	k.dieAll(4, job.Succeeded)
	relapsed := ids(k.dieAll(2, job.Failed))
	o := k.begun(operation.Request{Kind: operation.Replay, Relapsed: first.ID})
	k.same("the scope", []int64{o.Total, o.Pending, o.Source}, []int64{2, 2, first.ID})
	k.run(o.ID, operation.Pace{})
	k.same("the end", k.workAll(o.ID).Done, int64(2))
	k.same("the runs", []int{k.job(relapsed[0]).Run, k.job(relapsed[1]).Run}, []int{3, 3})
}

// Operation_RefusesWhatDoesNotFit: a filter whose jobs can have no part in the
// operation is refused before it is made.
func Operation_RefusesWhatDoesNotFit(k *kit) {
	for _, state := range []job.State{job.Active, job.Completed, job.Available} {
		if _, err := operation.Replay.Scope(filter.Filter{Status: job.Status(state)}); err == nil {
			k.Errorf("a replay of jobs that are %s is taken", state)
		}
	}

	f, err := operation.Replay.Scope(filter.Filter{})
	k.check(err)
	k.same("no state", f.Status, job.StatusDeadLetter)
	_, err = k.Operations.Get(k.ctx, 99)
	k.same("not found", errors.Is(err, job.ErrNotFound), true)
	_, err = k.Operations.Abort(k.ctx, k.now, 99, ana)
	k.same("not found", errors.Is(err, job.ErrNotFound), true)
}

// Operation_ScopeIsTheList: an operation over a filter has in its scope exactly
// the dead letters that the list of this filter shows, whatever happened to them
// before: forwarded once more, restored, replayed in another queue.
func Operation_ScopeIsTheList(k *kit) {
	rapid.Check(k.T, func(t *rapid.T) {
		p := &past{openKit(k.T, k.db), nil}
		defer func() { p.check(p.Close()) }() // a hundred open databases are more than a server takes

		for range rapid.IntRange(4, 16).Draw(t, "steps") {
			p.step(t)
		}

		p.fill()

		var jobs []job.Job
		for _, id := range p.ids {
			jobs = append(jobs, p.job(id))
		}

		for range 6 {
			f, _ := drawFilter(t, jobs)
			f.Status = job.StatusDeadLetter
			if groups := p.fingerprints(); rapid.Bool().Draw(t, "in a group") {
				f.Group = strings.Join(rapid.SliceOfNDistinct(rapid.SampledFrom(groups), 1, len(groups), rapid.ID).Draw(t, "groups"), ",")
			}

			p.listed(t, f)
		}
	})
}

// past is a random history of dead letters.
type past struct {
	*kit
	ids []string
}

// fingerprints are those of the groups of all failures.
func (p *past) fingerprints() (all []string) {
	page, err := p.Groups.List(p.ctx, p.now, failures.Filter{}, failures.Cursor{}, 10)
	p.check(err)

	for _, g := range page.Groups {
		all = append(all, g.Fingerprint)
	}

	return all
}

// listed fails unless the lists and the scope of the filter are the same.
func (p *past) listed(t *rapid.T, f filter.Filter) {
	var deadLetters, scope []string
	for _, l := range p.deadLetters(f, 1000) {
		deadLetters = append(deadLetters, l.JobID)
	}

	for _, it := range p.items(p.operate(operation.Replay, f).ID, operation.ItemFilter{}) {
		scope = append(scope, it.Job.ID)
	}

	slices.Sort(deadLetters)
	slices.Sort(scope)

	if !slices.Equal(deadLetters, scope) {
		t.Fatalf("%v lists %v, its scope is %v", f, deadLetters, scope)
	}
}

// step does something to a job, or makes a new one.
func (p *past) step(t *rapid.T) {
	p.pass(time.Duration(rapid.IntRange(0, 1500).Draw(t, "ms")) * time.Millisecond)

	refused := job.Delivery{Problem: "the hook answered 500"}
	switch act := rapid.SampledFrom([]string{"die", "die", "refuse", "forward", "discard", "restore", "replay", "move"}).Draw(t, "act"); {
	case act == "die" || len(p.ids) == 0:
		p.die(t, job.Delivery{})
	case act == "refuse":
		p.die(t, refused)
	default:
		p.act(act, p.job(rapid.SampledFrom(p.ids).Draw(t, "job")))
	}
}

// die lets a new job fail permanently.
func (p *past) die(t *rapid.T, d job.Delivery) {
	j := in(rapid.SampledFrom([]string{"orders", "mail"}).Draw(t, "queue"))
	j.Type = rapid.SampledFrom([]string{"email.send", "report"}).Draw(t, "type")
	j.Policy = policy(1)
	e := p.ending(job.Failed)
	e.Error.Type = rapid.SampledFrom([]string{"http.503", "sql.deadlock"}).Draw(t, "class")
	p.ids = append(p.ids, p.settleAs(p.begin(j).Settle(e, nil).Delivered(d)).ID)
}

// act does to a job what can be done to it.
func (p *past) act(what string, j job.Job) {
	var err error
	switch {
	case what == "forward" && j.DeadLetter == job.DeadLetterRefused:
		_, err = p.Forwarded(p.ctx, p.now, j.ID, j.Run, job.Delivery{ForwardedTo: "https://hooks.example", ForwardedAt: p.now}, eve)
	case what == "discard" && j.Discardable():
		_, err = p.Discard(p.ctx, p.now, j.ID, j.Run, eve)
	case what == "restore" && j.Restorable():
		_, err = p.Restore(p.ctx, p.now, j.ID, j.Run, eve)
	case what == "replay" && j.Replayable():
		_, err = p.Replay(p.ctx, p.now, j.ID, j.Run, eve)
	case what == "move" && j.Replayable():
		_, err = p.ReplayWith(p.ctx, p.now, j.ID, j.Run, job.Edit{Queue: "later"}, eve)
	case j.State == job.Available: // it fails again
		for _, c := range p.claim(j.Queue, 1000) {
			p.settle(c, job.Failed)
		}
	}

	p.check(err)
}
