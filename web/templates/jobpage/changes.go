package jobpage

import (
	"strings"

	"redrive/internal/clip"
	"redrive/internal/history"
	"redrive/web/templates/format"
)

// change is a fact of a run that the run before had otherwise.
type change struct{ name, was, is string }

// changesOf lists what a person changed for a run.
func changesOf(d history.Detail, run int) []change {
	if run < 2 || !changedBefore(d, run) {
		return nil
	}
	was, is := d.RunAs(run-1), d.RunAs(run)
	var all []change
	add := func(name, was, is string) {
		if was != is {
			all = append(all, change{name, was, is})
		}
	}
	add("Type", format.Visible(was.Type), format.Visible(is.Type))
	add("Queue", format.Visible(was.Queue), format.Visible(is.Queue))
	add("Priority", format.Number(was.Priority), format.Number(is.Priority))
	before := map[string]string{}
	for _, f := range policyFields(was) {
		before[f.name] = f.words()
	}
	for _, f := range policyFields(is) {
		if had, ok := before[f.name]; !ok {
			add(f.name, "–", f.words())
		} else {
			add(f.name, had, f.words())
		}
	}
	return all
}

// words is what a field of a policy says, whoever said it.
func (s policyFact) words() string {
	if len(s.codes) > 0 {
		return format.Visible(strings.Join(s.codes, ", "))
	}
	return s.value
}

// changedBefore reports whether the replay that began a run changed something.
func changedBefore(d history.Detail, run int) bool {
	for _, r := range d.Replays {
		if r.Run == run-1 {
			return r.Earlier != nil
		}
	}
	return false
}

// payloadDiff is what a person changed of the payload for a run.
func payloadDiff(d history.Detail, run int) []diffLine {
	if run < 2 || !changedBefore(d, run) {
		return nil
	}
	was, _ := EditorText(d.RunAs(run - 1).Payload)
	is, _ := EditorText(d.RunAs(run).Payload)
	return diffOf(was, is)
}

// ownPayload is the payload of an earlier run, where the next one had another.
func ownPayload(d history.Detail, run int) []byte {
	for _, r := range d.Replays {
		if r.Run == run && r.Earlier != nil && r.Earlier.Body != nil {
			return r.Earlier.Body.Payload
		}
	}
	return nil
}

// payloadText is the beginning of a payload as it can be read.
func payloadText(payload []byte) string {
	text, why := EditorText(payload)
	if why != "" {
		return why
	}
	return format.VisibleLines(clip.Text(text, maxShownTrace))
}
