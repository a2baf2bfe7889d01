package browser_test

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// A dead letter that its archive refuses is refused again while the archive is
// broken, and accepted in place once it is fixed. No row moves.
func TestBrowser_ForwardAgainOnARow(t *testing.T) {
	t.Parallel()
	url := startDemo(t)
	b := openBrowser(t)
	b.run(chromedp.Navigate(url + "/dead-letters"))
	b.wait("the page is live", isLive)
	const press = `window.row.querySelector('form[data-act="forward"] button').click()`
	eval[chromedp.Void](b, `window.row = document.querySelector('tr:has(form[data-act="forward"])')`)
	if got := eval[string](b, `window.row.innerText`); got == "" || eval[bool](b, `window.row.querySelector('form[data-act="forward"]').hidden`) {
		t.Fatalf("the row offers no forward: %s", got)
	}
	const told = `document.querySelector(".alarm [data-note]").innerText.includes("answered 507 Insufficient Storage; the job is kept")`
	eval[chromedp.Void](b, press)
	b.wait("the new refusal is told", told)
	eval[chromedp.Void](b, `document.addEventListener("refreshed", () => window.drawn = true);
		document.dispatchEvent(new Event("visibilitychange"))`)
	b.wait("the page is drawn anew", `window.drawn`)
	if !eval[bool](b, told) {
		t.Error("the note about the refusal is gone once the page is drawn anew")
	}
	if eval[bool](b, `window.row.querySelector('form[data-act="forward"]').hidden || window.row.classList.contains("gone")`) {
		t.Error("after a refusal the button is gone")
	}

	b.fix("ledger")
	eval[chromedp.Void](b, press)
	b.wait("the letter is stored, its row stays", `window.row.classList.contains("gone") && window.row.innerText.includes("dead letter")`)
	b.wait("the row offers replay, and no longer forward",
		`window.row.querySelector('form[data-act="forward"]').hidden && !window.row.querySelector('form[data-act="replay"]').hidden`)
	b.quiet("409")
	b.calm()
}
