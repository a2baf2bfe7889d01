package browser_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"

	"redrive/test/rig"
)

// Behind a real proxy, below a path, with a login: pages are walked, a job is
// replayed by a click, the page is live, and the logout ends it.
func TestBrowser_BelowAPathWithALogin(t *testing.T) {
	t.Parallel()
	home := newHome(t, "unknown_type: dead_letter")
	home.addUser("ana", "admin", rig.AnaPassword)
	home.addUser("bo", "viewer", rig.BoPassword)
	token := home.newToken("shop", "producer")
	p := home.start("--base-path", "/redrive")
	send := func() {
		code, _, stderr := rig.WithInput(t, home.dir, "", []string{"REDRIVE_TOKEN=" + token}, "enqueue", "order.ship", `{"n":1}`, "--server", p.URL)
		if code != 0 {
			t.Fatalf("exit %d: %s", code, stderr)
		}
	}
	send()
	front := proxyTo(t, p.URL)
	b := openBrowser(t)
	logIn := func(name, password string) {
		b.run(chromedp.WaitVisible(chromedp.CSS(`input[name="password"]`)),
			chromedp.SendKeys(chromedp.CSS(`input[name="name"]`), name), chromedp.SendKeys(chromedp.CSS(`input[name="password"]`), password),
			chromedp.Click(chromedp.CSS(`.login button`)), chromedp.WaitVisible(chromedp.CSS(`.user summary`)))
	}
	b.run(chromedp.Navigate(front + "/redrive/dead-letters"))
	logIn("bo", rig.BoPassword)
	if got := eval[string](b, `document.querySelector('tbody form[data-act="replay"] button').title`); got != "Your role viewer may not replay; ask an operator" {
		t.Errorf("a viewer's button says %q", got)
	}
	logOut := func() {
		b.wait("the page is read", `document.readyState === "complete"`) // else its nodes are still replaced
		eval[chromedp.Void](b, `document.querySelector(".user summary").click(); document.querySelector(".user form button").click()`)
	}
	logOut()
	logIn("ana", rig.AnaPassword)
	for _, section := range []string{"jobs", "queues", "policies", "dead-letters"} {
		b.run(chromedp.Click(chromedp.CSS(`nav.side a[data-section="`+section+`"]`)), chromedp.WaitVisible(chromedp.CSS(`nav.side a[data-section="`+section+`"][aria-current]`)))
	}
	b.wait("the page is live", isLive)
	const count = `document.querySelector('[data-section="dead-letters"] [data-state-count]').textContent`
	before := eval[string](b, count)
	send()
	b.wait("the count moves", count+` !== "`+before+`"`)
	b.run(chromedp.Click(chromedp.CSS(`tbody form[data-act="replay"] button`)))
	b.wait("it is replayed", `document.querySelector("main").innerText.includes("run 2")`)
	if path := eval[string](b, `location.pathname`); path != "/redrive/dead-letters" {
		t.Errorf("the page is at %s", path)
	}
	logOut()
	b.run(chromedp.WaitVisible(chromedp.CSS(`input[name="password"]`)))
	b.calm()
}

// proxyTo puts a proxy in front that serves nothing but the path of a URL.
func proxyTo(t *testing.T, server string) string {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	path := target.Path
	target.Path = ""
	mux := http.NewServeMux()
	mux.Handle(path+"/", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}})
	front := httptest.NewServer(mux)
	t.Cleanup(front.Close)
	return front.URL
}
