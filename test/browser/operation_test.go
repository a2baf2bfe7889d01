package browser_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"redrive/test/mill"
	"redrive/test/rig"
)

// The page of an operation follows it without a reload and without moving
// anything, and what it offers is done: pause, another rate, resume, abort.
func TestOperation_PageFollowsAndObeys(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(60)
	m.Fixed.Store(true)
	path := m.Operate(4)
	m.Starts(path)
	b := openBrowser(t)
	b.open(m.URL + path)
	done := b.number("done")
	b.wait("the meter moves", `parseInt(document.querySelector('[data-n="done"]').textContent) > `+strconv.Itoa(done+3))
	b.wait("its bar, too", `parseFloat(document.querySelector('.meter.thick [data-part="done"]').getAttribute("width")) > 0`)
	b.wait("and the outcome", `parseInt(document.querySelector('[data-n="succeeded"]').textContent) > 0 && /(\d+) of \1 finished runs? succeeded \(100 %\)/.test(document.querySelector("main").innerText)`)
	b.wait("the chart follows", `[...document.querySelectorAll('[aria-labelledby="h-rate"] .plot rect')].filter((r) => parseFloat(r.getAttribute("height")) > 0).length > 2`)
	if said, shown := eval[string](b, `document.querySelector(".meter.thick").getAttribute("aria-label")`), strconv.Itoa(b.number("done")); !strings.HasPrefix(said, "Of 60: "+shown+" enqueued, 0 skipped") {
		t.Errorf("to who listens the meter says %q, with %s done", said, shown)
	}
	b.still()

	b.pressOn(`form[action$="/pause"] button`)
	b.arrive("it is paused", `document.querySelector('form[action$="/resume"]') !== null`)
	if got := b.text("main"); !strings.Contains(got, "Paused by local user (127.0.0.1)") {
		t.Errorf("the page says:\n%s", got)
	}
	eval[chromedp.Void](b, watch+`
		document.querySelector('form[action$="/rate"] [name="rate"]').value = "1000";
		document.querySelector('form[action$="/rate"] button').click()`)
	b.arrive("its rate is another", `document.querySelector("dl.facts").innerText.includes("1000 per second")`)
	b.pressOn(`form[action$="/resume"] button`)
	b.says("finished")
	b.wait("every run has ended", `document.querySelector('[data-n="succeeded"]').textContent === "60"`)

	m.Fixed.Store(false)
	m.DeadLetters(60)
	path = m.Operate(0.01)
	m.Starts(path)
	b.open(m.URL + path)
	m.Change(strings.TrimPrefix(path, "/operations")+"/pause", "")
	b.says("paused")
	b.pressOn(`form[action$="/abort"] button`)
	b.arrive("it was ended", `document.querySelector('form[action$="/abort"]') === null`)
	if got := b.text("main"); !strings.Contains(got, "Aborted by local user (127.0.0.1). 59 jobs were left as they were.") {
		t.Errorf("the page says:\n%s", got)
	}
	b.calm()
}

// Without scripts the page of an operation is true whenever it is loaded, and
// its buttons are plain forms.
func TestOperation_PageWithoutScripts(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(60)
	m.Fixed.Store(true)
	path := m.Operate(4)
	m.Starts(path)
	b := openBrowser(t)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.run(chromedp.Navigate(m.URL + path))
	for first := b.number("done"); b.number("done") <= first+2; {
		b.run(chromedp.Reload())
	}
	b.run(chromedp.Click(chromedp.CSS(`form[action$="/pause"] button`)), chromedp.WaitVisible(chromedp.CSS(`form[action$="/resume"]`)))
	b.run(chromedp.Click(chromedp.CSS(`form[action$="/abort"] button`)), chromedp.WaitNotPresent(chromedp.CSS(`form[action$="/abort"]`)))
	if got := b.text("main"); !strings.Contains(got, "Aborted by") {
		t.Errorf("the page says:\n%s", got)
	}
	b.calm()
}

// Axe finds nothing on the page of an operation in any of its states, and none is wider
// than its screen, in any view. TestBrowser_AxeFindsNothing opens the demo's operation.
func TestLong_OperationEveryStateIsSoundInEveryView(t *testing.T) {
	t.Parallel()
	axe := findAxe(t)
	m := mill.Start(t)
	m.DeadLetters(600) // so many that the guard has seen enough long before the last one is replayed
	b := openBrowser(t)
	begin := func(pace string) string {
		path := m.Change("", `{"kind":"replay","filter":"state:dead_letter",`+pace+`}`)
		m.Starts(path)
		return path
	}
	shows := func(path, want string) {
		t.Helper()
		b.run(chromedp.Navigate(m.URL + path))
		if got := b.text("main"); !strings.Contains(got, want) {
			t.Errorf("%s does not say %q:\n%s", path, want, got)
		}
		b.sound(axe, path+" where it says "+want, looks)
	}
	shows(begin(`"rate":1`), "600 jobs are eligible")
	guarded := begin(`"rate":20,"canary":0,"start":true`)
	m.Leaves(guarded, "running")
	shows(guarded, "replays failed permanently with the same error")
	canary := begin(`"rate":100,"canary":5,"start":true`)
	m.Leaves(canary, "running")
	for late := time.Now().Add(time.Minute); time.Now().Before(late); { // it pauses before its jobs have ended
		if o := rig.Get[rig.OperationNow](t, m.URL+"/api/v1"+canary).Operation; o.Done == 5 && o.Unsettled == 0 {
			break
		}
	}
	shows(canary, "Canary failed: 0 of 5 succeeded. Fix the cause first.")
	m.Change(strings.TrimPrefix(canary, "/operations")+"/abort", "")
	shows(canary, "Aborted by API client (127.0.0.1)")
	m.Fixed.Store(true)
	running := begin(`"rate":0.01,"canary":0,"start":true`)
	shows(running, "of 600.")
	m.Pause("sieve") // the jobs wait, so that the operation does not end at once
	m.Change(strings.TrimPrefix(running, "/operations")+"/rate", `{"rate":0}`)
	m.Leaves(running, "running")
	shows(running, "All jobs are enqueued")
	shows("/operations", "paused")
	b.calm()
}
