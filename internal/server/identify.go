package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/apitype"
	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/server/limit"
	"redrive/internal/server/web"
)

// Who sends a request is found out before anything else is done for it, and
// [Server.permit] then asks whether the matched route is allowed to them. What
// matches no route with a permission is not reached at all.
//
// A token in the header counts alone: one that is wrong is not made up for by a
// cookie. One token is in no database: the commands of the user who runs the
// dashboard find it beside the database, see [Options]. Then comes what a trusted
// proxy says, then the cookie of a session.
// Where no one can log in, because there is no user, token or proxy, a caller
// that reaches this machine's own address is an admin: it could read the
// database file as well.

// permit runs a handler only if the caller has the permission of its route. A
// route without a permission cannot be reached, so that a forgotten one is
// closed and not open.
func (s *Server) permit(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		need, known := s.Need(r.Method, c.Path())
		who, err := s.identify(c)
		web.SetCaller(c, who)

		if !known {
			return noRoute(c)
		}

		if need == access.Public && who.Means == web.ByNothing { // whatever is wrong with the proof does not matter here
			return next(c)
		}

		if err == nil {
			err = s.allow(c, who, need)
		}

		if err != nil {
			return err
		}

		s.noteUse(c, who)

		return next(c)
	}
}

// noRoute is the answer where there is no route.
func noRoute(c echo.Context) error {
	if allowed, ok := c.Get(echo.ContextKeyHeaderAllow).(string); ok && allowed != "" {
		c.Response().Header().Set(echo.HeaderAllow, allowed)
		return echo.ErrMethodNotAllowed
	}

	return echo.ErrNotFound
}

// allow says why a caller may not use a route, or nothing. Cookies and the
// headers of a proxy come along with every request that a browser sends, also
// one that a page of another site makes it send, so such a caller must prove
// where the request comes from.
func (s *Server) allow(c echo.Context, who web.Caller, need access.Permission) error {
	switch {
	case who.Means == web.ByNothing:
		return web.Fail(web.UnknownCaller, s.howToLogIn())
	case !who.Role.May(need):
		return web.Fail(web.Forbidden, fmt.Sprintf("your role %s does not allow this; ask %s", who.Role, need.Asks()))
	case who.Means.Ambient() && !fromOwnPage(c.Request()):
		return web.Fail(web.CrossOrigin, "requests with a login must say which page they come from "+
			"(Sec-Fetch-Site or Origin); programs use a token instead")
	case s.IsFile(c.Path()) && !s.hosts.linked(c.Request(), who.Means.Ambient()):
		return web.Fail(web.CrossOrigin, "this export was not opened on a page of the dashboard; open the list and start the export there")
	}

	return nil
}

// howToLogIn says what to do when the caller is not logged in.
func (s *Server) howToLogIn() string {
	if s.View.Accounts().Guarded() || s.proxy != nil {
		return "log in, or send a token as Authorization: Bearer"
	}
	return "there are no users yet; on the server, run: dashboard user add NAME --role admin"
}

// fromOwnPage reports whether a request says which page it comes from. That it
// is not a page of another site was checked before.
func fromOwnPage(r *http.Request) bool {
	if isUpgrade(r) {
		return r.Header.Get("Origin") != ""
	}
	return web.IsRead(r) || r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != ""
}

// isUpgrade reports whether a request asks for a websocket, which is a GET and
// yet no plain read.
func isUpgrade(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }

// identify finds out who sends a request. An error comes with the zero caller.
func (s *Server) identify(c echo.Context) (web.Caller, error) {
	r := c.Request()
	if text, ok := bearer(r); ok {
		return s.byToken(r.Context(), text)
	}

	if who, err := s.byProxy(r); who.Means != web.ByNothing || err != nil {
		return who, err
	}

	if who, err := s.bySession(c); who.Means != web.ByNothing || err != nil {
		return who, err
	}

	if s.open() {
		return web.Caller{Means: web.ByOpenness, Role: access.Admin}, nil
	}

	return web.Caller{}, nil
}

