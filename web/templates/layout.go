package templates

import (
	"fmt"
	"strconv"

	"github.com/a-h/templ"

	"redrive/internal/job"
)

// entry is one line of the navigation.
type entry struct {
	url        templ.SafeURL
	icon, word string
	count      string     // how many, or empty
	status     job.Status // whose count it is, for the scripts
	current    bool
}

// entries is the navigation: failed work first, then the rest.
func entries(f Frame) []entry {
	return []entry{
		{url: OverviewURL(), icon: "overview", word: "Overview", current: f.Section == "overview"},
		{
			url: DeadLettersURL(job.Filter{}, ""), icon: "dead", word: "Dead letters", current: f.Section == "dead-letters",
			count: number(f.Snapshot.Depths[job.StatusDeadLetter]), status: job.StatusDeadLetter,
		},
		{url: JobsURL(job.Filter{}, ""), icon: "jobs", word: "Jobs", current: f.Section == "jobs"},
		{url: QueuesURL(), icon: "queues", word: "Queues", count: strconv.Itoa(f.QueueCount), current: f.Section == "queues"},
	}
}

// flipAct is a button that switches something between on and off.
type flipAct struct {
	is      bool // on now
	on, off face // what the button does while it is on, and while it is off
	class   string
	about   string
	denied  string
}

// face is one of the two things that a flipAct does.
type face struct {
	url        templ.SafeURL
	icon, word string
	fields     []hidden
}

func (s flipAct) now() face {
	if s.is {
		return s.on
	}
	return s.off
}

// target says, for the scripts, where the form goes and what it sends: its
// address, and the value of its switch if it has one.
func (f face) target() string {
	if len(f.fields) == 0 {
		return string(f.url)
	}
	return string(f.url) + "?" + f.fields[0].name + "=" + f.fields[0].value
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// faultFlip is the Break / Fix switch of one fault.
func faultFlip(f Frame, fault Fault) flipAct {
	url := faultURL(fault.Name)
	return flipAct{
		is: fault.Broken, about: visible(fault.Title), denied: f.Problem,
		on:  face{url, "check", "Fix", []hidden{{"broken", "false"}}},
		off: face{url, "panicked", "Break", []hidden{{"broken", "true"}}},
	}
}

func demoReset(f Frame) act {
	return act{kind: "reset", url: demoResetURL(), word: "Start over", icon: "replay", denied: f.Problem}
}

// demoSummary is the demo in one line.
func demoSummary(d Demo) string {
	broken := 0
	for _, fault := range d.Faults {
		if fault.Broken {
			broken++
		}
	}
	return fmt.Sprintf("Made-up jobs on a temporary database. %d of %d faults are switched on.", broken, len(d.Faults))
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
		{[]string{"r"}, "replay"},
		{[]string{"/"}, "search"},
		{[]string{"g", "o"}, "go to the overview"},
		{[]string{"g", "j"}, "go to jobs"},
		{[]string{"g", "d"}, "go to dead letters"},
		{[]string{"g", "q"}, "go to queues"},
		{[]string{"."}, "freeze"},
		{[]string{"?"}, "this help"},
		{[]string{"Esc"}, "close"},
	}
}
