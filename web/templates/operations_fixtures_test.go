package templates_test

import (
	"strings"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/source"
	"redrive/web/templates"
	"redrive/web/templates/operationpage"
)

// replaying is an operation half way, as a canary, a person or its guard may
// have left it.
func replaying(state operation.State) operation.Operation {
	return operation.Operation{
		ID: 127, Kind: operation.Replay, State: state, Filter: "state:dead_letter queue:email", Until: now.Add(-5 * time.Minute),
		Pace: operation.Pace{Rate: 8, Canary: 5, Guard: true}, CanaryAt: now.Add(-4 * time.Minute), CreatedAt: now.Add(-5 * time.Minute), CreatedBy: "ana",
		StartedAt: now.Add(-4 * time.Minute), StartedBy: "ana", ResumedAt: now.Add(-3 * time.Minute),
		Causes: 3, Total: 2412, Pending: 912, Done: 1460, Skipped: 38, Failed: 2, Succeeded: 1371, Relapsed: 41,
	}
}

// openOperation is a state of the page of an operation as the overview has it.
func openOperation(name string) templates.OpenOperation {
	all := map[string]page{}
	operationStates(all)
	v := all[name].(operationpage.View)
	s := operationpage.Standing{Operation: v.Operation, Canary: v.Progress.Canary}
	return templates.OpenOperation{Operation: v.Operation, Verdict: s.Verdict(), Brief: s.Brief(), Outcome: s.Outcome()}
}

// smtp is the cause of most jobs of an operation.
var smtp = operation.Cause{Group: "9f31", Class: "smtp.unavailable", Type: "email.receipt"}

func operationPage(o operation.Operation) operationpage.View {
	filter := filter.Filter{Status: job.StatusDeadLetter, Queue: "email"}
	jobs := failing(4)
	v := operationpage.View{
		Frame: frame("operations", "Operation 127"), Operation: o, Filter: filter,
		Breakdown: operation.Breakdown{
			Scope: []operation.ScopePart{{Queue: "email", Type: "email.receipt", Count: 2374}},
			Causes: []operation.CausePart{
				{Cause: smtp, Count: 2300}, {Cause: operation.Cause{Type: "email.digest"}, Count: 42},
				{Cause: operation.Cause{Group: "11c2", Class: "template.missing", Type: "email.receipt"}, Count: 32},
			},
			Skips: []operation.SkipCount{{Code: operation.SkipReplayed, Count: 30}, {Code: operation.Skip(job.Active), Count: 8}},
		},
		Items: operation.ItemList{Next: 50, Items: []operation.Item{
			{N: 1, Job: jobs[0], Run: 1, State: operation.ItemDone, At: now.Add(-time.Minute), Outcome: operation.RunSucceeded, EndedAt: now.Add(-50 * time.Second)},
			{N: 2, Job: jobs[1], Run: jobs[1].Run - 1, State: operation.ItemDone, At: now.Add(-time.Minute), Outcome: operation.RunRelapsed, EndedAt: now.Add(-40 * time.Second)},
			{N: 3, Job: jobs[2], Run: 1, State: operation.ItemSkipped, Code: operation.SkipReplayed, Why: "replayed already by sam, run 2", Other: 126, At: now.Add(-time.Minute)},
			{N: 4, Job: jobs[3], Run: jobs[3].Run, State: operation.ItemPending},
			{N: 5, Job: jobs[3], Run: jobs[3].Run - 1, State: operation.ItemPending},
			{N: 6, Run: 1, State: operation.ItemSkipped, Code: operation.SkipGone, Why: "the job was removed", At: now.Add(-time.Minute)},
		}},
		Log: []audit.Entry{
			{At: now.Add(-3 * time.Minute), Actor: audit.Actor{Name: "sam"}, Action: "operation.resume"},
			{At: now.Add(-4 * time.Minute), Actor: audit.Actor{Name: "the canary"}, Action: "operation.pause", After: "the canary of 5 is enqueued"},
			{At: now.Add(-4 * time.Minute), Actor: audit.Actor{Name: "ana"}, Action: "operation.start", After: "canary 5, auto-pause on, 8/s"},
		},
	}
	if !o.StartedAt.IsZero() {
		v.Progress = operation.Progress{
			Canary: operation.Canary{Done: 5, Succeeded: 5, EndedAt: now.Add(-200 * time.Second)}, Ended: 50, Same: 2,
			Rate: operation.Rate{From: now.Add(-4 * time.Minute), Step: 5 * time.Second, Done: []int64{5, 0, 0, 0, 0, 0, 40, 40, 38, 0, 41, 40, 40}},
		}
	}
	return v
}

