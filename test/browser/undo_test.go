package browser_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"redrive/test/mill"
	"redrive/test/rig"
)

// A discard on a row offers its undoing where nothing moves, and undoing it puts
// the row back as it was, with its buttons.
func TestBrowser_UndoesADiscardInPlace(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	id := m.DeadLetters(2)[0]
	b := openBrowser(t)
	b.open(m.URL + "/jobs?state=dead_letter")
	row := `document.querySelector('tr[data-job="` + id + `"]')`
	top := row + `.getBoundingClientRect().top`
	before := eval[float64](b, top)
	for range 2 { // and once more: what was undone can be done again
		eval[chromedp.Void](b, row+`.querySelector('form[data-act="discard"] button').click()`)
		b.wait("the row is greyed", row+`.classList.contains("gone")`)
		b.wait("the undo is offered", `document.querySelectorAll("[data-toast]").length === 1`)
		b.run(chromedp.Click(chromedp.CSS("[data-toast] button")))
		b.wait("the row is back", `!`+row+`.classList.contains("gone") && `+row+`.querySelector('[data-cell="state"]').innerText.includes("dead letter")`)
		b.wait("its buttons are back", `!`+row+`.querySelector('form[data-act="replay"]').hidden && !`+row+`.querySelector('form[data-act="discard"]').hidden`)
		if said := strings.TrimSpace(b.text("[data-toast]")); said != "Restored corn.ground" {
			t.Errorf("the toast says %q", said)
		}
		if now := eval[float64](b, top); now != before {
			t.Errorf("the row moved from %v to %v", before, now)
		}
	}
	if d := rig.Get[rig.Detail](t, m.URL+"/api/v1/jobs/"+id); d.Job.State != "discarded" || d.Job.Run != 1 {
		t.Errorf("it is %+v", d.Job)
	}
	b.calm()
}
