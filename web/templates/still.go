package templates

import (
	"context"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/a-h/templ"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// still is a part that is the same on every page. Its component, which alone
// says what it looks like, draws it once; after that it is only copied. Rows
// are made of such parts, and a page has fifty rows.
type still string

// Render copies the part.
func (s still) Render(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, string(s))
	return err
}

// drawn draws a part that holds no data.
func drawn(part templ.Component) still {
	var b strings.Builder
	if err := part.Render(context.Background(), &b); err != nil {
		panic(err) // unreachable unless the component fails by itself: a builder takes everything
	}
	return still(b.String())
}

// drawnEach draws a part for each of the values that it may have.
func drawnEach[K comparable](values []K, part func(K) templ.Component) map[K]templ.Component {
	all := map[K]templ.Component{}
	for _, v := range values {
		all[v] = drawn(part(v))
	}
	return all
}

var (
	badges       = sync.OnceValue(func() map[job.Status]templ.Component { return drawnEach(job.Statuses(), badgeFor) })
	stateCells   = sync.OnceValue(func() map[job.Status]templ.Component { return drawnEach(job.Statuses(), stateCellOf) })
	reasonBadges = sync.OnceValue(func() map[retry.Reason]templ.Component { return drawnEach(retry.Reasons(), reasonBadge) })
)

func badgeFor(s job.Status) templ.Component { return badgeOf(lookOf(s)) }

// badge says where a job stands.
func badge(s job.Status) templ.Component {
	if known, ok := badges()[s]; ok {
		return known
	}
	return badgeFor(s)
}

// stateCell is the badge of a row.
func stateCell(s job.Status) templ.Component {
	if known, ok := stateCells()[s]; ok {
		return known
	}
	return stateCellOf(s)
}

// reason says why a job ended: an icon and a word, its stable code in the title.
func reason(r retry.Reason) templ.Component {
	if r == "" {
		return still("")
	}
	if known, ok := reasonBadges()[r]; ok {
		return known
	}
	return reasonBadge(r)
}

// pipSet holds the little pictures of runs, by the attempts that are drawn and
// by those of them that are used.
type pipSet [maxPips + 1][maxPips + 1]templ.Component

func drawPips(class string) *pipSet {
	var all pipSet
	for limit := range all {
		for used := range limit + 1 {
			all[limit][used] = drawn(pipsPicture(class, pipsOf(used, limit)))
		}
	}
	return &all
}

var (
	failedPips = sync.OnceValue(func() *pipSet { return drawPips("pips") })
	donePips   = sync.OnceValue(func() *pipSet { return drawPips("pips done") })
)

// of picks the picture of a run.
func (all *pipSet) of(used, limit int) templ.Component {
	used, limit = fit(max(used, 0), max(limit, 0))
	return all[limit][used]
}

// drawnRun is the picture of a run and its figures, always at the same place.
type drawnRun struct {
	picture     templ.Component
	used, limit int
}

// Render draws the picture, and says the same in figures.
func (r drawnRun) Render(ctx context.Context, w io.Writer) error {
	if err := r.picture.Render(ctx, w); err != nil {
		return err
	}
	return tallies().with(strconv.Itoa(r.used)+"/"+strconv.Itoa(r.limit)).Render(ctx, w)
}

// pips shows how many of the allowed attempts a run has used.
func pips(used, limit int) drawnRun { return drawnRun{failedPips().of(used, limit), used, limit} }

// jobPips is pips for a job as it is: the attempt that completed it is no failure.
func jobPips(j job.Job) drawnRun {
	if j.State == job.Completed {
		return drawnRun{donePips().of(j.Attempts, j.Policy.Limit()), j.Attempts, j.Policy.Limit()}
	}
	return pips(j.Attempts, j.Policy.Limit())
}

// The parts of every page, or of every list, that hold no data at all.
var (
	stillSprite   = sync.OnceValue(func() still { return drawn(sprite()) })
	stillKeys     = sync.OnceValue(func() still { return drawn(keysHelp()) })
	stillPatterns = sync.OnceValue(func() still { return drawn(patterns()) })
	stillLanguage = sync.OnceValue(func() still { return drawn(language()) })
)