// addHandedCanaries adds the states of a canary whose jobs a source has, which tells only of failures.
func addCanariesAtSource(all map[string]page, o operation.Operation) {
	o.Filter, o.Succeeded, o.Relapsed = "state:dead_letter source:legacy", 0, 0
	add := func(name string, c operation.Canary, h operation.SourceRuns) operationpage.View {
		o := o
		o.Relapsed, o.Unknown = c.Relapsed, c.Unknown
		v := operationPage(o)
		c.Done, c.SourceRuns = 5, h
		v.Log, v.Progress.Canary, v.Progress.SourceRuns, v.Progress.Rate.Done = v.Log[1:], c, h, []int64{5}
		v.Origin = new(source.Health)
		*v.Origin = legacy()

		j := v.Items.Items[0].Job
		j.Queue, j.Source, j.Worker = "orders@legacy", "legacy", "legacy"
		j.State, j.DeadLetter, j.Reason, j.ChangedAt = job.Returned, job.NoDeadLetter, "", now.Add(-4*time.Minute)
		if h.Until.IsZero() {
			j.ChangedAt = now.Add(-14 * time.Minute)
		}
		j.Unbegun = c.Unknown > 0
		j.RunAt, j.Run = time.Time{}, 2
		v.Items.Items[0] = operation.Item{N: 1, Job: j, Run: 1, State: operation.ItemDone, At: now.Add(-4 * time.Minute)}
		if j.Unbegun {
			v.Items.Items[0].Outcome = operation.RunUnknown
		}
		all[name] = v
		return v
	}
	until := now.Add(6 * time.Minute)
	add("operation-canary-handed", operation.Canary{}, operation.SourceRuns{AtSource: 5, Source: "legacy", Until: until})
	add("operation-canary-returned", operation.Canary{}, operation.SourceRuns{AtSource: 5, Returned: 5, Source: "legacy"})
	add("operation-canary-unknown", operation.Canary{Unknown: 2}, operation.SourceRuns{AtSource: 3, Returned: 3, Source: "legacy"})
	add("operation-canary-relapsed", operation.Canary{Relapsed: 2}, operation.SourceRuns{AtSource: 3, Source: "legacy", Until: until})

	v := add("operation-handed", operation.Canary{}, operation.SourceRuns{AtSource: 2360, Returned: 2100, Source: "legacy", Until: until})
	v.Operation.State, v.Operation.Done, v.Operation.Pending, v.Operation.Skipped, v.Operation.Failed = operation.Finished, 2372, 0, 38, 2
	v.Operation.Relapsed, v.Operation.Unknown, v.Operation.FinishedAt = 10, 2, now.Add(-time.Minute)
	all["operation-handed"] = v
}

