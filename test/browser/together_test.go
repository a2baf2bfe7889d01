package browser_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"redrive/test/mill"
	"redrive/test/rig"
)

// always asks the page, now, whenever anything on it changes and every 100 ms, for what
// is wrong with it: a function that returns text, or nothing.
func (b *browser) always(wrong string) {
	b.t.Helper()
	eval[chromedp.Void](b, `
		window.wrongs = [];
		{
			const wrong = `+wrong+`;
			const check = () => {
				const text = wrong();
				if (text && !window.wrongs.includes(text)) window.wrongs.push(text);
			};
			new MutationObserver(check).observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
			setInterval(check, 100);
			check();
		}
		undefined;`)
}

// never fails if anything was wrong since always.
func (b *browser) never() {
	b.t.Helper()
	if wrongs := eval[[]string](b, `window.wrongs`); len(wrongs) > 0 {
		b.t.Errorf("for a moment the page said:\n%s", strings.Join(wrongs, "\n"))
	}
}

// redrawn waits until the page has been drawn again from now on.
func (b *browser) redrawn() {
	b.t.Helper()
	eval[chromedp.Void](b, `
		window.drawn = false;
		document.addEventListener("refreshed", () => { window.drawn = true; }, { once: true });
		document.dispatchEvent(new Event("visibilitychange"))`)
	b.wait("the page is drawn again", `window.drawn`)
}

// Rule 0: the badge of a job never says another state than the sentence, the buttons and
// the history beside it.
func TestTogether_TheWholePageOfAJob(t *testing.T) {
	t.Parallel()
	v := watchTruth(t)
	const agrees = `() => {
		const badge = document.querySelector(".head .badge").textContent.trim(), says = document.querySelector(".next").textContent.replace(/\s+/g, " ");
		const offers = document.querySelector(".head .actions").textContent.replace(/\s+/g, " ");
		const sentence = { completed: /The job succeeded/, "dead letter": /The job was dead-lettered/, retryable: / starts in | is due/, trashed: /discarded the dead letter/,
			available: /starts as soon as/, active: / has run for / }[badge];
		const button = { completed: /^((?!Replay|Discard|Run now).)*$/, "dead letter": /Discard.*Replay, run/, retryable: /Run now/ }[badge];
		const said = document.querySelector(".head .answer")?.textContent ?? "";
		return sentence?.test(says) && (!button || button.test(offers)) && !said ? "" : badge + " beside " + says + " beside " + offers + said;
	}`
	id := v.DeadLetters(1)[0]
	v.on("/jobs/" + id)
	v.always(agrees)
	v.pressOn(`.head form[data-act="replay"] button`)
	v.says("Two runs, two attempts")
	v.Fixed.Store(true)
	v.pressOn(`.head form[data-act="replay"] button`)
	v.says("The job succeeded", "completed", "Run 3")
	if on := eval[string](v.browser, `document.querySelector("[data-note]").textContent`); on != "" {
		t.Errorf("what the page says is said again: %q", on)
	}
	v.never()

	v.Fixed.Store(false)
	id = v.Enqueue(1, "corn.rests", "rest")[0]
	v.on("/jobs/" + id)
	v.says("Attempt 2 of 2 starts in")
	v.always(agrees)
	v.Fixed.Store(true)
	v.pressOn(`form[data-act="reschedule"]:has([value="0s"]) button`)
	v.says("The job succeeded")
	v.never()
	v.calm()
}

// A user who acts by the keyboard goes on from where the button was, not from the top of
// the document.
func TestTogether_TheFocusStaysBesideAButtonThatIsGone(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	id := m.DeadLetters(1)[0]
	m.Fixed.Store(true)
	b := openBrowser(t)
	b.open(m.URL + "/jobs/" + id)
	eval[chromedp.Void](b, `document.querySelector('.head form[data-act="replay"] button').focus()`)
	b.press("\r")
	b.wait("the job succeeded", `document.querySelector(".next").textContent.includes("The job succeeded")`)
	if on := eval[string](b, `document.activeElement.className`); on != "actions" {
		t.Errorf("the focus is on %q", on)
	}
	b.calm()
}

// A queue that is paused on its page says so everywhere at once.
func TestTogether_TheWholePageOfAQueue(t *testing.T) {
	t.Parallel()
	v := watchTruth(t)
	v.DeadLetters(1)
	v.on("/queues/sieve")
	v.always(`() => {
		const badge = document.querySelector(".head .title").innerText.includes("paused");
		const rule = [...document.querySelectorAll('[aria-labelledby="h-rules"] dt')].some((dt) => dt.textContent === "Paused");
		return badge === rule ? "" : "paused in its head: " + badge + ", in its rules: " + rule;
	}`)
	eval[chromedp.Void](v.browser, `document.querySelector('.head form[data-act="flip"] button').focus()`)
	v.press("\r")
	v.says("Resume")
	v.wait("the same button has the focus", `document.activeElement.innerText.trim().startsWith("Resume")`)
	v.press("\r")
	v.says("Pause")
	v.never()
	v.calm()
}

