package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"redrive/internal/config"
)

// writesFrom are the origins that a browser can name for a page, and whether that
// page is the dashboard's own. The dashboard is asked for as redrive.example, and
// plain:8080 and https://secure:8443 are configured beside it.
var writesFrom = []struct {
	origin string
	plain  bool // over http
	secure bool // over https, as a trusted proxy says
}{
	{"", true, true}, // no browser
	{"http://redrive.example", true, false},
	{"https://redrive.example", true, true},
	{"HTTPS://Redrive.Example", true, true},
	{"http://redrive.example:80", true, false},
	{"https://redrive.example:443", true, true},
	{"http://redrive.example:443", false, false},
	{"https://redrive.example:80", false, false},
	{"http://redrive.example:9999", false, false},
	{"https://redrive.example:9999", false, false},
	{"https://redrive.example:8443", false, false},
	{"http://plain:8080", true, false},
	{"https://plain:8080", true, true},
	{"http://plain", false, false},
	{"https://plain", false, false},
	{"http://plain:9999", false, false},
	{"https://secure:8443", true, true},
	{"http://secure:8443", false, false},
	{"https://secure", false, false},
	{"https://secure:443", false, false},
	{"https://evil.example", false, false},
	{"https://redrive.example.evil", false, false},
	{"https://evil.redrive.example", false, false},
	{"https://redrive.example@evil.example", false, false},
	{"https://user@redrive.example", false, false},
	{"ftp://redrive.example", false, false},
	{"file://", false, false},
	{"null", false, false},
	{"://", false, false},
	{"redrive.example", false, false},
	{"https://", false, false},
}

// TestOrigin_OnlyOwnPagesWrite tries every origin with all that Sec-Fetch-Site can
// say, on forms, on the API and on the websocket.
func TestOrigin_OnlyOwnPagesWrite(t *testing.T) {
	c, err := config.Parse("redrive.yaml", []byte(`
hosts: [redrive.example, "plain:8080", "https://secure:8443"]
access: {proxy: {networks: [192.0.2.0/24], user_header: X-User, role: admin}}
`))
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, func(o *Options) { o.Config = c })
	server, upgrade, tried := h.http.Config.Handler, CheckOrigin(c), 0
	requests := []struct{ method, path, kind, upgrade string }{
		{"POST", "/queues/orders/pause", "application/x-www-form-urlencoded", ""},
		{"POST", "/api/v1/queues/orders/pause", "application/json", ""},
		{"GET", "/live", "", "websocket"},
	}
	for _, from := range writesFrom {
		for _, site := range []string{"", "same-origin", "none", "same-site", "cross-site", "Same-Origin", "nonsense"} {
			for _, secure := range []bool{false, true} {
				want := site == "same-origin" || site == "none" ||
					site == "" && (from.plain && !secure || from.secure && secure)
				for _, line := range requests {
					r := httptest.NewRequestWithContext(t.Context(), line.method, "http://redrive.example"+line.path, http.NoBody)
					set := func(name, value string) {
						if value != "" {
							r.Header.Set(name, value)
						}
					}
					set("Origin", from.origin)
					set("Sec-Fetch-Site", site)
					set("Content-Type", line.kind)
					set("Upgrade", line.upgrade)
					set("X-User", "ana")
					if secure {
						set("X-Forwarded-Proto", "https")
					}
					tried++
					name := fmt.Sprintf("%s %s from %q, site %q, secure %v", line.method, line.path, from.origin, site, secure)
					if line.upgrade != "" && upgrade(r) != want {
						t.Errorf("%s: the hub accepts it: %v, want %v", name, !want, want)
					}
					w := httptest.NewRecorder()
					server.ServeHTTP(w, r)
					proven := from.origin != "" || site != "" && line.upgrade == "" // a login asks for more than no reason to refuse
					if got := w.Code != http.StatusForbidden; got != (want && proven) {
						t.Errorf("%s: status %d, want it to pass: %v", name, w.Code, want)
					}
				}
			}
		}
	}
	if tried < 1300 {
		t.Errorf("only %d combinations were tried", tried)
	}
}

