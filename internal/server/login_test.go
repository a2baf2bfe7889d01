package server

import (
	"bytes"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/config"
	"redrive/internal/job"
	"redrive/internal/server/web"
)

// The attributes that keep a session's cookie from scripts, other sites and
// other hosts.
func TestLogin_CookieAttributes(t *testing.T) {
	tests := []struct{ base, proto, want string }{
		{"", "", "redrive=; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax"},
		{"", "https", "__Host-redrive=; Path=/; Max-Age=604800; HttpOnly; Secure; SameSite=Lax"},
		{"/redrive", "", "redrive=; Path=/redrive/; Max-Age=604800; HttpOnly; SameSite=Lax"},
		{"/redrive", "https", "__Secure-redrive=; Path=/redrive/; Max-Age=604800; HttpOnly; Secure; SameSite=Lax"},
	}
	for _, test := range tests {
		h := start(t, withProxy, func(o *Options) { o.BasePath = test.base })
		h.user("ana", access.Admin)
		a := h.form(test.base+"/login", "name=ana&password="+url.QueryEscape(password), "X-Forwarded-Proto", test.proto).want(t, http.StatusSeeOther)
		c := a.Cookies()[0]
		got := strings.Replace(a.Header.Get("Set-Cookie"), c.Value, "", 1)
		if got != test.want || len(c.Value) != 43 {
			t.Errorf("%+v: %s", test, got)
		}
	}
}

// A login gives a new session, whatever the browser had before, and ends the
// old one.
func TestLogin_IsNoFixation(t *testing.T) {
	h := start(t)
	h.user("ana", access.Admin)
	planted, _ := access.NewSession()
	a := h.form("/login", "name=ana&password="+url.QueryEscape(password), "Cookie", "redrive="+planted).want(t, http.StatusSeeOther)
	if a.Cookies()[0].Value == planted {
		t.Error("the login took over the session that was there")
	}
	h.get("/api/v1/jobs", "Cookie", "redrive="+planted).want(t, http.StatusUnauthorized)
	first := "redrive=" + a.Cookies()[0].Value
	h.get("/api/v1/jobs", "Cookie", first).want(t, http.StatusOK)
	h.form("/login", "name=ana&password="+url.QueryEscape(password), "Cookie", first, "Sec-Fetch-Site", "same-origin").want(t, http.StatusSeeOther)
	h.get("/api/v1/jobs", "Cookie", first).want(t, http.StatusUnauthorized)
}

// A logout ends the session here; a copy of the cookie is worth nothing.
func TestLogin_LogoutEndsTheSession(t *testing.T) {
	h := start(t)
	h.user("ana", access.Admin)
	cookie := h.logIn("ana")
	h.get("/", "Cookie", cookie).want(t, http.StatusOK)
	a := h.form("/logout", "", "Cookie", cookie, "Sec-Fetch-Site", "same-origin").want(t, http.StatusSeeOther)
	if c := a.Cookies()[0]; c.MaxAge >= 0 || c.Value != "" || a.Header.Get("Location") != "/login" {
		t.Errorf("logout: %v to %s", c, a.Header.Get("Location"))
	}
	h.get("/api/v1/jobs", "Cookie", cookie).want(t, http.StatusUnauthorized)
}

// What is said about a wrong name is said about a wrong password, and both are
// bounded.
func TestLogin_GuessingIsBounded(t *testing.T) {
	h := start(t)
	h.user("ana", access.Admin)
	form := func(name, password string) answer {
		return h.form("/login", url.Values{"name": {name}, "password": {password}}.Encode(), "Accept", "application/json")
	}
	known, unknown := form("ana", "wrong password"), form("bo", "wrong password")
	if known.StatusCode != http.StatusUnauthorized || known.body != unknown.body || unknown.StatusCode != known.StatusCode {
		t.Errorf("%d %s and %d %s", known.StatusCode, known.body, unknown.StatusCode, unknown.body)
	}
	for range 4 {
		form("ana", "wrong password").want(t, http.StatusUnauthorized)
	}
	if a := form("ana", password).want(t, http.StatusTooManyRequests); a.Header.Get("Retry-After") == "" || len(a.Cookies()) > 0 {
		t.Errorf("the sixth try: %v", a.Header)
	}
	for _, empty := range []string{"", " "} { // counts against no user's name
		if a := form(empty, empty); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("name and password %q: %d", empty, a.StatusCode)
		}
	}
}

