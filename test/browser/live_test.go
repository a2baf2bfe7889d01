package browser_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"redrive/internal/store/databasetest"
	"redrive/test/mill"
	"redrive/test/rig"
)

// Rules 1, 3 and 5: while 200 jobs a second fail, in the rows shown and beyond
// them, fifty ticked rows stay where they are, ticked; their cells follow, and
// the number of newer ones waits until nothing is ticked any more.
func TestLive_NothingMovesUnderLoad(t *testing.T) { nothingMovesUnderLoad(t, 200) }

func TestLong_LiveNothingMovesUnderLoad(t *testing.T) { nothingMovesUnderLoad(t, 1000) }

// nothingMovesUnderLoad watches the page until so many attempts have come to its rows.
func nothingMovesUnderLoad(t *testing.T, come int) {
	t.Parallel()
	m := mill.Start(t)
	m.Enqueue(40, "stone.turns", "grind") // fails five times a second each
	m.Enqueue(10, "stone.stays", "sieve")
	b := openBrowser(t)
	b.open(m.URL + "/jobs")
	if n := eval[int](b, `document.querySelectorAll("tr[data-job]").length`); n != 50 {
		t.Fatalf("the page has %d rows, want 50", n)
	}
	eval[chromedp.Void](b, `document.querySelector("[data-pick-all]").click()`)
	b.wait("fifty rows are ticked", bulkSays+`.startsWith("50 selected")`)

	const attempts = `[...document.querySelectorAll('[data-cell="attempts"] [data-value]')].reduce((n, c) => n + parseInt(c.textContent), 0)`
	stop := m.Arrivals(40, "corn.ground", "sieve")
	before := eval[int](b, attempts)
	b.wait("the cells follow", attempts+` > `+strconv.Itoa(before+come))
	b.still()
	if n := eval[int](b, `document.querySelectorAll("[data-pick]:checked").length`); n != 50 {
		t.Errorf("%d rows are still ticked, want 50", n)
	}
	if said := eval[string](b, newerSays); said != "" {
		t.Errorf("while rows are ticked the bar says %q", said)
	}

	eval[chromedp.Void](b, `document.querySelector("[data-bulk-clear]").click()`)
	b.wait("then the bar says what is newer", newerSays+`.match(/^\d+ newer jobs: show$/) !== null`)
	stop()
	b.still()
	b.calm()
}

// The watch over the layout sees what moves after the page is drawn.
func TestLive_TheWatchSeesAShift(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(3)
	b := openBrowser(t)
	b.open(m.URL + "/dead-letters")
	b.still()
	eval[chromedp.Void](b, `
		const block = document.createElement("div");
		block.style.height = "100px";
		document.querySelector("main").prepend(block)`)
	b.wait("the shift is seen", `window.shift > 0`)
}

// Rules 2 and 4: a row that leaves the list stays, greyed, and says where its
// job went; its tick is kept, means the run that was shown, and is marked.
func TestLive_ARowThatLeavesStays(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	ids := m.DeadLetters(3)
	b := openBrowser(t)
	b.open(m.URL + "/dead-letters")
	for _, id := range ids[:2] {
		eval[chromedp.Void](b, `document.querySelector('tr[data-job="`+id+`"] [data-pick]').click()`)
	}
	m.Fixed.Store(true)
	m.Act(ids[0], "replay", `{"run":1}`)
	m.Act(ids[2], "discard", `{"run":1}`)

	row := func(id string) string { return `document.querySelector('tr[data-job="` + id + `"]')` }
	b.wait("the replayed row is greyed", row(ids[0])+`.classList.contains("gone")`)
	b.wait("it says so in words", row(ids[0])+`.innerText.includes("Run 2 succeeded")`)
	b.wait("its tick is kept and marked", row(ids[0])+`.querySelector("[data-pick]").checked && `+row(ids[0])+`.innerText.includes("will be skipped")`)
	b.wait("the bar counts it", bulkSays+` === "2 selected, 1 will be skipped"`)
	b.wait("the discarded row says so", row(ids[2])+`.classList.contains("gone") && `+row(ids[2])+`.innerText.match(/discarded|trash/i) !== null`)
	if eval[bool](b, row(ids[1])+`.classList.contains("gone") || `+row(ids[1])+`.innerText.includes("skipped")`) {
		t.Error("a row that has not moved is marked")
	}
	b.still()

	b.run(chromedp.Reload())
	b.wait("the ticks survive", bulkSays+` === "2 selected, 1 on other pages"`)
	b.calm()
}