// open reports whether everyone who reaches the server may do everything.
func (s *Server) open() bool { return !s.closed && s.proxy == nil && !s.View.Accounts().Guarded() }

// bearer is the token that a request carries; ok is true for an empty one as
// well, because it was meant as a token.
func bearer(r *http.Request) (text string, ok bool) {
	for _, value := range r.Header.Values("Authorization") {
		if scheme, rest, _ := strings.Cut(value, " "); strings.EqualFold(scheme, "Bearer") {
			return strings.TrimSpace(rest), true
		}
	}

	return "", false
}

// byToken is the caller of a token. Everything that can be wrong with a token has
// the same answer, so that no client learns which tokens exist.
func (s *Server) byToken(ctx context.Context, text string) (web.Caller, error) {
	const wrong = "the token is wrong, expired or revoked; an admin can create a new one"
	id, hash, ok := access.ParseToken(text)
	if !ok {
		return web.Caller{}, web.Fail(web.UnknownCaller, wrong)
	}

	if id == s.local.ID && access.SameHash(s.local.Hash, hash) {
		return web.Caller{Means: web.ByToken, Name: "command line", Role: access.Admin}, nil
	}

	t, err := s.View.Accounts().Token(ctx, id)
	if errors.Is(err, access.ErrUnknown) || err == nil && (!access.SameHash(t.Hash, hash) || !t.Live(time.Now())) {
		return web.Caller{}, web.Fail(web.UnknownCaller, wrong)
	}

	if err != nil {
		return web.Caller{}, err
	}

	return web.Caller{Means: web.ByToken, Name: "token " + t.Name, Role: t.Role, Token: t.ID, Seen: t.Used}, nil
}

// bySession is the caller of a session cookie. A cookie that is no longer good
// counts as none: the browser is sent to the login.
func (s *Server) bySession(c echo.Context) (web.Caller, error) {
	cookie, err := c.Request().Cookie(s.cookieName(c))
	if err != nil {
		return web.Caller{}, nil
	}

	hash, ok := access.ParseSession(cookie.Value)
	if !ok {
		return web.Caller{}, nil
	}

	found, err := s.View.Accounts().Session(c.Request().Context(), time.Now(), hash)
	if errors.Is(err, access.ErrUnknown) {
		return web.Caller{}, nil
	}

	if err != nil {
		return web.Caller{}, err
	}

	return web.Caller{Means: web.BySession, Name: found.User, Role: found.Role, Session: hash, Seen: found.Seen}, nil
}

// noteEvery is how exactly it is known when a session or token was used last.
const noteEvery = time.Minute

// noteUse records that a session or token is in use. When that is not possible,
// the request is answered all the same.
func (s *Server) noteUse(c echo.Context, who web.Caller) {
	now := time.Now()
	if who.Session == nil && who.Token == "" || now.Sub(who.Seen) < noteEvery {
		return
	}

	ctx, cancel := context.WithTimeout(c.Request().Context(), time.Second)
	defer cancel()

	var err error
	if who.Session != nil {
		err = s.View.Accounts().SeeSession(ctx, now, who.Session)
	} else {
		err = s.View.Accounts().UseToken(ctx, now, who.Token)
	}

	if err != nil {
		s.Log.Debug("the use of a login could not be recorded", "request", web.RequestID(c), "error", err)
	}
}

// stillAllowed reports whether the caller of an open connection may keep it. It
// asks the database again, since a role can change while a page is open.
func (s *Server) stillAllowed(ctx context.Context, who web.Caller, need access.Permission) bool {
	now := time.Now()
	switch who.Means {
	case web.ByOpenness:
		return s.open()
	case web.ByToken:
		t, err := s.View.Accounts().Token(ctx, who.Token)
		return err == nil && t.Live(now) && t.Role.May(need)
	case web.BySession:
		found, err := s.View.Accounts().Session(ctx, now, who.Session)
		return err == nil && found.Role.May(need)
	case web.ByProxy:
		return s.proxied.may(who, need, now)
	}

	return false
}

