package browser_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"redrive/internal/store/databasetest"
	"redrive/test/mill"
	"redrive/test/rig"
)

// A button that copies shows for a moment whether that worked, and then its own icon.
func TestBrowser_CopyMarksItsButton(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(1)
	b := openBrowser(t)
	b.run(chromedp.Navigate(m.URL + "/jobs?queue=sieve"))
	b.run(chromedp.Navigate(m.URL + eval[string](b, `document.querySelector("a.key").getAttribute("href")`)))
	b.wait("the page is live", isLive)
	const icon = `document.querySelector("[data-copy] svg").innerHTML`
	own := eval[string](b, icon)
	b.run(chromedp.Click(chromedp.CSS("[data-copy]")))
	b.wait("it shows whether it copied", `["answer", "answer-refused"].some((name) =>
		document.querySelector("template[data-pattern=" + name + "]").content.querySelector("svg").innerHTML === `+icon+`)`)
	b.wait("its own icon is back", icon+" === `"+own+"`")
	b.calm()
}

// The page of an empty database can be followed: no button covers a command, and its job
// has a handler.
func TestFirstRun_CanBeFollowed(t *testing.T) {
	t.Parallel()
	databasetest.NeedsFile(t, "its commands find the file in this directory")
	dir := t.TempDir()
	p := rig.Start(t, dir)
	b := openBrowser(t)
	const covered = `[...document.querySelectorAll(".example")].filter((example) => {
		const pre = example.querySelector("pre"), button = example.querySelector("button").getBoundingClientRect(), range = document.createRange();
		pre.scrollLeft = pre.scrollWidth;
		range.selectNodeContents(pre);
		return [...range.getClientRects()].some((line) => line.right > button.left && line.bottom > button.top && line.top < button.bottom);
	}).map((example) => example.textContent).join("\n")`
	for _, path := range []string{"/", "/queues", "/jobs"} {
		b.open(p.URL + path)
		for _, width := range []int64{1280, 390} {
			b.run(chromedp.EmulateViewport(width, 900))
			if got := eval[string](b, covered); got != "" {
				t.Errorf("%s, %d wide: a button covers a part of %s", path, width, got)
			}
		}
		if got := b.text("main"); !strings.Contains(got, "Already have a queue?") || !strings.Contains(got, "dashboard source discover ") {
			t.Errorf("%s does not say how to attach a queue", path)
		}
	}

	rig.Write(t, dir, "redrive.yaml", eval[string](b, `document.querySelector('pre[aria-label="A handler"]').textContent`))
	if code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "reload")); code != 0 {
		t.Fatalf("the handler is refused with %d: %s%s", code, stdout, stderr)
	}
	if got := b.text(`pre[aria-label="How to enqueue from the command line"]`); got != `dashboard enqueue email.receipt '{"order_id":1}'` {
		t.Errorf("the job is sent with %s", got)
	}
	if code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "enqueue", "email.receipt", `{"order_id":1}`)); code != 0 || strings.Contains(stderr, "no handler") {
		t.Fatalf("the job is refused with %d: %s%s", code, stdout, stderr)
	}
	p.Until(func(now rig.Totals) bool { return now.States["retryable"]+now.States["completed"] == 1 })
	b.calm()
}
