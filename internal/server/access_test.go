package server

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/audit"
)

const password = "correct horse battery"

// passwordHash is of the password of every user: to hash it is slow on purpose.
var passwordHash = sync.OnceValues(func() (string, error) {
	return access.NewPasswords().Hash(context.Background(), password)
})

var tester = audit.Actor{Name: "test"}

func (h *house) server() *Server { return h.http.Config.Handler.(*Server) }

// user adds a user, by default after an admin.
func (h *house) user(name string, role access.Role) {
	h.t.Helper()
	hash, err := passwordHash()
	if err == nil {
		err = h.store.Accounts.AddUser(h.t.Context(), time.Now(), access.User{Name: name, Role: role, Password: hash}, tester)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// staff adds one user of each role, named as it, and one token of each.
func (h *house) staff() (tokens map[access.Role]string) {
	h.t.Helper()
	for _, role := range []access.Role{access.Admin, access.Viewer, access.Operator} {
		h.user(string(role), role)
	}
	tokens = map[access.Role]string{}
	for _, role := range access.Roles() {
		tokens[role] = h.token(string(role), role, time.Hour)
	}
	return tokens
}

// token makes a token and returns what a program sends.
func (h *house) token(name string, role access.Role, lasts time.Duration) string {
	h.t.Helper()
	now := time.Now()
	n := access.Token{Name: name, Role: role, Expires: now.Add(lasts)}
	var text string
	n.ID, text, n.Hash = access.NewToken()
	if err := h.store.Accounts.CreateToken(h.t.Context(), now, n, tester); err != nil {
		h.t.Fatal(err)
	}
	return text
}

// session begins a session past the login and returns its cookie.
func (h *house) session(name string) string {
	h.t.Helper()
	u, err := h.store.Accounts.User(h.t.Context(), name)
	text, hash := access.NewSession()
	if err == nil {
		err = h.store.Accounts.StartSession(h.t.Context(), time.Now(), access.Session{Hash: hash, User: name}, u, tester)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return "redrive=" + text
}

// logIn logs in as a browser does and returns the cookie.
func (h *house) logIn(name string) string {
	h.t.Helper()
	a := h.form("/login", "name="+name+"&password="+url.QueryEscape(password)).want(h.t, http.StatusSeeOther)
	if len(a.Cookies()) != 1 {
		h.t.Fatalf("the login set %v", a.Cookies())
	}
	return a.Cookies()[0].Name + "=" + a.Cookies()[0].Value
}

// A route that was added past web.Routes has no permission. It is never
// reached, and this test names it.
func TestAccess_EveryRouteHasAPermission(t *testing.T) {
	h := start(t, func(o *Options) { o.Demo = &theDemo{broken: map[string]bool{}} })
	s := h.server()
	for _, r := range s.echo.Routes() {
		if need, ok := s.Need(r.Method, r.Path); !ok || need == "" {
			t.Errorf("%s %s needs no permission: add it by Routes.Get or Routes.Post", r.Method, r.Path)
		}
	}
	s.echo.GET("/backdoor", func(c echo.Context) error { return c.String(http.StatusOK, "open") })
	if a := h.get("/backdoor"); a.StatusCode != http.StatusNotFound || a.body == "open" {
		t.Errorf("a route without a permission answers %d %q", a.StatusCode, a.body)
	}
}

// public are the routes that strangers may use, each named here again so that
// none joins them by a slip of the pen.
func TestAccess_TheseAloneArePublic(t *testing.T) {
	want := map[[2]string]bool{
		{"GET", "/login"}: true, {"HEAD", "/login"}: true, {"POST", "/login"}: true, {"POST", "/logout"}: true,
		{"GET", "/static/:file"}: true, {"HEAD", "/static/:file"}: true,
		{"GET", "/healthz"}: true, {"HEAD", "/healthz"}: true, {"GET", "/readyz"}: true, {"HEAD", "/readyz"}: true,
		{"GET", "/api/v1/me"}: true, {"HEAD", "/api/v1/me"}: true, // answers 401 on its own
	}
	s := start(t).server()
	for _, r := range s.echo.Routes() {
		if need, _ := s.Need(r.Method, r.Path); (need == access.Public) != want[[2]string{r.Method, r.Path}] {
			t.Errorf("%s %s needs %q", r.Method, r.Path, need)
		}
	}
}

// TestAccess_RouteByRole walks every route as a stranger and as every role, by
// token and by session.
func TestAccess_RouteByRole(t *testing.T) {
	h := start(t, func(o *Options) { o.Demo = &theDemo{broken: map[string]bool{}} })
	id := h.dead()
	tokens := h.staff()
	cookies := map[access.Role]string{}
	for _, role := range access.UserRoles() {
		cookies[role] = h.session(string(role))
	}

	for _, r := range h.server().echo.Routes() {
		need, _ := h.server().Need(r.Method, r.Path)
		if need == access.Public {
			continue
		}
		path := fillRoute(id, r.Path)
		checkStranger(t, r.Method, path, h.do(r.Method, path, ""))
		checkStranger(t, r.Method, path, h.do(r.Method, path, "", "Cookie", "redrive=x; __Host-redrive=x"))
		for role, token := range tokens {
			checkRole(t, role, need, r.Method+" "+path+" by token", h.do(r.Method, path, "", "Authorization", "Bearer "+token))
		}
		for _, role := range access.UserRoles() {
			a := h.do(r.Method, path, "", "Cookie", cookies[role], "Sec-Fetch-Site", "same-origin")
			checkRole(t, role, need, r.Method+" "+path+" by session", a)
			if r.Method == http.MethodPost { // which can end the session
				cookies[role] = h.session(string(role))
			}
		}
	}
}

// checkStranger fails unless an answer tells an unknown caller to log in, and
// nothing about the product.
func checkStranger(t *testing.T, method, path string, a answer) {
	t.Helper()
	browser := !strings.HasPrefix(path, "/api/") && path != "/live" && path != "/metrics"
	switch {
	case browser && (a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/login")):
		t.Errorf("%s %s for a stranger: %d to %q, want the login", method, path, a.StatusCode, a.Header.Get("Location"))
	case !browser && (a.StatusCode != http.StatusUnauthorized || a.Header.Get("WWW-Authenticate") != "Bearer"):
		t.Errorf("%s %s for a stranger: %d, want 401 and Bearer", method, path, a.StatusCode)
	case strings.Contains(a.body, "order.ship") || strings.Contains(a.body, "warehouse"):
		t.Errorf("%s %s tells a stranger about a job", method, path)
	}
}

func checkRole(t *testing.T, role access.Role, need access.Permission, what string, a answer) {
	t.Helper()
	denied := a.StatusCode == http.StatusForbidden || a.StatusCode == http.StatusUnauthorized ||
		strings.HasPrefix(a.Header.Get("Location"), "/login")
	if denied == role.May(need) {
		t.Errorf("%s as %s, which needs %s: %d", what, role, need, a.StatusCode)
	}
	if denied && a.StatusCode != http.StatusForbidden {
		t.Errorf("%s as %s: %d, want 403", what, role, a.StatusCode)
	}
}

// A session is sent along by the browser itself, a token is not: what changes
// something by a session must say where it comes from, and that must be here.
func TestAccess_RouteByOrigin(t *testing.T) {
	h := start(t, func(o *Options) { o.Demo = &theDemo{broken: map[string]bool{}} })
	id := h.dead()
	token, cookie := h.staff()[access.Admin], h.session("admin")
	for _, r := range h.server().echo.Routes() {
		if r.Method != http.MethodPost || r.Path == "/login" {
			continue
		}
		path, seq := fillRoute(id, r.Path), h.store.Snapshot().Seq
		for name, headers := range map[string][]string{
			"no origin":    nil,
			"another site": {"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"},
			"the null":     {"Origin", "null"},
			"same site":    {"Sec-Fetch-Site", "same-site"},
			"other host":   {"Host", "evil.example", "Origin", "http://evil.example"},
		} {
			a := h.form(path, "run=1&broken=false", append([]string{"Cookie", cookie}, headers...)...)
			if a.StatusCode != http.StatusForbidden && a.StatusCode != http.StatusMisdirectedRequest {
				t.Errorf("%s by session from %s: %d", path, name, a.StatusCode)
			}
		}
		if h.store.Snapshot().Seq != seq {
			t.Errorf("%s: a request of another site changed something", path)
		}
		if a := h.do("POST", path, "", "Authorization", "Bearer "+token, "Cookie", cookie); a.StatusCode == http.StatusForbidden {
			t.Errorf("%s by token without an origin: %d", path, a.StatusCode)
		}
	}
	a := h.form("/queues/orders/pause", "", "Cookie", cookie, "Origin", h.http.URL)
	if a.StatusCode != http.StatusSeeOther || strings.HasPrefix(a.Header.Get("Location"), "/login") {
		t.Errorf("the dashboard's own form: %d to %s", a.StatusCode, a.Header.Get("Location"))
	}
}

// The look of a path gives no caller any permission: only the matched route counts.
func TestAccess_DisguisedPaths(t *testing.T) {
	h := start(t)
	h.dead()
	h.staff()
	for _, path := range []string{
		"/healthz/../jobs", "/static/..%2Fjobs", "//jobs", "/jobs/", "/JOBS", "/jobs;/healthz", "/%6Aobs", "/jobs%2F..%2Fhealthz",
		"/api/v1/jobs?x=/healthz", "/api/v1//jobs", "/login/../jobs", "/healthz%2Fjobs", "/static/x/../../jobs", "/metrics/", "/jobs%00",
	} {
		a := h.get(path)
		if a.StatusCode == http.StatusOK || strings.Contains(a.body, "order.ship") || strings.Contains(a.body, `data-state-count`) {
			t.Errorf("%s for a stranger: %d", path, a.StatusCode)
		}
	}
}

// A credential that is empty, blank, wrong or expired lets no one in.
func TestAccess_NothingFailsOpen(t *testing.T) {
	h := start(t)
	h.staff()
	good := h.token("good", access.Admin, time.Hour)
	late := h.token("late", access.Admin, time.Nanosecond)
	id, _, _ := access.ParseToken(good)
	_, other, _ := access.NewToken()
	secretOf := func(token string) string { return token[strings.LastIndex(token[:len("redrive_")+11], "_")+1:] }
	mixed := "redrive_" + id + "_" + secretOf(other)
	for _, header := range []string{
		"Bearer", "Bearer ", "Bearer  ", "bearer \t", "Bearer null", "Bearer redrive__", "Bearer redrive_" + id, "Bearer redrive_" + id + "_",
		"Bearer " + late, "Bearer " + other, "Bearer " + mixed, "Bearer " + good + "A", "Bearer " + id, "Basic " + good, good,
	} {
		if a := h.get("/api/v1/jobs", "Authorization", header); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("Authorization %.30q: %d, want 401", header, a.StatusCode)
		}
	}
	cookie := h.session("admin")
	if a := h.get("/api/v1/jobs", "Authorization", "Bearer ", "Cookie", cookie); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("an empty token beside a session: %d, want 401", a.StatusCode)
	}
	for _, value := range []string{"", "redrive=", "redrive= ", "redrive=\"\"", "redrive=null", cookie + "A", "Redrive" + cookie[7:], "__Host-" + cookie} {
		if a := h.get("/api/v1/jobs", "Cookie", value); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("Cookie %.30q: %d, want 401", value, a.StatusCode)
		}
	}
	h.get("/api/v1/jobs", "Cookie", cookie).want(t, http.StatusOK)
	h.get("/api/v1/jobs", "Authorization", "Bearer "+good).want(t, http.StatusOK)
}

// Where the network reaches the dashboard, no one is let in before there is a
// user; where only the machine itself does, everyone is.
func TestAccess_ClosedWithoutUsers(t *testing.T) {
	closed := start(t, func(o *Options) { o.Closed = true })
	closed.get("/api/v1/jobs").want(t, http.StatusUnauthorized)
	if a := closed.get("/login").want(t, http.StatusOK); !strings.Contains(a.body, "dashboard user add") {
		t.Error("the login does not say how to make a user")
	}
	h := start(t)
	h.get("/api/v1/jobs").want(t, http.StatusOK)
	viewer := `{"name":"bo","role":"viewer","password":"` + password + `"}`
	h.post("/api/v1/users", viewer).want(t, http.StatusConflict)
	h.post("/api/v1/users", strings.Replace(viewer, "viewer", "admin", 1)).want(t, http.StatusCreated)
	h.get("/api/v1/jobs").want(t, http.StatusUnauthorized)
	if a := h.get("/jobs?state=dead_letter").want(t, http.StatusSeeOther); a.Header.Get("Location") != "/login?next=%2Fjobs%3Fstate%3Ddead_letter" {
		t.Errorf("the login is at %s", a.Header.Get("Location"))
	}
}

// A token is revoked at once, and its use is written down.
func TestAccess_TokenEndsAtOnce(t *testing.T) {
	h := start(t)
	h.staff()
	admin := []string{"Authorization", "Bearer " + h.token("root", access.Admin, time.Hour)}
	made := decode[struct {
		Secret string
		Token  struct{ ID, Expires string }
	}](t, h.post("/api/v1/tokens", `{"name":"deploy","role":"operator","expires":"P1D"}`, admin...).want(t, http.StatusCreated))
	bearer := []string{"Authorization", "Bearer " + made.Secret}
	h.post("/api/v1/queues/orders/pause", "", bearer...).want(t, http.StatusOK)
	if _, by, err := h.store.Paused(t.Context(), "orders"); err != nil || by != "token deploy" {
		t.Errorf("paused by %q, %v", by, err)
	}
	listed := h.get("/api/v1/tokens", admin...).want(t, http.StatusOK)
	if strings.Contains(listed.body, made.Secret) || !strings.Contains(listed.body, `"used_at"`) {
		t.Errorf("the list says %s", listed.body)
	}
	h.post("/api/v1/tokens/"+made.Token.ID+"/revoke", "", admin...).want(t, http.StatusOK)
	h.post("/api/v1/queues/orders/resume", "", bearer...).want(t, http.StatusUnauthorized)
}

// The user who runs the dashboard needs no token of the database: the key beside it
// makes an admin.
func TestAccess_TheKeyOfTheMachineIsAnAdmin(t *testing.T) {
	var local access.Token
	var key string
	local.ID, key, local.Hash = access.NewToken()
	h := start(t, func(o *Options) { o.Local = local })
	h.staff()
	h.get("/api/v1/tokens", "Authorization", "Bearer "+key).want(t, http.StatusOK)
	h.post("/api/v1/tokens", `{"name": "first", "role": "viewer"}`, "Authorization", "Bearer "+key).want(t, http.StatusCreated)
	if log := h.get("/api/v1/audit?action=token.create", "Authorization", "Bearer "+key); !strings.Contains(log.body, `"command line"`) {
		t.Errorf("the audit log says %s", log.body)
	}
	id, _, _ := access.ParseToken(key)
	_, other, _ := access.NewToken()
	for _, wrong := range []string{"redrive_" + id + other[len("redrive_")+10:], key + "A", id} {
		if a := h.get("/api/v1/tokens", "Authorization", "Bearer "+wrong); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d, want 401", wrong, a.StatusCode)
		}
	}
}

func TestMetrics_SaysInPlainTextWhichTokenItNeeds(t *testing.T) {
	h := start(t)
	tokens := h.staff()
	for header, status := range map[string]int{
		"Bearer x": http.StatusUnauthorized, "": http.StatusUnauthorized, "Bearer " + tokens[access.Producer]: http.StatusForbidden,
		"Bearer " + tokens[access.Viewer]: http.StatusOK,
	} {
		a := h.get("/metrics", "Authorization", header, "Accept", "text/html")
		if a.StatusCode != status || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") {
			t.Errorf("%.10q: %d %s", header, a.StatusCode, a.Header.Get("Content-Type"))
		}
		if said := strings.Contains(a.body, "credentials_file") && len(a.body) < 300; said != (status != http.StatusOK) {
			t.Errorf("%.10q: %s", header, a.body)
		}
	}
}