// toLogin is the address of the login that leads back to the request afterwards.
func toLogin(r *http.Request) string {
	if !web.IsRead(r) || r.URL.RequestURI() == "/" {
		return "/login"
	}
	return "/login?next=" + url.QueryEscape(r.URL.RequestURI())
}

// me is GET /me: who the caller is, and what they may do. The route is open to all, so it
// says itself what is wrong with the proof of a caller, as the other routes do.
func (s *Server) me(c echo.Context) (apitype.Caller, error) {
	who := web.CallerOf(c)
	if who.Means == web.ByNothing {
		_, err := s.identify(c)
		if err == nil {
			err = web.Fail(web.UnknownCaller, s.howToLogIn())
		}

		return apitype.Caller{}, err
	}

	var may []access.Permission
	for _, p := range access.Permissions() {
		if p != access.Public && who.Role.May(p) {
			may = append(may, p)
		}
	}

	return apitype.Caller{Name: who.Name, Role: who.Role, May: may}, nil
}

// loginPage is the page /login. A user who is logged in already is sent on.
func (s *Server) loginPage(c echo.Context) error {
	next := nextPage(c.QueryParam("next"))
	if who := web.CallerOf(c); who.Role.May(access.View) {
		return c.Redirect(http.StatusSeeOther, next)
	}

	return s.pages.Login(c, http.StatusOK, next, "", "")
}

// nextPage is where a login leads: to a page of this server, never to another
// site.
func nextPage(text string) string {
	if next, ok := web.LocalPath(text); ok {
		return next
	}
	return "/"
}

// login is POST /login. Its answer is the same whether the name or the password
// is wrong, and so is the time that it takes.
func (s *Server) login(c echo.Context) error {
	if err := web.ReadForm(c); err != nil {
		return err
	}

	name, next := c.FormValue("name"), nextPage(c.FormValue("next"))

	err := s.logIn(c, name, c.FormValue("password"))
	var f *web.Failure
	switch {
	case err == nil && web.WantsJSON(c.Request()):
		return web.JSON(c, http.StatusOK, apitype.LoggedIn{User: name})
	case err == nil:
		return c.Redirect(http.StatusSeeOther, next)
	case errors.As(err, &f) && !web.WantsJSON(c.Request()):
		return s.pages.Login(c, f.Kind.Status, next, clip.Text(name, 64), f.Text)
	}

	return err
}

// logIn checks a password and starts a session under a new id, so that an id
// that an attacker planted in the browser before is worth nothing.
func (s *Server) logIn(c echo.Context, name, password string) error {
	ctx, now := c.Request().Context(), time.Now()

	u, err := s.checkPassword(c, now, name, password)
	if err != nil {
		return err
	}

	text, hash := access.NewSession()

	by := audit.Actor{Name: u.Name, Address: c.RealIP()}
	n := access.Session{Hash: hash, User: u.Name, Address: by.Address}
	if err := s.View.Accounts().StartSession(ctx, now, n, u, by); errors.Is(err, access.ErrUnknown) {
		return wrongPassword()
	} else if err != nil {
		return err
	}

	if old := web.CallerOf(c); old.Means == web.BySession { // one login ends the other
		if err := s.View.Accounts().EndSession(ctx, now, old.Session, by); err != nil {
			return err
		}

		s.Hub.Recheck()
	}

	c.SetCookie(s.cookie(c, text, int(access.Lifetime.Seconds())))

	return nil
}

// wrongPassword is the answer to every login that fails.
func wrongPassword() error {
	return web.Fail(web.UnknownLogin, "wrong name or password")
}