// The address in a header changes nothing: only the connection's own counts.
func TestLogin_ForgedAddressesShareOneBound(t *testing.T) {
	h := start(t)
	h.user("ana", access.Admin)
	var last answer
	for _, address := range []string{"1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4", "5.5.5.5", "6.6.6.6"} {
		last = h.form("/login", "name=ana&password=wrong", "X-Forwarded-For", address, "X-Real-Ip", address, "Accept", "application/json")
	}
	last.want(t, http.StatusTooManyRequests)
}

// Where a login leads stays on this server, whatever the link said.
func TestLogin_LeadsNowhereElse(t *testing.T) {
	h := start(t)
	h.user("ana", access.Admin)
	for next, want := range map[string]string{
		"/jobs?state=dead_letter": "/jobs?state=dead_letter", "": "/", "https://evil.example/": "/", "//evil.example": "/", "/\\evil.example": "/",
		"/\t/evil.example": "/", "javascript:alert(1)": "/", "/%09/evil.example": "/%09/evil.example", "jobs": "/",
	} {
		fields := url.Values{"name": {"ana"}, "password": {password}, "next": {next}}.Encode()
		if a := h.form("/login", fields).want(t, http.StatusSeeOther); a.Header.Get("Location") != want {
			t.Errorf("next=%q leads to %q, want %q", next, a.Header.Get("Location"), want)
		}
	}
}

// A logout, and everything else that takes a right away, closes what is open.
func TestLogin_OpenSocketsEndWithTheLogin(t *testing.T) {
	h := start(t)
	h.staff()
	for name, end := range map[string]func(cookie string) error{
		"logout": func(cookie string) error {
			h.form("/logout", "", "Cookie", cookie, "Sec-Fetch-Site", "same-origin").want(t, http.StatusSeeOther)
			return nil
		},
		"password": func(string) error {
			h.post("/api/v1/users/viewer/password", `{"password":"`+password+`"}`, "Authorization", "Bearer "+h.token("a", access.Admin, time.Hour)).want(t, 200)
			return nil
		},
		"remove": func(string) error {
			h.post("/api/v1/users/viewer/remove", "", "Authorization", "Bearer "+h.token("b", access.Admin, time.Hour)).want(t, 200)
			return nil
		},
	} {
		if _, err := h.store.Accounts.User(t.Context(), "viewer"); err != nil {
			h.user("viewer", access.Viewer)
		}
		cookie := h.session("viewer")
		other := h.socket(h.session("operator"), h.http.URL)
		conn := h.socket(cookie, h.http.URL)
		if err := end(cookie); err != nil {
			t.Fatal(err)
		}
		for {
			if _, _, err := conn.ReadMessage(); websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
				break
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
		if err := other.WriteMessage(websocket.TextMessage, []byte(`{"type":"subscribe"}`)); err != nil {
			t.Errorf("%s closed somebody else's: %v", name, err)
		}
	}
}

// socket opens a websocket with a cookie.
func (h *house) socket(cookie, origin string) *websocket.Conn {
	h.t.Helper()
	conn, answer, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(h.http.URL, "http")+"/live",
		http.Header{"Cookie": {cookie}, "Origin": {origin}})
	if err != nil {
		h.t.Fatalf("%v, %+v", err, answer)
	}
	h.t.Cleanup(func() { conn.Close() })
	return conn
}

// A page elsewhere cannot open a websocket with a user's session, nor can a client
// that does not say where it comes from.
func TestLogin_SocketsNeedAnOrigin(t *testing.T) {
	h := start(t)
	h.staff()
	address := "ws" + strings.TrimPrefix(h.http.URL, "http") + "/live"
	for name, test := range map[string]struct {
		header http.Header
		status int
	}{
		"a stranger":         {http.Header{"Origin": {h.http.URL}}, 401},
		"without origin":     {http.Header{"Cookie": {h.session("viewer")}}, 403},
		"another site":       {http.Header{"Cookie": {h.session("viewer")}, "Origin": {"https://evil.example"}}, 403},
		"the dashboard":      {http.Header{"Cookie": {h.session("viewer")}, "Origin": {h.http.URL}}, 101},
		"a program":          {http.Header{"Authorization": {"Bearer " + h.token("p", access.Viewer, time.Hour)}}, 101},
		"a program too weak": {http.Header{"Authorization": {"Bearer " + h.token("q", access.Producer, time.Hour)}}, 403},
	} {
		conn, answer, err := websocket.DefaultDialer.Dial(address, test.header)
		if err == nil {
			conn.Close()
		}
		if answer == nil || answer.StatusCode != test.status {
			t.Errorf("%s: %+v, %v, want %d", name, answer, err, test.status)
		}
	}
}

