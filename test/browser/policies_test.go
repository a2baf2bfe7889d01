package browser_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"redrive/test/rig"
)

// type into a field, as a person does: the old text goes, key by key comes the
// new one.
func (b *browser) typeInto(field, text string) {
	b.t.Helper()
	selector := `form[data-what-if] [name="` + field + `"]`
	eval[chromedp.Void](b, `{ const f = document.querySelector(`+strconv.Quote(selector)+`); f.focus(); f.select(); }`)
	b.run(chromedp.SendKeys(chromedp.CSS(selector), text))
}

const delays = `document.querySelectorAll("[data-delays] tr").length`

// The table, the curve and the simulation follow what is typed; the page is not
// loaded again, and the focus does not move.
func TestBrowser_WhatIfFollowsTheKeys(t *testing.T) {
	t.Parallel()
	url := rig.Start(t, t.TempDir()).URL
	b := openBrowser(t)
	b.run(chromedp.Navigate(url + "/policies?preset=daycry"))
	b.wait("the page is live", isLive)
	eval[chromedp.Void](b, `window.sameDocument = true; document.querySelector("[data-result] details").open = true;`)
	if rows := eval[int](b, delays); rows != 3 {
		t.Fatalf("%d delays of four attempts, want 3", rows)
	}

	b.typeInto("max_attempts", "7")
	b.wait("the table follows", delays+" === 6")
	if got := eval[string](b, `document.activeElement.name + " " + document.activeElement.selectionStart`); got != "max_attempts 1" {
		t.Errorf("the focus and the caret are at %q", got)
	}
	for _, want := range []string{"7, the first included", "5 min 15 s", "Compared with daycry"} {
		if got := b.text("[data-result]"); !strings.Contains(got, want) {
			t.Errorf("the result does not say %q:\n%s", want, got)
		}
	}
	if !eval[bool](b, `document.querySelector("[data-result] details").open`) {
		t.Error("what was unfolded is folded again")
	}
	b.wait("the live region says it", `document.querySelector("[data-announce]").textContent.startsWith("7 attempts, 5 min 15 s of waiting")`)

	b.typeInto("jitter_low", "0.5")
	b.typeInto("jitter_high", "1.5")
	b.wait("the formula follows", `document.querySelector(".formula").textContent.includes("[0.5, 1.5)")`)
	address := eval[string](b, `location.search`)
	if !strings.Contains(address, "max_attempts=7") || !strings.Contains(address, "jitter_low=0.5") || !strings.Contains(address, "preset=daycry") {
		t.Errorf("the address is %s", address)
	}
	if !eval[bool](b, `window.sameDocument === true`) {
		t.Error("the page was loaded again")
	}

	b.run(chromedp.Navigate(url + "/policies" + address))
	if rows := eval[int](b, delays); rows != 6 || !strings.Contains(b.text(".formula"), "[0.5, 1.5)") {
		t.Errorf("the shared address shows %d delays and %s", rows, b.text(".formula"))
	}
	b.calm()
}

// The page says what is wrong below its field while the user types; the last right
// result stays, greyed, until all is right again.
func TestBrowser_WhatIfSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	url := rig.Start(t, t.TempDir()).URL
	b := openBrowser(t)
	b.run(chromedp.Navigate(url + "/policies?preset=daycry"))
	b.wait("the page is live", isLive)
	b.typeInto("coefficient", "x")
	b.wait("the problem stands below the field", `document.querySelector("#p-coefficient").textContent.includes("is not a number")`)
	if rows := eval[int](b, delays); rows != 3 || !eval[bool](b, `document.querySelector("[data-result]").classList.contains("stale")`) {
		t.Errorf("%d delays are left, want 3, greyed", rows)
	}
	if got := eval[string](b, `document.querySelector('[name="coefficient"]').getAttribute("aria-invalid")`); got != "true" {
		t.Errorf("aria-invalid is %q", got)
	}
	b.wait("the live region says it", `document.querySelector("[data-announce]").textContent.startsWith("Coefficient: ")`)

	b.typeInto("coefficient", "3")
	b.wait("the table follows again", `document.querySelector("[data-delays] tr:nth-child(3)").innerText.includes("45 s")`)
	if got := b.text("#p-coefficient"); got != "at least 1" {
		t.Errorf("below the field it says %q", got)
	}
	if eval[bool](b, `document.querySelector("[data-result]").classList.contains("stale")`) {
		t.Error("the result is still greyed")
	}
	b.calm()
}

// Fields that a strategy does not read are not shown; the choice needs no key.
func TestBrowser_WhatIfShowsTheFieldsOfTheStrategy(t *testing.T) {
	t.Parallel()
	url := rig.Start(t, t.TempDir()).URL
	b := openBrowser(t)
	b.run(chromedp.Navigate(url + "/policies?preset=initphp"))
	b.wait("the page is live", isLive)
	shown := `[...document.querySelectorAll("form[data-what-if] input:not([type=hidden])")].filter((i) => i.offsetParent).map((i) => i.name).join(" ")`
	if got := eval[string](b, shown); got != "max_attempts schedule max_interval jitter_low jitter_high" {
		t.Errorf("a schedule has the fields %s", got)
	}
	b.typeInto("schedule", "1s, 5s, 15s")
	b.wait("the schedule is read", `document.querySelector(".formula")?.textContent.includes("[1 s, 5 s, 15 s]")`)
	eval[chromedp.Void](b, `{
		const strategy = document.querySelector('[name="strategy"]');
		strategy.value = "polynomial";
		strategy.dispatchEvent(new Event("input", { bubbles: true }));
	}`)
	b.wait("the strategy is read", `document.querySelector(".formula").textContent.includes("1 s × n2")`)
	if got := eval[string](b, shown); got != "max_attempts initial_interval coefficient max_interval jitter_low jitter_high" {
		t.Errorf("a polynomial has the fields %s", got)
	}
	b.calm()
}

// Without scripts the form is a form.
func TestBrowser_WhatIfWithoutScripts(t *testing.T) {
	t.Parallel()
	url := rig.Start(t, t.TempDir()).URL
	b := openBrowser(t)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.run(chromedp.Navigate(url + "/policies?preset=daycry"))
	eval[chromedp.Void](b, `document.querySelector('[name="max_attempts"]').value = "40"`)
	b.run(chromedp.Click(chromedp.CSS("form[data-what-if] button")))
	b.run(chromedp.WaitVisible(chromedp.CSS("[data-against]")))
	if rows := eval[int](b, delays); rows != 25 {
		t.Errorf("%d delays, want 25 of 39", rows)
	}
	b.calm()
}

// No policy makes the page wider than its screen.
func TestBrowser_PoliciesFitTheScreen(t *testing.T) {
	t.Parallel()
	url := rig.Start(t, t.TempDir()).URL
	b := openBrowser(t)
	for _, theme := range []string{"light", "dark"} {
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
		for _, query := range []string{"", "preset=sidekiq", "preset=yii2", "preset=daycry&max_attempts=99999999999&jitter_low=0.123456789&jitter_high=1.123456789", "coefficient=x",
			"strategy=schedule&schedule=" + strings.Repeat("1s,2h,", 30) + "1h&max_interval=7d"} {
			b.run(chromedp.Navigate(url + "/policies?" + query))
			for _, width := range []int64{360, 390, 768, 1280, 1920} {
				b.run(chromedp.EmulateViewport(width, 900))
				if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > width {
					t.Errorf("%s in %s is %d px wide on a screen of %d", query, theme, wide, width)
				}
			}
		}
	}
	b.calm()
}
