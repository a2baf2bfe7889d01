package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/invalid"
	"redrive/internal/wire"
)

// accessRoutes are the login, and the users, sessions and tokens.
func (s *Server) accessRoutes() {
	const page, v1 = "/access", "/api/v1"
	s.get(page, access.Manage, s.accessPage)
	s.post(page+"/users", access.Manage, s.accessForm(s.addUserForm))
	s.post(page+"/users/:name/role", access.Manage, s.accessForm(s.roleForm))
	s.post(page+"/users/:name/password", access.Manage, s.accessForm(s.passwordForm))
	s.post(page+"/users/:name/remove", access.Manage, s.accessForm(s.removeForm))
	s.post(page+"/sessions/:id/end", access.Manage, s.accessForm(s.endSessionForm))
	s.post(page+"/tokens", access.Manage, s.tokenForm)
	s.post(page+"/tokens/:id/revoke", access.Manage, s.accessForm(s.revokeForm))
	s.get(v1+"/sessions", access.Manage, s.listSessions)
	s.post(v1+"/sessions/:id/end", access.Manage, s.endSession)
	s.get("/login", access.Public, s.loginPage)
	s.post("/login", access.Public, s.login)
	s.post("/logout", access.Public, s.logout)
	s.get(v1+"/me", access.Public, s.showMe)
	s.get(v1+"/users", access.Manage, s.listUsers)
	s.post(v1+"/users", access.Manage, s.addUser)
	s.post(v1+"/users/:name/role", access.Manage, s.setRole)
	s.post(v1+"/users/:name/password", access.Manage, s.setPassword)
	s.post(v1+"/users/:name/remove", access.Manage, s.removeUser)
	s.get(v1+"/tokens", access.Manage, s.listTokens)
	s.post(v1+"/tokens", access.Manage, s.createToken)
	s.post(v1+"/tokens/:id/revoke", access.Manage, s.revokeToken)
}

// userShape is a user as the API shows it.
type userShape struct {
	Name    string      `json:"name"`
	Role    access.Role `json:"role"`
	Created string      `json:"created_at,omitempty"`
	Changed string      `json:"changed_at,omitempty"`
	Login   string      `json:"last_login_at,omitempty"`
}

func shapeUser(u access.User) userShape {
	return userShape{u.Name, u.Role, wire.FormatTime(u.Created), wire.FormatTime(u.Changed), wire.FormatTime(u.LoggedIn)}
}

// sessionShape is a login as the API shows it: never its secret.
type sessionShape struct {
	ID      string      `json:"id"`
	User    string      `json:"user"`
	Role    access.Role `json:"role"`
	Address string      `json:"address,omitempty"`
	Created string      `json:"created_at"`
	Seen    string      `json:"seen_at"`
	Ends    string      `json:"ends_at"`
}

func shapeSession(n access.Session) sessionShape {
	return sessionShape{n.ID(), n.User, n.Role, n.Address, wire.FormatTime(n.Created), wire.FormatTime(n.Seen), wire.FormatTime(n.Ends())}
}

// tokenShape is a token as the API shows it: never its secret.
type tokenShape struct {
	ID        string      `json:"id"`
	Name      string      `json:"name"`
	Role      access.Role `json:"role"`
	Created   string      `json:"created_at"`
	CreatedBy string      `json:"created_by"`
	Expires   string      `json:"expires_at"`
	Used      string      `json:"used_at,omitempty"`
	Revoked   string      `json:"revoked_at,omitempty"`
}

func shapeToken(t access.Token) tokenShape {
	return tokenShape{t.ID, t.Name, t.Role, wire.FormatTime(t.Created), t.CreatedBy,
		wire.FormatTime(t.Expires), wire.FormatTime(t.Used), wire.FormatTime(t.Revoked)}
}