// deadLetters is every way in which a page says how many dead letters there are.
const deadLetters = `() => {
	const number = (text) => Number(text.match(/[\d,]+/)?.[0].replaceAll(",", ""));
	const sum = (label) => { const all = [...document.querySelectorAll('#main [aria-label="' + label + '"] a > span:last-of-type')]; return all.length && all.reduce((n, e) => n + number(e.textContent), 0); };
	const every = [
		["navigation", '.side [data-state-count="dead_letter"]'], ["main", '#main [data-state-count="dead_letter"]'],
		["how full", "#h-fill b"], ["select all", "[data-bulk-all]"],
	].flatMap(([name, at]) => [...document.querySelectorAll(at)].map((e) => [name, number(e.textContent)]));
	for (const label of ["Reasons", "Queues", "Types", "Dead letters by reason"]) if (sum(label)) every.push([label, sum(label)]);
	window.ways = every.length;
	(window.values ??= new Set()).add(every[0][1]);
	return every.every(([, n]) => n === every[0][1]) ? "" : every.map((one) => one.join(" ")).join(", ");
}`

// While an operation replays the dead letters, a page has one number of them.
func TestTogether_OneNumberOfDeadLetters(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(900)
	m.Fixed.Store(true)
	b := openBrowser(t)
	for path, ways := range map[string]int{"/dead-letters": 6, "/": 3, "/jobs?state=dead_letter": 3} {
		operation := m.Operate(5) // slowly: a busy browser draws once in a few seconds
		m.Starts(operation)
		b.open(m.URL + path)
		b.always(deadLetters)
		b.wait("the number follows", `window.values.size > 4`)
		if got := eval[int](b, `window.ways`); got < ways {
			t.Errorf("%s says the number in %d ways, want %d", path, got, ways)
		}
		b.never()
		m.Change(strings.TrimPrefix(operation, "/operations")+"/abort", "")
	}
	b.calm()
}

// The navigation says of an operation what its page says.
func TestTogether_OneProgressOfAnOperation(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(600)
	m.Fixed.Store(true)
	path := m.Operate(5) // slowly: a busy browser draws once in a few seconds
	m.Starts(path)
	operation := strings.TrimPrefix(path, "/operations")
	m.Change(operation+"/pause", "") // until the page is watched
	b := openBrowser(t)
	b.open(m.URL + path)
	b.always(`() => {
		const brief = document.querySelector(".side .under-way .brief")?.textContent.trim(), done = document.querySelector('[data-n="done"]').textContent;
		const said = brief?.match(/(\d+) of 600$/)?.[1];
		if (!said) return "";
		(window.compared ??= new Set()).add(said);
		return said === done ? "" : brief + " in the navigation, " + done + " on the page";
	}`)
	m.Change(operation+"/resume", "")
	b.wait("three numbers were compared", `window.compared?.size >= 3`)
	m.Change(operation+"/rate", `{"rate":0}`)
	b.wait("all are enqueued", `document.querySelector('[data-n="done"]').textContent === "600"`)
	b.never()
	b.calm()
}

