package templates_test

import (
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/stats"
	"redrive/web/templates"
	"redrive/web/templates/adminpage"
	"redrive/web/templates/listpage"
	"redrive/web/templates/queuepage"
)

// The fixtures are one afternoon of a shop: now is fixed, ids are made up, and
// nothing is random.

var now = time.Date(2026, 3, 12, 14, 2, 11, 0, time.UTC)

func id(n int) string {
	return fmt.Sprintf("019ce2%02x-%04x-7%03x-9%03x-%012x", n%256, n*7919%65536, n*31%4096, n*17%4096, n*123457)
}

// kind is one sort of failure in the shop.
type kind struct {
	typ, queue, errorType, message, payload string
	limit                                   int
}

func kinds() []kind {
	return []kind{
		{"payments.capture", "payments", "upstream.unavailable", "POST https://api.paylane.example/v2/captures: 503 Service Unavailable", `{"order_id":88412,"amount":4990,"currency":"EUR","card":"tok_1N3"}`, 5},
		{"webhooks.deliver", "webhooks", "net.DNSError", "lookup hooks.acme-tools.example: no such host", `{"endpoint_id":"ep_1842","event":"order.paid"}`, 8},
		{"email.receipt", "email", "smtp.Error", "451 4.7.1 <ines@brightmail.example>: greylisted, try again later", `{"to":"ines@brightmail.example","template":"receipt-v4"}`, 6},
		{"orders.confirm", "orders", "json.UnmarshalTypeError", "lines[3].qty: cannot unmarshal string into int", `{"order_id":88390,"lines":[{"sku":"A-1","qty":"two"}]}`, 5},
		{"media.thumbnail", "media", "lost", "lease ran out 14 s after the last heartbeat", `{"id":8678,"tenant":"t_45"}`, 3},
		{"loyalty.points.expire", "default", "unknown_type", "no handler for urn:shop:loyalty:points.expire", `{"id":7340,"tenant":"t_78","requested_by":"cron"}`, 1},
	}
}

// failure is the nth failed job, newest first; status says how it ended.
func failure(n int, status job.Status) job.Job {
	k := kinds()[n%len(kinds())]
	policy := retry.Default()
	policy.MaxAttempts = k.limit
	at := now.Add(-time.Duration(n*n*3+2) * time.Second)
	j := job.Job{
		Token: job.Token{ID: id(n), Run: 1 + n%4/3, Execution: k.limit}, Seq: int64(1000 - n),
		Queue: k.queue, Type: k.typ, Payload: []byte(k.payload), Policy: policy,
		EnqueuedAt: at.Add(-3 * time.Minute), ChangedAt: at, FinishedAt: at, Attempts: k.limit,
		Error: job.ErrorInfo{Type: k.errorType, Message: k.message}, State: job.State(status),
	}
	switch status {
	case job.StatusDeadLetter:
		j.State, j.DeadLetter, j.Reason = job.Discarded, job.DeadLetterStored, reasons()[n%len(reasons())]
	case job.StatusDLQFailed:
		j.State, j.DeadLetter, j.Reason = job.Discarded, job.DeadLetterRefused, retry.AttemptsExhausted
	case job.StatusHeld:
		j.State, j.Held, j.Attempts, j.Error = job.Available, true, 0, job.ErrorInfo{}
	case job.Status(job.Retryable):
		j.Attempts, j.RunAt, j.FinishedAt = max(1, k.limit/2), now.Add(time.Duration(n*11+7)*time.Second), time.Time{}
	case job.Status(job.Scheduled):
		j.Attempts, j.RunAt, j.FinishedAt, j.Error = 0, now.Add(time.Duration(n)*time.Hour), time.Time{}, job.ErrorInfo{}
	case job.Status(job.Completed), job.Status(job.Active), job.Status(job.Available):
		j.Attempts, j.Error = 1, job.ErrorInfo{}
	case job.Status(job.Returned):
		j.Queue, j.Source, j.Worker = "orders@outlet", "outlet", "outlet"
		j.Attempts, j.Error = 1, job.ErrorInfo{}
	}
	return j
}