// operationStates are the states of the pages of operations.
func operationStates(all map[string]page) {
	running := replaying(operation.Running)
	all["operation-running"] = operationPage(running)
	canary := replaying(operation.Paused)
	canary.ResumedAt = canary.StartedAt
	canary.Why, canary.Done, canary.Pending, canary.Succeeded, canary.Relapsed = "the canary of 5 is enqueued", 5, 2367, 3, 1
	v := operationPage(canary)
	v.Log, v.Progress.Canary, v.Progress.Rate.Done = v.Log[1:], operation.Canary{Done: 5, Succeeded: 3, Relapsed: 1}, []int64{5}
	v.Progress.Canary.Causes = []operation.CauseCanary{
		{Cause: smtp, Done: 4, Succeeded: 2, Relapsed: 1}, {Cause: operation.Cause{Type: "email.digest"}, Done: 1, Succeeded: 1},
	}
	all["operation-canary"] = v
	addCanariesAtSource(all, canary)
	guarded := replaying(operation.Paused)
	guarded.Why, guarded.CanaryAt, guarded.Pace.Canary = "smtp.unavailable came back in 31 of the last 50 replays", time.Time{}, 0
	guarded.Guarded = true
	v = operationPage(guarded)
	v.Progress.Same, v.Progress.Back, v.Progress.BackN = 34, smtp, 31
	all["operation-guarded"] = v
	canary.Succeeded, canary.Relapsed = 4, 1
	v.Operation = canary
	v.Progress.Canary = operation.Canary{Done: 5, Succeeded: 4, Relapsed: 1, EndedAt: now.Add(-200 * time.Second), Causes: []operation.CauseCanary{
		{Cause: smtp, Done: 1, Relapsed: 1}, {Cause: operation.Cause{Type: "email.digest"}, Done: 4, Succeeded: 4},
	}}
	all["operation-canary-failed"] = v
	begun := replaying(operation.Running)
	begun.CanaryAt, begun.Done, begun.Pending, begun.Succeeded, begun.Relapsed = time.Time{}, 2, 2370, 0, 0
	all["operation-begun"] = operationPage(begun)
	for name, state := range map[string]operation.State{"finished": operation.Finished, "aborted": operation.Aborted} {
		o := replaying(state)
		o.FinishedAt = now.Add(-time.Minute)
		if state == operation.Aborted {
			o.Why = "aborted by ana"
		}
		all["operation-"+name] = operationPage(o)
	}
	old := replaying(operation.Finished)
	old.FinishedAt = now.Add(-200 * 24 * time.Hour)
	v = operationPage(old)
	v.Items, v.Progress = operation.ItemList{}, operation.Progress{Pruned: true}
	all["operation-pruned"] = v
	for name, state := range map[string]operation.State{"collecting": operation.Collecting, "preview": operation.Preview} {
		o := replaying(state)
		o.StartedAt, o.CanaryAt, o.Done, o.Pending, o.Failed, o.Succeeded, o.Relapsed = time.Time{}, time.Time{}, 0, 2374, 0, 0, 0
		all["operation-"+name] = operationPage(o)
		v := operationPage(o)
		v.Breakdown.Types = []operation.TypePart{{Type: "email.receipt", Count: 2332}, {Type: "email.digest", Count: 42, Unhandled: true}}
		v.Filter.Error, v.Lag, v.Indexing = "timeout", 12, state == operation.Collecting
		all["operation-"+name+"-lagging"] = v
	}
	discarding := replaying(operation.Preview)
	discarding.Kind, discarding.StartedAt, discarding.CanaryAt = operation.Discard, time.Time{}, time.Time{}
	discarding.Done, discarding.Pending, discarding.Failed, discarding.Succeeded, discarding.Relapsed = 0, 2374, 0, 0, 0
	v = operationPage(discarding)
	v.Breakdown.Scope = []operation.ScopePart{
		{Queue: "orders@shop", Type: "charge", Count: 2362}, {Queue: "orders@closed", Type: "charge", Count: 11}, {Queue: "email", Type: "email.receipt", Count: 1},
	}
	v.Breakdown.Sources = []operation.SourcePart{{Name: "shop", Count: 2362, Attached: true}, {Name: "closed", Count: 11}}
	all["operation-preview-discard"] = v
	var list []operation.Operation
	for name := range strings.FieldsSeq("collecting preview running paused finished aborted") {
		list = append(list, replaying(operation.State(name)))
	}
	all["operations"] = operationpage.List{Frame: frame("operations", "Operations"), List: operation.List{Operations: list, Next: 100}}
	all["operations-none"] = operationpage.List{Frame: fresh("operations", "Operations")}
}

// poisonedOperation shows a text wherever one can come from.
func poisonedOperation(f templates.Frame, s string, j job.Job) operationpage.View {
	o := replaying(operation.Paused)
	o.Why, o.Filter, o.CreatedBy, o.StartedBy = s, s, s, s
	v := operationPage(o)
	v.Frame, v.Filter = f, filter.Filter{Queue: s, Type: s, Error: s}
	v.Breakdown = operation.Breakdown{Scope: []operation.ScopePart{{Queue: s, Type: s, Count: 1}}, Skips: []operation.SkipCount{{Code: operation.Skip(s), Count: 1}},
		Causes: []operation.CausePart{{Cause: operation.Cause{Group: "9f31", Class: s, Type: s}, Count: 1}}}
	v.Progress.Canary.Causes = []operation.CauseCanary{{Cause: operation.Cause{Group: s, Class: s, Type: s}, Done: 1, Relapsed: 1}}
	v.Items.Items = []operation.Item{{N: 1, Job: j, Run: 1, State: operation.ItemSkipped, Code: operation.Skip(s), Why: s}, {N: 2, Job: j, Run: j.Run, State: operation.ItemDone, Outcome: operation.RunRelapsed}}
	v.Log = []audit.Entry{{Actor: audit.Actor{Name: s}, Action: s, After: s}, {Actor: audit.Actor{Name: s}, Action: "operation.pause", After: s}}
	return v
}