// What a job waits for stays in its row from the first drawing on.
func TestTogether_HowLongAJobWaitsStays(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.Enqueue(3, "corn.rests", "rest")
	(&rig.Process{T: t, URL: m.URL}).Until(func(now rig.Totals) bool { return now.States["retryable"] == 3 })
	b := openBrowser(t)
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
		window.blank = 0;
		new MutationObserver(() => {
			for (const cell of document.querySelectorAll('tr[data-changed] [data-cell="why"]')) if (!cell.textContent.includes("waits")) window.blank++;
		}).observe(document, { subtree: true, childList: true, characterData: true, attributes: true });`})
	b.open(m.URL + "/jobs?state=retryable")
	b.wait("the rows were told of", `document.querySelectorAll("tr[data-changed]").length === 3`)
	b.redrawn()
	if n := eval[int](b, `window.blank`); n != 0 {
		t.Errorf("%d times a row did not say how long it waits", n)
	}
	b.calm()
}

// gate is a way to the mill on which drawings of pages can be stopped after the server
// has made them.
type gate struct {
	*httptest.Server
	closed  atomic.Bool
	arrived chan struct{} // one for each drawing that is stopped
	open    chan struct{}
}

func startGate(t *testing.T, to string) *gate {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{arrived: make(chan struct{}, 100), open: make(chan struct{})}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(r *http.Response) error {
		if g.closed.Load() && r.Request.Method == http.MethodGet && strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
			g.arrived <- struct{}{}
			<-g.open
		}
		return nil
	}
	g.Server = httptest.NewServer(proxy)
	t.Cleanup(g.Close)
	return g
}

// What happened between the drawing of a page and its connection is drawn, even when the
// new number is part of the old one.
func TestTogether_NothingIsLostBeforeAPageIsLive(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	ids := m.DeadLetters(10)
	m.Fixed.Store(true)
	g := startGate(t, m.URL)
	b := openBrowser(t)
	g.closed.Store(true)
	b.run(chromedp.Navigate("about:blank"))
	eval[chromedp.Void](b, `location.assign("`+g.URL+`/queues/sieve"); undefined`)
	<-g.arrived
	g.closed.Store(false)
	for _, id := range ids {
		m.Act(id, "replay", `{"run":1}`)
	}
	(&rig.Process{T: t, URL: m.URL}).Until(func(now rig.Totals) bool { return now.States["completed"] == 10 })
	close(g.open)
	b.arrive("the page says what is true now", `document.querySelector('[aria-labelledby="h-depths"] dl')?.innerText.match(/Completed\s+10/) != null`)
	b.calm()
}

// A drawing that the server made before an act does not undo what the act has shown.
func TestTogether_AnOlderDrawingUndoesNothing(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(2)
	m.Fixed.Store(true)
	g := startGate(t, m.URL)
	b := openBrowser(t)
	b.open(g.URL + "/dead-letters")
	b.redrawn()
	g.closed.Store(true)
	eval[chromedp.Void](b, `document.dispatchEvent(new Event("visibilitychange"))`)
	<-g.arrived
	g.closed.Store(false)
	eval[chromedp.Void](b, `window.row = document.querySelector("tr[data-job]"); window.row.querySelector('form[data-act="replay"] button').click()`)
	b.wait("the row says so", `window.row.classList.contains("gone") && window.row.innerText.includes("Run 2 succeeded")`)
	b.always(`() => window.row.classList.contains("gone") && window.row.dataset.run === "2" ? "" : window.row.innerText`)
	eval[chromedp.Void](b, `window.drawn = 0; document.addEventListener("refreshed", () => { window.drawn++; })`)
	close(g.open)
	b.wait("the older and a newer drawing are there", `window.drawn > 1`)
	b.never()
	b.calm()
}

// What a switch did is told at once, and is on the page even when that is not drawn again.
func TestTogether_ASwitchAnswersWithoutADrawing(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(1)
	g := startGate(t, m.URL)
	b := openBrowser(t)
	b.open(g.URL + "/queues")
	b.redrawn()
	g.closed.Store(true)
	eval[chromedp.Void](b, `document.querySelector('tr:has([href="/queues/sieve"]) form[data-act="flip"] button').click()`)
	for what, says := range map[string]string{"the voice": "[data-announce]", "the page": "[data-note][data-said]"} {
		if err := b.poll(`document.querySelector("` + says + `")?.textContent.startsWith("Paused")`); err != nil {
			t.Errorf("%s does not say that the queue is paused: %v", what, err)
		}
	}
	g.closed.Store(false)
	close(g.open)
	b.wait("then it is drawn", `document.querySelector('tr:has([href="/queues/sieve"])').innerText.includes("paused")`)
	b.calm()
}

// A page that is frozen shows nothing new, not even what time alone brings, nor a
// drawing that is on its way.
func TestTogether_AFrozenPageIsNotDrawn(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(40)
	m.Fixed.Store(true)
	path := m.Operate(10)
	m.Starts(path)
	g := startGate(t, m.URL)
	b := openBrowser(t)
	b.open(g.URL + path)
	g.closed.Store(true)
	<-g.arrived
	g.closed.Store(false)
	b.press(".")
	eval[chromedp.Void](b, `window.drawn = 0; document.addEventListener("refreshed", () => { window.drawn++; })`)
	close(g.open)
	m.Leaves(path, "running")
	eval[chromedp.Void](b, `window.polled = 0; { const poll = setInterval(() => { if (++window.polled === 30) clearInterval(poll); }, 100); }`)
	b.wait("three seconds pass", `window.polled === 30`)
	if n := eval[int](b, `window.drawn`); n != 0 {
		t.Errorf("a frozen page was drawn %d times", n)
	}
	b.press(".")
	b.wait("then it is drawn", `document.querySelector('[data-n="done"]').textContent === "40"`)
	b.calm()
}

// The rows of the operations are reached by keys; nothing else than opening is done there.
func TestTogether_KeysOnTheListOfOperations(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(2)
	for range 3 {
		m.Leaves(m.Change("", `{"kind":"replay","filter":"state:dead_letter"}`), "collecting")
	}
	b := openBrowser(t)
	b.open(m.URL + "/operations")
	const on = `[...document.querySelectorAll("main tbody tr")].indexOf(document.activeElement.closest("tr"))`
	for n := 0; n < 20 && eval[int](b, on) != 1; n++ { // the first keys may be dropped
		b.press("k")
		b.press("k")
		b.press("k")
		b.press("j")
	}
	for _, key := range []string{"e", "r", "d", "x"} {
		b.press(key)
	}
	if at := eval[int](b, on); at != 1 {
		t.Fatalf("the focus is on row %d", at)
	}
	if to := eval[string](b, `location.pathname`); to != "/operations" {
		t.Fatalf("a key leads to %s", to)
	}
	b.press("\r")
	b.arrive("it is open", `location.pathname === "/operations/2"`)
	b.calm()
}

// The answer to a form keeps its title and its place in the navigation when what
// surrounds it is drawn again.
func TestTogether_AnAnswerKeepsItsPlace(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	id := m.DeadLetters(1)[0]
	b := openBrowser(t)
	b.open(m.URL + "/jobs/" + id + "/replay")
	const place = `document.title + ", " + document.querySelector("nav.side [aria-current]").dataset.section`
	before := eval[string](b, place)
	b.run(chromedp.Click(chromedp.CSS(`button[value="check"]`)))
	b.arrive("it is checked", `document.querySelector("#main").dataset.still === "answer" && `+isLive)
	b.redrawn()
	if after := eval[string](b, place); after != before {
		t.Errorf("it was %s and is %s", before, after)
	}
	m.DeadLetters(1)
	b.wait("the navigation follows", `document.querySelector('.side [data-state-count="dead_letter"]').textContent === "2"`)
	if after := eval[string](b, place); after != before {
		t.Errorf("it was %s and is %s", before, after)
	}
	b.quiet("WebSocket") // which was still being opened
	b.calm()
}

// The overview says as of when its rows are listed, however often their cells are drawn.
func TestTogether_TheOverviewSaysWhichRowsItLists(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(1)
	b := openBrowser(t)
	b.open(m.URL + "/")
	const asOf = `document.querySelector(".head time").dateTime`
	before := eval[string](b, asOf)
	m.DeadLetters(1)
	b.wait("the figures follow", `document.querySelector('#main [data-state-count="dead_letter"]').textContent === "2"`)
	if rows := eval[int](b, `document.querySelectorAll('[aria-labelledby="h-failing"] tbody tr').length`); rows != 1 {
		t.Errorf("it lists %d rows, want the one of before", rows)
	}
	if after := eval[string](b, asOf); after != before {
		t.Errorf("the rows of %s are said to be of %s", before, after)
	}
	b.run(chromedp.Click(chromedp.CSS(`.head p a`)))
	b.arrive("both are listed", `document.querySelectorAll('[aria-labelledby="h-failing"] tbody tr').length === 2`)
	b.calm()
}

// A selection that is sent after the login ended is kept; the page says so in words for
// people, and is live again once a user has logged in.
func TestTogether_ASelectionAfterTheLoginEnded(t *testing.T) {
	t.Parallel()
	g := startGuarded(t)
	b := openBrowser(t)
	b.as(g.url, "ana", rig.AnaPassword)
	b.run(chromedp.Navigate(g.url + "/dead-letters"))
	b.wait("the page is live", isLive)
	b.run(chromedp.Click(chromedp.CSS(`tbody input[type="checkbox"]`)))
	eval[chromedp.Void](b, `
		void fetch("/logout", { method: "POST", body: new URLSearchParams() })
			.then(() => document.querySelector('form[data-bulk] button[value="replay"]').click())`)
	b.wait("the bar says so", `document.querySelector("main").textContent.includes("Nothing was changed: your login has ended.")`)
	b.wait("the end is told", `document.querySelector("#notices").textContent.includes("Your session has ended")`)
	b.wait("the dot says so", `document.querySelector("[data-live-status]").innerText.trim() === "Logged out"`)
	if got := b.text("main"); strings.Contains(got, "Bearer") || !eval[bool](b, `document.querySelector("tbody [data-pick]").checked`) {
		t.Errorf("the page speaks of tokens, or the tick is gone:\n%s", got)
	}
	eval[chromedp.Void](b, `
		void fetch("/login", { method: "POST", body: new URLSearchParams({ name: "ana", password: `+strconv.Quote(rig.AnaPassword)+` }) })
			.then(() => document.dispatchEvent(new Event("visibilitychange")))`) // as another tab does
	b.wait("the page is live again", isLive+` && !document.querySelector("#notices").textContent.includes("Your session has ended")`)
	b.quiet("401")
	b.quiet("WebSocket")
	b.calm()
}
