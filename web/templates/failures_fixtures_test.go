package templates_test

import (
	"time"

	"redrive/internal/access"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/failurepage"
)

// group is the error group of the nth kind of failure, which has gone on for a
// while.
func group(n int) failures.Group {
	k := kinds()[n]
	g := groupsByNumber()[int64(n+1)]
	g.Queues = []filter.NameCount{{Name: k.queue, Count: g.Failures}}
	g.Dead, g.Retrying, g.Replayed, g.Recovered = g.Failures*3/5, g.Failures/6, int64(5*n), int64(4*n)
	g.FirstSeen, g.LastSeen = now.Add(-time.Duration(n*n*7+1)*time.Hour), now.Add(-time.Duration(n*n*40+5)*time.Second)
	for i := range 24 {
		g.LastDay = append(g.LastDay, int64(i*(n+3)%7*n+i/22*300/(n+1)))
	}
	return g
}

func groups() []failures.Group {
	all := make([]failures.Group, len(kinds()))
	for n := range kinds() {
		all[n] = group(n)
	}
	all[2].Note = "greylisting: they come back within the hour,\nsee the runbook"
	all[3].Refused, all[5].Refused = 8, 1_204
	all[5].Dead = 0
	all[3].Queues = append(all[3].Queues, filter.NameCount{Name: "imports", Count: 7})
	return all
}

func groupFailures(f templates.Frame) failurepage.List {
	return failurepage.List{
		Frame: f, Filter: failures.Filter{State: failures.Open}, Queues: []string{"email", "media", "orders", "payments"},
		Tallies: []failures.Tally{
			{State: failures.Open, Groups: 6, Dead: 2881, Refused: 1_212, Retrying: 802}, {State: failures.Resolved, Groups: 64}, {State: failures.Ignored, Groups: 1, Dead: 9},
		},
		Classes: failures.Classes{Total: 14, Groups: 480, Listed: []failures.Class{
			{Name: "tls.handshake", Groups: 40, Types: 40, Queues: 8, Dead: 8081, Retrying: 12, Day: 9214, LastSeen: now.Add(-time.Second)},
			{Name: "App\\Warehouse\\Unavailable", Groups: 1, Types: 1, Queues: 1, Dead: 288, Day: 0, LastSeen: now.Add(-3 * 24 * time.Hour)},
		}},
		List: failures.List{Groups: groups(), Next: failures.Cursor{Dead: 1, Seen: now, Number: 9}},
	}
}

// captures is the page of the group of the payments that fail.
func captures(change func(*failures.Group)) failurepage.View {
	v := failurepage.View{Frame: frame("failures", "upstream.unavailable"), Read: 9, Operations: pastOperations()}
	v.Group = group(0)
	v.Alike.Groups = 40
	v.Message, v.Frames = "POST ‹url›: 503 Service Unavailable", []string{"payments.(*Client).Capture", "payments.HandleCapture"}
	v.Hours = make([]failures.Hour, 24)
	for i := range v.Hours {
		v.Hours[i] = failures.Hour{At: now.Truncate(time.Hour).Add(time.Duration(i-23) * time.Hour), Failures: int64(i / 19 * i * i), Final: int64(i / 22 * 150)}
	}
	for n := range 9 {
		status := job.StatusDeadLetter
		if n%4 == 1 {
			status = job.Status(job.Retryable)
		}
		v.Jobs = append(v.Jobs, failure(n*len(kinds()), status))
	}
	v.Sample = failures.Sample{Job: v.Jobs[0], Attempt: job.Attempt{Error: v.Jobs[0].Error, Trace: upstreamTrace}}
	v.Keys = []failurepage.PayloadKey{
		{Name: "currency", Values: 1, Commonest: `"EUR"`, Jobs: 9}, {Name: "card", Values: 3, Commonest: `"••••••"`, Jobs: 5}, {Name: "order_id", Values: 9, Commonest: "88412", Jobs: 1},
	}
	change(&v.Group)
	return v
}

func pastOperations() []operation.Operation {
	return []operation.Operation{
		{ID: 126, Kind: operation.Replay, State: operation.Paused, Total: 1204, Done: 5, Succeeded: 1, Relapsed: 4, CreatedAt: now.Add(-time.Minute), CreatedBy: "ana"},
		{ID: 119, Kind: operation.Discard, State: operation.Finished, Total: 41, Done: 41, CreatedAt: now.Add(-29 * time.Hour), CreatedBy: "sam"},
	}
}

func failureStates(all map[string]page) {
	f := frame("failures", "Failures")
	all["failures"] = groupFailures(f)
	v := groupFailures(f)
	v.Filter = failures.Filter{State: failures.Ignored, Queue: "email", Type: "email.*", Sort: failures.NewestSeen}
	v.List = failures.List{Groups: groups()[2:3]}
	all["failures-filtered"] = v
	v.List = failures.List{}
	all["failures-no-match"] = v
	v.Filter = failures.Filter{State: failures.Resolved}
	all["failures-none-resolved"] = v
	v = groupFailures(f)
	v.Slow, v.List.Groups = true, groups()[:1]
	all["failures-slow"] = v
	v = groupFailures(f)
	v.Filter, v.List = failures.Filter{State: failures.Open, Type: "no type"}, failures.List{}
	v.Errors = map[string]string{"type": `"no type" is not a type`}
	all["failures-bad-filter"] = v
	all["failures-healthy"] = failurepage.List{Frame: quiet("failures", "Failures"), Filter: failures.Filter{State: failures.Open}}
	f.Role = access.Viewer
	v = groupFailures(f)
	v.List.Groups = groups()[:2]
	all["failures-read-only"] = v

	ana := func(s failures.State) func(*failures.Group) {
		return func(g *failures.Group) { g.State, g.StateBy, g.StateAt = s, "ana", now.Add(-2*time.Hour) }
	}
	all["failure"] = captures(func(*failures.Group) {})
	all["failure-resolved"] = captures(ana(failures.Resolved))
	all["failure-reopened"] = captures(func(g *failures.Group) {
		ana(failures.Open)(g)
		g.ReopenedBy, g.ReopenedAt, g.Note = failures.ByFailure, now.Add(-9*time.Minute), "status page says back at 14:30"
	})
	all["failure-ignored"] = captures(func(g *failures.Group) {
		ana(failures.Ignored)(g)
		g.Patience = failures.Patience{Until: now.Add(time.Hour), Count: 5000, Rate: 100}
	})
	all["failure-patience-over"] = captures(func(g *failures.Group) {
		ana(failures.Open)(g)
		g.ReopenedBy, g.ReopenedAt, g.Patience = failures.ByRate, now.Add(-9*time.Minute), failures.Patience{Rate: 100}
	})
	empty := captures(func(g *failures.Group) { g.Dead, g.Retrying, g.Replayed, g.Recovered = 0, 0, 41, 41 })
	empty.Jobs, empty.Keys, empty.Sample, empty.Operations, empty.Frames = nil, nil, failures.Sample{}, nil, nil
	all["failure-empty"] = empty
	all["failure-refused"] = captures(func(g *failures.Group) { g.Dead, g.Refused = 0, 8 })
	viewer := captures(func(*failures.Group) {})
	viewer.Role = access.Viewer
	all["failure-read-only"] = viewer
	never := captures(func(g *failures.Group) {
		g.Class, g.Message, g.Frames = string(retry.MissingTraceID), "envelope has no trace_id", nil
	})
	never.Sample.Attempt, never.Sample.Job.Error = job.Attempt{}, job.ErrorInfo{Type: "missing_trace_id", Message: "envelope has no trace_id"}
	all["failure-never-ran"] = never
}