// A reader of the database finds nothing that lets anyone in.
func TestLogin_DatabaseHoldsNoSecret(t *testing.T) {
	h := start(t)
	h.user("ana", access.Admin)
	cookie := h.logIn("ana")
	token := h.token("deploy", access.Admin, time.Hour)
	h.form("/login", "name="+url.QueryEscape(password)+"&password=typed-in-the-wrong-field").want(t, http.StatusUnauthorized)
	db, err := sql.Open("sqlite", "file:"+h.file())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("PRAGMA wal_checkpoint(FULL)"); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(h.file() + suffix)
		if err != nil {
			t.Fatal(err)
		}
		for what, secret := range map[string]string{
			"password": password, "session": strings.TrimPrefix(cookie, "redrive="), "token": token, "its secret": token[len(token)-43:],
			"what was typed": "typed-in-the-wrong-field",
		} {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s holds the %s", h.file()+suffix, what)
			}
		}
	}
}

// withProxy trusts a proxy at this machine's address.
func withProxy(o *Options) {
	c, err := config.Parse("proxy.yaml", []byte(settings+`
access:
  proxy:
    networks: [127.0.0.0/8]
    user_header: X-Forwarded-User
    role_header: X-Forwarded-Groups
    roles: {sre: admin, dev: operator, all: viewer}
`))
	if err != nil {
		panic(err)
	}
	o.Config = c
}

// A trusted proxy says who a caller is, and in which groups; a malformed header
// lets no one in.
func TestProxy_SaysWhoItIs(t *testing.T) {
	h := start(t, withProxy)
	for name, test := range map[string]struct {
		headers []string
		status  int
	}{
		"nobody":           {nil, 401},
		"blank":            {[]string{"X-Forwarded-User", "", "X-Forwarded-Groups", "sre"}, 401},
		"spaces":           {[]string{"X-Forwarded-User", "token deploy", "X-Forwarded-Groups", "sre"}, 401},
		"no group":         {[]string{"X-Forwarded-User", "ana"}, 403},
		"unknown group":    {[]string{"X-Forwarded-User", "ana", "X-Forwarded-Groups", "SRE, sres,"}, 403},
		"viewer":           {[]string{"X-Forwarded-User", "ana", "X-Forwarded-Groups", "all"}, 403},
		"operator":         {[]string{"X-Forwarded-User", "ana", "X-Forwarded-Groups", "all, dev", "Origin", "https://redrive.example"}, 200},
		"without origin":   {[]string{"X-Forwarded-User", "ana", "X-Forwarded-Groups", "dev"}, 403},
		"from another":     {[]string{"X-Forwarded-User", "ana", "X-Forwarded-Groups", "dev", "Origin", "https://evil.example"}, 403},
		"groups, not user": {[]string{"X-Forwarded-Groups", "sre"}, 401},
	} {
		if a := h.post("/api/v1/queues/orders/pause", "", test.headers...); a.StatusCode != test.status {
			t.Errorf("%s: %d %s, want %d", name, a.StatusCode, a.body, test.status)
		}
	}
	if _, by, err := h.store.Paused(t.Context(), "orders"); err != nil || by != "ana" {
		t.Errorf("paused by %q, %v", by, err)
	}
}

// A proxy that only passes requests on is believed in where they come from, and not in who sends them.
func TestProxy_ThatLogsNoOneInSaysNoName(t *testing.T) {
	h := limited(t, "access: {proxy: {networks: [127.0.0.1]}}")
	eve := []string{"X-Forwarded-For", "192.0.2.1", "X-Forwarded-User", "eve"}

	h.get("/api/v1/jobs", eve...).want(t, http.StatusOK) // as everyone, until there is a user
	for said, want := range map[string]bool{"No login configured": true, "A proxy logs people in": false} {
		if page := h.get("/access").want(t, http.StatusOK); strings.Contains(page.body, said) != want {
			t.Errorf("the page says %q: %t", said, !want)
		}
	}

	h.user("ana", access.Admin)
	h.get("/api/v1/jobs", eve...).want(t, http.StatusUnauthorized)

	fields := url.Values{"name": {"ana"}, "password": {password}}.Encode()
	h.form("/login", fields, append(eve, "Accept", "application/json")...).want(t, http.StatusOK)

	from := func(e audit.Entry) bool { return e.Actor.Name == "ana" && e.Actor.Address == "192.0.2.1" }
	if all := h.entries("ana"); !slices.ContainsFunc(all, from) {
		t.Errorf("the audit log has %+v", all)
	}
}

