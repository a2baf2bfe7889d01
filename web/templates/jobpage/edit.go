package jobpage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"redrive/internal/access"
	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/retry"
	"redrive/internal/source"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// MaxEditor is the largest text that the payload's editor takes, in bytes.
const MaxEditor = 128 << 10

// Edit is the page /jobs/{id}/replay: what the next run shall have otherwise.
type Edit struct {
	templates.Frame
	Job      job.Job
	Origin   *source.Health    // the attached source of the job; nil: it has none, or none is attached
	Form     map[string]string // by field: what stands in it
	Errors   map[string]string // by field: what is wrong with it
	Fixed    string            // why the payload cannot be edited here, or empty
	Locked   int               // values of the payload that are hidden
	Token    string            // what stands for each
	Was      string            // the payload as the editor shows it
	Will     string            // and as it would be
	Paths    []string          // where they differ
	Type     string            // what an envelope turned out to be that can be read now, or empty
	RunAt    time.Time         // not before; zero: at once
	Policy   retry.Policy      // that the next run would have
	Queues   []string          // that can be chosen
	Uses     []string          // names of policies that can be chosen
	Checked  bool              // the user asked whether it is right, and it is
	Conflict string            // what happened instead, or empty
}

// Fields are the names of the form's fields, in their order.
func (Edit) Fields() []string {
	names := []string{"payload", "queue", "priority", "delay", "run_at", "mode", "use", "strategy"}
	for _, f := range templates.PolicyFields() {
		names = append(names, f.Name)
	}

	return append(names, "on_exhaustion")
}

// EditorText is a payload as text that can be edited and read back, or why
// there is none. JSON is laid out in lines, and what a reader could not see in
// it is written as an escape, which means the same.
func EditorText(payload []byte) (text, why string) {
	switch {
	case len(payload) > MaxEditor:
		size, limit := format.Sizes(len(payload), MaxEditor)
		return "", fmt.Sprintf("It has %s, and up to %s can be edited here. The API accepts all of it.", size, limit)
	case !utf8.Valid(payload):
		return "", "The payload is not text, so it cannot be edited here. A replay keeps every byte."
	case rawjson.Valid(payload):
		var b bytes.Buffer
		if json.Indent(&b, bytes.TrimSpace(payload), "", "  ") != nil || b.Len() > MaxEditor {
			return format.EscapeHidden(string(payload)), ""
		}

		return format.EscapeHidden(b.String()), ""
	case strings.ContainsFunc(string(payload), func(r rune) bool { return format.Hides(r) && r != '\n' && r != '\t' }):
		return "", "The payload contains invisible characters, so it cannot be edited here. A replay keeps every byte."
	}

	return string(payload), ""
}

// denied says why the form cannot be sent, or nothing: the role first, since it
// will not change while the user types.
func (v Edit) denied() string {
	switch {
	case v.Denied(access.Operate, "replay jobs") != "":
		return v.Denied(access.Operate, "replay jobs")
	case !v.Job.Replayable():
		return format.UpperFirst(whyNoReplay(v.Job))
	case v.Job.Source != "" && (v.Origin == nil || !v.Origin.Allows(source.Replay)):
		return format.UpperFirst(whyNotAllowed(v.Job, v.Origin, source.Replay))
	}

	return ""
}

// queues are the choices of a queue: all of them, and the one that the job has.
func (v Edit) queues() []string {
	return templates.QueueChoices(v.Queues, cmp.Or(v.Form["queue"], v.Job.Queue))
}

// editField is a field of the form.
type editField struct {
	name, label, hint, placeholder string
	wide                           bool
	id                             string // by which other pages lead to it
}

// starts are the fields that say when.
func starts() []editField {
	return []editField{
		{name: "delay", label: "Start in", hint: "30s, 5m or 2h", placeholder: "at once", id: "later"},
		{name: "run_at", label: "or at, in UTC", hint: "2026-01-31 15:04", placeholder: "at once", wide: true},
	}
}

// overrides are the single fields of the policy. An empty one keeps what the
// job has.
func (v Edit) overrides() []editField {
	has := templates.PolicyValues(v.Job.Policy)
	var all []editField
	for _, f := range templates.PolicyFields() {
		hint := f.Hint
		if f.Name == "jitter_low" {
			hint = "1 to 1: none"
		}

		all = append(all, editField{name: f.Name, label: f.Label, hint: hint, placeholder: cmp.Or(has[f.Name], "none"), wide: f.List})
	}

	return all
}

// overridden reports whether a single field of the policy is filled or wrong.
func (v Edit) overridden() bool {
	return slices.ContainsFunc(append(v.overrides(), editField{name: "strategy"}, editField{name: "on_exhaustion"}), func(f editField) bool {
		return v.Form[f.name] != "" || v.Errors[f.name] != ""
	})
}

// firstDelays are the first ten delays that a policy gives, those that its
// attempts do not reach among them, and how long a share of the longest is. They
// show what a change of the policy does before it is made.
func firstDelays(p retry.Policy) (rows []retry.Row, share func(time.Duration) string) {
	rows = p.Table(10)
	longest := time.Duration(1)
	for _, r := range rows {
		longest = max(longest, r.Delay.High)
	}

	return rows, func(d time.Duration) string { return format.Percent(100 * float64(d) / float64(longest)) }
}

// editorRows is how high the editor is: as high as its text, within bounds.
func editorRows(text string) string {
	return format.Number(min(max(strings.Count(text, "\n")+2, 8), 32))
}
