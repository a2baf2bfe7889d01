package templates

import (
	"context"
	"io"
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

var badges = sync.OnceValue(func() map[job.Status]templ.Component {
	all := map[job.Status]templ.Component{}
	for _, s := range job.Statuses() {
		all[s] = drawn(badgeOf(lookOf(s)))
	}
	return all
})

// badge says where a job stands.
func badge(s job.Status) templ.Component {
	if known, ok := badges()[s]; ok {
		return known
	}
	return badgeOf(lookOf(s))
}

var reasonBadges = sync.OnceValue(func() map[retry.Reason]templ.Component {
	all := map[retry.Reason]templ.Component{"": still("")}
	for _, r := range retry.Reasons() {
		all[r] = drawn(reasonBadge(r))
	}
	return all
})

// reason says why a job ended: an icon and a word, its stable code in the title.
func reason(r retry.Reason) templ.Component {
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

// The parts of every page, or of every list, that hold no data at all.
var (
	stillSprite   = sync.OnceValue(func() still { return drawn(sprite()) })
	stillKeys     = sync.OnceValue(func() still { return drawn(keysHelp()) })
	stillPatterns = sync.OnceValue(func() still { return drawn(patterns()) })
	stillLanguage = sync.OnceValue(func() still { return drawn(language()) })
)