func reasons() []retry.Reason {
	return []retry.Reason{
		retry.AttemptsExhausted, retry.NonRetryable, retry.AttemptsExhausted, retry.HandlerDeadLetter,
		retry.AttemptsExhausted, retry.UnknownType, retry.RuleDecided, retry.Expired, retry.MissingTraceID, retry.UnsupportedVersion,
	}
}

func mixed(count int) []job.Job {
	order := []job.Status{
		job.StatusDeadLetter, job.Status(job.Retryable), job.StatusDeadLetter, job.Status(job.Active),
		job.Status(job.Retryable), job.StatusDeadLetter, job.Status(job.Completed), job.StatusDeadLetter,
		job.Status(job.Scheduled), job.StatusDLQFailed, job.Status(job.Discarded), job.Status(job.Cancelled),
		job.Status(job.Available), job.StatusHeld, job.Status(job.Returned),
	}
	var all []job.Job
	for n := range count {
		all = append(all, failure(n, order[n%len(order)]))
	}
	return all
}

func failing(count int) []job.Job {
	var all []job.Job
	for n := range count {
		status := job.StatusDeadLetter
		if n%3 == 1 {
			status = job.Status(job.Retryable)
		}
		all = append(all, failure(n, status))
	}
	return all
}

func deadLetterRows(count int) filter.DeadLetterList {
	var list filter.DeadLetterList
	for n := range count {
		j := failure(n, job.StatusDeadLetter)
		j.Group = int64(n%len(kinds()) + 1)
		list.DeadLetters = append(list.DeadLetters, filter.DeadLetterRow{Job: j, DeadLetter: job.DeadLetter{
			JobID: j.ID, Run: j.Run, Reason: j.Reason, Error: j.Error.Message, Exception: j.Error.Type,
			FailedAt: j.ChangedAt, Queue: j.Queue, Attempts: j.Attempts,
		}})
	}
	list.Next = filter.Cursor{At: now.Add(-time.Hour), Seq: 900}
	return list
}

// groupsByNumber are the groups to which dead letters belong; the last of them is
// alone in its group.
func groupsByNumber() map[int64]failures.Group {
	all := map[int64]failures.Group{}
	for i, k := range kinds() {
		g := failures.Group{Number: int64(i + 1), Type: k.typ, State: failures.Open, Failures: int64((len(kinds())-1-i)*406 + 1)}
		g.Fingerprint, g.Class, g.Message = fmt.Sprintf("%016x", 0x8c1f02aa+i), k.errorType, k.message
		all[g.Number] = g
	}
	return all
}

// hour is 60 minutes of totals in the shape of a wave.
func hour(succeeded, failed float64, shift int) []stats.Totals {
	var all []stats.Totals
	for m := range 60 {
		wave := 1 + 0.4*math.Sin(float64(m+shift)/7) + 0.1*math.Sin(float64(m*(shift+3)))
		f := int64(failed * wave)
		all = append(all, stats.Totals{
			Succeeded: int64(succeeded * wave), Failed: f, Requeued: f * 2 / 3, FailedPermanently: f - f*2/3,
			Replayed: int64(max(0, m-48) * 4),
		})
	}
	all[56].DLQFailed = 2
	return all
}

func queue(name string, shift int, d stats.Depths) queues.Info {
	return queues.Info{
		Name: name, Source: job.SourceOf(name), Depths: d, LastHour: hour(float64(20*(shift+1)), float64(shift), shift),
		Oldest: now.Add(-time.Duration(shift*shift*9+1) * time.Second),
	}
}

