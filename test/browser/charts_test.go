package browser_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"redrive/test/mill"
)

// A bar under the pointer tells what its row of the table says, by the time on the
// axis, and whether it was drawn before or after a refresh.
func TestBrowser_BarsTellTheirNumbers(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(3)
	b := openBrowser(t)
	b.run(chromedp.Navigate(m.URL + "/jobs?queue=sieve"))
	b.wait("the page is live", isLive)
	const tell = `(() => {
		const bars = document.querySelector("[data-bars]"), { left, top, width } = bars.parentNode.getBoundingClientRect();
		const [piece, height] = bars.querySelector(".is-dead").getAttribute("d").match(/M(\d+) 0v([\d.]+)$/).slice(1).map(Number);
		const box = bars.viewBox.baseVal, clientX = left + width * (piece + 0.4) / box.width, clientY = top + 84 * (1 - height / 2 / box.height);
		document.elementFromPoint(clientX, clientY).dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX, clientY }));
		return bars.querySelector("title")?.textContent ?? "";
	})()`
	const at = `document.querySelector("figure tbody tr:last-child time").dateTime.slice(11, 16)`
	want := ": 0 succeeded, 0 requeued, 3 failed permanently, 0 replayed"
	if got, time := eval[string](b, tell), eval[string](b, at); got != time+want {
		t.Errorf("the bar tells %q, want %q", got, time+want)
	}
	m.DeadLetters(2)
	b.wait("the table has the new letters", `[...document.querySelectorAll("figure:first-of-type tbody td:nth-child(5)")].reduce((n, cell) => n + Number(cell.textContent), 0) === 5`)
	if got := eval[string](b, tell); strings.HasSuffix(got, want) {
		t.Errorf("after a refresh the bar still tells %q", got)
	}
	b.calm()
}
