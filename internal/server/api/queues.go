package api

import (
	"context"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype"
	"redrive/internal/apitype/admin"
	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
	"redrive/internal/stats"
	"redrive/internal/wire"
)

// fillOf says how full the dead-letter queue is. Limits that are not set and times
// that cannot be foreseen are left out.
func fillOf(u retention.Usage, r retention.Limits, now time.Time) admin.Fill {
	warnsAt, _ := u.Reaches(r, retention.WarnShare, now)
	fullAt, _ := u.Reaches(r, 1, now)

	return admin.Fill{
		Open:      u.Open,
		AtSources: u.AtSources,
		Limit:     r.Count,
		Share:     u.Share(r),
		LastDay:   u.LastDay,
		Oldest:    apitype.At(u.Oldest),
		MaxAge:    apitype.Duration(r.Ages[retention.DeadLetters]),
		WarnsAt:   apitype.At(warnsAt),
		FullAt:    apitype.At(fullAt),
		Warning:   r.Count > 0 && u.Share(r) >= retention.WarnShare,
	}
}

// usage is GET /dead-letters/fill. It is not among the counters because it is no
// total: it falls as dead letters are replayed, discarded and pruned.
func (a *API) usage(c echo.Context) (admin.Fill, error) {
	now := time.Now()
	u, err := a.View.Usage(c.Request().Context(), now)
	return fillOf(u, a.Config.Retention(), now), err
}

// retention is GET /retention: how long jobs are kept, what will be removed within
// 24 hours, and what was removed since the beginning. An age of zero, which keeps jobs
// forever, is left out; dead letters beyond their number have none. While the clock of the
// machine is not believed, the answer says until when nothing is removed.
func (a *API) retention(c echo.Context) (admin.Retention, error) {
	limits := a.Config.Retention()
	f := a.View.Retention()

	var heldUntil time.Time // zero: it is not held
	if f.Clock.Held() {
		heldUntil = time.Now().Add(f.Clock.Left)
	}

	removals, err := a.View.Removals(c.Request().Context())

	return admin.Retention{
		AsOf:           apitype.At(f.At),
		StartsAt:       apitype.At(f.Since),
		HeldUntil:      apitype.At(heldUntil),
		MaxDeadLetters: limits.Count,
		Kinds:          mapped(f.Kinds, func(o retention.Outlook) admin.RetentionKind { return outlookOf(o, limits) }),
		Removed: mapped(removals, func(r retention.Removal) admin.Removal {
			return admin.Removal{Kind: r.Kind, Queue: r.Queue, Jobs: r.Jobs, LastAt: apitype.At(r.Last)}
		}),
	}, err
}

// outlookOf is the jobs of one kind, with how long they are kept.
func outlookOf(o retention.Outlook, limits retention.Limits) admin.RetentionKind {
	age := limits.Ages[o.Kind]
	if o.Kind == retention.Trash {
		age = limits.Trash
	}

	return admin.RetentionKind{
		Kind:             o.Kind,
		Kept:             o.Jobs,
		Oldest:           apitype.At(o.Oldest),
		Age:              apitype.Duration(age),
		RemovedWithinDay: o.Soon,
		More:             o.More,
	}
}