// A header that comes twice has been sent by someone else as well, so neither counts. A
// login would not help: pages say what is wrong, and so does the log, once.
func TestProxy_RefusesHeadersThatComeTwice(t *testing.T) {
	var log lines
	h := start(t, withProxy, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for name, header := range map[string]http.Header{
		"groups, the second stronger": {"X-Forwarded-User": {"ana"}, "X-Forwarded-Groups": {"none", "sre"}},
		"groups, the first stronger":  {"X-Forwarded-User": {"ana"}, "X-Forwarded-Groups": {"sre", "none"}},
		"groups, twice the same":      {"X-Forwarded-User": {"ana"}, "X-Forwarded-Groups": {"all", "all"}},
		"groups, the second empty":    {"X-Forwarded-User": {"ana"}, "X-Forwarded-Groups": {"sre", ""}},
		"users":                       {"X-Forwarded-User": {"ana", "bo"}, "X-Forwarded-Groups": {"sre"}},
	} {
		for _, path := range []string{"/api/v1/jobs", "/jobs"} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+path, http.NoBody)
			r.RemoteAddr, r.Header = "127.0.0.1:1", header.Clone()
			if path == "/jobs" {
				r.Header.Set("Accept", "text/html")
			}
			w := httptest.NewRecorder()
			h.http.Config.Handler.ServeHTTP(w, r)
			if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "more than once") {
				t.Errorf("%s, %s: %d %s, want 403", name, path, w.Code, w.Body)
			}
		}
	}
	if said := log.all(); strings.Count(said, "level=WARN") != 1 || !strings.Contains(said, "more than once") {
		t.Errorf("the log says %s", said)
	}
}

// Every route of the API refuses what a proxy says badly with the same status, also the one
// that is open to all.
func TestProxy_RoutesAgreeAboutWhatItSaysBadly(t *testing.T) {
	h := start(t, withProxy)
	for _, route := range h.server().echo.Routes() {
		if !strings.HasPrefix(route.Path, "/api/") {
			continue
		}
		for name, test := range map[string]struct {
			header http.Header
			status int
		}{
			"two users":  {http.Header{"X-Forwarded-User": {"ana", "bo"}, "X-Forwarded-Groups": {"sre"}}, http.StatusForbidden},
			"no role":    {http.Header{"X-Forwarded-User": {"ana"}}, http.StatusForbidden},
			"blank user": {http.Header{"X-Forwarded-User": {""}}, http.StatusUnauthorized},
			"no user":    {http.Header{}, http.StatusUnauthorized},
		} {
			r := httptest.NewRequestWithContext(t.Context(), route.Method, "http://localhost"+fillRoute(job.NewID(), route.Path), http.NoBody)
			r.RemoteAddr, r.Header = "127.0.0.1:1", test.header.Clone()
			w := httptest.NewRecorder()
			h.http.Config.Handler.ServeHTTP(w, r)
			if w.Code != test.status {
				t.Errorf("%s, %s %s: %d %s, want %d", name, route.Method, route.Path, w.Code, w.Body, test.status)
			}
		}
	}
}

// Only the proxy is believed about who a caller is and where it comes from.
func TestProxy_NoOtherAddressIsBelieved(t *testing.T) {
	h := start(t, withProxy, func(o *Options) {
		o.Config.Proxy().Networks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	})
	h.get("/api/v1/jobs", "X-Forwarded-User", "ana", "X-Forwarded-Groups", "sre", "X-Forwarded-For", "10.0.0.1").want(t, http.StatusUnauthorized)
	h.user("ana", access.Admin)
	if cookie := h.logIn("ana"); !strings.HasPrefix(cookie, "redrive=") {
		t.Errorf("the cookie is %s", cookie)
	}
}

