package browser_test

import (
	"strings"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// watch remembers, from now on, every row that comes, goes or moves, every
// shift of the layout since the page was read, and that it is one document.
const watch = `
	window.rowsTouched = 0;
	new MutationObserver((changes) => {
		for (const c of changes) for (const n of [...c.addedNodes, ...c.removedNodes]) {
			if (n.nodeName === "TR" && !c.target.closest("figure")) window.rowsTouched++; // the table of a chart is no list
		}
	}).observe(document, { subtree: true, childList: true });
	window.shift = 0;
	window.shifted = [];
	new PerformanceObserver((list) => {
		for (const e of list.getEntries()) {
			if (!(e.startTime >= window.drawn)) continue; // half a page may be drawn while it is read
			window.shift += e.value;
			for (const s of e.sources) {
				const { previousRect: p, currentRect: c } = s;
				window.shifted.push([Math.round(e.startTime), "ms:", s.node?.nodeName, p.x, p.y, "to", c.x, c.y, s.node?.parentElement?.outerHTML?.slice(0, 200)].join(" "));
			}
		}
	}).observe({ type: "layout-shift", buffered: true });
	window.order = () => [...document.querySelectorAll("tr[data-job]")].map((r) => r.dataset.job).join(" ");
	window.firstOrder = window.order();
	undefined;`

// still fails unless nothing has moved since watch.
func (b *browser) still() {
	b.t.Helper()
	if n := eval[int](b, `window.rowsTouched`); n != 0 {
		b.t.Errorf("%d rows were added, removed or moved", n)
	}
	if !eval[bool](b, `window.order() === window.firstOrder`) {
		b.t.Error("the rows are in another order")
	}
	b.wait("the page is drawn", `window.drawn > 0`)
	if shift := eval[float64](b, `window.shift`); shift != 0 {
		b.t.Errorf("the layout has shifted by %v, at %s", shift, strings.Join(eval[[]string](b, `window.shifted`), "\n"))
	}
}

// open leads to a page and waits until it is live and watched.
func (b *browser) open(url string) {
	b.t.Helper()
	b.run(chromedp.Navigate(url))
	b.wait("the page is live", isLive)
	eval[chromedp.Void](b, watch)
}

// press sends keys to whatever has the focus.
func (b *browser) press(keys string) {
	b.t.Helper()
	b.run(chromedp.KeyEvent(keys))
}

// goTo presses g and the key of a section until the section is there and live. A browser
// drops the keys that come before it has drawn a page, and now and then the next ones. The
// keys are a tenth of a second apart by their own times, however busy the machine is.
func (b *browser) goTo(key, section string) {
	b.t.Helper()
	arrived := `document.querySelector('nav.side [data-section="` + section + `"][aria-current]') !== null && ` + isLive
	for range 20 {
		at := time.Now()
		for i, k := range []string{"g", key} {
			pressed := input.TimeSinceEpoch(float64(at.Add(time.Duration(i)*100*time.Millisecond).UnixMicro()) / 1e6)
			b.run(chromedp.KeyEvent(k, func(e *input.DispatchKeyEventParams) { e.Timestamp = pressed }))
		}
		if b.pollFor(10*time.Second, arrived) == nil {
			return
		}
	}
	b.t.Fatalf("g %s does not lead to %s; the page says:\n%s\nit said: %v", key, section, b.text("body"), b.complaints())
}

const (
	bulkSays  = `document.querySelector("form[data-bulk] p").innerText.trim()`
	newerSays = `document.querySelector(".newer a:not([hidden])")?.innerText.trim() ?? ""`
)
