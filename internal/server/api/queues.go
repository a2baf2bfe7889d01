package api

import (
	"context"
	"encoding/json"
	"redrive/internal/filter"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/server/web"
	"redrive/internal/wire"
)

// shapeUsage says how full the dead-letter queue is. Limits that are not set and
// times that cannot be foreseen are left out.
func shapeUsage(u retention.Usage, r retention.Limits, now time.Time) web.Object {
	warnsAt, _ := u.Reaches(r, retention.WarnShare, now)
	fullAt, _ := u.Reaches(r, 1, now)
	return web.Object{
		"open", u.Open, "at_sources", u.AtSources, // not among the open ones, and not limited
		"limit?", r.Count, "share", u.Share(r),
		"last_day", u.LastDay, // of the open ones, failed in this hour or the 23 before
		"oldest?", u.Oldest, "max_age?", r.Ages[retention.DeadLetters],
		"warns_at?", warnsAt, "full_at?", fullAt, // at the pace of the last day
		"warning", r.Count > 0 && u.Share(r) >= retention.WarnShare,
	}
}

// usage is GET /dead-letters/fill. It is not among the counters because it is no
// total: it falls as letters are replayed, discarded and pruned.
func (a *API) usage(c echo.Context) (web.Object, error) {
	now := time.Now()
	u, err := a.View.Usage(c.Request().Context(), now)
	return shapeUsage(u, a.Config.Retention(), now), err
}

// retention is GET /retention: how long jobs are kept, what will be removed within
// 24 hours, and what was removed since the beginning. An age of zero, which keeps jobs
// forever, is left out; dead letters beyond their number have none. While the clock of the
// machine is not believed, the answer says until when nothing is removed.
func (a *API) retention(c echo.Context) (web.Object, error) {
	limits := a.Config.Retention()
	f := a.View.Retention()
	var heldUntil time.Time // zero: it is not held
	if f.Clock.Held() {
		heldUntil = time.Now().Add(f.Clock.Left)
	}
	removals, err := a.View.Removals(c.Request().Context())
	kinds := web.List(f.Kinds, func(o retention.Outlook) web.Object {
		age := limits.Ages[o.Kind]
		if o.Kind == retention.Trash {
			age = limits.Trash
		}
		return web.Object{
			"kind", o.Kind, "kept", o.Jobs, "oldest?", o.Oldest, "age?", age, "removed_within_day", o.Soon, "more?", o.More,
		}
	})
	return web.Object{
		"as_of?", f.At, "starts_at?", f.Since, "held_until?", heldUntil, "max_dead_letters?", limits.Count, "kinds", kinds,
		"removed", web.List(removals, func(r retention.Removal) web.Object {
			return web.Object{"kind", r.Kind, "queue", r.Queue, "jobs", r.Jobs, "last_at", r.Last}
		}),
	}, err
}

// queues is GET /queues: the queues that had a job, by name, a thousand on a page.
// One that is only configured is found by its name.
func (a *API) queues(c echo.Context) (web.Object, error) {
	names, next := a.View.QueueNames(), ""
	if after := c.QueryParam("after"); after != "" {
		if err := filter.CheckQueue(after); err != nil {
			return nil, web.FailIn(web.BadParameter, "after", "is not the name of a queue; send the next of the previous page")
		}
		from, found := slices.BinarySearch(names, after)
		if found {
			from++
		}
		names = names[from:]
	}
	if len(names) > web.MaxQueues {
		names = names[:web.MaxQueues]
		next = names[web.MaxQueues-1]
	}
	all, err := a.View.Queues(c.Request().Context(), time.Now(), names)
	running := a.Engine.Running()
	return page("queues", web.List(all, func(q queues.Info) web.Object { return a.shapeQueue(q, running) }), next, false), err
}

// queue is GET /queues/{name}.
func (a *API) queue(c echo.Context) (web.Object, error) {
	name, err := a.ParamQueue(c)
	if err != nil {
		return nil, err
	}
	q, err := a.Queue(c.Request().Context(), name)
	return web.Object{"queue", a.shapeQueue(q, a.Engine.Running())}, err
}

// shapeQueue is a queue with its counters, its depths and what the configuration
// says about it.
func (a *API) shapeQueue(q queues.Info, running map[string]int) web.Object {
	depths, t := job.Depths{}, q.Totals
	for _, status := range job.Statuses() { // every status, also at zero
		depths[status] = q.Depths[status]
	}
	name := q.Source
	o := web.Object{
		"name", q.Name, "source?", name, "jobs_succeeded", t.Succeeded, "jobs_failed", t.Failed, "jobs_requeued", t.Requeued,
		"jobs_failed_permanently", t.FailedPermanently, "jobs_dlq_failed", t.DLQFailed, "jobs_replayed", t.Replayed,
		"states", depths, "oldest?", q.Oldest, "paused_at?", q.PausedAt, "paused_by?", q.PausedBy,
	}
	if name != "" { // which has workers and rules of its own
		return o
	}
	return append(o,
		"workers", a.Config.Workers(q.Name), "running", running[q.Name], "dead_letter", a.Config.DeadLetters(q.Name),
		"forward?", a.WebhookHost(q.Name)) // to which dead letters are sent
}