// What the proxy takes away ends what is open as soon as the person is seen
// again, and after an hour in any case: then the proxy is asked again.
func TestProxy_OpenSocketsEndWithTheRole(t *testing.T) {
	h := start(t, withProxy)
	open := func(name string) *websocket.Conn {
		conn, answer, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(h.http.URL, "http")+"/live",
			http.Header{"X-Forwarded-User": {name}, "X-Forwarded-Groups": {"all"}, "Origin": {h.http.URL}})
		if err != nil {
			t.Fatalf("%v, %+v", err, answer)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	gone, stays := open("ana"), open("bo")
	h.get("/api/v1/jobs", "X-Forwarded-User", "ana", "X-Forwarded-Groups", "dev").want(t, http.StatusOK)
	h.get("/api/v1/jobs", "X-Forwarded-User", "ana", "X-Forwarded-Groups", "guests").want(t, http.StatusForbidden)
	for {
		if _, _, err := gone.ReadMessage(); websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := stays.ReadMessage(); err != nil {
		t.Errorf("somebody else's is closed: %v", err)
	}
	who, now := web.Caller{Means: web.ByProxy, Name: "bo", Role: access.Viewer, Seen: time.Now()}, time.Now()
	var p proxied
	if !p.may(who, access.View, now) || p.may(who, access.View, now.Add(proxiedFor)) {
		t.Error("a connection does not last as long as it should")
	}
}

// A stranger who guesses from a user's own address cannot be told from that user: there
// the right password has to wait as well. From elsewhere it is accepted, and an open session
// goes on.
func TestLogin_GuessesFromOnesOwnAddressCount(t *testing.T) {
	h := limited(t, "access: {proxy: {networks: [127.0.0.1], user_header: X-User, role: viewer}}")
	h.user("ana", access.Admin)
	try := func(from, secret string) answer {
		fields := url.Values{"name": {"ana"}, "password": {secret}}.Encode()
		return h.form("/login", fields, "X-Forwarded-For", from, "Accept", "application/json")
	}
	cookie, _, _ := strings.Cut(try("192.0.2.1", password).want(t, http.StatusOK).Header.Get("Set-Cookie"), ";")
	for range 5 {
		try("192.0.2.1", "wrong password").want(t, http.StatusUnauthorized)
	}
	if a := try("192.0.2.1", password).want(t, http.StatusTooManyRequests); a.Header.Get("Retry-After") == "" {
		t.Error("the answer does not say when to try again")
	}
	try("192.0.2.2", password).want(t, http.StatusOK)
	h.get("/api/v1/jobs", "Cookie", cookie, "X-Forwarded-For", "192.0.2.1").want(t, http.StatusOK)
}

// An address that guesses, under any names, is told to wait. A user who logged in from
// their own address before can still do so, also after the server was restarted.
func TestLogin_OthersCannotShutAUserOut(t *testing.T) {
	h := limited(t, "limits: {logins: {person: 5, address: 6, minute: 8}}\naccess: {proxy: {networks: [127.0.0.1], user_header: X-User, role: viewer}}")
	h.user("ana", access.Admin)
	try := func(h *house, from, name, secret string) int {
		fields := url.Values{"name": {name}, "password": {secret}}.Encode()
		return h.form("/login", fields, "X-Forwarded-For", from, "Accept", "application/json").StatusCode
	}
	if status := try(h, "192.0.2.1", "ana", password); status != http.StatusOK {
		t.Fatalf("the first login: %d", status)
	}
	guess := func(h *house) {
		for i := range 12 {
			try(h, "192.0.2.66", fmt.Sprintf("name%d", i), "wrong password")
			try(h, fmt.Sprintf("192.0.2.%d", 100+i), "ana", "wrong password")
		}
	}
	server := h.http.Config.Handler.(*Server)
	for _, fresh := range []bool{false, true} {
		if fresh { // as after a restart
			server.logins = access.NewLimiter(server.Config.Limits().Logins)
		}
		guess(h)
		if status := try(h, "192.0.2.66", "ana", password); status != http.StatusTooManyRequests {
			t.Errorf("fresh %v: the right password from where it was guessed: %d, want 429", fresh, status)
		}
		if status := try(h, "192.0.2.1", "ana", password); status != http.StatusOK {
			t.Errorf("fresh %v: the right password from where it was used before: %d, want 200", fresh, status)
		}
	}
	if n := h.refusals(limitLogins, "address"); n == "0" || n == "" {
		t.Errorf("the metric counts %q refused logins", n)
	}
}
