package browser_test

import (
	"fmt"
	"html"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"redrive/test/rig"
)

// plain is the dashboard with a user, reached over plain HTTP from the network.
type plain struct {
	t     *testing.T
	local string // where this machine reaches it
	port  string
	token string // of an admin
	p     *rig.Process
}

func startPlain(t *testing.T, settings ...string) plain {
	t.Helper()
	home := newHome(t, append(settings, "hosts: [redrive.example]", "unknown_type: dead_letter")...)
	home.addUser("ana", "admin", rig.AnaPassword)
	token := home.newToken("setup", "admin")
	p := rig.Await(t, home.command("--listen", "0.0.0.0:0"))
	address, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	return plain{t, "http://127.0.0.1:" + address.Port() + address.Path, address.Port(), token, p}
}

// api asks the dashboard with the token, from this machine.
func (s plain) api(method, path, body string) string {
	s.t.Helper()
	r, err := http.NewRequest(method, s.local+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// letters makes dead letters: no handler knows their type.
func (s plain) deadLetters(n int) {
	s.t.Helper()
	for i := range n {
		s.api(http.MethodPost, "/jobs", fmt.Sprintf(`{"type":"order.ship","queue":"orders","payload":{"n":%d}}`, i))
	}
	s.eventually("the dead letters are there", func() bool {
		return strings.Count(s.api(http.MethodGet, "/jobs?state=dead_letter&limit=50", ""), `"id"`) >= n
	})
}

// eventually waits for something to become true at the dashboard.
func (s plain) eventually(what string, is func() bool) {
	s.t.Helper()
	late, again := time.After(3*time.Minute), time.NewTicker(50*time.Millisecond)
	defer again.Stop()
	for !is() {
		select {
		case <-again.C:
		case <-late:
			s.t.Fatalf("never: %s; it said:\n%s", what, s.p.Stderr)
		}
	}
}

// exported waits until an export is in the audit log, which is before its first byte.
func (s plain) exported(n int) {
	s.t.Helper()
	s.eventually("the export is in the audit log", func() bool {
		return strings.Count(s.api(http.MethodGet, "/audit?action=export", ""), "jobs.csv") == n
	})
}

// hostOfThisMachine is an address of this machine that other machines see, or one
// that only it sees.
func hostOfThisMachine(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() && !prefix.Addr().IsLoopback() {
			return prefix.Addr().String()
		}
	}
	return "127.0.0.2"
}

// downloads lets the browser keep files, which it otherwise does not even ask for.
func (b *browser) downloads() {
	b.t.Helper()
	call(b, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{
		Behavior: cdpbrowser.SetDownloadBehaviorBehaviorAllow, DownloadPath: b.t.TempDir(),
		BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID,
	})
}

func (b *browser) logInAsAna(at string) {
	b.t.Helper()
	b.run(chromedp.Navigate(at), chromedp.WaitVisible(chromedp.CSS(`input[name="password"]`)),
		chromedp.SendKeys(chromedp.CSS(`input[name="name"]`), "ana"),
		chromedp.SendKeys(chromedp.CSS(`input[name="password"]`), rig.AnaPassword),
		chromedp.Click(chromedp.CSS(`.login button`)))
	b.arrive("the login is answered", `document.readyState === "complete" &&
		(document.querySelector(".user summary") || document.body.innerText.includes("403"))`)
	if !eval[bool](b, `!!document.querySelector(".user summary")`) {
		b.t.Fatalf("the login at %s was answered with:\n%s", at, b.text("main"))
	}
}

// Browsers say less about where a form comes from when they speak plain HTTP to
// another machine: no Sec-Fetch-Site. Login, acts, operations, exports and the logout
// work there as well, under a name and under an address, without scripts.
func TestBrowser_FormsWorkOverPlainHTTP(t *testing.T) {
	t.Parallel()
	formsWorkAt(t, "redrive.example")
}

func TestLong_BrowserFormsWorkOverPlainHTTP(t *testing.T) {
	t.Parallel()
	formsWorkAt(t, hostOfThisMachine(t))
}

func formsWorkAt(t *testing.T, host string) {
	t.Helper()
	s := startPlain(t)
	s.deadLetters(4)
	b := openBrowser(t)
	b.downloads()
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	site := "http://" + host + ":" + s.port
	b.logInAsAna(site + "/dead-letters")

	b.run(chromedp.Click(chromedp.CSS(`tbody form[data-act="replay"] button`)), chromedp.WaitVisible(chromedp.CSS("[data-answer]")))
	if got := b.text("[data-answer]"); !strings.Contains(got, "run 2") {
		t.Errorf("%s: the answer to Replay is %q", host, got)
	}
	b.run(chromedp.Navigate(site+"/dead-letters"), chromedp.Click(chromedp.CSS(`tbody form[data-act="discard"] button`)),
		chromedp.WaitVisible(chromedp.CSS(`form[data-act="restore"]`)))

	b.run(chromedp.Navigate(site+"/dead-letters"), chromedp.Click(chromedp.CSS(`form.unscripted button[value="replay"]`)),
		chromedp.WaitVisible(chromedp.CSS(`form[action$="/start"] button`)),
		chromedp.Click(chromedp.CSS(`form[action$="/start"] button`)), chromedp.WaitNotPresent(chromedp.CSS(`form[action$="/start"]`)))
	if got := b.text("main"); strings.Contains(got, "site") {
		t.Errorf("%s: the operation was answered with:\n%s", host, got)
	}

	b.run(chromedp.Navigate(site+"/jobs"), chromedp.Click(chromedp.CSS(`a[href*="export.csv"]`)))
	s.exported(1)
	b.run(chromedp.Navigate(site + "/jobs"))
	eval[chromedp.Void](b, `document.querySelector(".user form button").click()`)
	b.run(chromedp.WaitVisible(chromedp.CSS(`input[name="password"]`)))
	b.quiet("Cross-Origin-Opener-Policy") // which browsers heed over https only
	b.calm()
}

// With scripts, the login, the exports and the logout are the same forms and links, and
// the rest goes through fetch and a websocket. TestBrowser_FormsWorkOverPlainHTTP does most
// of it without scripts.
func TestLong_BrowserPagesWorkOverPlainHTTP(t *testing.T) {
	t.Parallel()
	s := startPlain(t)
	s.deadLetters(2)
	b := openBrowser(t)
	b.downloads()
	site := "http://redrive.example:" + s.port
	b.logInAsAna(site + "/dead-letters")
	b.wait("the page is live", isLive)
	b.run(chromedp.Click(chromedp.CSS(`tbody form[data-act="replay"] button`)))
	b.wait("it is replayed", `document.querySelector("main").innerText.includes("run 2")`)
	b.run(chromedp.Click(chromedp.CSS(`a[href*="export.csv"]`)))
	s.exported(1)
	b.wait("the page is read", `document.readyState === "complete"`)
	eval[chromedp.Void](b, `document.querySelector(".user summary").click(); document.querySelector(".user form button").click()`)
	b.run(chromedp.WaitVisible(chromedp.CSS(`input[name="password"]`)))
	b.quiet("Cross-Origin-Opener-Policy")
	b.calm()
}

// proxyWays are the usual ways to put a proxy in front: each says what becomes of a
// request on its way.
var proxyWays = map[string]struct {
	secure  bool
	rewrite func(*httputil.ProxyRequest)
}{
	"plain, passes the host on": {false, func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host }},
	"plain, tells the host":     {false, func(r *httputil.ProxyRequest) { r.SetXForwarded() }},
	"TLS, passes the host on":   {true, func(r *httputil.ProxyRequest) { r.SetXForwarded(); r.Out.Host = r.In.Host }},
	"TLS, tells the host":       {true, func(r *httputil.ProxyRequest) { r.SetXForwarded() }},
	"TLS, tells the scheme":     {true, func(r *httputil.ProxyRequest) { r.Out.Header.Set("X-Forwarded-Proto", "https") }},
	"TLS, tells nothing":        {true, func(*httputil.ProxyRequest) {}},
}

