// Package link makes every address that a page links or posts to. Its functions
// take nouns, never strings of markup, and escape what comes from data, so no
// link can lead outside.
package link

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/wire"
	"redrive/web/static"
)

// path is an address on this host, made of parts that may come from data.
func path(parts ...string) templ.SafeURL {
	var b strings.Builder
	for _, part := range parts {
		b.WriteString("/" + url.PathEscape(part))
	}

	return templ.SafeURL(b.String())
}

// with adds parameters to an address: names and values in turn. Those without
// a value are left out.
func with(address templ.SafeURL, params ...string) templ.SafeURL {
	mark := "?"
	for i := 0; i < len(params); i += 2 {
		if value := params[i+1]; value != "" {
			address += templ.SafeURL(mark + params[i] + "=" + url.QueryEscape(value))
			mark = "&"
		}
	}

	return address
}

// decimal is a number in an address; zero is none.
func decimal(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// Stylesheet is the address of the stylesheet of all pages.
func Stylesheet() templ.SafeURL { return templ.SafeURL(static.Stylesheet().Path) }

// Script is the address of the script of all pages.
func Script() templ.SafeURL { return templ.SafeURL(static.Script().Path) }

// Icon is the icon of the tab, written as an address.
func Icon() templ.SafeURL { return templ.SafeURL(static.Icon()) }

// Login is the page where users log in.
func Login() templ.SafeURL { return "/login" }

// Overview is the front page.
func Overview() templ.SafeURL { return "/" }

// Fault is where the demo breaks and fixes things.
func Fault(name string) templ.SafeURL { return path("demo", "faults", name) }

// DemoReset is where the demo starts over.
func DemoReset() templ.SafeURL { return "/demo/reset" }

// Queues is the page of all queues.
func Queues() templ.SafeURL { return "/queues" }

// Queue is the page of one queue.
func Queue(name string) templ.SafeURL { return path("queues", name) }

// Retention is the page that says how long jobs are kept.
func Retention() templ.SafeURL { return "/retention" }

// QueueAction is where a form acts on a queue: "pause", "resume".
func QueueAction(name, action string) templ.SafeURL { return path("queues", name, action) }

// Workers is the page of the workers.
func Workers() templ.SafeURL { return "/workers" }

// WorkerAction is where a form acts on the worker of this process.
func WorkerAction(action string) templ.SafeURL { return path("workers", action) }

// Job is the page of a job.
func Job(id string) templ.SafeURL { return path("jobs", id) }

// MoreOfJob is the page of a job with more of its payload.
func MoreOfJob(id string) templ.SafeURL { return with(Job(id), "payload", "more") + "#h-payload" }

// JobAction is where a form acts on a job: "replay", "discard", "cancel",
// "forward".
func JobAction(id, action string) templ.SafeURL { return path("jobs", id, action) }

// Edit is the page that replays a job with changes.
func Edit(id string) templ.SafeURL { return JobAction(id, "replay") }

// Payload is the payload of a job, as its exact bytes.
func Payload(id string) templ.SafeURL { return JobAction(id, "payload") }

// Envelope is the envelope that a job came in, marked with what became of it.
func Envelope(id string) templ.SafeURL { return "/api/v1" + JobAction(id, "envelope") }

// Attempts is the page of the attempts of a job before an execution.
func Attempts(id string, before int) templ.SafeURL {
	return with(JobAction(id, "attempts"), "after", decimal(int64(before)))
}

// AttemptData is a job as JSON, with no newer attempt than an execution.
func AttemptData(id string, execution int) templ.SafeURL {
	return with(JobData(id), "attempts_after", decimal(int64(execution)+1))
}

// JobData is the job as JSON, with its newest attempts.
func JobData(id string) templ.SafeURL { return "/api/v1" + Job(id) }

// Jobs is the list of the jobs that match f, from the cursor after on.
func Jobs(f filter.Filter, after string) templ.SafeURL { return listAddress("/jobs", f, after) }

// DeadLetters is the list of the open dead letters that match f, from the
// cursor after on.
func DeadLetters(f filter.Filter, after string) templ.SafeURL {
	return listAddress("/dead-letters", f, after)
}

// Trash is the list of discarded jobs that match f, from the cursor after on.
func Trash(f filter.Filter, after string) templ.SafeURL {
	f.Status = ""
	return listAddress("/trash", f, after)
}

// Export is the list of the jobs that match f as a file: "csv" or "ndjson".
func Export(f filter.Filter, format string) templ.SafeURL {
	return listAddress(path("export."+format), f, "")
}

// Count is where the scripts ask how many jobs match a query.
func Count(query string) templ.SafeURL { return with("/api/v1/jobs/count", "q", query) }

// listAddress adds a filter to an address, its parameters in the order in which
// url.Values has them.
func listAddress(address templ.SafeURL, f filter.Filter, after string) templ.SafeURL {
	return with(address, "after", after, "error", f.Error, "from", timeParameter(f.From), "q", unnamed(f).String(), "queue", f.Queue,
		"reason", string(f.Reason), "sort", string(f.Sort), "state", string(f.Status), "to", timeParameter(f.To), "type", f.Type)
}

// unnamed is what a filter says beside that which has a parameter of its own.
func unnamed(f filter.Filter) filter.Filter {
	f.Status, f.Queue = "", ""
	f.Type, f.Error = "", ""
	f.Reason, f.Sort = "", ""
	f.From, f.To = time.Time{}, time.Time{}

	return f
}

// timeParameter is a time in the address of a list.
func timeParameter(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Failures is the list of the error groups that match f, from the cursor after
// on.
func Failures(f failures.Filter, after string) templ.SafeURL {
	if f.State == failures.Open {
		f.State = "" // what the page shows by default
	}
	return groups("/failures", f, after)
}

// FailuresFile is the error groups that match f as a file: "csv" or "ndjson".
func FailuresFile(f failures.Filter, format string) templ.SafeURL {
	return groups(path("failures."+format), f, "")
}

func groups(address templ.SafeURL, f failures.Filter, after string) templ.SafeURL {
	return with(address, "after", after, "class", f.Class, "q", f.Text, "queue", f.Queue, "sort", string(f.Sort), "source", f.Source,
		"state", string(f.State), "type", f.Type)
}

// Failure is the page of an error group.
func Failure(fingerprint string) templ.SafeURL { return path("failures", fingerprint) }

// FailureAction is where a form acts on an error group: "resolve", "ignore",
// "reopen", "note".
func FailureAction(fingerprint, action string) templ.SafeURL {
	return path("failures", fingerprint, action)
}

// FailuresAction is where a form acts on all error groups that it names: "resolve",
// "ignore", "reopen".
func FailuresAction(action string) templ.SafeURL { return path("failures", action) }

// FailureJobs is the list of all jobs of an error group.
func FailureJobs(fingerprint string) templ.SafeURL {
	return Jobs(filter.Filter{Group: fingerprint}, "")
}

// Operations is the list of operations on many jobs; posting there begins one.
func Operations() templ.SafeURL { return "/operations" }

// OperationsAfter is the list of operations from the one after on.
func OperationsAfter(after int64) templ.SafeURL { return with(Operations(), "after", decimal(after)) }

// Operation is the page of an operation.
func Operation(id int64) templ.SafeURL { return path("operations", decimal(id)) }

// OperationAction is where a form acts on an operation.
func OperationAction(id int64, action string) templ.SafeURL {
	return path("operations", decimal(id), action)
}

// Items is an operation with some of its items, from the one after on.
func Items(id int64, show string, after int64) templ.SafeURL {
	return with(Operation(id), "after", decimal(after), "state", show) + "#h-items"
}

// ItemsFile is what an operation shows of its items, as a file.
func ItemsFile(id int64, show, format string) templ.SafeURL {
	return with(OperationAction(id, "items."+format), "state", show)
}

// Policies is the page of policies, as seen from the one of that name.
func Policies(name string) templ.SafeURL { return with("/policies", "preset", name) }

// Access is the page of users, sessions and tokens.
func Access() templ.SafeURL { return "/access" }

// AccessAction is where a form acts on a user, a session or a token.
func AccessAction(kind, name, action string) templ.SafeURL { return path("access", kind, name, action) }

// Audit is the log as far as it matches f, from the entry after one on.
func Audit(f audit.Filter, after int64) templ.SafeURL { return auditLog("/audit", f, after) }

// AuditFile is the log as far as it matches f, as a file.
func AuditFile(f audit.Filter, format string) templ.SafeURL {
	return auditLog(path("audit."+format), f, 0)
}

// auditLog adds a filter of the audit log to an address.
func auditLog(address templ.SafeURL, f audit.Filter, after int64) templ.SafeURL {
	return with(address, "action", f.Action, "actor", f.Actor, "after", decimal(max(after, 0)),
		"from", wire.FormatTime(f.From), "subject", f.Subject, "to", wire.FormatTime(f.To))
}

// Sources is the page of all sources.
func Sources() templ.SafeURL { return "/sources" }

// Source is the page of one source.
func Source(name string) templ.SafeURL { return path("sources", name) }
