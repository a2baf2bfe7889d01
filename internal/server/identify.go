package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/apitype"
	"redrive/internal/server/problem"
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
		return problem.New(problem.UnknownCaller, s.howToLogIn())
	case !who.Role.May(need):
		return problem.New(problem.Forbidden, fmt.Sprintf("your role %s does not allow this; ask %s", who.Role, need.Asks()))
	case who.Means.Ambient() && !fromOwnPage(c.Request()):
		return problem.New(problem.CrossOrigin, "requests with a login must say which page they come from "+
			"(Sec-Fetch-Site or Origin); programs use a token instead")
	case s.IsFile(c.Path()) && !s.hosts.linked(c.Request(), who.Means.Ambient()):
		return problem.New(problem.CrossOrigin, "this export was not opened on a page of the dashboard; open the list and start the export there")
	}

	return nil
}

// howToLogIn says what to do when the caller is not logged in.
func (s *Server) howToLogIn() string {
	if s.View.Guarded() || s.proxy.LogsIn() {
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
func (s *Server) open() bool { return !s.closed && !s.proxy.LogsIn() && !s.View.Guarded() }

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
		return web.Caller{}, problem.New(problem.UnknownCaller, wrong)
	}

	if id == s.local.ID && access.SameHash(s.local.Hash, hash) {
		return web.Caller{Means: web.ByToken, Name: "command line", Role: access.Admin}, nil
	}

	t, err := s.View.Tokens().Token(ctx, id)
	if errors.Is(err, access.ErrUnknown) || err == nil && (!access.SameHash(t.Hash, hash) || !t.Live(time.Now())) {
		return web.Caller{}, problem.New(problem.UnknownCaller, wrong)
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

	found, err := s.View.Sessions().Session(c.Request().Context(), time.Now(), hash)
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
		err = s.View.Sessions().SeeSession(ctx, now, who.Session)
	} else {
		err = s.View.Tokens().UseToken(ctx, now, who.Token)
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
		t, err := s.View.Tokens().Token(ctx, who.Token)
		return err == nil && t.Live(now) && t.Role.May(need)
	case web.BySession:
		found, err := s.View.Sessions().Session(ctx, now, who.Session)
		return err == nil && found.Role.May(need)
	case web.ByProxy:
		return s.proxied.may(who, need, now)
	}

	return false
}

// me is GET /me: who the caller is, and what they may do. The route is open to all, so it
// says itself what is wrong with the proof of a caller, as the other routes do.
func (s *Server) me(c echo.Context) (apitype.Caller, error) {
	who := web.CallerOf(c)
	if who.Means == web.ByNothing {
		_, err := s.identify(c)
		if err == nil {
			err = problem.New(problem.UnknownCaller, s.howToLogIn())
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