// Behind a proxy, below a path, the same forms work, whatever the proxy makes of the host.
func TestBrowser_FormsWorkBehindAProxy(t *testing.T) {
	t.Parallel()
	formsWorkBehind(t, "TLS, tells the scheme")
}

func TestLong_BrowserFormsWorkBehindEveryProxy(t *testing.T) {
	t.Parallel()
	formsWorkBehind(t, slices.Collect(maps.Keys(proxyWays))...)
}

func formsWorkBehind(t *testing.T, names ...string) {
	t.Helper()
	s := startPlain(t, "base_path: /redrive", "access: {proxy: {networks: [127.0.0.0/8], user_header: X-User, role: viewer}}")
	target, err := url.Parse(strings.TrimSuffix(s.local, "/redrive"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		way := proxyWays[name]
		s.deadLetters(1)
		front := httptest.NewUnstartedServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			way.rewrite(r)
		}})
		if way.secure {
			front.StartTLS()
		} else {
			front.Start()
		}
		t.Cleanup(front.Close)

		b := openBrowser(t)
		call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		site := strings.Replace(front.URL, "127.0.0.1", "redrive.example", 1) + "/redrive"
		t.Log(name)
		b.logInAsAna(site + "/dead-letters")
		b.run(chromedp.Click(chromedp.CSS(`tbody form[data-act="replay"] button`)), chromedp.WaitVisible(chromedp.CSS("[data-answer]")))
		eval[chromedp.Void](b, `document.querySelector(".user form button").click()`)
		b.run(chromedp.WaitVisible(chromedp.CSS(`input[name="password"]`)))
	}
}

