package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"redrive/internal/job"
	"redrive/internal/server/web"
	"redrive/web/static"
)

// dom is a parsed page.
type dom struct{ *html.Node }

func (a answer) dom(t *testing.T) dom {
	t.Helper()
	n, err := html.Parse(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	return dom{n}
}

// text is all text of the page that a person can see.
func (d dom) text() string {
	var b strings.Builder
	for n := range d.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	}
	return b.String()
}

func TestPages_AnswerWithAPage(t *testing.T) {
	h := start(t)
	id := h.dead()
	for path, text := range map[string]string{
		"/": "warehouse is closed", "/jobs": "order.ship", "/jobs?state=dead_letter&queue=orders": "order.ship",
		"/jobs/" + id: "warehouse is closed", "/dead-letters": "order.ship", "/queues": "plain",
	} {
		a := h.get(path).want(t, http.StatusOK)
		if kind := a.Header.Get("Content-Type"); kind != "text/html; charset=UTF-8" {
			t.Errorf("%s is %q", path, kind)
		}
		if !strings.Contains(a.dom(t).text(), text) {
			t.Errorf("%s does not say %q", path, text)
		}
	}
}

func TestPages_EmptyDatabase(t *testing.T) {
	h := start(t)
	for _, path := range []string{"/", "/jobs", "/dead-letters", "/queues"} {
		h.get(path).want(t, http.StatusOK)
	}
}

func TestPages_BadFilterStandsBesideItsField(t *testing.T) {
	h := start(t)
	for _, path := range []string{"/jobs?state=dead", "/jobs?queue=a+b", "/jobs?after=forged", "/dead-letters?queue=%3Cb%3E", "/dead-letters?after=x"} {
		a := h.get(path).want(t, http.StatusBadRequest)
		if text := a.dom(t).text(); !strings.Contains(text, "Filter") && !strings.Contains(text, "not a") {
			t.Errorf("%s: no word about what is wrong", path)
		}
	}
}

func TestPages_SearchLeadsToTheJobOrToItsError(t *testing.T) {
	h := start(t)
	id := h.dead()
	for _, list := range []string{"/jobs", "/dead-letters", "/trash"} {
		if a := h.get(list+"?q="+strings.ToUpper(id)).want(t, http.StatusSeeOther); a.Header.Get("Location") != "/jobs/"+id {
			t.Errorf("%s leads to %q", list, a.Header.Get("Location"))
		}
	}
	if a := h.get("/jobs?q=warehouse").want(t, http.StatusOK); !strings.Contains(a.body, id) {
		t.Error("the search for text in an error found nothing")
	}
	if a := h.get("/jobs?q=lighthouse").want(t, http.StatusOK); strings.Contains(a.body, id) {
		t.Error("the search found what does not match")
	}
}

func TestPages_ProblemsArePages(t *testing.T) {
	h := start(t)
	for path, status := range map[string]int{"/nothing": 404, "/jobs/7": 400, "/jobs/" + unknownID: 404} {
		a := h.get(path).want(t, status)
		text := a.dom(t).text()
		if !strings.Contains(text, a.Header.Get("X-Request-Id")) || !strings.Contains(text, fmt.Sprint(status)) {
			t.Errorf("%s: the page names neither request nor status", path)
		}
	}
}

