package templates_test

import (
	"strings"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/shortage"
	"redrive/web/templates"
	"redrive/web/templates/queuepage"
)

func claimedJob(n int, for_, lease time.Duration) job.Job {
	j := failure(n, job.Status(job.Active))
	j.Worker, j.Timeout = "shop-1:4711", 30*time.Second
	j.StartedAt, j.LeaseUntil, j.LastSeen = now.Add(-for_), now.Add(lease), now.Add(-for_/2)
	return j
}

func workersView(f templates.Frame) queuepage.Workers {
	late := claimedJob(3, 50*time.Second, 20*time.Second)
	return queuepage.Workers{
		Frame: f, Name: "shop-1:4711", Since: now.Add(-26 * time.Hour), Total: 4, Places: 16,
		Queues: []queuepage.WorkerQueue{
			{Name: "email", Workers: 10, Running: 3, Waiting: 118}, {Name: "payments", Workers: 4, Running: 4, Waiting: 41},
			{Name: "reports", Workers: 2, PausedAt: now.Add(-time.Hour)}, {Name: "search", Waiting: 12},
		},
		Jobs:  []job.Job{claimedJob(0, 4*time.Second, 26*time.Second), claimedJob(1, 9*time.Second, 21*time.Second), late, claimedJob(4, 90*time.Second, -2*time.Second)},
		Waits: map[string]bool{id(1): true},
		Stuck: []job.Stuck{{Job: claimedJob(2, 3*time.Minute, 0), Since: now.Add(-2 * time.Minute)}},
	}
}

func workersStates(all map[string]page) {
	all["workers"] = workersView(frame("workers", "Workers"))
	f := frame("workers", "Workers")
	f.Paused = &templates.WorkerPause{Since: now.Add(-5 * time.Minute), By: "ana"}
	v := workersView(f)
	v.Jobs, v.Stuck = nil, nil
	all["workers-quiet"] = v
	v = workersView(frame("workers", "Workers"))
	v.Jobs, v.Stuck, v.Total, v.Foreign = nil, nil, 5, 1
	v.Queues = append(v.Queues, queuepage.WorkerQueue{Name: "orders@outlet"})
	all["workers-source"] = v
	f = frame("workers", "Workers")
	f.Problem = "The disk is full."
	all["workers-read-only"] = workersView(f)
	all["workers-fresh"] = queuepage.Workers{Frame: fresh("workers", "Workers"), Name: "shop-1:4711", Since: now}
}

func TestWorkers_SayWhatEachJobDoes(t *testing.T) {
	d := parse(t, pages()["workers"])
	for _, want := range []string{"waits for its previous execution", "over its time limit", "lease ran out", "3 of 10", "no workers"} {
		if !strings.Contains(text(d.root), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	d.says("aria-labelledby", "h-stuck", "Handlers that do not return")
}

func TestQuiet_IsSaidOnEveryPage(t *testing.T) {
	v := overview(frame("overview", "Overview"))
	v.Paused = &templates.WorkerPause{Since: now.Add(-time.Minute), By: "ana"}
	parse(t, v).says("class", "banner is-warn", "The worker is quiet. ana quieted the worker at 14:01:11 : running jobs continue, and no new jobs start")
	d := parse(t, pages()["workers-quiet"])
	if to := value(d.with("data-act", "flip")[0], "action"); to != "/workers/resume" {
		t.Errorf("the button of a quiet worker leads to %s", to)
	}
}

func TestBreaker_IsSaidOnEveryPage(t *testing.T) {
	v := overview(frame("overview", "Overview"))
	v.Breaker = &shortage.OpenBreaker{Of: shortage.Descriptors, Since: now.Add(-time.Minute), Reason: shortage.Descriptors.Lack()}
	parse(t, v).says("class", "banner is-dead", "No jobs are started. This began at 14:01:11 : this process has no file descriptor left")
}