// hostilePages are the ways in which a page can hide where it is from. Each posts a form
// or follows a link of this address as soon as it is read.
var hostilePages = map[string]struct{ header, markup string }{
	"a page that says where it is from": {"", `<form method="post" action="ADDRESS">`},
	"a page without referrers":          {"Referrer-Policy: no-referrer", `<form method="post" action="ADDRESS">`},
	"a page that asks for no referrers": {"", `<meta name="referrer" content="no-referrer"><form method="post" action="ADDRESS">`},
	"a form that hides its page":        {"", `<form method="post" rel="noreferrer" action="ADDRESS">`},
	"a sandboxed page":                  {"Content-Security-Policy: sandbox allow-forms allow-scripts", `<form method="post" action="ADDRESS">`},
	"a page that imitates its policy":   {"Referrer-Policy: same-origin", `<form method="post" action="ADDRESS">`},
	"a sandboxed frame": {"", `<iframe sandbox="allow-forms allow-scripts allow-top-navigation"
		srcdoc="&lt;form method=post target=_top action='ADDRESS'>&lt;/form>&lt;script>document.forms[0].submit()&lt;/script>"></iframe>`},
}

// A page at another port of the same name gets the login's cookie sent along, and no
// form of it changes anything, however it hides.
func TestBrowser_FormsOfOtherOriginsAreRefusedOverPlainHTTP(t *testing.T) {
	t.Parallel()
	formsOfOtherOriginsAreRefused(t, "a page without referrers", "a sandboxed frame")
}

func TestLong_BrowserFormsOfOtherOriginsAreRefusedOverPlainHTTP(t *testing.T) {
	t.Parallel()
	formsOfOtherOriginsAreRefused(t, slices.Collect(maps.Keys(hostilePages))...)
}

func formsOfOtherOriginsAreRefused(t *testing.T, ways ...string) {
	t.Helper()
	s := startPlain(t)
	site := "http://redrive.example:" + s.port
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := hostilePages[r.URL.Query().Get("way")]
		if name, value, ok := strings.Cut(page.header, ": "); ok {
			w.Header().Set(name, value)
		}
		markup := strings.Replace(page.markup, "ADDRESS", html.EscapeString(r.URL.Query().Get("to")), 1)
		fmt.Fprintf(w, "<!doctype html><title>hostile</title>%s</form><script>document.forms[0]?.submit()</script>", markup)
	}))
	t.Cleanup(hostile.Close)
	other := strings.Replace(hostile.URL, "127.0.0.1", "redrive.example", 1)
	b := openBrowser(t)
	b.logInAsAna(site + "/queues")

	for _, way := range ways {
		for _, path := range []string{"/queues/orders/pause", "/logout"} {
			b.run(chromedp.Navigate(other + "?" + url.Values{"way": {way}, "to": {site + path}}.Encode()))
			b.arrive(way+" is refused "+path, `location.port === "`+s.port+`" && document.body.innerText.includes("403")`)
		}
	}
	b.run(chromedp.Navigate(other + "?" + url.Values{"way": {"a page without referrers"}, "to": {site + "/login"}}.Encode()))
	b.arrive("nor is a login sent from there", `location.port === "`+s.port+`" && document.body.innerText.includes("403")`)

	b.run(chromedp.Navigate(site+"/queues"), chromedp.WaitVisible(chromedp.CSS(`.user summary`))) // still logged in
	if got := s.api(http.MethodGet, "/queues", ""); strings.Contains(got, `"paused":true`) {
		t.Errorf("a page elsewhere paused a queue: %s", got)
	}
}

// What leads away from the dashboard tells the other site nothing of where it led from.
func TestBrowser_OtherSitesLearnNoAddress(t *testing.T) {
	t.Parallel()
	s := startPlain(t)
	told := make(chan string, 1)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/led" {
			told <- r.Referer() + r.Header.Get("Origin")
		}
	}))
	t.Cleanup(elsewhere.Close)
	b := openBrowser(t)
	b.logInAsAna("http://redrive.example:" + s.port + "/jobs?q=secret")
	for _, to := range []string{elsewhere.URL, strings.Replace(elsewhere.URL, "127.0.0.1", "redrive.example", 1)} {
		b.run(chromedp.Navigate("http://redrive.example:" + s.port + "/jobs?q=secret"))
		b.wait("the page is read", `document.readyState === "complete"`)
		eval[chromedp.Void](b, `{ const a = document.createElement("a"); a.href = "`+to+`/led"; document.body.append(a); a.click() }`)
		if got := <-told; got != "" {
			t.Errorf("%s was told %q", to, got)
		}
		b.arrive("the other page is read", `location.pathname === "/led" && document.readyState === "complete"`)
	}
}
