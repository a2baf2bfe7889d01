package server

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/web/templates/adminpage"
)

// accessPage is the page /access: users, who is logged in, and tokens.
func (s *Server) accessPage(c echo.Context) error {
	return s.showAccess(c, http.StatusOK, adminpage.Access{})
}

// showAccess shows the page with what an act on it has to say.
func (s *Server) showAccess(c echo.Context, status int, v adminpage.Access) (err error) {
	ctx, who := c.Request().Context(), callerOf(c)
	v.Frame = s.frame(c, "Access", "access")
	v.Open, v.Proxied = s.open(), s.proxy != nil
	if v.Users, err = s.Store.Users(ctx); err != nil {
		return err
	}
	if v.Sessions, err = s.Store.Sessions(ctx, v.Now); err != nil {
		return err
	}
	if v.Tokens, err = s.Store.Tokens(ctx); err != nil {
		return err
	}
	slices.SortStableFunc(v.Tokens, func(a, b access.Token) int { return cmp.Compare(over(a, v.Now), over(b, v.Now)) })
	v.Own = access.Session{Hash: who.session}.ID()
	return s.page(c, status, v.Page())
}

// over sorts tokens that let nobody in behind the others.
func over(t access.Token, now time.Time) int {
	if t.Live(now) {
		return 0
	}
	return 1
}

// accessForm answers a form of the page: by the page again, which says what is
// wrong when something is.
func (s *Server) accessForm(do func(echo.Context) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := readForm(c); err != nil {
			return err
		}
		if err := do(c); err != nil {
			return s.accessRefused(c, err)
		}
		return done(c, "/access", "text", encode("Done"))
	}
}

// accessRefused shows why users or tokens stay as they are.
func (s *Server) accessRefused(c echo.Context, err error) error {
	var no *access.Refusal
	var field *invalid.Error
	if wantsJSON(c.Request()) || !errors.As(err, &no) && !errors.As(err, &field) && !errors.Is(err, access.ErrUnknown) {
		return err
	}
	f := describe(err)
	status, _ := f.kind.answer()
	return s.showAccess(c, status, adminpage.Access{
		Problem: f.text, Field: f.field, Name: clip.Text(c.FormValue("name"), 64), Role: access.Role(c.FormValue("role")),
	})
}

func (s *Server) addUserForm(c echo.Context) error {
	_, err := s.newUser(c, access.User{Name: c.FormValue("name"), Role: access.Role(c.FormValue("role"))}, c.FormValue("password"), "dashboard")
	return err
}

func (s *Server) roleForm(c echo.Context) error {
	return s.changeRole(c, access.Role(c.FormValue("role")), "dashboard")
}

func (s *Server) passwordForm(c echo.Context) error {
	return s.changePassword(c, c.FormValue("password"), "dashboard")
}

func (s *Server) removeForm(c echo.Context) error {
	return s.recheck(s.Store.RemoveUser(c.Request().Context(), time.Now(), c.Param("name"), s.actor("dashboard", c)))
}

func (s *Server) endSessionForm(c echo.Context) error { return s.end(c, c.Param("id"), "dashboard") }

func (s *Server) revokeForm(c echo.Context) error {
	return s.recheck(s.Store.RevokeToken(c.Request().Context(), time.Now(), c.Param("id"), s.actor("dashboard", c)))
}

// tokenForm makes a token. The answer is the page itself and no way to another:
// it is the only place where the token ever stands.
func (s *Server) tokenForm(c echo.Context) error {
	if err := readForm(c); err != nil {
		return err
	}
	t, text, err := s.newToken(c, c.FormValue("name"), access.Role(c.FormValue("role")), c.FormValue("expires"), "dashboard")
	if err != nil {
		return s.accessRefused(c, err)
	}
	if wantsJSON(c.Request()) {
		return c.JSONBlob(http.StatusCreated, object("token", encode(shapeToken(t)), "secret", encode(text)))
	}
	return s.showAccess(c, http.StatusCreated, adminpage.Access{Made: t.Name, Secret: text})
}