func queueInfos() []queues.Info {
	reports := queue("reports", 2, stats.Depths{"scheduled": 310, "active": 2, "retryable": 11, "dead_letter": 230})
	reports.PausedAt, reports.PausedBy = now.Add(-12*time.Minute), "ana"
	search := queues.Info{Name: "search", Depths: stats.Depths{"available": 12, "dead_letter": 294}, LastHour: make([]stats.Totals, 60), Oldest: now.Add(-5 * time.Hour)}
	payments := queue("payments", 4, stats.Depths{"available": 41, "active": 8, "retryable": 318, "dead_letter": 1204, "dlq_failed": 2})
	payments.LastHour = hour(20, 12, 4)
	return []queues.Info{
		queue("billing", 0, stats.Depths{"available": 2, "active": 1, "dead_letter": 260}),
		queue("default", 1, stats.Depths{"available": 14, "retryable": 6, "dead_letter": 701}),
		queue("email", 3, stats.Depths{"scheduled": 4210, "available": 118, "active": 24, "retryable": 847, "dead_letter": 606}),
		queue("media", 2, stats.Depths{"available": 3, "active": 4, "retryable": 6, "dead_letter": 44}),
		queue("orders", 1, stats.Depths{"scheduled": 12, "returned": 3, "available": 9, "active": 6, "retryable": 22, "dead_letter": 244}),
		payments, reports, search,
		queue("webhooks", 2, stats.Depths{"available": 22, "active": 12, "retryable": 16, "dead_letter": 627}),
	}
}

func configs() map[string]templates.QueueConfig {
	steep := retry.Default()
	steep.MaxAttempts, steep.InitialInterval, steep.MaxInterval = 8, 30*time.Second, time.Hour
	listed := retry.Default()
	listed.MaxInterval, listed.Strategy, listed.Schedule, listed.Jitter, listed.OnExhaustion = time.Hour, retry.Schedule, []time.Duration{time.Minute, 5 * time.Minute, time.Hour}, retry.Jitter{}, retry.Discard
	all := map[string]templates.QueueConfig{}
	for _, q := range queueInfos() {
		all[q.Name] = templates.QueueConfig{Workers: 30, Running: int(q.Depths["active"]), Policy: retry.Default(), DeadLetters: true}
	}
	all["webhooks"] = templates.QueueConfig{Workers: 20, Running: 12, Policy: steep, DeadLetters: true}
	all["payments"] = templates.QueueConfig{Workers: 8, Running: 8, Policy: listed, DeadLetters: true, ForwardedTo: "dlq.ops.example"}
	all["media"] = templates.QueueConfig{Workers: 4, Running: 4, Policy: retry.Default()}
	delete(all, "search")
	return all
}

func snapshot() stats.Snapshot {
	return stats.Snapshot{
		Seq:    99,
		Totals: stats.Totals{Succeeded: 1261402, Failed: 18934, Requeued: 14688, FailedPermanently: 4246, DLQFailed: 2, Replayed: 1873},
		Depths: stats.Depths{
			"scheduled": 4532, "returned": 3, "available": 221, "active": 57, "retryable": 1226, "completed": 1274048,
			"discarded": 4246, "cancelled": 12, "dead_letter": 4210, "dlq_failed": 2, "held": 3,
		},
		OpenGroups: 6,
	}
}

func reasonCounts() []filter.ReasonCount {
	return []filter.ReasonCount{
		{Reason: retry.AttemptsExhausted, Count: 2125}, {Reason: retry.UnknownType, Count: 701}, {Reason: retry.NonRetryable, Count: 417},
		{Reason: retry.RuleDecided, Count: 390}, {Reason: retry.Expired, Count: 294}, {Reason: retry.HandlerDeadLetter, Count: 208},
		{Reason: retry.MissingURN, Count: 40}, {Reason: retry.InvalidAttempts, Count: 21}, {Reason: retry.UnsupportedVersion, Count: 12},
		{Reason: retry.Manual, Count: 2},
	}
}

func frame(section, title string) templates.Frame {
	return templates.Frame{Title: title, Section: section, Now: now, Snapshot: snapshot(), QueueCount: 9}
}

// quiet is a frame in which nothing has ever failed.
func quiet(section, title string) templates.Frame {
	f := frame(section, title)
	f.Snapshot = stats.Snapshot{Seq: 9, Totals: stats.Totals{Succeeded: 812, Failed: 42, Requeued: 42}, Depths: stats.Depths{"completed": 812}}
	return f
}

func fresh(section, title string) templates.Frame {
	f := frame(section, title)
	f.Snapshot, f.QueueCount = stats.Snapshot{}, 0
	return f
}

