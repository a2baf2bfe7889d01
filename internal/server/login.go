package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/apitype"
	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/server/limit"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
)

// toLogin is the address of the login that leads back to the request afterwards.
func toLogin(r *http.Request) string {
	if !web.IsRead(r) || r.URL.RequestURI() == "/" {
		return "/login"
	}
	return "/login?next=" + url.QueryEscape(r.URL.RequestURI())
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
	var f *problem.Problem
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
	if err := s.View.Sessions().StartSession(ctx, now, n, u, by); errors.Is(err, access.ErrUnknown) {
		return wrongPassword()
	} else if err != nil {
		return err
	}

	if old := web.CallerOf(c); old.Means == web.BySession { // one login ends the other
		if err := s.View.Sessions().EndSession(ctx, now, old.Session, by); err != nil {
			return err
		}

		s.Hub.Recheck()
	}

	c.SetCookie(s.cookie(c, text, int(access.Lifetime.Seconds())))

	return nil
}

// wrongPassword is the answer to every login that fails.
func wrongPassword() error {
	return problem.New(problem.UnknownLogin, "wrong name or password")
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

		return access.User{}, problem.New(problem.TooMany, fmt.Sprintf("too many attempts; try again in %d s", seconds))
	}

	// An unknown name goes on as a user without a password, who never matches.
	u, err := s.View.Users().User(ctx, name)
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
	open, err := s.View.Sessions().Sessions(ctx, now)
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
	if err := s.View.Sessions().LoginFailed(ctx, now, name, by); err != nil {
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
		if err := s.View.Sessions().EndSession(c.Request().Context(), time.Now(), who.Session, web.Actor(c)); err != nil {
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
