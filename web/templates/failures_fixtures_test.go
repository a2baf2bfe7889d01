package templates_test

import (
	"time"

	"redrive/internal/access"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates"
)

// group is the error group of the nth kind of failure, which has gone on for a
// while.
func group(n int) job.Group {
	k := kinds()[n]
	g := groupsByNumber()[int64(n+1)]
	g.Queues = []job.Share{{Name: k.queue, Count: g.Failures}}
	g.Dead, g.Retrying, g.Replayed, g.Recovered = g.Failures*3/5, g.Failures/6, int64(5*n), int64(4*n)
	g.FirstSeen, g.LastSeen = now.Add(-time.Duration(n*n*7+1)*time.Hour), now.Add(-time.Duration(n*n*40+5)*time.Second)
	for i := range 24 {
		g.LastDay = append(g.LastDay, int64(i*(n+3)%7*n+i/22*300/(n+1)))
	}
	return g
}

func groups() []job.Group {
	all := make([]job.Group, len(kinds()))
	for n := range kinds() {
		all[n] = group(n)
	}
	all[2].Note = "greylisting: they come back within the hour,\nsee the runbook"
	all[3].Queues = append(all[3].Queues, job.Share{Name: "imports", Count: 7})
	return all
}

func failures(f templates.Frame) templates.Failures {
	return templates.Failures{
		Frame: f, Filter: job.GroupFilter{State: job.GroupOpen}, Queues: []string{"email", "media", "orders", "payments"},
		Tallies: []job.GroupTally{
			{State: job.GroupOpen, Groups: 6, Dead: 2881, Retrying: 802}, {State: job.GroupResolved, Groups: 64}, {State: job.GroupIgnored, Groups: 1, Dead: 9},
		},
		List: job.GroupList{Groups: groups(), Next: job.GroupCursor{Dead: 1, Seen: now, Number: 9}},
	}
}

// captures is the page of the group of the payments that fail.
func captures(change func(*job.Group)) templates.Failure {
	v := templates.Failure{Frame: frame("failures", "upstream.unavailable"), Read: 9, Operations: pastOperations()}
	v.Group = group(0)
	v.Message, v.Frames = "POST ‹url›: 503 Service Unavailable", []string{"payments.(*Client).Capture", "payments.HandleCapture"}
	v.Hours = make([]job.Hour, 24)
	for i := range v.Hours {
		v.Hours[i] = job.Hour{At: now.Truncate(time.Hour).Add(time.Duration(i-23) * time.Hour), Failures: int64(i / 19 * i * i), Final: int64(i / 22 * 150)}
	}
	for n := range 9 {
		status := job.StatusDeadLetter
		if n%4 == 1 {
			status = job.Status(job.Retryable)
		}
		v.Jobs = append(v.Jobs, failure(n*len(kinds()), status))
	}
	v.Sample = job.Sample{Job: v.Jobs[0], Attempt: job.Attempt{Error: v.Jobs[0].Error, Trace: upstreamTrace}}
	v.Keys = []templates.PayloadKey{
		{Name: "currency", Values: 1, Commonest: `"EUR"`, Jobs: 9}, {Name: "card", Values: 3, Commonest: `"••••••"`, Jobs: 5}, {Name: "order_id", Values: 9, Commonest: "88412", Jobs: 1},
	}
	change(&v.Group)
	return v
}

func pastOperations() []job.Operation {
	return []job.Operation{
		{ID: 126, Kind: job.OpReplay, State: job.OpPaused, Total: 1204, Done: 5, Succeeded: 1, Relapsed: 4, CreatedAt: now.Add(-time.Minute), CreatedBy: "ana"},
		{ID: 119, Kind: job.OpDiscard, State: job.OpFinished, Total: 41, Done: 41, CreatedAt: now.Add(-29 * time.Hour), CreatedBy: "sam"},
	}
}

func failureStates(all map[string]page) {
	f := frame("failures", "Failures")
	all["failures"] = failures(f)
	v := failures(f)
	v.Filter = job.GroupFilter{State: job.GroupIgnored, Queue: "email", Type: "email.*", Sort: job.NewestSeen}
	v.List = job.GroupList{Groups: groups()[2:3]}
	all["failures-filtered"] = v
	v.List = job.GroupList{}
	all["failures-no-match"] = v
	v.Filter = job.GroupFilter{State: job.GroupResolved}
	all["failures-none-resolved"] = v
	v = failures(f)
	v.Slow, v.List.Groups = true, groups()[:1]
	all["failures-slow"] = v
	v = failures(f)
	v.Filter, v.List = job.GroupFilter{State: job.GroupOpen, Type: "no type"}, job.GroupList{}
	v.Errors = map[string]string{"type": `"no type" is not a type`}
	all["failures-bad-filter"] = v
	all["failures-healthy"] = templates.Failures{Frame: quiet("failures", "Failures"), Filter: job.GroupFilter{State: job.GroupOpen}}
	f.Role = access.Viewer
	v = failures(f)
	v.List.Groups = groups()[:2]
	all["failures-read-only"] = v

	ana := func(s job.GroupState) func(*job.Group) {
		return func(g *job.Group) { g.State, g.StateBy, g.StateAt = s, "ana", now.Add(-2*time.Hour) }
	}
	all["failure"] = captures(func(*job.Group) {})
	all["failure-resolved"] = captures(ana(job.GroupResolved))
	all["failure-reopened"] = captures(func(g *job.Group) {
		ana(job.GroupOpen)(g)
		g.ReopenedBy, g.ReopenedAt, g.Note = job.ByFailure, now.Add(-9*time.Minute), "status page says back at 14:30"
	})
	all["failure-ignored"] = captures(func(g *job.Group) {
		ana(job.GroupIgnored)(g)
		g.Patience = job.Patience{Until: now.Add(time.Hour), Count: 5000, Rate: 100}
	})
	all["failure-patience-over"] = captures(func(g *job.Group) {
		ana(job.GroupOpen)(g)
		g.ReopenedBy, g.ReopenedAt, g.Patience = job.ByRate, now.Add(-9*time.Minute), job.Patience{Rate: 100}
	})
	empty := captures(func(g *job.Group) { g.Dead, g.Retrying, g.Replayed, g.Recovered = 0, 0, 41, 41 })
	empty.Jobs, empty.Keys, empty.Sample, empty.Operations, empty.Frames = nil, nil, job.Sample{}, nil, nil
	all["failure-empty"] = empty
	viewer := captures(func(*job.Group) {})
	viewer.Role = access.Viewer
	all["failure-read-only"] = viewer
	never := captures(func(g *job.Group) {
		g.Class, g.Message, g.Frames = string(retry.MissingTraceID), "envelope has no trace_id", nil
	})
	never.Sample.Attempt, never.Sample.Job.Error = job.Attempt{}, job.ErrorInfo{Type: "missing_trace_id", Message: "envelope has no trace_id"}
	all["failure-never-ran"] = never
}
