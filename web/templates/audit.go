package templates

import (
	"net/url"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/job"
)

// Audit is the page /audit: who did what, and when.
type Audit struct {
	Frame
	Filter job.AuditFilter
	List   job.AuditList
	After  int64 // where this page begins; 0: with the newest
	Own    bool  // of the reveals only those of whoever looks are shown
	Slow   bool
	Errors map[string]string
}

// Gone is the page of a job that is not there any more, with what people did
// to it.
type Gone struct {
	Frame
	ID      string
	Entries []job.Entry
}

// auditURL is the log as far as it matches f, from the entry after one on.
func auditURL(path string, f job.AuditFilter, after int64) templ.SafeURL {
	q := url.Values{}
	for name, value := range map[string]string{
		"actor": f.Actor, "action": f.Action, "subject": f.Subject, "from": job.FormatTime(f.From), "to": job.FormatTime(f.To),
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if after > 0 {
		q.Set("after", strconv.FormatInt(after, 10))
	}
	return local(path, q)
}

func (v Audit) chips() []chip {
	var all []chip
	add := func(name, value string, clear func(*job.AuditFilter)) {
		if value != "" {
			f := v.Filter
			clear(&f)
			all = append(all, chip{name, visible(value), auditURL("/audit", f, 0)})
		}
	}
	add("by", v.Filter.Actor, func(f *job.AuditFilter) { f.Actor = "" })
	add("action", v.Filter.Action, func(f *job.AuditFilter) { f.Action = "" })
	add("of", v.Filter.Subject, func(f *job.AuditFilter) { f.Subject = "" })
	add("from", job.FormatTime(v.Filter.From), func(f *job.AuditFilter) { f.From = time.Time{} })
	add("to", job.FormatTime(v.Filter.To), func(f *job.AuditFilter) { f.To = time.Time{} })
	return all
}

// subjectWord is what an act was done to, as short as can be told apart.
func subjectWord(e job.Entry) string {
	if _, err := job.ParseID(e.Subject); err == nil {
		return brief(e.Subject)
	}
	return visible(e.Subject)
}

// change says what was before and what came of it.
func change(e job.Entry) string {
	before, after := visible(job.Clip(e.Before, 300)), visible(job.Clip(e.After, 300))
	switch {
	case before != "" && after != "" && before != after:
		return before + " → " + after
	case after != "":
		return after
	}
	return before
}
