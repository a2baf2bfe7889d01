package browser_test

import (
	"strings"
	"testing"

	"redrive/test/mill"
)

// The preview of a replay lists its causes; the canary has a job of each, the page says how
// each fared, and a press goes on with the causes that passed.
func TestOperation_CanaryTellsByCause(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(120) // the oldest ones are all of one cause
	m.DeadLettersOf(3, "corn.spoiled")
	m.Fixed.Store(true)

	path := m.Change("", `{"kind":"replay","filter":"state:dead_letter"}`)
	m.Leaves(path, "collecting")
	b := openBrowser(t)
	b.open(m.URL + path)
	preview := b.text(`[aria-label="Eligible jobs by cause"]`)
	for _, want := range []string{"mill.Jammed", "120", "corn.Spoiled", "3"} {
		if !strings.Contains(preview, want) {
			t.Errorf("the causes of the preview have no %q:\n%s", want, preview)
		}
	}

	b.pressOn(`form[action$="/start"] button`)
	b.arrive("it is started", `document.querySelector('form[action$="/abort"]') !== null && !document.querySelector('form[action$="/start"]')`)
	b.wait("the canary fails", `document.querySelector("main").innerText.includes("Canary failed: 4 of 5 succeeded.")`)
	verdicts := b.text(`[aria-label="The canary by cause"]`)
	for _, want := range []string{"corn.Spoiled", "failed 1 of 1", "mill.Jammed", "succeeded 4 of 4"} {
		if !strings.Contains(verdicts, want) {
			t.Errorf("the canary by cause has no %q:\n%s", want, verdicts)
		}
	}

	b.pressOn(`form[action$="/resume-passed"] button`)
	b.arrive("it is resumed", `!document.querySelector('form[action$="/resume-passed"]')`)
	b.wait("the rest of what passed succeeds", `document.querySelector('[data-n="succeeded"]').textContent === "120"`)
	b.wait("it has ended", `document.querySelector(".title .badge").textContent.includes("finished")`)
	if got := b.text("main"); !strings.Contains(got, "skipped 2") || !strings.Contains(got, "left out with their cause") {
		t.Errorf("the page says:\n%s", got)
	}
	b.calm()
}

// When the guard pauses an operation, the page names the error that came back, leads to its
// group, and does not offer to go on as the first thing to do.
func TestOperation_GuardNamesTheError(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLettersOf(60, "corn.spoiled")
	path := m.Change("", `{"kind":"replay","filter":"state:dead_letter","rate":20,"canary":0,"start":true}`)
	b := openBrowser(t)
	b.open(m.URL + path)
	b.wait("the guard pauses it", `/Paused: corn\.Spoiled came back in \d+ of the last \d+ replays\. Fix it first\./.test(document.querySelector("main").innerText)`)
	if eval[bool](b, `document.querySelector('form[action$="/resume"] button').classList.contains("primary")`) {
		t.Error("Resume is the primary button")
	}

	b.pressOn(`.banner a[href^="/failures/"]`)
	b.arrive("the group opens", `document.querySelector("h1").innerText.includes("corn.Spoiled")`)
	b.calm()
}
