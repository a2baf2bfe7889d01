package browser_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"redrive/test/mill"
)

// A group that is resolved stays in its row, greyed, and Undo opens it again: by the
// keys on one row, and for all that are ticked.
func TestBrowser_ResolvesGroupsInPlace(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(2)
	b := openBrowser(t)
	b.open(m.URL + "/failures")
	const row = `document.querySelector("tr[data-group]")`
	const top = row + `.getBoundingClientRect().top`
	before := eval[float64](b, top)
	for name, resolve := range map[string]func(){
		"by its key": func() { b.press("je") },
		"by its tick": func() {
			b.press("jx")
			b.wait("the row is ticked", row+`.querySelector("[data-pick]").checked`)
			eval[chromedp.Void](b, `document.querySelector('[data-bulk] button[value="resolve"]').click()`)
		},
	} {
		resolve()
		b.wait(name+" the row is greyed", row+`.classList.contains("gone") && `+row+`.innerText.includes("Resolved")`)
		b.wait(name+" nothing is ticked", `!`+row+`.querySelector("[data-pick]").checked`)
		b.wait(name+" the undo is offered", `document.querySelectorAll("[data-toast]").length === 1`)
		if said := b.text("[data-toast] p") + ". " + b.text("main .panel > footer"); strings.Count(said, "roup resolved.") != 1 || !strings.Contains(said, "before grouping") {
			t.Errorf("%s the toast and the footer say %q", name, said)
		}
		b.run(chromedp.Click(chromedp.CSS("[data-toast] button")))
		b.wait(name+" the row is back", `!`+row+`.classList.contains("gone") && !`+row+`.querySelector('form[data-act="resolve"]').hidden`)
		b.wait(name+" the undo is gone", `!document.querySelector("[data-toast]")`)
		if now := eval[float64](b, top); now != before {
			t.Errorf("%s: the row moved from %v to %v", name, before, now)
		}
	}
	b.press("jx")
	eval[chromedp.Void](b, `document.querySelector('[data-bulk] button[value="discard"]').click()`)
	b.arrive("the discard of what is ticked is previewed", `location.pathname.startsWith("/operations/")`)
	b.calm()
}

// The forms of a group's page are folded; the buttons at its top unfold them.
func TestBrowser_UnfoldsTheFormsOfAGroup(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(1)
	b := openBrowser(t)
	b.open(m.URL + "/failures")
	b.run(chromedp.Click(chromedp.CSS("tr[data-group] th a")))
	b.arrive("the forms are folded", `document.querySelectorAll("details.fold:not([open])").length === 2`)
	for _, form := range []string{"ignore", "note"} {
		eval[chromedp.Void](b, `document.querySelector('main a[href="#`+form+`"]').click()`)
		b.wait("the form is unfolded: "+form, `document.getElementById("`+form+`").closest("details").open`)
	}
	b.calm()
}
