package templates

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/access"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// What fills the holes is escaped as a component escapes it.
func TestCells_AreWhatTheirComponentsDraw(t *testing.T) {
	const bad, worse = `<script>"'&`, "\x00\" onload=\"x\u202e"
	now := time.Date(2026, 3, 12, 14, 2, 11, 123456000, time.UTC)
	then := now.Add(-30 * time.Hour)
	j := job.Job{Token: job.Token{ID: "id<" + bad, Run: 3}, Type: bad}
	for name, of := range map[string]struct{ got, want templ.Component }{
		"icon":       {icon(bad), iconOf(bad)},
		"small icon": {smallIcon(bad), smallIconOf(bad)},
		"at":         {at(then, now), atOf("2026-03-11T08:02:11.123456Z", "11 Mar 2026 08:02:11 UTC", "11 Mar 08:02")},
		"ago":        {ago(then, now), agoOf("2026-03-11T08:02:11.123456Z", "11 Mar 2026 08:02:11 UTC", "30 h ago")},
		"age":        {age(then, now), ageOf("2026-03-11T08:02:11.123456Z", "11 Mar 2026 08:02:11 UTC", "30 h")},
		"until":      {until(now, then), untilOf("2026-03-12T14:02:11.123456Z", "12 Mar 2026 14:02:11 UTC", "in 30 h")},
		"tally":      {drawnRun{still(""), 3, 5}, tallyOf("3/5")},
		"tick":       {tickCell(bad, 3, worse), tickCellOf(bad+":3", worse)},
		"job":        {jobCell(j), jobCellOf(jobURL(j.ID), visible(bad), short(j.ID))},
		"error":      {errorLine(job.ErrorInfo{Type: bad, Message: worse}), errorLineOf(visible(bad), visible(worse))},
		"facet":      {facet("dead", bad, 1204, 2408, "/a?b=\"&c", false), facetLink("/a?b=\"&c", "dead", bad, "1,204", "50%")},
		"in use":     {facet("dead", bad, 1, 1, "/", true), currentFacet("/", "dead", bad, "1", "100%")},
		"suggestion": {suggestion(worse), suggestionOf(worse)},
		"reason":     {reason("<new>"), reasonBadge("<new>")},
		"known":      {reason(retry.Expired), reasonBadge(retry.Expired)},
	} {
		if got, want := drawing(t, of.got), drawing(t, of.want); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
	if got := drawing(t, reason("")); got != "" {
		t.Errorf("no reason is drawn as %q", got)
	}
}

// A row's button is the button that a page would have, whatever the job is called
// and whoever looks.
func TestRowForm_IsTheFormOfItsAct(t *testing.T) {
	j := job.Job{Token: job.Token{ID: "019ce211-0ddf-720f-9121-000000200651", Run: 2}, Type: `a"><b`}
	for _, f := range []Frame{{}, {Role: access.Viewer}, {Problem: `<"full">`}} {
		for face := range rowForms() {
			if face.denied {
				continue
			}
			a := jobAct(f, j, face.kind, face.class, `/jobs?q="x"`)
			a.hidden = face.hidden
			if got, want := drawing(t, rowForm(face, j, `/jobs?q="x"`, a.denied)), drawing(t, actForm(a)); got != want {
				t.Errorf("%+v:\n got %s\nwant %s", face, got, want)
			}
		}
	}
}

func TestStencil_RefusesAnotherNumberOfTexts(t *testing.T) {
	for _, texts := range [][]string{{"a"}, {"a", "b", "c"}} {
		if err := tickCells().with(texts...).Render(t.Context(), new(strings.Builder)); err == nil {
			t.Errorf("%d texts fill two holes", len(texts))
		}
	}
}

// An address has its parameters as package url writes them.
func TestList_IsWrittenAsURLValuesAre(t *testing.T) {
	at := time.Date(2026, 3, 12, 14, 2, 11, 5000, time.FixedZone("", 3600))
	f := filter.Filter{
		Status: job.StatusDeadLetter, Queue: "a&b", Type: "email.*", Error: "50 %+", Reason: retry.Expired, Sort: filter.Oldest,
		From: at, To: at.Add(time.Hour), Text: `"ä" ?#`, Attempts: filter.Span{Min: 3}, Group: "12", Operation: 7,
	}
	values := url.Values{"after": {"x/y="}}
	for _, name := range []string{"state", "queue", "type", "error", "reason", "sort", "from", "to"} {
		values.Set(name, f.Value(name))
	}
	values.Set("q", `group:12 attempts:>=3 operation:7 "\"ä\" ?#"`)
	if got, want := string(list("/jobs", f, "x/y=")), "/jobs?"+values.Encode(); got != want {
		t.Errorf("the address is\n%s, want\n%s", got, want)
	}
	if got := list("/jobs", filter.Filter{}, ""); got != "/jobs" {
		t.Errorf("the address of everything is %s", got)
	}
}