// No browser sends two values of a header that may have only one.
func TestOrigin_TwoValuesAreNone(t *testing.T) {
	h := start(t)
	for _, name := range []string{"Origin", "Sec-Fetch-Site"} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://redrive.example/queues/orders/pause", http.NoBody)
		r.Header[name] = map[string][]string{
			"Origin": {"http://redrive.example", "https://evil.example"}, "Sec-Fetch-Site": {"same-origin", "cross-site"},
		}[name]
		w := httptest.NewRecorder()
		h.http.Config.Handler.ServeHTTP(w, r)
		if w.Code != http.StatusForbidden {
			t.Errorf("two values of %s: status %d, want 403", name, w.Code)
		}
	}
}

// A host is asked for by name, also where only its origin was configured, because
// proxies leave the port out.
func TestOrigin_ConfiguredOriginIsAHostToo(t *testing.T) {
	h := newHosts([]string{"https://Secure:8443", "plain:8080", "name"}, nil)
	for host, want := range map[string]bool{
		"secure": true, "secure:8443": true, "SECURE": true, "plain:8080": true, "plain": false, "plain:81": false, "name:99": true, "other": false,
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", http.NoBody)
		r.Host = host
		if got := h.allow(r); got != want {
			t.Errorf("Host %s is allowed: %v, want %v", host, got, want)
		}
	}
}

// A trusted proxy that changes the host tells which one the browser asked for. Its word
// counts for configured names only, and no one else's counts at all.
func TestOrigin_AProxyTellsTheHost(t *testing.T) {
	c, err := config.Parse("redrive.yaml", []byte("hosts: [redrive.example]\naccess: {proxy: {networks: [192.0.2.0/24], user_header: X-User, role: admin}}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		peer, forwarded, origin string
		own                     bool
	}{
		"the name and its port":         {"192.0.2.1:1", "redrive.example:8000", "http://redrive.example:8000", true},
		"the first of two proxies":      {"192.0.2.1:1", "redrive.example:8000, inner:80", "http://redrive.example:8000", true},
		"another port":                  {"192.0.2.1:1", "redrive.example:8000", "http://redrive.example:8001", false},
		"a name that is not configured": {"192.0.2.1:1", "evil.example", "http://evil.example", false},
		"not from the proxy":            {"203.0.113.1:1", "redrive.example:8000", "http://redrive.example:8000", false},
		"a page that may not say":       {"192.0.2.1:1", "null", "null", false},
		"nothing":                       {"192.0.2.1:1", "", "http://redrive.example:8000", false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://127.0.0.1:8080/login", http.NoBody)
		r.RemoteAddr = test.peer
		r.Header.Set("X-Forwarded-Host", test.forwarded)
		r.Header.Set("Origin", test.origin)
		if got := newHosts(c.Hosts, c.Proxy()).ownPage(r); got != test.own {
			t.Errorf("%s: own %v, want %v", name, got, test.own)
		}
	}
}

// An address of IPv6 is one host, however it is written.
func TestOrigin_AddressesOfIPv6AreHosts(t *testing.T) {
	for _, entry := range []string{"fd00::1", "[fd00::1]", "FD00:0::1", "[fd00::1]:8080", "http://[fd00::1]:8080"} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/login", http.NoBody)
		r.Host = "[fd00::1]:8080"
		r.Header.Set("Origin", "http://[fd00::1]:8080")
		if h := newHosts([]string{entry}, nil); !h.allow(r) || !h.ownPage(r) {
			t.Errorf("hosts: [%q] does not allow http://%s", entry, r.Host)
		}
	}
}

// A refusal says why: a page elsewhere, a browser that does not say, or a name that the
// configuration lacks.
func TestOrigin_RefusalsSayWhatToDo(t *testing.T) {
	h := start(t)
	for name, test := range map[string]struct {
		headers []string
		want    string
	}{
		"another site":       {[]string{"Sec-Fetch-Site", "cross-site"}, "a page of another site sent this request"},
		"an unknown name":    {[]string{"Origin", "https://evil.example"}, "a page of another site sent this request"},
		"no word":            {[]string{"Origin", "null"}, "the browser does not say which page sent this request (Origin: null)"},
		"a port of its name": {[]string{"Origin", "http://redrive.example:9999"}, "add http://redrive.example:9999 to hosts in the configuration"},
	} {
		a := h.post("/api/v1/queues/orders/pause", "{}", test.headers...).want(t, http.StatusForbidden)
		if got := decode[problemAnswer](t, a).Error.Message; !strings.Contains(got, test.want) {
			t.Errorf("%s: %q does not say %q", name, got, test.want)
		}
	}
}