// queues is GET /queues: the queues that had a job, by name, a thousand on a page.
// One that is only configured is found by its name.
func (a *API) queues(c echo.Context) (admin.QueueList, error) {
	names, next := a.View.QueueNames(), ""
	if after := c.QueryParam("after"); after != "" {
		if err := filter.CheckQueue(after); err != nil {
			return admin.QueueList{}, problem.In(problem.BadParameter, "after", "is not the name of a queue; send the next of the previous page")
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

	return admin.QueueList{
		Queues: mapped(all, func(q queues.Info) admin.Queue { return a.queueOf(q, running) }),
		Page:   apitype.Page{Next: next},
	}, err
}

// queue is GET /queues/{name}.
func (a *API) queue(c echo.Context) (admin.QueueAnswer, error) {
	name, err := a.ParamQueue(c)
	if err != nil {
		return admin.QueueAnswer{}, err
	}

	q, err := a.Queue(c.Request().Context(), name)

	return admin.QueueAnswer{Queue: a.queueOf(q, a.Engine.Running())}, err
}

// queueOf is a queue with its counters, its depths and what the configuration says
// about it.
func (a *API) queueOf(info queues.Info, running map[string]int) admin.Queue {
	depths := stats.Depths{}
	for _, status := range job.Statuses() { // every status, also at zero
		depths[status] = info.Depths[status]
	}

	q := admin.Queue{
		Name:     info.Name,
		Source:   info.Source,
		Totals:   info.Totals,
		States:   depths,
		Oldest:   apitype.At(info.Oldest),
		PausedAt: apitype.At(info.PausedAt),
		PausedBy: info.PausedBy,
	}
	if q.Source != "" { // which has workers and rules of its own
		return q
	}

	workers, active, keeps := a.Config.Workers(info.Name), running[info.Name], a.Config.DeadLetters(info.Name)
	q.Workers, q.Running, q.DeadLetter = &workers, &active, &keeps
	q.Forward = a.WebhookHost(info.Name)

	return q
}

// queueActs pause and resume queues, and the worker in this process.
func (a *API) queueActs() []Act {
	return []Act{
		a.queueAct("pause", "Pauses a queue", a.View.Pause, true, "Paused "),
		a.queueAct("resume", "Resumes a queue", a.View.Resume, false, "Resumed "),
		a.workerAct("quiet", "Lets the worker take no more jobs", true, "The worker is quiet"),
		a.workerAct("resume", "Lets the worker take jobs again", false, "The worker is awake"),
	}
}

// queueAct is an act on the queue in the address. Doing it again changes nothing
// and is no error.
func (a *API) queueAct(
	name, says string, set func(context.Context, time.Time, string, audit.Actor) error, paused bool, text string,
) Act {
	do := func(c echo.Context) (Outcome, error) {
		queue, err := a.ParamQueue(c)
		if err == nil {
			err = readNothing(c)
		}

		if name := job.SourceOf(queue); err == nil && paused && name != "" {
			err = problem.New(problem.Conflict, "the workers of the source "+name+" run the jobs of the queue "+queue+
				", so Redrive cannot pause it; pause it there")
		}

		if err == nil {
			err = set(c.Request().Context(), time.Now(), queue, web.Actor(c))
		}

		return Outcome{Program: admin.QueuePaused{Queue: queue, Paused: paused}, Text: text + queue, Page: "/queues"}, err
	}

	return Act{Path: "/queues/:name/" + name, Says: says, Request: apitype.Nothing{}, Answer: admin.QueuePaused{}, Do: do}
}

// removeQueue removes an empty queue, with its finished jobs. One that the
// configuration names would be known again at once.
func (a *API) removeQueue() Act {
	do := func(c echo.Context) (Outcome, error) {
		queue, err := a.ParamQueue(c)
		if err == nil {
			err = readNothing(c)
		}

		if err == nil && slices.Contains(a.Config.Queues(), queue) {
			err = problem.New(problem.Conflict,
				"the configuration file names the queue "+queue+"; first remove it there and reload the configuration")
		}

		if err != nil {
			return Outcome{}, err
		}

		jobs, err := a.View.RemoveQueue(c.Request().Context(), time.Now(), queue, web.Actor(c))

		return Outcome{Program: admin.QueueRemoved{Queue: queue, RemovedJobs: jobs}, Text: "Removed " + queue, Page: "/queues"}, err
	}
	says := "Removes an empty queue with its finished jobs"

	return Act{Path: "/queues/:name/remove", Says: says, Request: apitype.Nothing{}, Answer: admin.QueueRemoved{}, Do: do}
}

// workerAct pauses or resumes the worker. Its addresses and texts say "quiet",
// which is the word that programs and people know.
func (a *API) workerAct(name, says string, pause bool, text string) Act {
	do := func(c echo.Context) (Outcome, error) {
		err := readNothing(c)
		if err == nil {
			err = a.PauseWorker(c.Request().Context(), pause, web.Actor(c))
		}

		out := Outcome{Text: text, Page: "/workers"}
		if err == nil && !web.IsForm(c) {
			out.Program, err = a.workers(c)
		}

		return out, err
	}

	return Act{Path: "/workers/" + name, Says: says, Request: apitype.Nothing{}, Answer: admin.WorkerList{}, Do: do}
}

// workers is GET /workers: the worker in this process, and the jobs that any
// worker has claimed.
func (a *API) workers(c echo.Context) (admin.WorkerList, error) {
	all, err := a.WorkerQueues(c.Request().Context(), web.MaxQueues)
	if err != nil {
		return admin.WorkerList{}, err
	}

	all = slices.DeleteFunc(all, func(q queues.Info) bool { return job.SourceOf(q.Name) != "" }) // which no worker here runs

	claimed, _, slow, err := a.Claimed(c.Request().Context())

	running := a.Engine.Running()
	worker := admin.Worker{
		Name:   a.Engine.Worker,
		Since:  apitype.At(a.began),
		Queues: mapped(all, func(q queues.Info) admin.WorkerQueue { return a.workerQueueOf(q, running) }),
		Jobs:   mapped(claimed, claimOf), // by whatever worker
		Stuck:  mapped(a.Engine.Stuck(), stuckOf),
	}
	if pause := a.Paused(); pause != nil {
		worker.Quiet, worker.QuietAt, worker.QuietBy = true, apitype.At(pause.Since), pause.By
	}

	return admin.WorkerList{Workers: []admin.Worker{worker}, Page: apitype.Page{Incomplete: slow}}, err
}

// workerQueueOf is a queue as its worker sees it.
func (a *API) workerQueueOf(q queues.Info, running map[string]int) admin.WorkerQueue {
	return admin.WorkerQueue{
		Name:      q.Name,
		Workers:   a.Config.Workers(q.Name),
		Running:   running[q.Name],
		Available: q.Depths[job.Status(job.Available)],
		Paused:    !q.PausedAt.IsZero(),
	}
}

// claimOf is a job that a worker has claimed. One that waits does so for the handler of
// an earlier execution.
func claimOf(j web.Claimed) admin.Claim {
	return admin.Claim{
		ID:         j.ID,
		Type:       j.Type,
		Queue:      j.Queue,
		Run:        j.Run,
		Execution:  j.Execution,
		Worker:     j.Worker,
		StartedAt:  apitype.At(j.StartedAt),
		LeaseUntil: apitype.At(j.LeaseUntil),
		LastSeen:   apitype.At(j.LastSeen),
		Waits:      j.Waits,
	}
}

// stuckOf is a job whose handler does not return.
func stuckOf(s job.Stuck) admin.StuckJob {
	return admin.StuckJob{
		ID:        s.Job.ID,
		Type:      s.Job.Type,
		Queue:     s.Job.Queue,
		StartedAt: apitype.At(s.Job.StartedAt),
		GivenUpAt: apitype.At(s.Since),
	}
}

// policyOf is a retry policy with the name by which jobs and pages refer to it.
func policyOf(name string, p retry.Policy, ttr time.Duration) admin.NamedPolicy {
	return admin.NamedPolicy{Name: name, Policy: wire.PolicyOf(p), TTR: apitype.Duration(ttr)}
}

// policies is GET /policies: those of the configuration, and the presets.
func (a *API) policies(echo.Context) (admin.PolicyList, error) {
	inUse, presets := web.Policies(a.Config, policyOf)
	return admin.PolicyList{Policies: inUse, Presets: presets}, nil
}
