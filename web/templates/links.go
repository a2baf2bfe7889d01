package templates

import (
	"net/url"

	"github.com/a-h/templ"

	"redrive/internal/job"
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
func jobsURL(f job.Filter, after string) templ.SafeURL {
	return local("/jobs", query(f, after))
}

// deadLettersURL is the list of the open dead letters that match f, from the
// cursor after on.
func deadLettersURL(f job.Filter, after string) templ.SafeURL {
	return local("/dead-letters", query(f, after))
}

// jobAction is where a form acts on a job: "replay", "discard", "cancel",
// "forward".
func jobAction(id, action string) templ.SafeURL {
	return local("/jobs/"+url.PathEscape(id)+"/"+action, nil)
}

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

func query(f job.Filter, after string) url.Values {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	for _, name := range []string{"state", "queue", "type", "error", "reason", "from", "to", "sort"} {
		set(name, f.Value(name))
		f = f.Without(name)
	}
	set("q", f.String())
	set("after", after)
	return q
}

// exportURL is the list of the jobs that match f as a file: "csv" or "ndjson".
func exportURL(f job.Filter, format string) templ.SafeURL {
	return local("/export."+format, query(f, ""))
}

// local is an address on this host. Its path begins with one slash and is
// escaped by the caller.
func local(path string, q url.Values) templ.SafeURL {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return templ.SafeURL(path)
}