func demo() *templates.Demo {
	return &templates.Demo{
		Until: "The database is deleted when the demo stops.",
		Faults: []templates.Fault{
			{Name: "payments-503", Title: "Payment provider", About: "Answers 503 to every capture.", Broken: true},
			{Name: "rate-limit", Title: "Rate-limited API", About: "Answers 429 with Retry-After from the third request a second on."},
			{Name: "slow", Title: "Slow report", About: "Takes longer than its time to run.", Broken: true},
			{Name: "poison", Title: "Poison payload", About: "One order has a quantity in words."},
			{Name: "mailer", Title: "Flaky mailer", About: "Fails three times in ten.", Broken: true},
			{Name: "panic", Title: "Panic", About: "An index out of range in the batch worker."},
		},
	}
}

func refused() []templates.Refused {
	const problem = "https://dlq.ops.example answered 507 Insufficient Storage"
	return []templates.Refused{{Job: failure(0, job.StatusDLQFailed), Problem: problem}, {Job: failure(6, job.StatusDLQFailed), Problem: problem}}
}

// letterUsage is a dead-letter queue that is full in three days.
func deadLetterUsage(open int64) templates.DeadLetterUsage {
	return templates.DeadLetterUsage{
		Usage:  retention.Usage{Open: open, LastDay: 1930, Oldest: now.Add(-12 * 24 * time.Hour)},
		Limits: retention.Limits{Ages: retention.Ages{retention.DeadLetters: 180 * 24 * time.Hour}, Count: 10_000},
	}
}

// retained is the page of retention with a bit of everything.
func retained(f templates.Frame) queuepage.Retention {
	const day = 24 * time.Hour
	removal := func(k retention.Kind, queue string, n int64) retention.Removal {
		return retention.Removal{Part: retention.Part{Kind: k, Queue: queue}, Jobs: n, Last: now.Add(-3 * time.Minute)}
	}
	f.Title, f.Section = "Retention", "retention"
	return queuepage.Retention{
		Frame: f,
		DeadLetterUsage: templates.DeadLetterUsage{
			Usage: deadLetterUsage(4210).Usage,
			Limits: retention.Limits{
				Ages:   retention.Ages{retention.Completed: 7 * day, retention.Cancelled: 30 * day, retention.DeadLetters: 180 * day},
				Queues: map[string]retention.Ages{"books": {retention.Completed: 0}}, Types: map[string]retention.Ages{"report.*": {retention.Completed: 90 * day}},
				Count: 10_000, Trash: 7 * day,
			},
			Forecast: retention.Forecast{At: now.Add(-20 * time.Second), Kinds: []retention.Outlook{
				{Kind: retention.Completed, Jobs: 48_120_004, Oldest: now.Add(-7 * day), Soon: 1_000_000, More: true},
				{Kind: retention.Cancelled, Jobs: 12, Oldest: now.Add(-2 * day)},
				{Kind: retention.Discarded},
				{Kind: retention.DeadLetters, Jobs: 4210, Oldest: now.Add(-180*day + time.Hour), Soon: 71},
				{Kind: retention.OverCount},
				{Kind: retention.Trash, Jobs: 3, Oldest: now.Add(-26 * time.Hour)},
			}},
		},
		Removals: []retention.Removal{removal(retention.Completed, "mail", 1204), removal(retention.Completed, "orders", 9_120_400),
			removal(retention.OverCount, "orders", 3)},
	}
}

// pages is every state that a page can be in, by the name of its golden file.
func pages() map[string]page { return maps.Clone(madePages()) }

// madePages are made once: many tests look at one or two of them. A test that changes what a
// page points to copies that before.
var madePages = sync.OnceValue(func() map[string]page {
	all := map[string]page{}
	overviewStates(all)
	jobsStates(all)
	deadLetterStates(all)
	queuesStates(all)
	policiesStates(all)
	problemStates(all)
	trashStates(all)
	auditStates(all)
	editStates(all)
	workersStates(all)
	hinderedStates(all)
	queueStates(all)
	failureStates(all)
	accessStates(all)
	operationStates(all)
	sourceStates(all)
	return all
})