func TestPages_OverviewLeadsToJobsWithoutAHandler(t *testing.T) {
	h := start(t)
	if text := h.get("/").dom(t).text(); strings.Contains(text, "has no handler") {
		t.Error("the overview names jobs without a handler where there are none")
	}
	h.enqueue(`{"type":"unknown","queue":"mail"}`)
	_, _, err := h.store.Exchange(t.Context(), nil, job.Claim{
		Worker: "w1", Now: time.Now(), Lease: time.Minute, Free: map[string]int{"mail": 1}, Knows: func(string) bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	a := h.get("/")
	if text := a.dom(t).text(); !strings.Contains(text, "1 job has no handler: unknown (1 in mail).") || !strings.Contains(a.body, `href="/jobs?state=held"`) {
		t.Error("the overview does not lead to the job that has no handler")
	}
}

func TestPages_JobSaysWhyItWaits(t *testing.T) {
	h := start(t)
	unknown := h.enqueue(`{"type":"unknown"}`)
	if text := h.get("/jobs/" + unknown).dom(t).text(); !strings.Contains(text, "no handler is configured for unknown") {
		t.Error("the page does not say that no handler knows the type")
	}
	paused := h.enqueue(`{"type":"known","queue":"mail"}`)
	h.post("/api/v1/queues/mail/pause", "")
	if text := h.get("/jobs/" + paused).dom(t).text(); !strings.Contains(text, "paused by API client (127.0.0.1)") {
		t.Error("the page does not say that the queue is paused, and by whom")
	}
}

func TestPages_JobOfABatchShowsItsKey(t *testing.T) {
	h := start(t)
	a := h.post("/api/v1/jobs/batch", `{"jobs":[{"type":"a"}]}`, "Idempotency-Key", "nightly").want(t, http.StatusCreated)
	id := decode[struct{ Jobs []struct{ ID string } }](t, a).Jobs[0].ID
	if text := h.get("/jobs/" + id).dom(t).text(); !strings.Contains(text, "nightly ⏎ 0") {
		t.Error("the page does not show the key, with its line break visible")
	}
}

// A page has little of a long payload, so that it opens at once, and more of it
// when the reader asks.
func TestPages_LongPayloadsAreShownInPart(t *testing.T) {
	h := start(t)
	id := h.enqueue(`{"type":"t","payload":{"text":"` + strings.Repeat("a", 100<<10) + `"}}`)
	for path, want := range map[string]int{"/jobs/" + id: 12 << 10, "/jobs/" + id + "?payload=more": 64 << 10} {
		a := h.get(path).want(t, http.StatusOK)
		if shown := strings.Count(a.body, "a"); shown < want || shown > want+8<<10 {
			t.Errorf("%s shows %d bytes of the payload, want about %d", path, shown, want)
		}
		if more := strings.Contains(a.body, "/jobs/"+id+"?payload=more#"); more != (want == 12<<10) {
			t.Errorf("%s leads to more: %v", path, more)
		}
	}
}

func TestPages_PayloadIsADownload(t *testing.T) {
	h := start(t)
	id := h.enqueue(`{"type":"t","payload":"<script>alert(1)</script>"}`)
	a := h.get("/jobs/"+id+"/payload").want(t, http.StatusOK)
	if a.body != `"<script>alert(1)</script>"` || a.Header.Get("Content-Type") != "text/plain; charset=utf-8" ||
		!strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") || a.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s with %v", a.body, a.Header)
	}
	h.get("/jobs/"+unknownID+"/payload").want(t, http.StatusNotFound)
	h.get("/jobs/7/payload").want(t, http.StatusBadRequest)
}

func TestPages_StaticFilesAreImmutable(t *testing.T) {
	h := start(t)
	for _, file := range []static.File{static.Stylesheet(), static.Script()} {
		for coding, body := range map[string][]byte{"br": file.Brotli(), "gzip": file.Gzip(), "": file.Plain} {
			a := h.get(file.Path, "Accept-Encoding", cmp.Or(coding, "identity")).want(t, http.StatusOK)
			if a.body != string(body) || a.Header.Get("Content-Encoding") != coding || a.Header.Get("Vary") != "Accept-Encoding" ||
				!strings.Contains(a.Header.Get("Cache-Control"), "immutable") || a.Header.Get("Content-Type") != file.Type {
				t.Errorf("%s as %q: %d bytes with %v", file.Path, coding, len(a.body), a.Header)
			}
		}
	}
	for _, path := range []string{"/static/", "/static/app.css", "/static/app-000000000000.css", "/static/../static.go", "/static/%2e%2e/static.go"} {
		if a := h.get(path).want(t, http.StatusNotFound); a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: Cache-Control %q", path, a.Header.Get("Cache-Control"))
		}
	}
}

func TestActs_FormReplaysAndGoesBack(t *testing.T) {
	h := start(t)
	id := h.dead()
	a := h.form("/jobs/"+id+"/replay", "run=1&back=%2Fjobs%3Fstate%3Ddiscarded").want(t, http.StatusSeeOther)
	to := a.Header.Get("Location")
	if to != "/jobs?acted="+id+"&state=discarded" {
		t.Errorf("Location %q", to)
	}
	if text := h.get(to).want(t, http.StatusOK).dom(t).text(); !strings.Contains(text, "is in run 2: available") {
		t.Error("the list does not say what became of the job")
	}
	a = h.form("/jobs/"+id+"/replay", "run=1").want(t, http.StatusConflict)
	if text := a.dom(t).text(); !strings.Contains(text, "local user (127.0.0.1)") || !strings.Contains(text, "Nothing was run twice") {
		t.Error("the conflict page does not say who was first")
	}
}

func TestActs_BackLeadsNowhereElse(t *testing.T) {
	h := start(t)
	for _, back := range []string{"", "//evil.example", "https://evil.example", `/\evil.example`, "/\tevil", "jobs"} {
		id := h.dead()
		a := h.form("/jobs/"+id+"/replay", "run=1&back="+url.QueryEscape(back)).want(t, http.StatusSeeOther)
		if to := a.Header.Get("Location"); to != "/jobs/"+id+"#run-2" {
			t.Errorf("back %q leads to %q", back, to)
		}
	}
}

