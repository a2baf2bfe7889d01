package templates

import (
	"github.com/a-h/templ"

	"redrive/internal/access"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// Switch is a button that switches something between on and off.
type Switch struct {
	Is      bool         // on now
	On, Off SwitchAction // what the button does while it is on, and while it is off
	Class   string
	About   string
	Denied  string
}

// SwitchAction is one of the two things that a Switch does.
type SwitchAction struct {
	URL        templ.SafeURL
	Icon, Word string
	Fields     []field
}

// now is what the button does at the time of the page.
func (s Switch) now() SwitchAction {
	if s.Is {
		return s.On
	}
	return s.Off
}

func onOff(on bool) string {
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

// demoReset is the button that starts the demo over.
func demoReset(f Frame) Act {
	return Act{
		Kind: "reset", URL: link.DemoReset(), Word: "Start over", Icon: "replay",
		Denied: f.Denied(access.Operate, "start the demo over"), fields: Back(link.Overview()),
	}
}
