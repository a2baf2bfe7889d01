package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/audit"
)

// Who sends a request is found out before anything else is done for it, and
// [Server.permit] then asks whether the matched route is allowed to them. What
// matches no route with a permission is not reached at all.
//
// A token in the header counts alone: one that is wrong is not made up for by a
// cookie. Then comes what a trusted proxy says, then the cookie of a session.
// Where nobody can log in, because there is no user, token or proxy, whoever
// reaches this machine's own address is its admin, as the person is who could
// read the database file as well.

// means is how somebody is known.
type means int

const (
	byNothing means = iota // a stranger
	byOpenness
	byToken
	byProxy
	bySession
)

// ambient reports whether a browser sends the proof along by itself, also when
// a page of somebody else makes it send a request.
func (m means) ambient() bool { return m == byProxy || m == bySession }

// caller is who sends a request. The zero caller may do nothing.
type caller struct {
	means   means
	name    string // as histories show it
	role    access.Role
	session []byte    // the hash of the session's secret
	token   string    // the id of the token
	seen    time.Time // a session or a token: last; by the proxy: now
}

const callerKey = "redrive.caller"

// callerOf is who sends the request, as far as it was found out.
func callerOf(c echo.Context) caller {
	who, _ := c.Get(callerKey).(caller)
	return who
}

// permit runs a handler only for whom its route allows.
func (s *Server) permit(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		need, known := s.needs[route{r.Method, c.Path()}]
		who, err := s.identify(c)
		c.Set(callerKey, who)
		if !known {
			return noRoute(c)
		}
		if need == access.Public && who.means == byNothing { // whatever is wrong with the proof does not matter here
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

// noRoute is the answer where no route is: never one of a handler.
func noRoute(c echo.Context) error {
	if allowed, ok := c.Get(echo.ContextKeyHeaderAllow).(string); ok && allowed != "" {
		c.Response().Header().Set(echo.HeaderAllow, allowed)
		return echo.ErrMethodNotAllowed
	}
	return echo.ErrNotFound
}

// allow says why a caller may not use a route, or nothing.
func (s *Server) allow(c echo.Context, who caller, need access.Permission) error {
	switch {
	case who.means == byNothing:
		return &failure{unknownCaller, "", s.howToLogIn(), nil}
	case !who.role.May(need):
		return &failure{forbidden, "", fmt.Sprintf("your role %s does not allow this; ask %s", who.role, need.Asks()), nil}
	case who.means.ambient() && !fromOwnPage(c.Request()):
		return &failure{crossOrigin, "", "a login is only good for requests that say which page they come from (Sec-Fetch-Site or Origin); programs use a token", nil}
	}
	return nil
}

func (s *Server) howToLogIn() string {
	if s.View.Guarded() || s.proxy != nil {
		return "log in, or send a token as Authorization: Bearer"
	}
	return "there is no user yet; on the machine of the database, run: dashboard user add NAME --role admin"
}

// fromOwnPage reports whether a request that a browser may have sent by itself
// says where it comes from. That it is no other site was checked before.
func fromOwnPage(r *http.Request) bool {
	if isUpgrade(r) {
		return r.Header.Get("Origin") != ""
	}
	return isRead(r) || r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != ""
}

func isUpgrade(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }

// identify finds out who sends a request. An error comes with the zero caller.
func (s *Server) identify(c echo.Context) (caller, error) {
	r := c.Request()
	if text, ok := bearer(r); ok {
		return s.byToken(r.Context(), text)
	}
	if who, err := s.byProxy(r); who.means != byNothing || err != nil {
		return who, err
	}
	if who, err := s.bySession(c); who.means != byNothing || err != nil {
		return who, err
	}
	if s.open() {
		return caller{means: byOpenness, role: access.Admin}, nil
	}
	return caller{}, nil
}

// open reports whether whoever gets here may do everything.
func (s *Server) open() bool { return !s.Closed && s.proxy == nil && !s.View.Guarded() }

// bearer is the token that a request carries; ok is true for an empty one, too.
func bearer(r *http.Request) (text string, ok bool) {
	for _, value := range r.Header.Values("Authorization") {
		if scheme, rest, _ := strings.Cut(value, " "); strings.EqualFold(scheme, "Bearer") {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

func (s *Server) byToken(ctx context.Context, text string) (caller, error) {
	const wrong = "the token is wrong, expired or revoked; an admin makes another one"
	id, hash, ok := access.ParseToken(text)
	if !ok {
		return caller{}, &failure{unknownCaller, "", wrong, nil}
	}
	t, err := s.View.Token(ctx, id)
	if errors.Is(err, access.ErrUnknown) || err == nil && (!access.SameHash(t.Hash, hash) || !t.Live(time.Now())) {
		return caller{}, &failure{unknownCaller, "", wrong, nil}
	}
	if err != nil {
		return caller{}, err
	}
	return caller{means: byToken, name: "token " + t.Name, role: t.Role, token: t.ID, seen: t.Used}, nil
}

func (s *Server) bySession(c echo.Context) (caller, error) {
	cookie, err := c.Request().Cookie(s.cookieName(c))
	if err != nil {
		return caller{}, nil
	}
	hash, ok := access.ParseSession(cookie.Value)
	if !ok {
		return caller{}, nil
	}
	found, err := s.View.Session(c.Request().Context(), time.Now(), hash)
	if errors.Is(err, access.ErrUnknown) {
		return caller{}, nil
	}
	if err != nil {
		return caller{}, err
	}
	return caller{means: bySession, name: found.User, role: found.Role, session: hash, seen: found.Seen}, nil
}

// noteEvery is how exactly it is known when a session or token was used last.
const noteEvery = time.Minute

// noteUse writes down that a session or token is in use. Where that is not
// possible now, the request is answered all the same.
func (s *Server) noteUse(c echo.Context, who caller) {
	now := time.Now()
	if who.session == nil && who.token == "" || now.Sub(who.seen) < noteEvery {
		return
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), time.Second)
	defer cancel()
	var err error
	if who.session != nil {
		err = s.View.SeeSession(ctx, now, who.session)
	} else {
		err = s.View.UseToken(ctx, now, who.token)
	}
	if err != nil {
		s.Log.Debug("the use of a login was not noted", "request", requestID(c), "error", err)
	}
}

// stillAllowed reports whether somebody whose connection stays open may go on.
func (s *Server) stillAllowed(ctx context.Context, who caller, need access.Permission) bool {
	now := time.Now()
	switch who.means {
	case byOpenness:
		return s.open()
	case byToken:
		t, err := s.View.Token(ctx, who.token)
		return err == nil && t.Live(now) && t.Role.May(need)
	case bySession:
		found, err := s.View.Session(ctx, now, who.session)
		return err == nil && found.Role.May(need)
	case byProxy:
		return s.proxied.may(who, need, now)
	}
	return false
}

// actor names who acts, as far as it is known: by their name, or without a
// login through what and from where.
func (s *Server) actor(through string, c echo.Context) audit.Actor {
	who := callerOf(c)
	by := audit.Actor{Name: who.name, Address: c.RealIP(), Open: who.means == byOpenness}
	if by.Name == "" {
		by.Name = through + " at " + by.Address
	}
	return by
}

// toLogin is where a browser goes that has to log in first, and comes back from.
func toLogin(r *http.Request) string {
	if !isRead(r) || r.URL.RequestURI() == "/" {
		return "/login"
	}
	return "/login?next=" + url.QueryEscape(r.URL.RequestURI())
}