func TestActs_ScriptsAreAnsweredInPlace(t *testing.T) {
	h := start(t)
	id := h.dead()
	type said struct {
		Job  struct{ State string }
		Text string
	}
	a := h.form("/jobs/"+id+"/replay", "run=1", "Accept", "application/json").want(t, http.StatusOK)
	if got := decode[said](t, a); got.Text != "Replayed, run 2 · available" || got.Job.State != "available" {
		t.Errorf("answer %+v", got)
	}
	a = h.form("/jobs/"+id+"/replay", "run=1", "Accept", "application/json").want(t, http.StatusConflict)
	if f := decode[problemAnswer](t, a); f.By != "local user (127.0.0.1)" || f.At == "" {
		t.Errorf("conflict %+v", f)
	}
	h.form("/jobs/"+id+"/discard", "run=1", "Accept", "application/json").want(t, http.StatusConflict) // who looks at run 1 does not mean run 2
	h.form("/jobs/"+id+"/discard", "run=2", "Accept", "application/json").want(t, http.StatusOK)
	h.form("/jobs/"+id+"/cancel", "run=2", "Accept", "application/json").want(t, http.StatusConflict)
	if a := h.form("/queues/orders/pause", "", "Accept", "application/json").want(t, http.StatusOK); decode[said](t, a).Text != "Paused orders" {
		t.Errorf("pause said %s", a.body)
	}
	h.form("/queues/orders/resume", "back=%2Fqueues").want(t, http.StatusSeeOther)
}

func TestActs_BadForms(t *testing.T) {
	h := start(t)
	id := h.dead()
	h.form("/jobs/"+id+"/replay", "").want(t, 422)
	h.form("/jobs/"+id+"/replay", "run=x").want(t, 422)
	h.form("/jobs/7/replay", "run=1").want(t, 400)
	h.form("/jobs/"+unknownID+"/replay", "run=1").want(t, 404)
	h.form("/jobs/"+id+"/replay", "run=%zz").want(t, 400)
	h.form("/jobs/"+id+"/replay", "run=1&x="+strings.Repeat("x", maxEdit)).want(t, 413)
	h.form("/jobs/"+id+"/discard", "run=1&x="+strings.Repeat("x", web.MaxSmall)).want(t, 413)
	h.form("/jobs/"+id+"/discard", "").want(t, 422)
	h.post("/jobs/"+id+"/replay", `{"run":1}`).want(t, 415)
	h.form("/queues/%3Cb%3E/pause", "").want(t, 400)
	if n := h.store.Snapshot().Totals.Replayed; n != 0 {
		t.Errorf("%d replays by bad forms", n)
	}
}

func TestDemo_BreaksFixesAndResets(t *testing.T) {
	d := &theDemo{broken: map[string]bool{}}
	h := start(t, func(o *Options) { o.Demo = d })
	if text := h.get("/").dom(t).text(); !strings.Contains(text, "Upstream") {
		t.Error("the page has no switch for the fault")
	}
	h.form("/demo/faults/upstream", "broken=true").want(t, http.StatusSeeOther)
	if !d.broken["upstream"] {
		t.Error("the fault was not broken")
	}
	h.form("/demo/faults/upstream", "broken=perhaps").want(t, 422)
	h.form("/demo/faults/nothing", "broken=true").want(t, 404)
	if h.form("/demo/reset", "", "Accept", "application/json").want(t, http.StatusOK); d.resets != 1 {
		t.Errorf("%d resets", d.resets)
	}
}

func TestDemo_PanelIsOpenOnTheOverviewUntilItWasUsed(t *testing.T) {
	h := start(t, func(o *Options) { o.Demo = &theDemo{broken: map[string]bool{"upstream": true}} })
	about := []string{"/", "/failures", "/dead-letters", "/operations", "/trash", "/jobs", "/queues", "/workers", "/jobs/" + h.dead()}
	for _, path := range about {
		if open := h.get(path).dom(t).shows("panel demo"); open != (path == "/") {
			t.Errorf("%s: the panel is open at first: %t", path, open)
		}
	}
	h.form("/demo/faults/upstream", "broken=false").want(t, http.StatusSeeOther)
	for _, path := range about {
		page := h.get(path).dom(t)
		if page.shows("panel demo") {
			t.Errorf("%s: the panel is still open after a fix", path)
		}
		if !strings.Contains(page.text(), "0 of 1 broken") {
			t.Errorf("%s: the line does not say how much is broken", path)
		}
	}
	for _, path := range []string{"/policies", "/retention", "/audit", "/access"} {
		if strings.Contains(h.get(path).dom(t).text(), "0 of 1 broken") {
			t.Errorf("%s, which is not about jobs, has the panel", path)
		}
	}
}