// A job that was listed because it had failed, and then succeeds, is greyed and said to
// have recovered.
func TestLive_AFailureThatSucceedsHasRecovered(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	id := m.Enqueue(1, "corn.rests", "rest")[0]
	(&rig.Process{T: t, URL: m.URL}).Until(func(now rig.Totals) bool { return now.States["retryable"] == 1 })
	m.Fixed.Store(true)
	var open []*browser
	for _, path := range []string{"/", "/queues/rest", "/jobs?state=retryable"} {
		b := openBrowser(t)
		b.open(m.URL + path)
		open = append(open, b)
	}
	m.Act(id, "reschedule", `{"run":1,"delay":"0s"}`)
	for _, b := range open {
		row := `document.querySelector('tr[data-job="` + id + `"]')`
		b.wait("it says so, greyed", row+`.classList.contains("gone") && `+row+`.querySelector('[data-cell="state"]').innerText.trim() === "recovered"`)
		b.redrawn()
		if got := b.text(`tr[data-job="` + id + `"] [data-cell="state"]`); got != "recovered" {
			t.Errorf("drawn again it says %s", got)
		}
		b.still()
		b.calm()
	}
}

// The job fails again: the same row stands for run 2 now, and the tick for run 1.
func TestLive_ATickMeansItsRun(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	id := m.DeadLetters(1)[0]
	b := openBrowser(t)
	b.open(m.URL + "/dead-letters")
	eval[chromedp.Void](b, `document.querySelector("[data-pick]").click()`)
	m.Act(id, "replay", `{"run":1}`)
	b.wait("run 2 is dead too", `document.querySelector("tr[data-job]").dataset.run === "2" && !document.querySelector("tr[data-job]").classList.contains("gone")`)
	b.wait("the tick is of run 1", bulkSays+` === "1 selected, 1 will be skipped"`)
	eval[chromedp.Void](b, `document.querySelector("[data-pick]").click(); document.querySelector("[data-pick]").click()`)
	b.wait("a new tick is of run 2", bulkSays+` === "1 selected"`)
	b.calm()
}

// After a replay the row says how the run fares, and offers no other replay until it
// failed permanently.
func TestLive_ARowFollowsItsReplay(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	p, b := &rig.Process{T: t, URL: m.URL}, openBrowser(t)
	const row, button = `document.querySelector("tr[data-job]")`, `document.querySelector('tr[data-job] form[data-act="replay"] button')`
	for _, path := range []string{"/dead-letters", "/jobs"} {
		m.Fixed.Store(false)
		id := m.Enqueue(1, "corn.rests", "rest")[0]
		p.Until(func(now rig.Totals) bool { return now.States["retryable"] == 1 })
		m.Act(id, "reschedule", `{"run":1,"delay":"0s"}`)
		p.Until(func(now rig.Totals) bool { return now.States["dead_letter"] == 1 })

		b.open(m.URL + path)
		eval[chromedp.Void](b, button+`.click()`)
		b.wait("run 2 waits for its retry", row+`.innerText.includes("Run 2 is retrying") && `+row+`.textContent.includes(", next in 60 min")`)
		if eval[bool](b, button+`.checkVisibility()`) {
			t.Errorf("%s: a job that waits for a retry can be replayed", path)
		}
		m.Act(id, "reschedule", `{"run":2,"delay":"0s"}`)
		b.wait("it failed again", row+`.textContent.includes("Run 2 failed again") && `+row+`.innerText.includes("exhausted") && `+button+`.checkVisibility()`)
		if shown := eval[bool](b, row+`.innerText.includes("failed again")`); shown != (path == "/dead-letters") { // elsewhere the state has a cell
			t.Errorf("%s: whether the row says that the run failed again: %v", path, shown)
		}
		m.Fixed.Store(true)
		eval[chromedp.Void](b, button+`.click()`)
		b.wait("run 3 succeeded", row+`.innerText.includes("Run 3 succeeded")`)
		b.still()
		b.calm()
	}
}

// barButtons is what is read on the buttons of the bar.
const barButtons = `[...document.querySelectorAll("form[data-bulk] .actions button")].map((b) => [...b.children].map((c) => c.firstChild?.data ?? "").join("")).join(" ")`

