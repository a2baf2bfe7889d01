package browser_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// What a switch of the demo has done stands beside it, in place of the text of the
// fault, and goes when the fault is back.
func TestBrowser_DemoAnswersBesideTheFault(t *testing.T) {
	t.Parallel()
	url := startDemo(t)
	b := openBrowser(t)
	const fault = `.faults li:has(form[action="/demo/faults/imports"])`
	b.run(chromedp.Navigate(url))
	b.wait("the page is live", isLive)
	b.run(chromedp.Click(chromedp.CSS(fault + " button")))
	b.wait("the fix is told", `document.querySelector('`+fault+` p').innerText.trim() === "Fixed."`)
	b.wait("the panel counts what is broken", `document.querySelector(".demo summary").innerText.includes("8 of 9 broken")`)
	if n := strings.Count(b.text("main"), "Fixed."); n != 1 {
		t.Errorf("the fix is told in %d places", n)
	}
	b.run(chromedp.Click(chromedp.CSS(fault + " button")))
	b.wait("the fault is back", `document.querySelector('`+fault+` p').innerText.includes("sends quantities as words")`)
	if got := b.text(fault); strings.Contains(got, "Fixed.") {
		t.Errorf("the broken fault says %q", got)
	}
	b.calm()
}

// The tour replays the jobs of one queue, whose cause is fixed, and no others.
func TestTour_ReplaysTheJobsOfTheCauseThatIsFixed(t *testing.T) {
	t.Parallel()
	b := openBrowser(t)
	b.open(startDemo(t) + "/dead-letters")
	b.pressOn(`nav[aria-label="Queues"] a[href*="payments"]`)
	b.arrive("the letters of the queue", `location.search.includes("payments") && `+isLive)
	b.pressOn(`[data-bulk-all]`)
	b.pressOn(`form[data-bulk] button[value="replay"]`)
	b.arrive("there is a preview", `document.querySelector('form[action$="/start"]') !== null`)
	if got := eval[string](b, `document.querySelector('[aria-label="Eligible jobs by queue and type"] tbody').innerText.replace(/\s+/g, " ").trim()`); !strings.HasPrefix(got, "payments payments.capture ") || strings.Count(got, " ") != 2 {
		t.Errorf("the preview has the jobs %s", got)
	}
	b.calm()
}
