package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// operationIs waits until the operation that the page shows is as wanted, by
// the API, and then loads the page, which says the same.
func (b *browser) operationIs(what, wanted string) {
	b.t.Helper()
	eval[chromedp.Void](b, `
		clearInterval(window.asking);
		window.operation = null;
		window.asking = setInterval(async () => {
			window.operation = (await (await fetch("/api/v1" + location.pathname)).json()).operation;
		}, 200);
		undefined`)
	b.wait(what, `((o) => o !== null && `+wanted+`)(window.operation)`)
	b.run(chromedp.Reload())
}

// number reads one of the numbers that a page keeps current.
func (b *browser) number(name string) int {
	b.t.Helper()
	return eval[int](b, `parseInt(document.querySelector('[data-n="`+name+`"]').textContent.replaceAll(",", ""))`)
}

// The whole story: payments fail, the trace says why, the fault is fixed, all
// of them are previewed, five go ahead and succeed, the rest follow, and every
// one has a second run that succeeded. Nothing that fails meanwhile is swept in.
func TestStory_FromABurstOfFailuresToARepairedQueue(t *testing.T) {
	url := startDemo(t)
	b := openBrowser(t)
	b.run(chromedp.Navigate(url + "/dead-letters?type=payments.capture&queue=payments"))
	b.run(chromedp.Navigate(url + eval[string](b, `document.querySelector("tbody tr:has([data-pick]) th a").getAttribute("href")`)))
	for _, want := range []string{"upstream.unavailable", "shop/payments/client.go", "503 Service Unavailable", "exhausted"} {
		if got := b.text("main"); !strings.Contains(got, want) {
			t.Fatalf("the job's page does not say %q:\n%s", want, got)
		}
	}
	b.run(chromedp.Click(chromedp.CSS("details.demo summary")))
	b.run(chromedp.Click(chromedp.CSS(`form[action="/demo/faults/provider"] button`)))
	b.wait("the provider works", `document.querySelector('form[action="/demo/faults/provider"] button').innerText.includes("Break")`)

	b.run(chromedp.Navigate(url + "/dead-letters?type=payments.capture&queue=payments"))
	eval[chromedp.Void](b, `document.querySelector("[data-bulk-all]").click()`)
	b.wait("everything is selected", bulkSays+`.includes("matching (as of ")`)
	eval[chromedp.Void](b, `document.querySelector('form[data-bulk] button[value="replay"]').click()`)
	b.arrive("there is a preview", `/^\/operations\/\d+$/.test(location.pathname)`)
	b.operationIs("the scope is counted", `o.state === "preview"`)
	all := get[shownOperation](t, url+"/api/v1"+eval[string](b, `location.pathname`)).Operation.Pending
	if all < 100 {
		t.Fatalf("the preview names %d jobs, want the hundreds of a day", all)
	}
	if got := b.text("main"); !strings.Contains(got, fmt.Sprintf("Replay %d jobs", all)) {
		t.Errorf("the preview does not offer to replay %d jobs:\n%s", all, got)
	}

	eval[chromedp.Void](b, `{
		const form = document.querySelector('form[action$="/start"]');
		form.querySelector('[name="rate"][value="100"]').checked = true;
		form.querySelector('[name="canary"]').value = "5";
		form.querySelector("button").click();
	}`)
	b.arrive("it has begun", `document.querySelector('form[action$="/start"]') === null && document.querySelector("[data-n=done]") !== null`)
	b.operationIs("the canary is through", `o.state === "paused" && o.succeeded === 5`)
	if done, good := b.number("done"), b.number("succeeded"); done != 5 || good != 5 {
		t.Fatalf("after the canary %d are replayed and %d succeeded, want five each", done, good)
	}
	eval[chromedp.Void](b, `document.querySelector('form[action$="/resume"] button').click()`)
	b.arrive("the rest follows", `document.querySelector('form[action$="/resume"]') === null && document.querySelector("[data-n=done]") !== null`)
	b.operationIs("every run has ended", `o.state === "finished" && o.unsettled === 0`)
	if done, skipped, good := b.number("done"), b.number("skipped"), b.number("succeeded"); done+skipped < all || good != done {
		t.Errorf("of %d jobs %d were replayed, %d skipped and %d succeeded; want all, and each replay a success", all, done, skipped, good)
	}

	b.run(chromedp.Navigate(url + eval[string](b, `document.querySelector("tbody th a").getAttribute("href")`)))
	if got := b.text("#run-2"); !strings.Contains(got, "succeeded") {
		t.Errorf("run 2 says:\n%s", got)
	}
	b.calm()
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
	m := startMill(t)
	m.letters(60)
	b := openBrowser(t)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	for scope, want := range map[string]int{"ticked": 2, "matching": 60} {
		b.run(chromedp.Navigate(m.url + "/dead-letters"))
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
		o := get[shownOperation](t, m.url+"/api/v1"+path).Operation
		for o.State == "collecting" { // a moment, for sixty jobs
			o = get[shownOperation](t, m.url+"/api/v1"+path).Operation
		}
		if o.Total != want {
			t.Errorf("%s: %s acts on %d jobs, want %d", scope, path, o.Total, want)
		}
	}
	b.calm()
}