// queueActs pause and resume queues, and the worker in this process.
func (a *API) queueActs() []Act {
	return []Act{
		a.queueAct("pause", a.View.Pause, true, "Paused "), a.queueAct("resume", a.View.Resume, false, "Resumed "),
		a.workerAct("quiet", true, "The worker is quiet"), a.workerAct("resume", false, "The worker is awake"),
	}
}

// queueAct is an act on the queue in the address. Doing it again changes nothing
// and is no error.
func (a *API) queueAct(name string, do func(context.Context, time.Time, string, audit.Actor) error, paused bool, text string) Act {
	return Act{"/queues/:name/" + name, func(c echo.Context) (Outcome, error) {
		queue, err := a.ParamQueue(c)
		if err == nil {
			err = readNothing(c)
		}
		if name := job.SourceOf(queue); err == nil && paused && name != "" {
			err = web.Fail(web.Conflict, "the workers of the source "+name+" run the jobs of the queue "+queue+
				", so Redrive cannot pause it; pause it there")
		}
		if err == nil {
			err = do(c.Request().Context(), time.Now(), queue, web.Actor(c))
		}
		return Outcome{Program: web.Object{"queue", queue, "paused", paused}, Text: text + queue, Page: "/queues"}, err
	}}
}

// removeQueue removes an empty queue, with its finished jobs. One that the
// configuration names would be known again at once.
func (a *API) removeQueue() Act {
	return Act{"/queues/:name/remove", func(c echo.Context) (Outcome, error) {
		queue, err := a.ParamQueue(c)
		if err == nil {
			err = readNothing(c)
		}
		if err == nil && slices.Contains(a.Config.Queues(), queue) {
			err = web.Fail(web.Conflict, "the configuration file names the queue "+queue+"; first remove it there and reload the configuration")
		}
		if err != nil {
			return Outcome{}, err
		}
		jobs, err := a.View.RemoveQueue(c.Request().Context(), time.Now(), queue, web.Actor(c))
		return Outcome{Program: web.Object{"queue", queue, "removed_jobs", jobs}, Text: "Removed " + queue, Page: "/queues"}, err
	}}
}

// workerAct pauses or resumes the worker. Its addresses and texts say "quiet",
// which is the word that programs and people know.
func (a *API) workerAct(name string, pause bool, text string) Act {
	return Act{"/workers/" + name, func(c echo.Context) (Outcome, error) {
		err := readNothing(c)
		if err == nil {
			err = a.PauseWorker(c.Request().Context(), pause, web.Actor(c))
		}
		out := Outcome{Text: text, Page: "/workers"}
		if err == nil && !web.IsForm(c) {
			out.Program, err = a.workers(c)
		}
		return out, err
	}}
}

// workers is GET /workers: the worker in this process, and the jobs that any
// worker has claimed.
func (a *API) workers(c echo.Context) (web.Object, error) {
	all, err := a.WorkerQueues(c.Request().Context(), web.MaxQueues)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(q queues.Info) bool { return q.Source != "" }) // which no worker here runs
	claimed, _, slow, err := a.Claimed(c.Request().Context())
	pause, running := queues.Pause{}, a.Engine.Running()
	if p := a.Paused(); p != nil {
		pause = *p
	}
	worker := web.Object{
		"name", a.Engine.Worker, "since", a.began, "quiet", a.Paused() != nil, "quiet_at?", pause.Since, "quiet_by?", pause.By,
		"queues", web.List(all, func(q queues.Info) web.Object {
			return web.Object{
				"name", q.Name, "workers", a.Config.Workers(q.Name), "running", running[q.Name],
				"available", q.Depths[job.Status(job.Available)], "paused", !q.PausedAt.IsZero(),
			}
		}),
		"jobs", web.List(claimed, shapeClaim), // by whatever worker
		"stuck", web.List(a.Engine.Stuck(), func(s job.Stuck) web.Object {
			return web.Object{
				"id", s.Job.ID, "type", s.Job.Type, "queue", s.Job.Queue, "started_at", s.Job.StartedAt, "given_up_at", s.Since,
			}
		}),
	}
	return page("workers", []web.Object{worker}, "", slow), err
}

// shapeClaim is a job that a worker has claimed. One that waits does so for the
// handler of an earlier execution.
func shapeClaim(j web.Claimed) web.Object {
	return web.Object{
		"id", j.ID, "type", j.Type, "queue", j.Queue, "run", j.Run, "execution", j.Execution, "worker", j.Worker,
		"started_at", j.StartedAt, "lease_until", j.LeaseUntil, "last_seen", j.LastSeen, "waits?", j.Waits,
	}
}

// shapePolicy is a retry policy with the name by which jobs and pages refer to
// it.
func shapePolicy(name string, p retry.Policy, ttr time.Duration) web.Object {
	return web.Object{"name", name, "policy", json.RawMessage(wire.EncodePolicy(p)), "ttr?", ttr}
}

// policies is GET /policies: those of the configuration, and the presets.
func (a *API) policies(echo.Context) (web.Object, error) {
	inUse, presets := web.Policies(a.Config, shapePolicy)
	return web.Object{"policies", inUse, "presets", presets}, nil
}