func overview(f templates.Frame) templates.Overview {
	f.UnderWay = []templates.OpenOperation{openOperation("operation-running"), openOperation("operation-canary")}
	f.Snapshot.Operations = int64(len(f.UnderWay))
	return templates.Overview{
		Frame: f, LastHour: hour(700, 60, 5), Queues: queueInfos(), Failing: failing(8), Refused: refused(), Reasons: reasonCounts(),
		DeadLetterUsage: deadLetterUsage(4210), Groups: groups()[:5], Ignored: 2,
		Unhandled: []queues.Held{{Queue: "default", Type: "loyalty.points.expire", Count: 2}},
	}
}

func overviewStates(all map[string]page) {
	all["overview"] = overview(frame("overview", "Overview"))
	all["overview-healthy"] = templates.Overview{Frame: quiet("overview", "Overview"), LastHour: hour(10, 0, 1)[:50], Queues: queueInfos()}
	all["overview-first-run"] = templates.Overview{Frame: fresh("overview", "Overview"), LastHour: make([]stats.Totals, 60), FirstRun: true}
	f := frame("overview", "Overview")
	f.Demo = demo()
	all["overview-demo"] = overview(f)
	f = frame("overview", "Overview")
	f.Insecure, f.Problem = true, "The disk of the database is full. Make room; writing starts again by itself."
	all["overview-read-only"] = overview(f)
	v := overview(frame("overview", "Overview"))
	v.Slow, v.Failing = true, v.Failing[:2]
	all["overview-slow"] = v
	v = overview(frame("overview", "Overview"))
	v.Refused, v.DeadLetterUsage = nil, deadLetterUsage(8730)
	all["overview-filling"] = v
}

// above is what stands above a list.
func above() listpage.Query {
	facets := filter.Facets{
		Reasons: reasonCounts(), Queues: []filter.NameCount{{Name: "payments", Count: 1204}, {Name: "email", Count: 606}, {Name: "billing", Count: 260}},
		Types: []filter.NameCount{{Name: "payments.capture", Count: 1100}, {Name: "email.receipt", Count: 606}, {Name: "invoice.render", Count: 260}},
	}
	tally := filter.Tally{Total: 4210, Whole: true, Facets: facets}
	return listpage.Query{Tally: tally, Dead: facets, Queues: []string{"billing", "default", "email", "payments"}}
}

func jobs(f templates.Frame) listpage.Jobs {
	return listpage.Jobs{
		Frame: f, Query: above(), List: filter.List{Jobs: mixed(30), Next: filter.Cursor{At: now.Add(-time.Hour), Seq: 700}},
	}
}

func jobsStates(all map[string]page) {
	f := frame("jobs", "Jobs")
	all["jobs"] = jobs(f)
	v := jobs(f)
	v.Filter = filter.Filter{Status: job.StatusDeadLetter, Queue: "payments", Error: "timeout"}
	v.List.Jobs, v.List.Next, v.After = failing(12), filter.Cursor{}, filter.Cursor{At: now, Seq: 5}.String()
	v.Query.Lag = 12
	all["jobs-filtered"] = v
	all["jobs-search"] = searched(f)
	waiting := jobs(f)
	waiting.Filter = filter.Filter{Status: job.Status(job.Retryable)}
	waiting.List.Jobs = []job.Job{failure(1, job.Status(job.Retryable)), failure(4, job.Status(job.Retryable))}
	all["jobs-retryable"] = waiting
	all["jobs-many-queues"] = manyQueues(f)
	v.After, v.List = "", filter.List{}
	all["jobs-no-match"] = v
	v = jobs(f)
	v.Filter, v.Slow, v.List.Jobs = filter.Filter{Error: "time_out"}, true, failing(3)
	all["jobs-slow"] = v
	nothing := v
	nothing.Filter = filter.Filter{Class: "time_out"}
	nothing.List = filter.List{Next: filter.Cursor{At: v.List.Jobs[0].EnqueuedAt, Seq: 4}}
	all["jobs-nothing-yet"] = nothing
	v.Query.Indexing, v.Query.Lag = true, 3
	all["jobs-filling"] = v
	v.Query.Indexing, v.Query.Lag = false, 0
	v.Slow, v.List.Jobs = false, nil
	v.Filter = filter.Filter{Queue: "no queue", Type: "x"}
	v.Errors = map[string]string{"queue": `"no queue" is not a queue name`, "q": "queu: is no qualifier; did you mean queue:"}
	v.Query.Typed = "queu:orders"
	all["jobs-bad-filter"] = v
	f.Problem = "The database is read-only: another disk has it."
	all["jobs-read-only"] = jobs(f)
	all["jobs-first-run"] = listpage.Jobs{Frame: fresh("jobs", "Jobs")}
}

