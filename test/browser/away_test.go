package browser_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/gorilla/websocket"

	"redrive/test/mill"
	"redrive/test/rig"
)

// spy counts, from the first script of the page on, what it asks of the server,
// remembers its timers, and lets a test hide it as a browser hides a tab.
const spy = `
	window.sockets = 0;
	window.WebSocket = class extends WebSocket { constructor(...a) { super(...a); window.sockets++; window.socket = this; } };
	window.polls = [];
	const ask = window.fetch;
	window.fetch = (url, ...rest) => {
		if (String(url).includes("/live")) window.polls.push(new URL(url, location.href).searchParams.get("ids") ? "ids" : "counters");
		return ask(url, ...rest);
	};
	window.timers = new Map();
	const set = window.setInterval, clear = window.clearInterval;
	window.setInterval = (f, ms) => { const id = set(f, ms); window.timers.set(id, { f, ms }); return id; };
	window.clearInterval = (id) => { window.timers.delete(id); clear(id); };
	window.hide = (is) => {
		Object.defineProperty(document, "hidden", { configurable: true, get: () => is });
		document.dispatchEvent(new Event("visibilitychange"));
	};
`

func (b *browser) openSpied(url string) {
	b.t.Helper()
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: spy})
	b.open(url)
}

// Rule 6: a hidden tab asks for the counters every 30 seconds and for nothing
// else; on return it looks once at the rows that it shows.
func TestLive_HiddenTabRests(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	id := m.DeadLetters(1)[0]
	b := openBrowser(t)
	b.openSpied(m.URL + "/")
	eval[chromedp.Void](b, `hide(true)`)
	b.wait("the connection is closed", `window.socket.readyState >= 2`)
	if got := eval[string](b, `[...timers.values()].map((t) => t.ms).sort((a, b) => a - b).join(" ")`); got != "1000 30000" {
		t.Errorf("a hidden tab has timers of %s ms, want 1000 for what it shows and 30000 for the counters", got)
	}
	m.Fixed.Store(true)
	m.Act(id, "replay", `{"run":1}`)
	eval[chromedp.Void](b, `[...timers.values()].find((t) => t.ms === 30000).f()`)
	b.wait("the counters follow", `document.querySelector('[data-counter="jobs_replayed"] [data-value]').textContent === "1"`)
	if got := eval[string](b, `polls.join(" ") + " " + sockets`); got != "counters 1" {
		t.Errorf("a hidden tab asked for %q, want the counters once and no connection", got)
	}
	if eval[bool](b, `document.querySelector("tr[data-job]").classList.contains("gone")`) {
		t.Error("a hidden tab has followed its rows")
	}

	eval[chromedp.Void](b, `hide(false)`)
	b.wait("on return the rows are looked at", `document.querySelector("tr[data-job]").classList.contains("gone")`)
	if got := eval[string](b, `polls.join(" ") + " " + sockets`); got != "counters 2" {
		t.Errorf("on return it asked for %q, want one connection that asks once", got)
	}
	b.still()
	b.calm()
}

// Rule 7: the server stops and comes back at the same address. The page says
// so, connects again and looks at its rows; it is never loaded again, and its
// ticks are where they were.
func TestLive_ComesBackAfterARestart(t *testing.T) {
	t.Parallel()
	home := newHome(t, "policy: {max_attempts: 1}", "unknown_type: dead_letter")
	p := home.start()
	ids := []string{p.Post(`{"type":"corn.ground"}`), p.Post(`{"type":"corn.ground"}`)}
	p.Until(func(now rig.Totals) bool { return now.States["dead_letter"] == 2 })
	b := openBrowser(t)
	b.open(p.URL + "/dead-letters")
	eval[chromedp.Void](b, `window.sameDocument = true; document.querySelector("[data-pick]").click()`)

	if code := p.Stop(syscall.SIGTERM).Code(); code != 0 {
		t.Fatalf("it ended with %d", code)
	}
	b.wait("the dot says so", `document.querySelector("[data-live-status]").innerText.includes("Connecting") || document.querySelector("[data-live-status]").innerText.includes("Offline since")`)
	p = home.startAt(p.URL)
	response, err := http.Post(p.URL+"/api/v1/jobs/"+ids[0]+"/discard", "application/json", strings.NewReader(`{"run":1}`))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	b.wait("the page is live again", isLive)
	b.wait("it has looked at its rows", `document.querySelector('tr[data-job="`+ids[0]+`"]').classList.contains("gone")`)
	if !eval[bool](b, `window.sameDocument === true && document.querySelectorAll("[data-pick]:checked").length === 1`) {
		t.Error("the page was loaded again, or has lost its tick")
	}
	b.still()
	b.quiet("ERR_CONNECTION_REFUSED")
	b.quiet("WebSocket")
	b.calm()
}

