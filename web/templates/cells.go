package templates

import (
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/clip"
	"redrive/internal/job"
)

// The parts that a page has a hundred times, each cut out of its component.

var (
	icons       = sync.OnceValue(func() stencil { return cut(iconOf(hole)) })
	smallIcons  = sync.OnceValue(func() stencil { return cut(smallIconOf(hole)) })
	clocks      = sync.OnceValue(func() stencil { return cut(atOf(hole, hole, hole)) })
	relatives   = sync.OnceValue(func() stencil { return cut(agoOf(hole, hole, hole)) })
	ages        = sync.OnceValue(func() stencil { return cut(ageOf(hole, hole, hole)) })
	countdowns  = sync.OnceValue(func() stencil { return cut(untilOf(hole, hole, hole)) })
	exactlies   = sync.OnceValue(func() stencil { return cut(exactlyOf(hole, hole, hole)) })
	rungs       = sync.OnceValue(func() stencil { return cut(rungOf(hole)) })
	deciders    = sync.OnceValue(func() stencil { return cut(deciderOf(hole, hole)) })
	tallies     = sync.OnceValue(func() stencil { return cut(tallyOf(hole)) })
	tickCells   = sync.OnceValue(func() stencil { return cut(tickCellOf(hole, hole)) })
	jobCells    = sync.OnceValue(func() stencil { return cut(jobCellOf(hole, hole, hole)) })
	errorCells  = sync.OnceValue(func() stencil { return cut(errorCellOf(hole, hole)) })
	timeCells   = sync.OnceValue(func() stencil { return cut(timeCellOf(atOf(hole, hole, hole))) })
	untilCells  = sync.OnceValue(func() stencil { return cut(timeCellOf(untilOf(hole, hole, hole))) })
	noTimeCells = sync.OnceValue(func() stencil { return cut(timeCellOf(still(""))) })
	dims        = sync.OnceValue(func() stencil { return cut(dim(hole)) })
	errorLines  = sync.OnceValue(func() stencil { return cut(errorLineOf(hole, hole)) })
	facets      = sync.OnceValue(func() stencil { return cut(facetLink(hole, hole, hole, hole, hole)) })
	facetsInUse = sync.OnceValue(func() stencil { return cut(currentFacet(hole, hole, hole, hole, hole)) })
	suggested   = sync.OnceValue(func() stencil { return cut(suggestionOf(hole)) })
)

// icon draws a symbol of the sprite. name is never data.
func icon(name string) filled { return icons().with(name) }

// smallIcon is the icon inside badges, rows and chips.
func smallIcon(name string) filled { return smallIcons().with(name) }

// at is a time of day; its title says the whole.
func at(t, now time.Time) filled { return clocks().with(machine(t), stamp(t), clock(t, now)) }

// exactly is a time of day to the tenth of a second.
func exactly(t, now time.Time) filled {
	return exactlies().with(machine(t), stamp(t), tenths(t, now))
}

// rungItem is one of those who may decide about an attempt.
func rungItem(step rung) filled {
	if step.decided {
		return deciders().with(step.text, step.code)
	}
	return rungs().with(step.text)
}

// ago is a time as seen from now, kept current by the scripts.
func ago(t, now time.Time) filled { return relatives().with(machine(t), stamp(t), relative(t, now)) }

// age is how long ago something began.
func age(t, now time.Time) filled { return ages().with(machine(t), stamp(t), about(now.Sub(t))) }

// until counts down to a time to come.
func until(t, now time.Time) filled {
	return countdowns().with(machine(t), stamp(t), countdown(t, now))
}

// tickCell is the box of a row, in the run that the row shows.
func tickCell(id string, run int, about string) filled {
	return tickCells().with(item(id, run), about)
}

// jobCell names the job of a row and leads to it.
func jobCell(j job.Job) filled {
	return jobCells().with(string(jobURL(j.ID)), visible(j.Type), short(j.ID))
}

// whyOf says why a job is where it is: its reason, or what it waits for.
func whyOf(j job.Job) templ.Component {
	if j.Reason != "" {
		return reason(j.Reason)
	}
	return dims().with(whyText(j))
}

// timeCell holds the time of a row that matters next.
func timeCell(j job.Job, now time.Time) filled {
	switch {
	case waits(j):
		return untilCells().with(machine(j.RunAt), stamp(j.RunAt), countdown(j.RunAt, now))
	case !j.ChangedAt.IsZero():
		return timeCells().with(machine(j.ChangedAt), stamp(j.ChangedAt), clock(j.ChangedAt, now))
	}
	return noTimeCells().with()
}

// errorCell is an error in a row.
func errorCell(e job.ErrorInfo) filled {
	return errorCells().with(visible(e.Type), visible(clip.Text(e.Message, 300)))
}

// errorLine is an error as far as it fits on a line.
func errorLine(e job.ErrorInfo) filled {
	return errorLines().with(visible(e.Type), visible(clip.Text(e.Message, 300)))
}

// facet is a filter and its share at once.
func facet(symbol, word string, count, largest int64, to templ.SafeURL, current bool) filled {
	link := facets()
	if current {
		link = facetsInUse()
	}
	return link.with(string(to), symbol, word, number(count), share(count, largest))
}

// suggestion is what the box of the filter offers.
func suggestion(words string) filled { return suggested().with(words) }

// rowFace is how the button of a row looks; all else about it are texts.
type rowFace struct {
	kind, class    string
	denied, hidden bool
}

// rowForms are the buttons that stand in the rows of lists.
var rowForms = sync.OnceValue(func() map[rowFace]stencil {
	all := map[rowFace]stencil{}
	for _, kind := range []string{"replay", "discard", "restore", "forward"} {
		for _, class := range []string{"row", "row square"} {
			for _, hidden := range []bool{false, true} {
				a := act{kind: kind, url: actionOn(hole, kind), class: class, about: hole, hidden: hidden, fields: []field{{"back", hole}, {"run", hole}}}
				a.word, a.icon = faceOf(kind)
				all[rowFace{kind, class, false, hidden}] = cut(actForm(a))
				a.denied = hole
				all[rowFace{kind, class, true, hidden}] = cut(actForm(a))
			}
		}
	}
	return all
})

// rowForm is a button in the row of a job. denied says why it cannot be used now,
// or nothing.
func rowForm(face rowFace, j job.Job, back templ.SafeURL, denied string) filled {
	face.denied = denied != ""
	form := rowForms()[face]
	id, run, about := url.PathEscape(j.ID), strconv.Itoa(j.Run), aboutJob(j)
	if face.denied {
		return form.with(id, string(back), run, about, denied)
	}
	return form.with(id, string(back), run, about)
}
