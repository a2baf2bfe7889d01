package templates

import (
	"net/url"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/wire"
)

// Audit is the page /audit: who did what, and when.
type Audit struct {
	Frame
	Filter audit.Filter
	List   audit.List
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
	Entries []audit.Entry
}

// auditURL is the log as far as it matches f, from the entry after one on.
func auditURL(path string, f audit.Filter, after int64) templ.SafeURL {
	q := url.Values{}
	for name, value := range map[string]string{
		"actor": f.Actor, "action": f.Action, "subject": f.Subject, "from": wire.FormatTime(f.From), "to": wire.FormatTime(f.To),
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
	add := func(name, value string, clear func(*audit.Filter)) {
		if value != "" {
			f := v.Filter
			clear(&f)
			all = append(all, chip{name, visible(value), auditURL("/audit", f, 0)})
		}
	}
	add("by", v.Filter.Actor, func(f *audit.Filter) { f.Actor = "" })
	add("action", v.Filter.Action, func(f *audit.Filter) { f.Action = "" })
	add("of", v.Filter.Subject, func(f *audit.Filter) { f.Subject = "" })
	add("from", wire.FormatTime(v.Filter.From), func(f *audit.Filter) { f.From = time.Time{} })
	add("to", wire.FormatTime(v.Filter.To), func(f *audit.Filter) { f.To = time.Time{} })
	return all
}

// subjectWord is what an act was done to, as short as can be told apart.
func subjectWord(e audit.Entry) string {
	if _, err := job.ParseID(e.Subject); err == nil {
		return brief(e.Subject)
	}
	return visible(e.Subject)
}

// change says what was before and what came of it.
func change(e audit.Entry) string {
	before, after := visible(clip.Text(e.Before, 300)), visible(clip.Text(e.After, 300))
	switch {
	case before != "" && after != "" && before != after:
		return before + " → " + after
	case after != "":
		return after
	}
	return before
}