// While the server does not answer, a page says since when it is not kept current, greys
// its states and counts nothing down; all of that ends when the server is back.
func TestLive_SaysThatItIsNotUpdated(t *testing.T) {
	t.Parallel()
	home := newHome(t, "policy: {max_attempts: 2, strategy: constant, initial_interval: 99s, jitter: false}", "unknown_type: dead_letter",
		`handlers: {corn.rests: {exec: {command: ["/bin/false"]}}}`)
	p := home.start()
	waiting := p.Post(`{"type":"corn.rests"}`)
	p.Post(`{"type":"corn.ground"}`)
	p.Post(`{"type":"corn.ground"}`)
	p.Until(func(now rig.Totals) bool { return now.States["dead_letter"] == 2 && now.States["retryable"] == 1 })
	running := (&mill.Mill{T: t, URL: p.URL}).Operate(0.001)
	(&mill.Mill{T: t, URL: p.URL}).Starts(running)

	const (
		says  = `document.querySelector("#main").textContent.match(/Not updated since \d\d:\d\d:\d\d\./)`
		grey  = `getComputedStyle(document.querySelector("main .badge")).filter === "grayscale(1)"`
		clock = `document.querySelector("time[data-tick]").textContent`
		left  = `document.querySelector("main time[data-countdown]").textContent`
	)
	pages := map[string]*browser{}
	for _, path := range []string{"/jobs/" + waiting, running, "/", "/dead-letters"} {
		pages[path] = openBrowser(t)
		pages[path].open(p.URL + path)
		if eval[bool](pages[path], says+` !== null`) || eval[bool](pages[path], grey) {
			t.Errorf("%s is not updated while its server answers", path)
		}
	}
	if code := p.Stop(syscall.SIGTERM).Code(); code != 0 {
		t.Fatalf("it ended with %d", code)
	}
	for path, b := range pages {
		b.wait(path+" says so", says+` !== null && `+grey)
	}
	b := pages["/jobs/"+waiting]
	eval[chromedp.Void](b, `window.seconds = new Set(); window.shown = `+left+`;
		new MutationObserver(() => window.seconds.add(`+clock+`)).observe(document.querySelector("time[data-tick]"), { childList: true, characterData: true, subtree: true })`)
	b.wait("two seconds have passed", `window.seconds.size >= 2`)
	if !eval[bool](b, left+` === window.shown`) {
		t.Error("the next attempt is counted down while it is unknown whether it will be")
	}

	home.startAt(p.URL)
	for path, b := range pages {
		b.wait(path+" is live again", isLive+` && `+says+` === null && !(`+grey+`)`)
		b.quiet("ERR_CONNECTION_REFUSED")
		b.quiet("WebSocket")
		b.calm()
	}
}

// An answer to a poll that comes when the page is live again says nothing about how it is kept
// up to date.
func TestLive_IsLiveAlthoughAPollIsAnsweredLate(t *testing.T) {
	t.Parallel()
	home := newHome(t)
	p := home.start()
	b := openBrowser(t)
	b.open(p.URL + "/")
	b.wait("the page is live", isLive)
	eval[chromedp.Void](b, `{ const ask = window.fetch; window.fetch = (url, options) => String(url).includes("/live")
		? new Promise((answer) => { window.answerLate = () => answer(new Response("{}")); }) : ask(url, options); }`)
	if code := p.Stop(syscall.SIGTERM).Code(); code != 0 {
		t.Fatalf("it ended with %d", code)
	}
	b.wait("it polls", `"answerLate" in window`)

	home.startAt(p.URL)
	b.wait("the page is live again", isLive)
	eval[chromedp.Void](b, `window.answerLate(); setTimeout(() => window.answered = true)`)
	b.wait("the late answer is read", `window.answered === true`)
	if !eval[bool](b, isLive) {
		t.Errorf("a late answer made it %q", eval[string](b, `document.querySelector("[data-live-status]").textContent`))
	}
	b.quiet("ERR_CONNECTION_REFUSED")
	b.quiet("WebSocket")
	b.calm()
}