// Ticks: one by one, a range, all shown, all that match, across pages.
func TestSelection_TicksRangesAndPages(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(60)
	b := openBrowser(t)
	b.open(m.URL + "/dead-letters")
	click := func(n int, shift string) {
		eval[chromedp.Void](b, `document.querySelectorAll("[data-pick]")[`+strconv.Itoa(n)+`].dispatchEvent(new MouseEvent("click", { bubbles: true, shiftKey: `+shift+` }))`)
	}
	click(2, "false")
	click(6, "true")
	b.wait("a range of five", bulkSays+` === "5 selected"`)
	click(4, "false")
	b.wait("one less", bulkSays+` === "4 selected"`)
	eval[chromedp.Void](b, `document.querySelector("[data-pick-all]").click()`)
	b.wait("all that are shown", bulkSays+` === "50 selected"`)

	b.run(chromedp.Navigate(eval[string](b, `document.querySelector('a[rel="next"]').href`)))
	b.wait("they are remembered", bulkSays+` === "50 selected, 50 on other pages"`)
	click(0, "false")
	b.wait("one of this page", bulkSays+` === "51 selected, 50 on other pages"`)
	b.run(chromedp.Navigate(m.URL + "/dead-letters?queue=grind"))
	b.run(chromedp.Navigate(m.URL + "/dead-letters"))
	b.wait("one more on the older page", bulkSays+` === "51 selected, 1 on other pages"`)

	eval[chromedp.Void](b, `document.querySelector("[data-bulk-all]").click()`)
	b.wait("all that match", bulkSays+`.match(/^All 60 matching \(as of \d\d:\d\d:\d\d\) are selected\.$/) !== null`)
	b.wait("the buttons say how many", barButtons+` === "Discard60… Replay60…"`)
	if eval[bool](b, `(p => p.scrollWidth > p.clientWidth)(document.querySelector("form[data-bulk] p"))`) {
		t.Error("what is selected is cut")
	}
	click(3, "false")
	b.wait("all shown but one, and the one elsewhere", bulkSays+` === "50 selected, 1 on other pages"`)
	eval[chromedp.Void](b, `document.querySelector("[data-bulk-clear]").click()`)
	b.run(chromedp.Navigate(m.URL + "/dead-letters"))
	eval[chromedp.Void](b, `document.querySelector("[data-pick]").click(); document.querySelector("[data-bulk-clear]").click()`)
	b.wait("none", `document.querySelectorAll("[data-pick]:checked").length === 0 && document.querySelector("form[data-bulk] button[name=kind]").disabled`)
	b.calm()
}

// The facets of a filtered list count within its filter, and each leads to as many rows.
func TestDeadLetters_FacetsCountWithinTheFilter(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(5)
	m.Enqueue(3, "corn.again", "sieve") // a second attempt is what they alone have
	(&rig.Process{T: t, URL: m.URL}).Until(func(now rig.Totals) bool { return now.States["dead_letter"] == 8 })
	b := openBrowser(t)
	const facets = `[...document.querySelectorAll('[aria-label="Facets"] a')].map((a) => a.innerText.replace(/\s+/g, " ").trim()).join(", ")`

	for path, want := range map[string]string{
		"/dead-letters":                "exhausted 8, sieve 8, corn.ground 5, corn.again 3",
		"/dead-letters?q=attempts%3A2": "exhausted 3, sieve 3, corn.again 3",
	} {
		b.open(m.URL + path)
		got := eval[string](b, facets)

		// Where counting takes too long, as on a busy machine, a page has the facets of the whole list.
		late := time.Now().Add(3 * time.Minute)
		for got != want && time.Now().Before(late) {
			b.open(m.URL + path)
			got = eval[string](b, facets)
		}

		if got != want {
			t.Errorf("%s has the facets %s, want %s", path, got, want)
		}
	}

	b.open(m.URL + "/dead-letters?q=attempts%3A2")
	b.run(chromedp.Click(chromedp.CSS(`nav[aria-label="Types"] a[href*="corn.again"]`)))
	b.arrive("the list of a type", `location.search.includes("corn.again")`)
	if rows := eval[int](b, `document.querySelectorAll("tr[data-job]").length`); rows != 3 {
		t.Errorf("a facet of 3 leads to %d rows", rows)
	}
	b.calm()
}

