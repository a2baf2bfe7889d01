package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/server/web"
)

// loginPage is the page /login. Whoever is known already is sent on.
func (s *Server) loginPage(c echo.Context) error {
	next := nextPage(c.QueryParam("next"))
	if who := web.CallerOf(c); who.Role.May(access.View) {
		return c.Redirect(http.StatusSeeOther, next)
	}
	return s.pages.Login(c, http.StatusOK, next, "", "")
}

// nextPage is where a login leads: a page here, or the overview.
func nextPage(text string) string {
	if next, ok := web.LocalPath(text); ok {
		return next
	}
	return "/"
}

// login is POST /login. It says the same whether the name or the password is
// wrong, after the same work.
func (s *Server) login(c echo.Context) error {
	if err := web.ReadForm(c); err != nil {
		return err
	}
	name, next := c.FormValue("name"), nextPage(c.FormValue("next"))
	err := s.logIn(c, name, c.FormValue("password"))
	var f *web.Failure
	switch {
	case err == nil && web.WantsJSON(c.Request()):
		return c.JSONBlob(http.StatusOK, web.Object{"user", name}.Encode())
	case err == nil:
		return c.Redirect(http.StatusSeeOther, next)
	case errors.As(err, &f) && !web.WantsJSON(c.Request()):
		return s.pages.Login(c, f.Kind.Status, next, clip.Text(name, 64), f.Text)
	}
	return err
}

// logIn checks a password and begins a session under a new id.
func (s *Server) logIn(c echo.Context, name, password string) error {
	ctx, now := c.Request().Context(), time.Now()
	u, err := s.checkPassword(c, now, name, password)
	if err != nil {
		return err
	}
	text, hash := access.NewSession()
	by := audit.Actor{Name: u.Name, Address: c.RealIP()}
	n := access.Session{Hash: hash, User: u.Name, Address: by.Address}
	if err := s.View.StartSession(ctx, now, n, u, by); errors.Is(err, access.ErrUnknown) {
		return wrongPassword()
	} else if err != nil {
		return err
	}
	if old := web.CallerOf(c); old.Means == web.BySession { // one login ends the other
		if err := s.View.EndSession(ctx, now, old.Session, by); err != nil {
			return err
		}
		s.Hub.Recheck()
	}
	c.SetCookie(s.cookie(c, text, int(access.Lifetime.Seconds())))
	return nil
}

func wrongPassword() error {
	return web.Fail(web.UnknownLogin, "the name or the password is wrong")
}

// checkPassword returns the user whose password this is. A name that nobody has
// takes the same way as one that somebody has.
func (s *Server) checkPassword(c echo.Context, now time.Time, name, password string) (access.User, error) {
	ctx, address := c.Request().Context(), c.RealIP()
	if access.CheckUser(name) != nil {
		name = "" // nobody's
	}
	if wait := s.logins.Try(now, name, address); wait > 0 {
		seconds := int(wait.Seconds()) + 1
		c.Response().Header().Set("Retry-After", strconv.Itoa(seconds))
		return access.User{}, web.Fail(web.TooMany, fmt.Sprintf("too many tries; the next one counts in %d s", seconds))
	}
	u, err := s.View.User(ctx, name)
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
	s.logins.Passed(name, address)
	return u, nil
}

// loginFailed writes a failure down, a few of them a minute.
func (s *Server) loginFailed(ctx context.Context, now time.Time, name, address string) {
	if !s.logins.Audits(now) {
		return
	}
	if err := s.View.LoginFailed(ctx, now, name, audit.Actor{Name: "dashboard at " + address, Address: address}); err != nil {
		s.Log.Warn("a failed login was not written down", "error", err)
	}
}

// logout is POST /logout: the session ends here, not only in this browser.
func (s *Server) logout(c echo.Context) error {
	if err := web.ReadForm(c); err != nil {
		return err
	}
	if who := web.CallerOf(c); who.Means == web.BySession {
		if err := s.View.EndSession(c.Request().Context(), time.Now(), who.Session, web.Actor(c)); err != nil {
			return err
		}
		s.Hub.Recheck()
	}
	c.SetCookie(s.cookie(c, "", -1))
	return web.Done(c, "/login", "text", "Logged out")
}

// cookieName is the name of the session's cookie. Its prefix makes browsers
// refuse one that was set without https, or by another host of the same domain.
func (s *Server) cookieName(c echo.Context) string {
	switch {
	case !s.overHTTPS(c.Request()):
		return "redrive"
	case s.basePath != "": // __Host- demands the path /
		return "__Secure-redrive"
	}
	return "__Host-redrive"
}

func (s *Server) cookie(c echo.Context, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: s.cookieName(c), Value: value, Path: s.basePath + "/", MaxAge: maxAge,
		HttpOnly: true, Secure: s.overHTTPS(c.Request()), SameSite: http.SameSiteLaxMode,
	}
}

// forBrowsers reports whether a stranger is better sent to the login than told
// that one is needed.
func forBrowsers(c echo.Context) bool {
	_, withToken := bearer(c.Request())
	return !withToken && !web.WantsJSON(c.Request()) && c.Path() != "/metrics"
}

func (s *Server) sendToLogin(c echo.Context) {
	if err := c.Redirect(http.StatusSeeOther, toLogin(c.Request())); err != nil {
		s.Log.Warn("an error could not be shown", "request", web.RequestID(c), "error", err)
	}
}
