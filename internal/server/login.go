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
	"redrive/web/templates/adminpage"
)

// loginPage is the page /login. Whoever is known already is sent on.
func (s *Server) loginPage(c echo.Context) error {
	next := nextPage(c.QueryParam("next"))
	if who := callerOf(c); who.role.May(access.View) {
		return c.Redirect(http.StatusSeeOther, next)
	}
	return s.loginForm(c, http.StatusOK, next, "", "")
}

// nextPage is where a login leads: a page here, or the overview.
func nextPage(text string) string {
	if next, ok := localPath(text); ok {
		return next
	}
	return "/"
}

func (s *Server) loginForm(c echo.Context, status int, next, name, problem string) error {
	v := adminpage.Login{Frame: s.frame(c, "Log in", ""), Next: next, Name: name, Problem: problem, NoUsers: !s.Store.Guarded()}
	v.Stranger = true
	return s.page(c, status, v.Page())
}

// login is POST /login. It says the same whether the name or the password is
// wrong, after the same work.
func (s *Server) login(c echo.Context) error {
	if err := readForm(c); err != nil {
		return err
	}
	name, next := c.FormValue("name"), nextPage(c.FormValue("next"))
	err := s.logIn(c, name, c.FormValue("password"))
	var f *failure
	switch {
	case err == nil && wantsJSON(c.Request()):
		return c.JSONBlob(http.StatusOK, object("user", encode(name)))
	case err == nil:
		return c.Redirect(http.StatusSeeOther, next)
	case errors.As(err, &f) && !wantsJSON(c.Request()):
		status, _ := f.kind.answer()
		return s.loginForm(c, status, next, clip.Text(name, 64), f.text)
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
	if err := s.Store.StartSession(ctx, now, n, u, by); errors.Is(err, access.ErrUnknown) {
		return wrongPassword()
	} else if err != nil {
		return err
	}
	if old := callerOf(c); old.means == bySession { // one login ends the other
		if err := s.Store.EndSession(ctx, now, old.session, by); err != nil {
			return err
		}
		s.Hub.Recheck()
	}
	c.SetCookie(s.cookie(c, text, int(access.Lifetime.Seconds())))
	return nil
}

func wrongPassword() error {
	return &failure{unknownLogin, "", "the name or the password is wrong", nil}
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
		return access.User{}, &failure{tooMany, "", fmt.Sprintf("too many tries; the next one counts in %d s", seconds), nil}
	}
	u, err := s.Store.User(ctx, name)
	if err != nil && !errors.Is(err, access.ErrUnknown) {
		return u, err
	}
	ok, err := s.secrets.Match(ctx, u.Password, password)
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
	if err := s.Store.LoginFailed(ctx, now, name, audit.Actor{Name: "dashboard at " + address, Address: address}); err != nil {
		s.Log.Warn("a failed login was not written down", "error", err)
	}
}

// logout is POST /logout: the session ends here, not only in this browser.
func (s *Server) logout(c echo.Context) error {
	if err := readForm(c); err != nil {
		return err
	}
	if who := callerOf(c); who.means == bySession {
		if err := s.Store.EndSession(c.Request().Context(), time.Now(), who.session, s.actor("dashboard", c)); err != nil {
			return err
		}
		s.Hub.Recheck()
	}
	c.SetCookie(s.cookie(c, "", -1))
	return done(c, "/login", "text", encode("Logged out"))
}

// cookieName is the name of the session's cookie. Its prefix makes browsers
// refuse one that was set without https, or by another host of the same domain.
func (s *Server) cookieName(c echo.Context) string {
	switch {
	case !s.overHTTPS(c.Request()):
		return "redrive"
	case s.BasePath != "": // __Host- demands the path /
		return "__Secure-redrive"
	}
	return "__Host-redrive"
}

func (s *Server) cookie(c echo.Context, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: s.cookieName(c), Value: value, Path: s.BasePath + "/", MaxAge: maxAge,
		HttpOnly: true, Secure: s.overHTTPS(c.Request()), SameSite: http.SameSiteLaxMode,
	}
}

// forBrowsers reports whether a stranger is better sent to the login than told
// that one is needed.
func forBrowsers(c echo.Context) bool {
	_, withToken := bearer(c.Request())
	return !withToken && !wantsJSON(c.Request()) && c.Path() != "/metrics"
}

func (s *Server) sendToLogin(c echo.Context) {
	if err := c.Redirect(http.StatusSeeOther, toLogin(c.Request())); err != nil {
		s.Log.Warn("an error could not be shown", "request", requestID(c), "error", err)
	}
}