// shows reports whether the details of this class are open.
func (d dom) shows(class string) bool {
	for n := range d.Descendants() {
		if n.Data == "details" && slices.Contains(n.Attr, html.Attribute{Key: "class", Val: class}) {
			return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "open" })
		}
	}
	return false
}

func TestDemo_IsAbsentOtherwise(t *testing.T) {
	start(t).form("/demo/reset", "").want(t, http.StatusNotFound)
}

// nasty are texts that must show as text, whatever they look like.
func nasty() []string {
	return []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'"--></style></script><svg onload=alert(1)>`,
		`javascript:alert(1)`, `=cmd()`, "a\x00b\x1b[2Jc", "\u202egnp.exe", strings.Repeat("long ", 30),
		`{{7*7}}`, `<a href="//evil.example">x</a>`, `&lt;b&gt;`, "\u2028\r\nSet-Cookie: a=b",
	}
}

// typeOf makes a text the type of a job, which has neither NUL nor star.
func typeOf(text string) string { return strings.NewReplacer("\x00", "", "*", "x").Replace(text) }

func TestPages_ShowEverythingAsText(t *testing.T) {
	h := start(t)
	clean := map[string]int{}
	h.enqueue(`{"type":"plain","queue":"orders","payload":"x"}`)
	h.fail("orders", "type", "message", "trace")
	for _, evil := range nasty() {
		text, err := json.Marshal(evil)
		if err != nil {
			t.Fatal(err)
		}
		typ, err := json.Marshal(typeOf(evil))
		if err != nil {
			t.Fatal(err)
		}
		id := h.enqueue(fmt.Sprintf(`{"type":%s,"queue":"orders","payload":{%s:%s},"meta":{%s:%s}}`, typ, text, text, text, text))
		h.fail("orders", evil, evil, evil)
		for _, path := range []string{"/jobs?type=" + url.QueryEscape(evil), "/jobs?error=" + url.QueryEscape(evil), "/jobs/" + id,
			"/dead-letters?type=" + url.QueryEscape(evil), "/jobs?q=" + url.QueryEscape(evil)} {
			a := h.get(path)
			if refused := a.StatusCode == http.StatusBadRequest && strings.Contains(path, "="); a.StatusCode != http.StatusOK && !refused {
				t.Errorf("%s: status %d", path, a.StatusCode)
			}
			checkHarmless(t, path, a.dom(t), clean)
		}
	}

	for _, path := range []string{"/", "/jobs", "/dead-letters", "/queues"} {
		checkHarmless(t, path, h.get(path).want(t, http.StatusOK).dom(t), clean)
	}
}

// checkHarmless fails when data became a part of the page: an element that
// templates never write, a handler, or a link that leads elsewhere.
func checkHarmless(t *testing.T, path string, d dom, seen map[string]int) {
	t.Helper()
	for n := range d.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		seen[n.Data]++
		if n.Data == "img" || n.Data == "iframe" || n.Data == "object" || n.Data == "style" || n.Data == "script" && n.FirstChild != nil {
			t.Errorf("%s: an element %s", path, n.Data)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				t.Errorf("%s: attribute %s=%q", path, a.Key, a.Val)
			}
			leads := (a.Key == "href" || a.Key == "src" || a.Key == "action") && a.Val != static.Icon()
			if leads && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") || leads && strings.HasPrefix(a.Val, "//") {
				t.Errorf("%s: %s leads to %q", path, a.Key, a.Val)
			}
		}
	}
}

func TestPages_MegabyteOfText(t *testing.T) {
	h := start(t)
	big := strings.Repeat("<script>é", 80_000)
	text, err := json.Marshal(big)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > job.MaxPayload {
		text = []byte(`"` + strings.Repeat("<", job.MaxPayload-2) + `"`)
	}
	id := h.enqueue(fmt.Sprintf(`{"type":"t","queue":"orders","payload":%s}`, text))
	h.fail("orders", big, big, big)
	for _, path := range []string{"/", "/jobs", "/jobs/" + id, "/dead-letters"} {
		checkHarmless(t, path, h.get(path).want(t, http.StatusOK).dom(t), map[string]int{})
	}
}

func TestPages_ProblemsAreShownAfterTheDeadline(t *testing.T) {
	h := start(t)
	s := h.http.Config.Handler.(*Server)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	s.refuse(context.DeadlineExceeded, s.echo.NewContext(httptest.NewRequestWithContext(ctx, "GET", "/jobs", nil), w))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "This took too long") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}