// Rule 1: what failed while there was no connection is newer than the page, too.
func TestLive_CountsWhatCameWhileItWasAway(t *testing.T) {
	t.Parallel()
	home := newHome(t, "policy: {max_attempts: 1}", "unknown_type: dead_letter")
	p := home.start()
	fail := func(count, all int) {
		for range count {
			p.Post(`{"type":"corn.ground"}`)
		}
		p.Until(func(now rig.Totals) bool { return now.States["dead_letter"] == all })
	}
	fail(2, 2)
	b := openBrowser(t)
	b.open(p.URL + "/dead-letters")
	url := p.URL
	fail(1, 3)
	b.wait("the stream tells of one", newerSays+` === "1 newer dead letter: show"`)
	p.Stop(syscall.SIGTERM).Code()
	p = home.start() // elsewhere
	fail(3, 6)
	p.Stop(syscall.SIGTERM).Code()
	p = home.startAt(url)
	b.wait("the page is live again", isLive)
	b.wait("all are counted, each once", newerSays+` === "4 newer dead letters: show"`)
	fail(2, 8)
	b.wait("the stream goes on from there", newerSays+` === "6 newer dead letters: show"`)
	b.run(chromedp.Reload())
	b.wait("the page is live", isLive)
	fail(1, 9)
	b.wait("a new page begins anew", newerSays+` === "1 newer dead letter: show"`)
	b.quiet("ERR_CONNECTION_REFUSED")
	b.quiet("WebSocket")
	b.calm()
}

// Rule 7: where no websocket gets through, the page polls after three failures,
// and is live once one does.
func TestLive_PollsWhereNoWebsocketGetsThrough(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	ids := m.DeadLetters(2)
	target, err := url.Parse(m.URL)
	if err != nil {
		t.Fatal(err)
	}
	var open atomic.Bool
	proxy := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" && !open.Load() {
			http.Error(w, "no websockets here", http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	b := openBrowser(t)
	b.run(chromedp.Navigate(front.URL + "/dead-letters"))
	eval[chromedp.Void](b, watch)
	b.wait("it polls", `document.querySelector("[data-live-status]").innerText.includes("Polling")`)
	m.Fixed.Store(true)
	m.Act(ids[0], "replay", `{"run":1}`)
	b.wait("a poll patches the row", `document.querySelector('tr[data-job="`+ids[0]+`"]').classList.contains("gone")`)
	m.Fixed.Store(false)
	m.DeadLetters(2)
	b.wait("a poll counts what is newer", newerSays+` === "2 newer dead letters: show"`)
	m.Fixed.Store(true)
	open.Store(true)
	b.wait("then it is live", isLive)
	m.Act(ids[1], "replay", `{"run":1}`)
	b.wait("a message patches the row", `document.querySelector('tr[data-job="`+ids[1]+`"]').classList.contains("gone")`)
	b.still()
	b.quiet("403")
	b.calm()
}

// A page of an address that has its websockets polls, until there is room.
func TestLive_PollsWhereItsAddressHasTooManyWebsockets(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	id := m.DeadLetters(1)[0]
	var others []*websocket.Conn
	for {
		conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(m.URL, "http")+"/live", nil)
		if err != nil {
			break
		}
		defer conn.Close()
		others = append(others, conn)
	}
	b := openBrowser(t)
	b.run(chromedp.Navigate(m.URL + "/dead-letters"))
	b.wait("it polls", `document.querySelector("[data-live-status]").innerText.includes("Polling")`)
	m.Act(id, "replay", `{"run":1}`)
	b.wait("a poll patches the row", `document.querySelector("tr[data-job]").dataset.run === "2"`)
	others[0].Close()
	b.wait("then it is live", isLive)
	b.quiet("429")
	b.calm()
}