// showMe is GET /me: who the caller is, and what they may do.
func (s *Server) showMe(c echo.Context) error {
	who := callerOf(c)
	if who.means == byNothing {
		return &failure{unknownCaller, "", s.howToLogIn(), nil}
	}
	var may []access.Permission
	for _, p := range access.Permissions() {
		if p != access.Public && who.role.May(p) {
			may = append(may, p)
		}
	}
	return c.JSONBlob(http.StatusOK, object("name", encode(who.name), "role", encode(who.role), "may", encode(may)))
}

// listUsers is GET /users.
func (s *Server) listUsers(c echo.Context) error {
	users, err := s.View.Users(c.Request().Context())
	if err != nil {
		return err
	}
	all := make([][]byte, len(users))
	for i, u := range users {
		all[i] = encode(shapeUser(u))
	}
	return c.JSONBlob(http.StatusOK, object("users", list(all)))
}

// addUser is POST /users.
func (s *Server) addUser(c echo.Context) error {
	var u access.User
	var password string
	if err := readSmall(c, fields{"name": value(&u.Name, "a string"), "role": value(&u.Role, "a string"), "password": value(&password, "a string")}); err != nil {
		return err
	}
	u, err := s.newUser(c, u, password, "api")
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusCreated, object("user", encode(shapeUser(u))))
}

// newUser adds a user. Whoever used the dashboard without a login is asked for
// one from then on.
func (s *Server) newUser(c echo.Context, u access.User, password, through string) (_ access.User, err error) {
	ctx, now := c.Request().Context(), time.Now().UTC()
	if err := inField("name", access.CheckUser(u.Name)); err != nil {
		return u, err
	}
	if err := inField("role", access.CheckUserRole(u.Role)); err != nil {
		return u, err
	}
	if u.Password, err = s.secrets.Hash(ctx, password); err != nil {
		return u, inField("password", err)
	}
	u.Created, u.Changed = now, now
	if err := s.View.AddUser(ctx, now, u, s.actor(through, c)); err != nil {
		return u, err
	}
	s.Hub.Recheck()
	return u, nil
}

// setRole is POST /users/{name}/role.
func (s *Server) setRole(c echo.Context) error {
	var role access.Role
	if err := readSmall(c, fields{"role": value(&role, "a string")}); err != nil {
		return err
	}
	if err := s.changeRole(c, role, "api"); err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, object("user", encode(userShape{Name: c.Param("name"), Role: role})))
}

// changeRole gives the user in the address another role.
func (s *Server) changeRole(c echo.Context, role access.Role, through string) error {
	if err := inField("role", access.CheckUserRole(role)); err != nil {
		return err
	}
	return s.recheck(s.View.SetRole(c.Request().Context(), time.Now(), c.Param("name"), role, s.actor(through, c)))
}

// recheck looks again at who has a connection open, after rights have changed.
func (s *Server) recheck(err error) error {
	if err == nil {
		s.Hub.Recheck()
	}
	return err
}

// setPassword is POST /users/{name}/password.
func (s *Server) setPassword(c echo.Context) error {
	var password string
	if err := readSmall(c, fields{"password": value(&password, "a string")}); err != nil {
		return err
	}
	if err := s.changePassword(c, password, "api"); err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, object("changed", encode(c.Param("name"))))
}

// changePassword gives the user in the address another password.
func (s *Server) changePassword(c echo.Context, password, through string) error {
	hash, err := s.secrets.Hash(c.Request().Context(), password)
	if err != nil {
		return inField("password", err)
	}
	return s.recheck(s.View.SetPassword(c.Request().Context(), time.Now(), c.Param("name"), hash, s.actor(through, c)))
}

// removeUser is POST /users/{name}/remove.
func (s *Server) removeUser(c echo.Context) error {
	name, err := s.bareAct(c, paramName)
	if err != nil {
		return err
	}
	if err := s.recheck(s.View.RemoveUser(c.Request().Context(), time.Now(), name, s.actor("api", c))); err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, object("removed", encode(name)))
}

func paramName(c echo.Context) (string, error) { return c.Param("name"), nil }

func paramAny(c echo.Context) (string, error) { return c.Param("id"), nil }