// checkPassword returns the user with this password. A name that no user has
// takes the same steps as one that a user has: the time must not tell them
// apart. Tries are limited by name and by address before the expensive hash is
// computed.
func (s *Server) checkPassword(c echo.Context, now time.Time, name, password string) (access.User, error) {
	ctx, address := c.Request().Context(), c.RealIP()

	if access.CheckUser(name) != nil {
		name = "" // no user's
	}

	from := limit.AddressOf(address).String()
	if wait := s.logins.Try(now, name, from, func() bool { return s.loggedInFrom(ctx, now, name, from) }); wait > 0 {
		s.Limits.Refused(limitLogins, limit.ByAddress)

		seconds := int(wait.Seconds()) + 1
		c.Response().Header().Set("Retry-After", strconv.Itoa(seconds))

		return access.User{}, web.Fail(web.TooMany, fmt.Sprintf("too many attempts; try again in %d s", seconds))
	}

	u, err := s.View.Accounts().User(ctx, name)
	if err != nil && !errors.Is(err, access.ErrUnknown) {
		return u, err
	}

	ok, err := s.passwords.Match(ctx, u.Password, password)
	if err != nil {
		return u, err
	}

	if !ok {
		s.loginFailed(ctx, now, u.Name, address)
		return access.User{}, wrongPassword()
	}

	s.logins.Passed(now, name, from)

	return u, nil
}

// loggedInFrom reports whether a user of this name has a session that was begun
// from an address. It is called when the limiter, which a restart empties, does
// not know.
func (s *Server) loggedInFrom(ctx context.Context, now time.Time, name, from string) bool {
	open, err := s.View.Accounts().Sessions(ctx, now)
	if err != nil {
		s.Log.Warn("Sessions could not be read, so a login was limited like one from an unknown address.", "error", err)
	}

	return slices.ContainsFunc(open, func(n access.Session) bool {
		return n.User == name && limit.AddressOf(n.Address).String() == from
	})
}

// loginFailed writes a failed login into the audit log, but only a few a minute:
// no one can fill the log by guessing.
func (s *Server) loginFailed(ctx context.Context, now time.Time, name, address string) {
	if !s.logins.Audits(now) {
		return
	}

	by := audit.Actor{Name: "unknown user (" + address + ")", Address: address}
	if err := s.View.Accounts().LoginFailed(ctx, now, name, by); err != nil {
		s.Log.Warn("a failed login could not be recorded", "error", err)
	}
}

// logout is POST /logout. The session ends on the server, not only in this
// browser.
func (s *Server) logout(c echo.Context) error {
	if err := web.ReadForm(c); err != nil {
		return err
	}

	if who := web.CallerOf(c); who.Means == web.BySession {
		if err := s.View.Accounts().EndSession(c.Request().Context(), time.Now(), who.Session, web.Actor(c)); err != nil {
			return err
		}

		s.Hub.Recheck()
	}

	c.SetCookie(s.cookie(c, "", -1))

	return web.Done(c, "/login", apitype.Done{Text: "Logged out"})
}

// cookieName is the name of the session cookie. Its prefix makes browsers refuse
// one that was set without https, or by another host of the same domain.
func (s *Server) cookieName(c echo.Context) string {
	switch {
	case !overHTTPS(s.proxy, c.Request()):
		return "redrive"
	case s.basePath != "": // __Host- demands the path /
		return "__Secure-redrive"
	}

	return "__Host-redrive"
}

// cookie is the session cookie. Scripts cannot read it, and other sites cannot
// have it sent along with a form.
func (s *Server) cookie(c echo.Context, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: s.cookieName(c), Value: value, Path: s.basePath + "/", MaxAge: maxAge,
		HttpOnly: true, Secure: overHTTPS(s.proxy, c.Request()), SameSite: http.SameSiteLaxMode,
	}
}

// forBrowsers reports whether a stranger should be sent to the login page.
// Programs are told that they need a token instead.
func forBrowsers(c echo.Context) bool {
	_, withToken := bearer(c.Request())
	return !withToken && !web.WantsJSON(c.Request()) && c.Path() != "/metrics"
}

// sendToLogin redirects a browser to the login page.
func (s *Server) sendToLogin(c echo.Context) {
	if err := c.Redirect(http.StatusSeeOther, toLogin(c.Request())); err != nil && !s.deserted(c, err) {
		s.Log.Warn("an error could not be shown", "request", web.RequestID(c), "error", err)
	}
}
