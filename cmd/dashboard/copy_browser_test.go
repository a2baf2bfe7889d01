package main

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// A button that copies shows for a moment whether that worked, and then its own icon.
func TestBrowser_CopyMarksItsButton(t *testing.T) {
	t.Parallel()
	m := startMill(t)
	m.letters(1)
	b := openBrowser(t)
	b.run(chromedp.Navigate(m.url + "/jobs?queue=sieve"))
	b.run(chromedp.Navigate(m.url + eval[string](b, `document.querySelector("a.key").getAttribute("href")`)))
	b.wait("the page is live", isLive)
	const icon = `document.querySelector("[data-copy] svg").innerHTML`
	own := eval[string](b, icon)
	b.run(chromedp.Click(chromedp.CSS("[data-copy]")))
	b.wait("it shows whether it copied", `["answer", "answer-refused"].some((name) =>
		document.querySelector("template[data-pattern=" + name + "]").content.querySelector("svg").innerHTML === `+icon+`)`)
	b.wait("its own icon is back", icon+" === `"+own+"`")
	b.calm()
}