// listSessions is GET /sessions: who is logged in.
func (s *Server) listSessions(c echo.Context) error {
	sessions, err := s.View.Sessions(c.Request().Context(), time.Now())
	if err != nil {
		return err
	}
	all := make([][]byte, len(sessions))
	for i, n := range sessions {
		all[i] = encode(shapeSession(n))
	}
	return c.JSONBlob(http.StatusOK, object("sessions", list(all)))
}

// endSession is POST /sessions/{id}/end.
func (s *Server) endSession(c echo.Context) error {
	id, err := s.bareAct(c, paramAny)
	if err == nil {
		err = s.end(c, id, "api")
	}
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, object("ended", encode(id)))
}

// end ends the login with an id.
func (s *Server) end(c echo.Context, id, through string) error {
	ctx, now := c.Request().Context(), time.Now()
	all, err := s.View.Sessions(ctx, now)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(n access.Session) bool { return n.ID() == id })
	if i < 0 {
		return &failure{notFound, "", "there is no such session; it may be over", nil}
	}
	return s.recheck(s.View.EndSession(ctx, now, all[i].Hash, s.actor(through, c)))
}

// listTokens is GET /tokens.
func (s *Server) listTokens(c echo.Context) error {
	tokens, err := s.View.Tokens(c.Request().Context())
	if err != nil {
		return err
	}
	all := make([][]byte, len(tokens))
	for i, t := range tokens {
		all[i] = encode(shapeToken(t))
	}
	return c.JSONBlob(http.StatusOK, object("tokens", list(all)))
}

// createToken is POST /tokens. The answer is the only place where the token
// ever stands.
func (s *Server) createToken(c echo.Context) error {
	var name, expires string
	var role access.Role
	if err := readSmall(c, fields{"name": value(&name, "a string"), "role": value(&role, "a string"), "expires": value(&expires, "a duration, as P90D")}); err != nil {
		return err
	}
	t, text, err := s.newToken(c, name, role, expires, "api")
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusCreated, object("token", encode(shapeToken(t)), "secret", encode(text)))
}

// newToken makes a token and returns the text that its owner keeps.
func (s *Server) newToken(c echo.Context, name string, role access.Role, expires, through string) (t access.Token, text string, err error) {
	now, lasts := time.Now().UTC(), access.TokenDefault
	if expires != "" {
		if lasts, err = wire.ParseGoDuration(expires); err != nil {
			return t, "", &invalid.Error{Field: "expires", Problem: err.Error()}
		}
	}
	if err := cmp.Or(
		inField("name", access.CheckToken(name)), inField("role", access.CheckTokenRole(role)), inField("expires", access.CheckExpiry(lasts)),
	); err != nil {
		return t, "", err
	}
	by := s.actor(through, c)
	t = access.Token{Name: name, Role: role, Created: now, CreatedBy: by.Name, Expires: now.Add(lasts)}
	t.ID, text, t.Hash = access.NewToken()
	if err := s.View.CreateToken(c.Request().Context(), now, t, by); err != nil {
		return t, "", err
	}
	s.Hub.Recheck()
	return t, text, nil
}

// revokeToken is POST /tokens/{id}/revoke.
func (s *Server) revokeToken(c echo.Context) error {
	id, err := s.bareAct(c, paramAny)
	if err != nil {
		return err
	}
	if err := s.recheck(s.View.RevokeToken(c.Request().Context(), time.Now(), id, s.actor("api", c))); err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, object("revoked", encode(id)))
}

// readSmall reads a small JSON body.
func readSmall(c echo.Context, f fields) error {
	data, err := body(c, maxSmall)
	if err != nil {
		return err
	}
	return f.read("", data)
}

// inField names the field that a refusal is about.
func inField(field string, err error) error {
	var no *access.Refusal
	if err == nil {
		return nil
	}
	if errors.As(err, &no) {
		return &invalid.Error{Field: field, Problem: no.Problem}
	}
	return fmt.Errorf("check the %s: %w", field, err)
}
