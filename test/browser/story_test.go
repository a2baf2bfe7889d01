package browser_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"redrive/test/mill"
	"redrive/test/rig"
)

// number reads one of the numbers that a page keeps current.
func (b *browser) number(name string) int {
	b.t.Helper()
	return eval[int](b, `parseInt(document.querySelector('[data-n="`+name+`"]').textContent.replaceAll(",", ""))`)
}

// pressOn clicks on what the page shows, wherever it is scrolled to.
func (b *browser) pressOn(selector string) {
	b.t.Helper()
	b.arrive("it can be pressed", `((e) => e && (e.click(), true))(document.querySelector(`+strconv.Quote(selector)+`))`)
}

// says waits until the page of an operation says in what state it is. It is the same
// document all the time.
func (b *browser) says(state string) {
	b.t.Helper()
	b.arrive("the operation is "+state, `document.querySelector(".head .badge").innerText.trim() === `+strconv.Quote(state))
}

// The whole story: payments fail, their group says why and where, the fault is
// fixed, all of the group are previewed, five go ahead and succeed, the rest
// follow at twenty a second, every one has a second run that succeeded, and the
// group is resolved. The page of the operation follows automatically.
func TestStory_FromABurstOfFailuresToARepairedQueue(t *testing.T) {
	t.Parallel()
	url := startDemoIn(t, t.TempDir(), fullPages)
	b := openBrowser(t)
	b.run(chromedp.Navigate(url + "/failures"))
	group := eval[string](b, `[...document.querySelectorAll("tbody tr")].find((r) => r.innerText.includes("payments.capture")).querySelector("th a").getAttribute("href")`)
	b.run(chromedp.Navigate(url + group))
	for _, want := range []string{"upstream.unavailable", "shop/payments/client.go", "503 Service Unavailable", "payments.capture"} {
		if got := b.text("main"); !strings.Contains(got, want) {
			t.Fatalf("the group's page does not say %q:\n%s", want, got)
		}
	}
	b.fix("provider")

	b.pressOn(`form:has([name="kind"][value="replay"]) button`)
	b.arrive("there is a preview", `document.querySelector('form[action$="/start"]') !== null`)
	operation := eval[string](b, `location.pathname`)
	all := rig.Get[shownOperation](t, url+"/api/v1"+operation).Operation.Pending
	if all < 100 {
		t.Fatalf("the preview names %d jobs, want more than a hundred", all)
	}
	for _, want := range []string{fmt.Sprintf("%d jobs are eligible", all), fmt.Sprintf("Replay %d × upstream.unavailable", all), "payments.capture"} {
		b.wait("the preview says "+want, `document.querySelector("main").innerText.includes(`+strconv.Quote(want)+`)`)
	}
	if got := eval[string](b, `new URLSearchParams(new FormData(document.querySelector('form[action$="/start"]'))).toString()`); got != "rate=20&spread=&canary=5" {
		t.Errorf("what is usual is %q", got)
	}
	b.pressOn(`form[action$="/start"] button`)
	b.says("paused")
	b.wait("the canary is through, live", `["canary_succeeded", "done", "succeeded"].every((n) => document.querySelector('[data-n="' + n + '"]').textContent === "5")`)
	b.wait("its verdict, too", `document.querySelector("main").innerText.includes("Canary passed: 5 of 5 succeeded.")`)

	b.pressOn(`form[action$="/resume"] button`)
	b.arrive("the rest follows", `document.querySelector('form[action$="/pause"]') !== null`)
	eval[chromedp.Void](b, watch)
	half := strconv.Itoa(all / 2)
	b.wait("the meter moves", `((n) => n > `+half+` && n < `+strconv.Itoa(all)+`)(parseInt(document.querySelector('[data-n="succeeded"]').textContent))`)
	b.still()
	b.says("finished")
	b.wait("every run has ended", `document.querySelector('[data-n="unsettled"]').textContent === "0"`)
	if done, skipped, good := b.number("done"), b.number("skipped"), b.number("succeeded"); done+skipped != all || good != done {
		t.Errorf("of %d jobs %d were replayed, %d skipped and %d succeeded; want all, and each replay a success", all, done, skipped, good)
	}
	b.keptTo(url+"/api/v1"+operation+"/rate", 20)

	b.run(chromedp.Navigate(url + eval[string](b, `document.querySelector("tbody th a.key").getAttribute("href")`)))
	if got := b.text("#run-2"); !strings.Contains(got, "succeeded") {
		t.Errorf("run 2 says:\n%s", got)
	}
	b.run(chromedp.Navigate(url + group))
	b.pressOn(`form[action$="/resolve"] button`)
	b.arrive("the group is resolved", `document.querySelector('form[action$="/reopen"]') !== null`)
	if got := b.text("main"); !strings.Contains(got, "resolved") || !strings.Contains(got, fmt.Sprintf("%d succeeded", all)) {
		t.Errorf("the group does not say that it is resolved, or what was done about it:\n%s", got)
	}
	b.run(chromedp.Navigate(url + "/failures"))
	if got := b.text("tbody"); strings.Contains(got, "payments.capture") {
		t.Errorf("the group is still open:\n%s", got)
	}
	b.calm()
}

// keptTo fails if in any step of its time an operation did more than its rate
// allows: that of the step, and what a second of lost time makes up for.
func (b *browser) keptTo(url string, rate float64) {
	b.t.Helper()
	told := rig.Get[struct {
		Step float64 `json:"step_seconds"`
		Done []float64
	}](b.t, url)
	for i, n := range told.Done {
		if n > rate*(told.Step+1)+1 {
			b.t.Errorf("%v were replayed in step %d of %v s: %v", n, i, told.Step, told.Done)
		}
	}
}

type shownOperation struct {
	Operation struct {
		State          string
		Pending, Total int
	}
}

// Without scripts the boxes and the buttons are a plain form, and everything
// that matches has buttons of its own.
func TestSelection_WithoutScripts(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(60)
	b := openBrowser(t)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	for scope, want := range map[string]int{"ticked": 2, "matching": 60} {
		b.run(chromedp.Navigate(m.URL + "/dead-letters"))
		selector := `form.unscripted button[value="replay"]`
		if scope == "ticked" {
			selector = `#bulk button[value="replay"]`
			for _, n := range []int{1, 3} {
				b.run(chromedp.Click(chromedp.CSS(`tbody tr:nth-child(` + strconv.Itoa(n) + `) [data-pick]`)))
			}
		}
		b.run(chromedp.Click(chromedp.CSS(selector)))
		b.run(chromedp.WaitVisible(chromedp.CSS(".crumbs")))
		path := eval[string](b, `location.pathname`)
		o := rig.Get[shownOperation](t, m.URL+"/api/v1"+path).Operation
		for o.State == "collecting" { // a moment, for sixty jobs
			o = rig.Get[shownOperation](t, m.URL+"/api/v1"+path).Operation
		}
		if o.Total != want {
			t.Errorf("%s: %s acts on %d jobs, want %d", scope, path, o.Total, want)
		}
	}
	b.calm()
}
