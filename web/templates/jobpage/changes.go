package jobpage

import (
	"cmp"
	"slices"
	"strings"

	"redrive/internal/clip"
	"redrive/internal/history"
	"redrive/web/templates/format"
)

// change is a fact of a run that the run before had otherwise.
type change struct{ name, was, is string }

// changesOf lists what a person changed for a run, the payload aside. It compares
// what is shown and not what is stored: a change that no reader can see does not count.
func changesOf(d history.Detail, run int) []change {
	if r := replayOf(d.Replays, run-1); r == nil || r.Earlier == nil {
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
		add(f.name, cmp.Or(before[f.name], "–"), f.words())
	}

	return all
}

// words is what a field of a policy says, wherever it comes from.
func (s policyFact) words() string {
	if len(s.codes) > 0 {
		return format.Visible(strings.Join(s.codes, ", "))
	}
	return s.value
}

// payloadDiff is what a person changed of the payload for a run. Both are laid out
// as the editor lays them out, so that only what was typed differs.
func payloadDiff(d history.Detail, run int) []diffLine {
	if r := replayOf(d.Replays, run-1); r == nil || r.Earlier == nil {
		return nil
	}

	was, _ := EditorText(d.RunAs(run - 1).Payload)
	is, _ := EditorText(d.RunAs(run).Payload)

	return diffOf(was, is)
}

// payloadText is the beginning of a payload as it can be read.
func payloadText(payload []byte) string {
	text, why := EditorText(payload)
	if why != "" {
		return why
	}

	return format.VisibleLines(clip.Text(text, maxShownTrace))
}

// earlierPayload is the payload of an earlier run, where the next one had
// another.
func earlierPayload(d history.Detail, run int) []byte {
	if r := replayOf(d.Replays, run); r != nil && r.Earlier != nil && r.Earlier.Body != nil {
		return r.Earlier.Body.Payload
	}
	return nil
}

// diffLine is a line of the difference between two texts.
type diffLine struct {
	kind                  string // "", "add", "del", or "skip" for lines that are left out
	n                     string
	before, marked, after string
}

const (
	maxCompared  = 4 << 20 // pairs of lines; beyond, what differs is shown as a whole
	maxDiffLines = 600
	diffContext  = 3
)

// diffOf compares two texts line by line.
func diffOf(was, will string) []diffLine {
	if was == will {
		return nil
	}

	all := shorten(compare(strings.Split(was, "\n"), strings.Split(will, "\n")))
	if more := len(all) - maxDiffLines; more > 0 {
		all = append(all[:maxDiffLines], diffLine{kind: "skip", before: format.Counted(more, "more line", "more lines")})
	}

	return all
}

// compare keeps what both begin and end with, and looks for the longest common
// part of the rest.
func compare(a, b []string) []diffLine {
	// Most payloads change in a few lines, so the comparison of the rest is small.
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}

	endA, endB := len(a), len(b)
	for endA > from && endB > from && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
	}

	var all []diffLine
	for i, line := range a[:from] {
		all = append(all, diffLine{n: format.Number(i + 1), before: line})
	}

	all = append(all, changedLines(a[from:endA], b[from:endB], from)...)
	for i, line := range b[endB:] {
		all = append(all, diffLine{n: format.Number(endB + i + 1), before: line})
	}

	return all
}

// changedLines walks along the longest common part of a and b, which begin
// after so many equal lines.
func changedLines(a, b []string, after int) []diffLine {
	common := commonLengths(a, b)
	var all, gone, come []diffLine

	// What goes is shown before what comes, up to the next line that stays.
	flush := func() {
		mark(gone, come)
		all = append(append(all, gone...), come...)
		gone, come = nil, nil
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j] && common != nil:
			flush()

			all = append(all, diffLine{n: format.Number(after + j + 1), before: b[j]})
			i, j = i+1, j+1
		// Without common lengths, all of a goes and then all of b comes. With them, a line of a
		// goes first where that leaves at least as many lines in common.
		case j == len(b) || i < len(a) && (common == nil || common[i+1][j] >= common[i][j+1]):
			gone = append(gone, diffLine{kind: "del", n: format.Number(after + i + 1), before: a[i]})
			i++
		default:
			come = append(come, diffLine{kind: "add", n: format.Number(after + j + 1), before: b[j]})
			j++
		}
	}

	flush()

	return all
}

// commonLengths tells, for all i and j, how many lines a[i:] and b[j:] have in
// common; nil when that is too much work.
func commonLengths(a, b []string) [][]int32 {
	if len(a)*len(b) > maxCompared {
		return nil
	}

	// One more row and column than lines: what is behind the end has nothing in common.
	n := make([][]int32, len(a)+1)
	for i := range n {
		n[i] = make([]int32, len(b)+1)
	}

	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				n[i][j] = n[i+1][j+1] + 1
			} else {
				n[i][j] = max(n[i+1][j], n[i][j+1])
			}
		}
	}

	return n
}

// mark shows where a line that goes differs from the one that comes for it. Lines
// that have neither their beginning nor their end in common are not compared.
func mark(gone, come []diffLine) {
	for i := range min(len(gone), len(come)) {
		a, b := []rune(gone[i].before), []rune(come[i].before)

		// The lines are "from" characters alike at their beginning, and "end" at their end.
		from := 0
		for from < len(a) && from < len(b) && a[from] == b[from] {
			from++
		}

		end := 0
		for end < len(a)-from && end < len(b)-from && a[len(a)-1-end] == b[len(b)-1-end] {
			end++
		}

		if from == 0 && end == 0 {
			continue
		}

		for line, text := range map[*diffLine][]rune{&gone[i]: a, &come[i]: b} {
			line.before, line.marked, line.after = string(text[:from]), string(text[from:len(text)-end]), string(text[len(text)-end:])
		}
	}
}

// shorten leaves out lines that are far from every change, and says how many.
func shorten(all []diffLine) []diffLine {
	// A line is near if it is at most diffContext lines from one that changed.
	near := make([]bool, len(all))
	for i, l := range all {
		if l.kind != "" {
			for k := max(0, i-diffContext); k <= min(len(all)-1, i+diffContext); k++ {
				near[k] = true
			}
		}
	}

	var short []diffLine
	for i := 0; i < len(all); i++ {
		if near[i] {
			short = append(short, all[i])
			continue
		}

		// Up to the next line that is near, or to the end of the text.
		end := i + 1 + max(0, slices.Index(append(near[i+1:len(near):len(near)], true), true))
		short = append(short, diffLine{kind: "skip", before: format.Counted(end-i, "line is the same", "lines are the same")})
		i = end - 1
	}

	return short
}