// searched is the list of jobs that have a text in their error, their payload or both;
// one of them has completed since.
func searched(f templates.Frame) listpage.Jobs {
	v := jobs(f)
	v.Filter = filter.Filter{Text: "timeout"}
	v.List.Jobs = []job.Job{failure(0, job.StatusDeadLetter), failure(1, job.Status(job.Retryable)), failure(2, job.Status(job.Completed))}
	v.Query.Tally.Total, v.Query.Tally.States = 3, stats.Depths{job.StatusDeadLetter: 1, "retryable": 1, "completed": 1, "discarded": 1}
	inError := filter.Excerpt{In: "error", Before: "upstream ", Match: "Timeout", After: " after 30 s"}
	inPayload := filter.Excerpt{In: "payload", Cut: true, Before: `"kind":"`, Match: "timeout", After: `","id":1`, CutAfter: true}
	failed := job.ErrorInfo{Type: "smtp.Error", Message: "451 4.7.1 greylisted"}
	v.Hits = map[int64]filter.Hit{
		1000: {Error: failed, Excerpts: []filter.Excerpt{inError, inPayload}},
		999:  {Error: failed, Excerpts: []filter.Excerpt{inError}},
		998:  {Error: failed, Excerpts: []filter.Excerpt{inPayload}},
	}
	return v
}

// manyQueues is the list of one queue of 503, which is none of the fullest.
func manyQueues(f templates.Frame) listpage.Jobs {
	v := jobs(f)
	v.Filter = filter.Filter{Queue: "queue-400"}
	v.Query.Tally = filter.Tally{Total: 1, Whole: true}
	for i := range 503 {
		v.Query.Tally.Facets.Queues = append(v.Query.Tally.Facets.Queues, filter.NameCount{Name: fmt.Sprintf("queue-%d", i), Count: int64(600 - i)})
	}
	return v
}

func deadLetters(f templates.Frame) listpage.DeadLetters {
	return listpage.DeadLetters{
		Frame: f, List: deadLetterRows(18), Refused: refused(), Query: above(), DeadLetterUsage: deadLetterUsage(4210), Configs: configs(), Groups: groupsByNumber(),
	}
}

func deadLetterStates(all map[string]page) {
	f := frame("dead-letters", "Dead letters")
	all["dead-letters"] = deadLetters(f)
	v := deadLetters(f)
	v.Filter = filter.Filter{Reason: retry.AttemptsExhausted, Queue: "email"}
	v.Refused, v.List.DeadLetters, v.List.Next = nil, v.List.DeadLetters[:3], filter.Cursor{}
	v.List.DeadLetters[0].Cause, v.List.DeadLetters[1].ForwardedTo = job.TimedOut, "https://dlq.ops.example"
	all["dead-letters-filtered"] = v
	v.List = filter.DeadLetterList{}
	all["dead-letters-no-match"] = v
	v = deadLetters(f)
	v.Filter, v.Refused, v.List.DeadLetters = filter.Filter{Error: "time"}, nil, v.List.DeadLetters[:2]
	v.Query.Tally = filter.Tally{Total: 1000, More: true, Facets: v.Query.Tally.Facets}
	v.Hits = map[int64]filter.Hit{v.List.DeadLetters[0].Job.Seq: {Excerpts: []filter.Excerpt{{In: "error", Match: "Time", After: "d out"}}}}
	all["dead-letters-search"] = v
	v = deadLetters(f)
	v.Slow, v.Refused, v.List.DeadLetters = true, nil, v.List.DeadLetters[:2]
	all["dead-letters-slow"] = v
	v.Filter, v.List = filter.Filter{Class: "time_out"}, filter.DeadLetterList{Next: filter.Cursor{At: now, Seq: 4}}
	all["dead-letters-nothing-yet"] = v
	v = deadLetters(f)
	v.DeadLetterUsage, v.Refused, v.List.DeadLetters = deadLetterUsage(10_000), nil, v.List.DeadLetters[:2]
	all["dead-letters-full"] = v
	all["dead-letters-healthy"] = listpage.DeadLetters{Frame: quiet("dead-letters", "Dead letters")}
}