// A name that is written from right to left keeps its place in a row, and so does what
// stands beside it; a message has a block of its own direction.
func TestLists_ANameFromRightToLeftStaysInItsPlace(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	const name = "مهمة.دفع"
	id := m.Enqueue(1, name, "sieve")[0]
	(&rig.Process{T: t, URL: m.URL}).Until(func(now rig.Totals) bool { return now.States["dead_letter"] == 1 })
	b := openBrowser(t)
	const text = `const text = (of) => {
		const all = [], walk = document.createTreeWalker(of, NodeFilter.SHOW_TEXT);
		while (walk.nextNode()) if (walk.currentNode.data.trim()) all.push(walk.currentNode);
		return all;
	};`
	for _, path := range []string{"/", "/jobs", "/jobs?q=type%3A" + url.QueryEscape(name), "/dead-letters", "/queues/sieve"} {
		b.open(m.URL + path)
		left := eval[string](b, `(() => { `+text+`
			return text(document.querySelector("#main")).filter((node) => /[\u0600-\u06ff]/.test(node.data) && !node.parentElement.closest("bdi, datalist, .vh")).map((node) => node.parentElement.outerHTML).join();
		})()`)
		if left != "" {
			t.Errorf("%s does not isolate %s", path, left)
		}
		whole := eval[bool](b, `(() => { `+text+`
			const id = text(document.querySelector("tr[data-job] th")).find((node) => node.data.includes(`+strconv.Quote(id[len(id)-6:])+`)), range = document.createRange();
			range.selectNodeContents(id);
			return range.getClientRects().length === 1;
		})()`)
		if !whole {
			t.Errorf("%s divides the id", path)
		}
	}
	b.open(m.URL + "/jobs/" + id)
	if got := b.text(`#run-1 .error[dir="auto"]`); got != "the stone does not turn" {
		t.Errorf("the block of the message says %q", got)
	}
	b.calm()
}

// A long name of a queue keeps its end in sight on a laptop, and the first lines of all cells
// of its row are one. Only a queue that does not run has a state.
func TestQueues_ALongNameKeepsItsEnd(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	const name = "a-really-long-name-of-a-queue-for-invoices-0001"
	m.Enqueue(1, "corn.ground", name)
	m.DeadLetters(1)
	(&rig.Process{T: t, URL: m.URL}).Until(func(now rig.Totals) bool { return now.States["dead_letter"] == 2 })
	m.Pause("sieve")
	b := openBrowser(t)
	b.open(m.URL + "/queues")
	const row = `[...document.querySelectorAll("tbody tr")].find((row) => row.textContent.includes("0001"))`
	if room := eval[float64](b, `(() => {
		const cell = `+row+`.querySelector("th"), range = document.createRange();
		range.selectNodeContents(cell.querySelector("bdi").lastChild);
		return cell.getBoundingClientRect().right - range.getBoundingClientRect().right;
	})()`); room < 0 {
		t.Errorf("%v px of the name's end are out of sight", -room)
	}
	if lines := eval[[]float64](b, `[...new Set([...`+row+`.cells].filter((cell) => cell.innerText.trim() && !cell.matches(".acts")).map((cell) => {
		const range = document.createRange(), text = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
		while (text.nextNode() && !text.currentNode.data.trim());
		range.selectNodeContents(text.currentNode);
		return Math.round(range.getClientRects()[0].bottom);
	}))]`); len(lines) != 1 {
		t.Errorf("the first lines of the row end at %v", lines)
	}
	if got := b.text("main tbody"); strings.Contains(got, "running") || !strings.Contains(got, "paused") {
		t.Errorf("the states are wrong:\n%s", got)
	}
	b.calm()
}

// All that match are one number, in the button that selects them, in the words and in the
// buttons that act, and the preview has as many, however many fail meanwhile.
func TestSelection_AllThatMatchIsOneNumber(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(3)
	b := openBrowser(t)
	group := rig.Get[struct {
		Groups []struct{ Fingerprint string }
	}](t, m.URL+"/api/v1/failures").Groups[0].Fingerprint
	const every = `document.querySelector("[data-bulk-all]")`
	const numbers = `[` + every + `.textContent, ` + bulkSays + `, ` + barButtons + `].map((words) => words.replace(/\(as of .*?\)/, "").match(/\d+/g)?.join()).join(" ")`

	for i, path := range []string{"/dead-letters", "/jobs?state=dead_letter", "/dead-letters?q=attempts%3A1", "/failures/" + group} {
		b.open(m.URL + path)
		m.DeadLetters(2) // the list has more by now than when it was opened
		n := strconv.Itoa(3 + 4*i + 2)
		b.wait("all are "+n, every+`.textContent.includes("all `+n+` ")`)
		eval[chromedp.Void](b, every+`.click()`)
		want := strings.Join([]string{n, n, n + "," + n}, " ")
		if got := eval[string](b, numbers); got != want {
			t.Errorf("%s: the numbers are %s, want %s", path, got, want)
		}

		m.DeadLetters(2)
		b.redrawn()
		if got := eval[string](b, numbers); got != want {
			t.Errorf("%s: after more have failed the numbers are %s, want %s", path, got, want)
		}
		eval[chromedp.Void](b, `document.querySelector('form[data-bulk] button[value="replay"]').click()`)
		b.arrive("the preview", `location.pathname.startsWith("/operations/") && document.querySelector("#main").textContent.includes("jobs are eligible")`)
		if got := b.text("main"); !strings.Contains(got, n+" jobs are eligible, 0 skipped") {
			t.Errorf("%s: the preview of %s says:\n%s", path, n, got)
		}
	}
	b.calm()
}

