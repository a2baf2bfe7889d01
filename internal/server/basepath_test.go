package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"golang.org/x/net/html"

	"redrive/internal/access"
)

const base = "/redrive"

func below(o *Options) { o.BasePath = base }

// behind puts a real reverse proxy in front, which serves something else, too.
func behind(t *testing.T, h *house) *httptest.Server {
	t.Helper()
	target, err := url.Parse(h.http.URL)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(base+"/", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}})
	front := httptest.NewServer(mux)
	t.Cleanup(front.Close)
	return front
}

// dataAttributes hold what comes from data or configuration and may begin with
// a slash without being an address; data-ticks is a name.
func dataAttributes(name string) bool {
	return name == "data-ticks" || name == "value" || name == "title" || name == "aria-label" || name == "placeholder" || name == "d"
}

// Every address on every page, behind a real proxy, begins with the base path.
func TestBasePath_EveryAddressOfEveryPage(t *testing.T) {
	h := start(t, below, func(o *Options) { o.Demo = &theDemo{broken: map[string]bool{}} })
	front := behind(t, h)
	via := &house{t: t, http: front, store: h.store, opts: h.opts, base: base}
	id := via.dead()
	seen, queue := map[string]bool{}, []string{base + "/", base + "/jobs/" + id, base + "/login", base + "/nothing"}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if seen[path] || len(seen) > 200 {
			continue
		}
		seen[path] = true
		a := via.at("GET", path)
		if a.StatusCode >= http.StatusInternalServerError {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
		if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
			continue
		}
		for node := range a.dom(t).Descendants() {
			for _, attr := range node.Attr {
				if !strings.HasPrefix(attr.Val, "/") || dataAttributes(attr.Key) {
					continue
				}
				if !strings.HasPrefix(attr.Val, base+"/") {
					t.Errorf("%s: <%s %s=%q> leads past the base path", path, node.Data, attr.Key, attr.Val)
				} else if node.Type == html.ElementNode && (attr.Key == "href" || attr.Key == "src") {
					queue = append(queue, attr.Val)
				}
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d addresses were found", len(seen))
	}
}

// Acts, redirects, the login and the websocket work behind the proxy.
func TestBasePath_ActsComeBack(t *testing.T) {
	h := start(t, below)
	front := behind(t, h)
	via := &house{t: t, http: front, store: h.store, opts: h.opts, base: base}
	id := via.dead()
	a := via.form("/jobs/"+id+"/replay", "run=1&back=%2Fjobs%3Fstate%3Ddead_letter", "Origin", front.URL).want(t, http.StatusSeeOther)
	if to := a.Header.Get("Location"); to != base+"/jobs?acted="+id+"&state=dead_letter" {
		t.Errorf("a replay comes back to %s", to)
	}
	via.get("/jobs?q="+id).want(t, http.StatusSeeOther)
	conn, answer, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(front.URL, "http")+base+"/live", http.Header{"Origin": {front.URL}})
	if err != nil {
		t.Fatalf("%v, %+v", err, answer)
	}
	defer conn.Close()
	if _, data, err := conn.ReadMessage(); err != nil || !strings.Contains(string(data), "counters") {
		t.Errorf("the websocket says %s, %v", data, err)
	}
	h.user("ana", access.Admin)
	a = via.form("/login", "name=ana&password="+url.QueryEscape(password)+"&next=%2Fqueues", "Origin", front.URL).want(t, http.StatusSeeOther)
	if c := a.Cookies()[0]; c.Path != base+"/" || a.Header.Get("Location") != base+"/queues" {
		t.Errorf("the cookie is for %s, and the login leads to %s", c.Path, a.Header.Get("Location"))
	}
	if a := via.get("/jobs?state=active").want(t, http.StatusSeeOther); a.Header.Get("Location") != base+"/login?next=%2Fjobs%3Fstate%3Dactive" {
		t.Errorf("a stranger is sent to %s", a.Header.Get("Location"))
	}
}

// Nothing is outside the base path, however it is written.
func TestBasePath_NothingIsOutside(t *testing.T) {
	h := start(t, below)
	h.base = base
	h.dead()
	for path, status := range map[string]int{
		"/jobs": 404, "/redriver": 404, "/redrivejobs": 404, "/api/v1/jobs": 404, "/healthz": 404, "/metrics": 404, "/live": 404, "/%72edrive/jobs": 404,
		"/REDRIVE/jobs": 404, "/redrive/redrive/jobs": 404, "/redrive%2Fjobs": 404, "/./redrive/jobs": 404,
		"/": 308, "/redrive": 308, "/redrive/": 200, "/redrive/jobs": 200, "/redrive/healthz": 200, "/redrive//jobs": 404,
	} {
		a := h.at("GET", path)
		if a.StatusCode != status || status == 308 && a.Header.Get("Location") != base+"/" {
			t.Errorf("%s: %d to %q, want %d", path, a.StatusCode, a.Header.Get("Location"), status)
		}
		if status == 404 && strings.Contains(a.body, "order.ship") {
			t.Errorf("%s shows a job", path)
		}
	}
}

// No data looks like an attribute with an address: what is shown at the root
// and below a path is the same, letter by letter.
func TestBasePath_DataStaysAsItIs(t *testing.T) {
	hostile := ` href="/x" src="/y" action='/z' data-live="/w" data-x-url="/v" href=/u `
	show := func(change ...func(*Options)) string {
		h := start(t, change...)
		h.base = h.server().basePath
		payload, err := json.Marshal(hostile)
		if err != nil {
			t.Fatal(err)
		}
		id := h.enqueue(`{"type":"a.href=\"/t\"","queue":"orders","payload":` + string(payload) + `}`)
		h.fail("orders", hostile, hostile, hostile)
		var text strings.Builder
		for node := range h.get("/jobs/"+id).want(t, http.StatusOK).dom(t).Descendants() {
			if node.Type == html.TextNode {
				text.WriteString(node.Data)
			}
			for _, attr := range node.Attr {
				if dataAttributes(attr.Key) {
					text.WriteString(attr.Val)
				}
			}
		}
		if n := strings.Count(text.String(), `href="/x"`); n < 3 {
			t.Errorf("the page shows the text %d times", n)
		}
		own := strings.ReplaceAll(text.String(), h.http.URL+h.base, "") // in commands to copy
		if strings.Contains(own, base) {
			t.Errorf("data was changed")
		}
		return text.String()
	}
	show()
	show(below)
}

func TestBasePath_RefusalsAreForProgramsToo(t *testing.T) {
	h := start(t, below)
	h.base = base
	for status, a := range map[int]answer{
		http.StatusMisdirectedRequest: h.get("/api/v1/jobs", "Host", "evil.example"),
		http.StatusForbidden:          h.post("/api/v1/jobs", "{}", "Origin", "https://evil.example"),
		http.StatusBadRequest:         h.get("/api/v1/jobs?q=%zz"),
	} {
		if f := decode[problemAnswer](t, a.want(t, status)); f.Error.Code == "" {
			t.Errorf("%d: %s", status, a.body)
		}
	}
	if a := h.get("/jobs", "Host", "evil.example").want(t, http.StatusMisdirectedRequest); !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
		t.Errorf("a browser gets %s", a.Header.Get("Content-Type"))
	}
}
