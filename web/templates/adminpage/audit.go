package adminpage

import (
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retention"
	"redrive/internal/wire"
	"redrive/web/templates"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// Audit is the page /audit: who did what, and when.
type Audit struct {
	templates.Frame
	Filter audit.Filter
	List   audit.List
	After  int64 // where this page begins; 0: with the newest
	Own    bool  // of the reveals only those of the reader of the page are shown
	Slow   bool
	Errors map[string]string
}

// Gone is the page of a job that is not there any more, with what people did
// to it.
type Gone struct {
	templates.Frame
	ID      string
	Entries []audit.Entry
	Removed *retention.Removed // by retention; nil: not known
}

// chips are the parts of the filter in use, each with the log without it.
func (v Audit) chips() []templates.Chip {
	var all []templates.Chip
	add := func(name, value string, clear func(*audit.Filter)) {
		if value != "" {
			f := v.Filter
			clear(&f)
			all = append(all, templates.Chip{Name: name, Value: format.Visible(value), Without: link.Audit(f, 0)})
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
		return format.BriefID(e.Subject)
	}
	return format.Visible(e.Subject)
}

// change says what was before and what came of it.
func change(e audit.Entry) string {
	before, after := format.Visible(clip.Text(e.Before, 300)), format.Visible(clip.Text(e.After, 300))
	switch {
	case before != "" && after != "" && before != after:
		return before + " → " + after
	case after != "":
		return after
	}

	return before
}

// actionKind is the actions on one kind of thing, each in words.
type actionKind struct {
	name    string
	any     string // selects them all; empty: they have no prefix in common
	actions [][2]string
}

// actionKinds are all actions, in the order of the list to choose from.
func actionKinds() []actionKind {
	return []actionKind{
		{"Jobs", "job.*", [][2]string{
			{"job.replay", "replayed a job"}, {"job.discard", "discarded a job"}, {"job.restore", "restored a job"},
			{"job.cancel", "cancelled a job"}, {"job.forward", "forwarded a dead letter"}, {audit.Reveal, "revealed a job"},
			{"job.reschedule", "rescheduled a job"}, {"job.purge", "purged a job"}, {"retention.sweep", "removed old jobs"},
		}},
		{"Operations", "operation.*", [][2]string{
			{"operation.new", "requested an operation"}, {"operation.preview", "previewed an operation"},
			{"operation.start", "started an operation"}, {"operation.rate", "changed an operation's rate"},
			{"operation.pause", "paused an operation"}, {"operation.resume", "resumed an operation"},
			{"operation.abort", "aborted an operation"}, {"operation.finish", "finished an operation"},
		}},
		{"Error groups", "group.*", [][2]string{
			{"group.resolve", "resolved an error group"}, {"group.ignore", "ignored an error group"},
			{"group.reopen", "reopened an error group"}, {"group.note", "edited the note of an error group"},
		}},
		{"Queues", "queue.*", [][2]string{{"queue.pause", "paused a queue"}, {"queue.resume", "resumed a queue"},
			{"queue.purge", "removed a queue's finished jobs"}, {"queue.remove", "removed a queue"}}},
		{"Workers", "worker.*", [][2]string{{"worker.quiet", "quieted the worker"}, {"worker.resume", "woke the worker"}}},
		{"Lists", "", [][2]string{{audit.Export, "exported a list"}, {audit.ExportBegin, "started exporting a long list"}}},
		{"Logins", "", [][2]string{
			{"login", "logged in"}, {"login.failed", "failed to log in"}, {"logout", "logged out"}, {"session.end", "ended a session"},
		}},
		{"Users", "user.*", [][2]string{
			{"user.add", "added a user"}, {"user.role", "changed a user's role"}, {"user.password", "changed a password"},
			{"user.remove", "removed a user"},
		}},
		{"Tokens", "token.*", [][2]string{{"token.create", "created a token"}, {"token.revoke", "revoked a token"}}},
		{"Configuration", "config.*", [][2]string{{"config.reload", "reloaded the configuration"}}},
	}
}

// byWhom says in full who did something, and from where if that may be shown.
func byWhom(a audit.Actor) string {
	if a.Address == "" {
		return format.Visible(a.Name)
	}
	return format.Visible(a.Name) + " from " + format.Visible(a.Address)
}

// actionWords says what an action is.
func actionWords(action string) string {
	for _, kind := range actionKinds() {
		for _, d := range kind.actions {
			if d[0] == action {
				return d[1]
			}
		}
	}

	return format.Visible(strings.ReplaceAll(action, ".", " "))
}

// subjectURL leads to what an act was done to, where there is a page of it.
func subjectURL(e audit.Entry) templ.SafeURL {
	switch kind, _, _ := strings.Cut(e.Action, "."); kind {
	case "job":
		if _, err := job.ParseID(e.Subject); err == nil {
			return link.Job(e.Subject)
		}
	case "queue":
		return link.Queue(e.Subject)
	case "group":
		return link.Failure(e.Subject)
	case "operation":
		// The subject is text that operation.Subject has made of a number.
		_, number, _ := strings.Cut(e.Subject, " ")
		if id, err := strconv.ParseInt(number, 10, 64); err == nil && operation.Subject(id) == e.Subject {
			return link.Operation(id)
		}
	}

	return ""
}

// whyRemoved says by which rule retention removed a job.
func whyRemoved(r retention.Removed) string {
	kept := format.About(r.Kept)
	switch r.Kind {
	case retention.Completed:
		return "The job had completed; completed jobs like this one are kept for " + kept + "."
	case retention.Cancelled:
		return "The job had been cancelled; cancelled jobs like this one are kept for " + kept + "."
	case retention.Discarded:
		return "The job's policy had discarded it; such jobs are kept for " + kept + "."
	case retention.DeadLetters:
		return "The job was a dead letter; dead letters like this one are kept for " + kept + "."
	case retention.OverCount:
		return "The job was a dead letter, and there were more dead letters than the configured maximum."
	}

	return "The job was in the trash, where jobs are kept for " + kept + "."
}