// More matches than a page counts are counted once the user is about to act on them all.
func TestSelection_CountsWhatIsTooMuchForThePage(t *testing.T) {
	t.Parallel()
	databasetest.NeedsFile(t, "a busy server without statistics may give such a list up")
	m := mill.Start(t)
	m.DeadLetters(10_000)
	m.DeadLetters(100)
	b := openBrowser(t)
	b.open(m.URL + "/dead-letters?q=attempts%3A1")
	if got := b.text("[data-bulk-all]"); !strings.HasPrefix(got, "Select all matching (as of ") {
		t.Errorf("before anybody needs the number the button says %q", got)
	}
	eval[chromedp.Void](b, `document.querySelector("[data-bulk-all]").click()`)
	b.wait("all that match", bulkSays+`.match(/^All matching \(as of \d\d:\d\d:\d\d\) are selected: 10,100\.$/) !== null`)
	b.wait("the buttons say how many", barButtons+` === "Discard10,100… Replay10,100…"`)
	b.calm()
}

// Rule 5: selected text and an open dialog hold back changes; "." holds back everything.
func TestLive_HoldsAndFreezes(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(2)
	b := openBrowser(t)
	b.open(m.URL + "/dead-letters")
	states := `document.querySelector('.side [data-state-count="dead_letter"]').textContent`

	eval[chromedp.Void](b, `getSelection().selectAllChildren(document.querySelector("tbody th"))`)
	m.DeadLetters(1)
	b.wait("the totals follow", states+` === "3"`)
	if said := eval[string](b, newerSays); said != "" {
		t.Errorf("while text is selected the bar says %q", said)
	}
	eval[chromedp.Void](b, `getSelection().removeAllRanges()`)
	b.wait("then it is told", newerSays+` === "1 newer dead letter: show"`)

	b.press("?")
	m.DeadLetters(1)
	b.wait("the totals follow", states+` === "4"`)
	if said := eval[string](b, newerSays); said != "1 newer dead letter: show" {
		t.Errorf("while a dialog is open the bar says %q", said)
	}
	b.press("\x1b")
	b.wait("then it is told", newerSays+` === "2 newer dead letters: show"`)

	b.press(".")
	b.wait("the dot says so", `document.querySelector("[data-live-status]").innerText.trim() === "Frozen"`)
	id := eval[string](b, `document.querySelector("tr[data-job]").dataset.job`)
	m.Fixed.Store(true)
	m.Act(id, "replay", `{"run":1}`)
	(&rig.Process{T: t, URL: m.URL}).Until(func(now rig.Totals) bool { return now.States["completed"] == 1 })
	eval[chromedp.Void](b, askTwice)
	b.wait("more has come than was shown", `window.asked === 2`)
	if eval[bool](b, `document.querySelector("tr[data-job]").classList.contains("gone")`) || eval[string](b, states) != "4" {
		t.Error("a frozen page has changed")
	}
	b.press(".")
	b.wait("what was missed is shown", `document.querySelector("tr[data-job]").classList.contains("gone") && `+states+` === "3"`)
	b.still()
	b.calm()
}

// askTwice opens a second live connection, so that the first has had its time.
const askTwice = `
	window.asked = 0;
	{
		const socket = new WebSocket(new URL(document.body.dataset.live, location.href.replace("http", "ws")));
		socket.onopen = () => socket.send(JSON.stringify({ type: "subscribe", ids: [document.querySelector("tr[data-job]").dataset.job], filter: {}, newer: false }));
		socket.onmessage = () => { if (++window.asked === 2) socket.close(); };
	}`

// The number of open error groups follows, in the navigation and on the overview.
func TestLive_TheNumberOfOpenGroupsFollows(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(1)
	b := openBrowser(t)
	b.open(m.URL + "/")
	const says = `[...document.querySelectorAll('[data-counter="open_groups"] [data-value]')].map((n) => n.textContent).join()`
	if got := eval[string](b, says); got != "1,1" {
		t.Fatalf("the page says that %q groups are open, want 1 twice", got)
	}
	eval[chromedp.Void](b, `void fetch(document.querySelector('#h-groups').closest("section").querySelector("th a").href + "/resolve",
		{method: "POST", headers: {Accept: "application/json", "Content-Type": "application/x-www-form-urlencoded"}})`)
	b.wait("none is open any more, so that the overview lists none", says+` === "0"`)
}
