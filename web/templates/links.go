package templates

import (
	"net/url"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/filter"
	"redrive/web/static"
)

// The functions in this file make every address that a page links or posts to.
// They take nouns, never strings of markup, and escape what comes from data, so
// no link can lead outside.

// overviewURL is the front page.
func overviewURL() templ.SafeURL { return "/" }

// queuesURL is the page of all queues.
func queuesURL() templ.SafeURL { return "/queues" }

// queueURL is the page of one queue.
func queueURL(name string) templ.SafeURL { return local("/queues/"+url.PathEscape(name), nil) }

// jobURL is the page of a job.
func jobURL(id string) templ.SafeURL { return local("/jobs/"+url.PathEscape(id), nil) }

// jobsURL is the list of the jobs that match f, from the cursor after on.
func jobsURL(f filter.Filter, after string) templ.SafeURL {
	return list("/jobs", f, after)
}

// deadLettersURL is the list of the open dead letters that match f, from the
// cursor after on.
func deadLettersURL(f filter.Filter, after string) templ.SafeURL {
	return list("/dead-letters", f, after)
}

// jobAction is where a form acts on a job: "replay", "discard", "cancel",
// "forward".
func jobAction(id, action string) templ.SafeURL { return jobURL(id) + templ.SafeURL("/"+action) }

// queueAction is where a form acts on a queue: "pause", "resume".
func queueAction(name, action string) templ.SafeURL {
	return local("/queues/"+url.PathEscape(name)+"/"+action, nil)
}

// faultURL is where the demo breaks and fixes things.
func faultURL(name string) templ.SafeURL {
	return local("/demo/faults/"+url.PathEscape(name), nil)
}

// demoResetURL is where the demo starts over.
func demoResetURL() templ.SafeURL { return "/demo/reset" }

// asset is the address of a file of package static.
func asset(name string) templ.SafeURL { return templ.SafeURL(static.Path(name)) }

// list is an address of what matches f, from the cursor after on. A page has a
// hundred of them; its parameters are in the order in which url.Values has them.
func list(path string, f filter.Filter, after string) templ.SafeURL {
	mark := "?"
	set := func(name, value string) {
		if value != "" {
			path += mark + name + "=" + url.QueryEscape(value)
			mark = "&"
		}
	}
	set("after", after)
	set("error", f.Error)
	set("from", moment(f.From))
	if rest := unnamed(f); !rest.Zero() {
		set("q", rest.String())
	}
	set("queue", f.Queue)
	set("reason", string(f.Reason))
	set("sort", string(f.Sort))
	set("state", string(f.Status))
	set("to", moment(f.To))
	set("type", f.Type)
	return templ.SafeURL(path)
}

// unnamed is what a filter says beside that which has a parameter of its own.
func unnamed(f filter.Filter) filter.Filter {
	f.Status, f.Queue, f.Type, f.Error, f.Reason, f.Sort = "", "", "", "", "", filter.Newest
	f.From, f.To = time.Time{}, time.Time{}
	return f
}

// moment is a time in the address of a list.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// exportURL is the list of the jobs that match f as a file: "csv" or "ndjson".
func exportURL(f filter.Filter, format string) templ.SafeURL {
	return list("/export."+format, f, "")
}

// local is an address on this host. Its path begins with one slash and is
// escaped by the caller.
func local(path string, q url.Values) templ.SafeURL {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return templ.SafeURL(path)
}
