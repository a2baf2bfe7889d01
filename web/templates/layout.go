package templates

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// entry is one line of the navigation.
type entry struct {
	url        templ.SafeURL
	icon, word string
	count      string     // how many, or empty
	status     job.Status // whose count it is, for the scripts,
	counter    string     // or the counter that it is
	section    string     // as Frame.Section names it
	current    bool
}

// entries is the navigation: failed work first, then the rest.
func entries(f Frame) []entry {
	all := []entry{
		{section: "overview", url: link.Overview(), icon: "overview", word: "Overview"},
		{section: "failures", url: link.Failures(failures.Filter{}, ""), icon: "failures", word: "Failures", count: format.Number(f.Snapshot.OpenGroups), counter: "open_groups"},
		{
			section: "dead-letters", url: link.DeadLetters(filter.Filter{}, ""), icon: "dead", word: "Dead letters",
			count: format.Number(f.Snapshot.Depths[job.StatusDeadLetter]), status: job.StatusDeadLetter,
		},
		{section: "operations", url: link.Operations(), icon: "operations", word: "Operations", count: underWay(f.Snapshot.Operations)},
		{
			section: "trash", url: link.Trash(filter.Filter{}, ""), icon: "discarded", word: "Trash",
			count: format.Number(f.Snapshot.Depths[job.StatusTrashed]), status: job.StatusTrashed,
		},
		{section: "jobs", url: link.Jobs(filter.Filter{}, ""), icon: "jobs", word: "Jobs"},
		{section: "queues", url: link.Queues(), icon: "queues", word: "Queues", count: strconv.Itoa(f.QueueCount)},
		{section: "workers", url: link.Workers(), icon: "workers", word: "Workers"},
		{section: "policies", url: link.Policies(""), icon: "policies", word: "Policies"},
		{section: "audit", url: link.Audit(audit.Filter{}, 0), icon: "manual", word: "Audit"},
	}
	if f.May(access.Manage) {
		all = append(all, entry{section: "access", url: link.Access(), icon: "lock", word: "Access"})
	}
	for i := range all {
		all[i].current = all[i].section == f.Section
	}
	return all
}

// system is where the navigation leaves failed work behind.
func system(all []entry) int {
	return slices.IndexFunc(all, func(e entry) bool { return e.section == "jobs" })
}

// underWay is how many operations are, when any is.
func underWay(n int64) string {
	if n == 0 {
		return ""
	}
	return format.Number(n)
}

// dot is a state of the live connection.
type dot struct{ name, class, icon, word string }

func dots() []dot {
	return []dot{
		{"connecting", "is-pending", "dot", "Connecting"},
		{"live", "", "dot", "Live"},
		{"frozen", "is-warn", "pause", "Frozen"},
		{"polling", "is-active", "replay", "Polling"},
		{"offline", "is-dead", "failed", "Offline"},
	}
}

// Switch is a button that switches something between on and off.
type Switch struct {
	Is      bool         // on now
	On, Off SwitchAction // what the button does while it is on, and while it is off
	Class   string
	About   string
	Denied  string
}

// SwitchAction is one of the two things that a flipAct does.
type SwitchAction struct {
	URL        templ.SafeURL
	Icon, Word string
	Fields     []field
}

func (s Switch) now() SwitchAction {
	if s.Is {
		return s.On
	}
	return s.Off
}

// target says, for the scripts, where the form goes and what it sends.
func (f SwitchAction) target() string {
	q := url.Values{}
	for _, field := range f.Fields {
		q.Set(field.name, field.value)
	}
	return string(f.URL) + "?" + q.Encode()
}

func OnOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// faultSwitchOf is the Break / Fix switch of one fault.
func faultSwitchOf(f Frame, fault Fault) Switch {
	to := link.Fault(fault.Name)
	return Switch{
		Is: fault.Broken, About: format.Visible(fault.Title), Denied: f.Denied(access.Operate, "break or fix the demo"),
		On:  SwitchAction{to, "check", "Fix", append(Back(link.Overview()), field{"broken", "false"})},
		Off: SwitchAction{to, "panicked", "Break", append(Back(link.Overview()), field{"broken", "true"})},
	}
}

func demoReset(f Frame) Act {
	return Act{Kind: "reset", URL: link.DemoReset(), Word: "Start over", Icon: "replay", Denied: f.Denied(access.Operate, "start the demo over"), fields: Back(link.Overview())}
}

// shortcut is a key and what it does.
type shortcut struct {
	keys  []string
	about string
}

func shortcuts() []shortcut {
	return []shortcut{
		{[]string{"j", "k"}, "down, up"},
		{[]string{"↵"}, "open"},
		{[]string{"x"}, "tick"},
		{[]string{"⇧", "x"}, "tick up to here"},
		{[]string{"r"}, "replay"},
		{[]string{"e"}, "edit and replay"},
		{[]string{"d"}, "discard"},
		{[]string{"/"}, "search"},
		{[]string{"g", "o"}, "go to the overview"},
		{[]string{"g", "f"}, "go to failures"},
		{[]string{"g", "j"}, "go to jobs"},
		{[]string{"g", "d"}, "go to dead letters"},
		{[]string{"g", "q"}, "go to queues"},
		{[]string{"g", "w"}, "go to workers"},
		{[]string{"g", "p"}, "go to policies"},
		{[]string{"."}, "freeze"},
		{[]string{"?"}, "this help"},
		{[]string{"Esc"}, "close"},
	}
}

// pauseSentence says in the banner what is not done, since when and through whom.
func pauseSentence(q WorkerPause, now time.Time) Sentence {
	s := Sentence{Now: now}
	s.Says("%v made it quiet "+s.When(q.Since)+" %v: what runs goes on, and nothing else is started until somebody resumes it or the program restarts.", format.Someone(format.Visible(q.By)), q.Since)
	return s
}