// Keys only: from the overview to a replayed job, ticked and unticked on the
// way, without a pointer. What is typed into a field is text.
func TestKeyboard_FromTheOverviewToAReplay(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(5)
	b := openBrowser(t)
	b.open(m.URL + "/")
	b.goTo("d", "dead-letters")
	const onFirst = `document.activeElement.closest("tr") === document.querySelector("tr[data-job]")`
	for n := 0; n < 20 && !eval[bool](b, onFirst); n++ { // the first keys may be dropped all the same
		b.press("j")
		b.press("k")
	}
	b.press("j")
	b.press("j")
	b.press("k")
	b.wait("the focus is on the second row", `document.activeElement.closest("tr") === document.querySelectorAll("tr[data-job]")[1]`)
	b.press("x")
	b.press("j")
	b.press("j")
	b.press("X")
	b.wait("three rows are ticked", bulkSays+` === "3 selected"`)
	b.press("x")
	b.wait("two are", bulkSays+` === "2 selected"`)

	b.press("/")
	b.wait("the focus is in the search field", `document.activeElement.type === "search"`)
	eval[chromedp.Void](b, `document.activeElement.value = ""`) // the protocol types "/" although the page took the key
	b.press("xjr")
	if got := eval[string](b, `document.activeElement.value + " " + `+bulkSays); got != "xjr 2 selected" {
		t.Errorf("what was typed did %q", got)
	}
	b.press("\x1b")
	b.wait("Escape leads back to the row", `document.activeElement.closest("tr") === document.querySelectorAll("tr[data-job]")[3]`)
	m.Fixed.Store(true)
	for range 3 {
		b.press("k")
	}
	b.press("r")
	b.wait("r replays the row", `document.querySelector("tr[data-job]").innerText.includes("Run 2 succeeded")`)
	b.wait("the focus is where it was", `document.activeElement.closest("tr") === document.querySelector("tr[data-job]")`)
	b.press("j")
	b.press("d")
	b.wait("d discards the row", `document.querySelectorAll("tr[data-job]")[1].innerText.includes("Discarded")`)
	id := eval[string](b, `document.querySelector("tr[data-job]").dataset.job`)
	b.press("k")
	b.press("\r")
	b.arrive("enter opens the job", `location.pathname === "/jobs/`+id+`"`)
	if d := rig.Get[rig.Detail](t, m.URL+"/api/v1/jobs/"+id); d.Job.Run != 2 {
		t.Errorf("the job is in run %s, want 2", strconv.Itoa(d.Job.Run))
	}
	b.calm()
}

// g and a letter lead to every section that the navigation has.
func TestKeyboard_GoesToEverySection(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	b := openBrowser(t)
	b.open(m.URL + "/")
	for _, section := range eval[[]string](b, `[...document.querySelectorAll("nav.side [data-section]")].map((a) => a.dataset.section).reverse()`) {
		key, ok := map[string]string{
			"overview": "o", "failures": "f", "dead-letters": "d", "operations": "m", "trash": "t",
			"jobs": "j", "queues": "q", "workers": "w", "policies": "p", "retention": "r", "audit": "a",
		}[section]
		if !ok {
			continue // access, for administrators only
		}
		b.goTo(key, section)
	}
	b.calm()
}

// x on a job that cannot be ticked says why.
func TestKeyboard_SaysWhyARefusedJobIsNotTicked(t *testing.T) {
	t.Parallel()
	url := startDemo(t)
	b := openBrowser(t)
	b.open(url + "/dead-letters")
	eval[chromedp.Void](b, `document.querySelector(".alarm tr[data-job] a").focus()`)
	b.press("x")
	b.wait("it is said", `document.querySelector(".alarm [data-note]").innerText.includes("Refused jobs cannot be selected here")`)
	b.calm()
}

// The switch of the time zone changes every time on the page, and the next one
// remembers it.
func TestTimes_UTCOrLocal(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(2)
	b := openBrowser(t)
	call(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"})
	b.open(m.URL + "/dead-letters")
	const titles = `[...document.querySelectorAll("time[title]")].map((t) => t.title.slice(-9))`
	if wrong := eval[[]string](b, titles+`.filter((t) => !t.endsWith(" UTC"))`); len(wrong) > 0 {
		t.Errorf("at first some times are not in UTC: %q", wrong)
	}
	eval[chromedp.Void](b, `document.querySelector("[data-zone-switch]").click()`)
	for _, path := range []string{"", "/jobs", "/queues", "/"} {
		if path != "" {
			b.run(chromedp.Navigate(m.URL + path))
			b.wait("the page is live", isLive)
		}
		if wrong := eval[[]string](b, titles+`.filter((t) => t !== "UTC+05:30")`); len(wrong) > 0 {
			t.Errorf("on %q some times are not local: %q", path, wrong)
		}
	}
	if got := b.text("[data-zone]"); got != "Local" {
		t.Errorf("the switch says %q", got)
	}
	b.calm()
}