func queuesStates(all map[string]page) {
	f := frame("queues", "Queues")
	all["queues"] = queuepage.List{
		Frame: f, Queues: queueInfos(), Found: 9, Total: 9, Workers: 62, LastHour: hour(700, 60, 5), Configs: configs(),
		Held: []queues.Held{{Queue: "default", Type: "loyalty.points.expire", Count: 2}, {Queue: "email", Type: "sms.send", Count: 1}},
	}
	outlet := queue("orders@outlet", 0, stats.Depths{"returned": 3, "dead_letter": 288})
	outlet.LastHour = make([]stats.Totals, 60)
	all["queues-source"] = queuepage.List{
		Frame: f, Queues: append([]queues.Info{outlet}, queueInfos()[:2]...), Found: 3, Total: 3, Foreign: 1, Workers: 14, Configs: configs(),
	}
	f.Problem = "The disk of the database is full. Make room; writing starts again by itself."
	all["queues-read-only"] = queuepage.List{Frame: f, Queues: queueInfos()[:2], Found: 2, Total: 2, Workers: 14, Configs: configs()}
	all["queues-many"] = queuepage.List{Frame: f, Queues: queueInfos(), Found: 503, Total: 503, Workers: 62, Configs: configs()}
	all["queues-no-match"] = queuepage.List{Frame: f, Name: "orders", Total: 503, Configs: configs()}
	all["retention"] = retained(f)
	all["retention-fresh"] = queuepage.Retention{Frame: fresh("retention", "Retention"), DeadLetterUsage: templates.DeadLetterUsage{Limits: retained(f).Limits}}
	starts := retained(f)
	starts.Forecast.Since, starts.Removals, starts.Limits.Queues, starts.Limits.Types = now.Add(20*time.Hour), nil, nil, nil
	all["retention-starts"] = starts
	moved := retained(f)
	moved.Forecast.Clock = retention.Clock{Trusted: now.Add(-366 * 24 * time.Hour), Left: 23 * time.Hour, Ahead: 366 * 24 * time.Hour}
	moved.Usage.AtSources = 1200
	all["retention-clock-moved"] = moved
	all["queues-first-run"] = queuepage.List{Frame: fresh("queues", "Queues")}
}

func problemStates(all map[string]page) {
	f := frame("", "Not found")
	all["not-found"] = templates.Problem{Frame: f, Status: 404, Title: "There is no such job", Text: "No job has the id 019ce22a-6b01-7b09-96b0-4800a28f5b37. It may have been removed after its retention.", RequestID: "01JP5X9C"}
	f.Title = "Gone"
	all["gone"] = adminpage.Gone{Frame: f, ID: id(7), Entries: auditEntries()[:2]}
	all["gone-retention"] = adminpage.Gone{Frame: f, ID: id(7), Removed: &retention.Removed{
		ID: id(7), Kind: retention.Completed, EnqueuedAt: now.Add(-9 * 24 * time.Hour), RemovedAt: now.Add(-24 * time.Hour), Kept: 7 * 24 * time.Hour,
	}}
	f.Title = "Error"
	all["error"] = templates.Problem{Frame: f, Status: 503, Title: "The page could not be read", Text: "The database was busy for 5 s. Try again in a moment.", RequestID: "01JP5X9C"}
	f.Title = "Not replayed"
	j := failure(0, job.Status(job.Active))
	j.Run = 2
	all["conflict"] = templates.Conflict{Frame: f, Action: "replay", Err: &job.Conflict{Problem: "run 1 was replayed already", Job: j, ReplayedAt: now.Add(-4 * time.Second), ReplayedBy: "sam"}}
	all["conflict-state"] = templates.Conflict{Frame: f, Action: "cancel", Err: &job.Conflict{Problem: "the job has ended, there is nothing to cancel", Job: failure(1, job.Status(job.Completed))}}
}
