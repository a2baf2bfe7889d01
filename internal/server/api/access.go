package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/apitype"
	"redrive/internal/apitype/admin"
	"redrive/internal/audit"
	"redrive/internal/invalid"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
	"redrive/internal/wire"
)

// The secrets of users, sessions and tokens are never part of an answer. The one
// exception is a new token, see createToken.

// userOf leaves out the hash of the password.
func userOf(u access.User) admin.User {
	return admin.User{
		Name:        u.Name,
		Role:        u.Role,
		CreatedAt:   apitype.At(u.Created),
		ChangedAt:   apitype.At(u.Changed),
		LastLoginAt: apitype.At(u.LoggedIn),
	}
}

// sessionOf leaves out the hash by which a cookie is recognised; the id is made from
// it and cannot be turned back.
func sessionOf(n access.Session) admin.Session {
	return admin.Session{
		ID:        n.ID(),
		User:      n.User,
		Role:      n.Role,
		Address:   n.Address,
		CreatedAt: apitype.At(n.Created),
		SeenAt:    apitype.At(n.Seen),
		EndsAt:    apitype.At(n.Ends()),
	}
}

// tokenOf leaves out the hash of the secret.
func tokenOf(t access.Token) admin.Token {
	return admin.Token{
		ID:        t.ID,
		Name:      t.Name,
		Role:      t.Role,
		CreatedAt: apitype.At(t.Created),
		CreatedBy: t.CreatedBy,
		ExpiresAt: apitype.At(t.Expires),
		UsedAt:    apitype.At(t.Used),
		RevokedAt: apitype.At(t.Revoked),
	}
}

// users is GET /users.
func (a *API) users(c echo.Context) (admin.UserList, error) {
	all, err := a.View.Users().Users(c.Request().Context())
	return admin.UserList{Users: mapped(all, userOf)}, err
}

// sessions is GET /sessions: who is logged in.
func (a *API) sessions(c echo.Context) (admin.SessionList, error) {
	all, err := a.View.Sessions().Sessions(c.Request().Context(), time.Now())
	return admin.SessionList{Sessions: mapped(all, sessionOf)}, err
}

// tokens is GET /tokens.
func (a *API) tokens(c echo.Context) (admin.TokenList, error) {
	all, err := a.View.Tokens().Tokens(c.Request().Context())
	return admin.TokenList{Tokens: mapped(all, tokenOf)}, err
}

// AccessActs are the acts on users, sessions and tokens. After each of them the
// open connections are checked again, so that no client goes on watching with a
// permission that was just taken away.
func (a *API) AccessActs() []Act {
	acts := []Act{
		{
			Path: "/users", Says: "Adds a user; with the first one everyone has to log in", Request: admin.NewUser{},
			Answer: admin.UserAnswer{}, Created: true, Do: a.addUser,
		},
		{
			Path: "/users/:name/role", Says: "Gives a user another role", Request: admin.RoleRequest{},
			Answer: admin.UserAnswer{}, Do: a.setRole,
		},
		{
			Path: "/users/:name/password", Says: "Gives a user another password, which ends their sessions", Request: admin.PasswordRequest{},
			Answer: admin.UserChanged{}, Do: a.setPassword,
		},
		{
			Path: "/users/:name/remove", Says: "Removes a user", Request: apitype.Nothing{},
			Answer: admin.UserRemoved{}, Do: named("name", a.View.Users().RemoveUser, removedUser),
		},
		{
			Path: "/sessions/:id/end", Says: "Ends a session", Request: apitype.Nothing{},
			Answer: admin.SessionEnded{}, Do: named("id", a.end, endedSession),
		},
		{
			Path: "/tokens", Says: "Makes a token, whose secret is shown this once", Request: admin.NewToken{},
			Answer: admin.TokenMade{}, Created: true, Do: a.createToken,
		},
		{
			Path: "/tokens/:id/revoke", Says: "Revokes a token", Request: apitype.Nothing{},
			Answer: admin.TokenRevoked{}, Do: named("id", a.View.Tokens().RevokeToken, revokedToken),
		},
	}

	// What all of them have in common: watchers are checked again, and forms return to one page.
	for i, act := range acts {
		acts[i].Do = func(c echo.Context) (Outcome, error) {
			out, err := act.Do(c)
			if err == nil {
				a.Hub.Recheck()
			}

			out.Text, out.Page = "Done", "/access"

			return out, err
		}
	}

	return acts
}

// addUser adds a user. With the first one the dashboard is no longer open:
// everyone has to log in from then on.
func (a *API) addUser(c echo.Context) (out Outcome, err error) {
	var in admin.NewUser
	if err := readTexts(c, &in); err != nil {
		return out, err
	}

	ctx, now := c.Request().Context(), time.Now().UTC()

	u := access.User{Name: in.Name, Role: in.Role, Created: now, Changed: now}
	if err := cmp.Or(inField("name", access.CheckUser(u.Name)), inField("role", access.CheckUserRole(u.Role))); err != nil {
		return out, err
	}

	u.Password, err = a.passwords.Hash(ctx, in.Password)
	if err != nil {
		return out, inField("password", err)
	}

	err = a.View.Users().AddUser(ctx, now, u, web.Actor(c))

	return Outcome{Status: http.StatusCreated, Program: admin.UserAnswer{User: userOf(u)}}, err
}

// setRole gives the user in the address another role.
func (a *API) setRole(c echo.Context) (out Outcome, err error) {
	var in admin.RoleRequest
	if err := readTexts(c, &in); err != nil {
		return out, err
	}

	if err := inField("role", access.CheckUserRole(in.Role)); err != nil {
		return out, err
	}

	name := c.Param("name")
	err = a.View.Users().SetRole(c.Request().Context(), time.Now(), name, in.Role, web.Actor(c))

	return Outcome{Program: admin.UserAnswer{User: admin.User{Name: name, Role: in.Role}}}, err
}

// setPassword gives the user in the address another password. Every session of
// that user ends with it.
func (a *API) setPassword(c echo.Context) (out Outcome, err error) {
	var in admin.PasswordRequest
	if err := readTexts(c, &in); err != nil {
		return out, err
	}

	hash, err := a.passwords.Hash(c.Request().Context(), in.Password)
	if err != nil {
		return out, inField("password", err)
	}

	name := c.Param("name")
	err = a.View.Users().SetPassword(c.Request().Context(), time.Now(), name, hash, web.Actor(c))

	return Outcome{Program: admin.UserChanged{Changed: name}}, err
}

// named makes an act that needs no more than a name in the address. The answer says
// what was done to what has that name.
func named[T any](
	param string, do func(context.Context, time.Time, string, audit.Actor) error, done func(name string) T,
) func(echo.Context) (Outcome, error) {
	return func(c echo.Context) (Outcome, error) {
		err := readNothing(c)
		if err == nil {
			err = do(c.Request().Context(), time.Now(), c.Param(param), web.Actor(c))
		}

		return Outcome{Program: done(c.Param(param))}, err
	}
}

func removedUser(name string) admin.UserRemoved { return admin.UserRemoved{Removed: name} }

func endedSession(id string) admin.SessionEnded { return admin.SessionEnded{Ended: id} }

func revokedToken(id string) admin.TokenRevoked { return admin.TokenRevoked{Revoked: id} }

// end logs out the session with an id. Ids are looked up in the list because the
// database knows sessions by their hashes only.
func (a *API) end(ctx context.Context, now time.Time, id string, by audit.Actor) error {
	all, err := a.View.Sessions().Sessions(ctx, now)
	if err != nil {
		return err
	}

	i := slices.IndexFunc(all, func(n access.Session) bool { return n.ID() == id })
	if i < 0 {
		return problem.New(problem.NotFound, "there is no such session; it may have ended")
	}

	return a.View.Sessions().EndSession(ctx, now, all[i].Hash, by)
}

// createToken makes a token. This answer is the only place where its secret is
// ever shown, because only a hash is stored.
func (a *API) createToken(c echo.Context) (out Outcome, err error) {
	var in admin.NewToken
	if err := readTexts(c, &in); err != nil {
		return out, err
	}

	lasts := access.TokenDefault
	if in.Expires != "" {
		lasts, err = wire.ParseDuration(in.Expires)
		if err != nil {
			return out, &invalid.Error{Field: "expires", Problem: err.Error()}
		}
	}

	now, by := time.Now().UTC(), web.Actor(c)

	t := access.Token{Name: in.Name, Role: in.Role, Created: now, CreatedBy: by.Name, Expires: now.Add(lasts)}
	if err := cmp.Or(
		inField("name", access.CheckToken(t.Name)), inField("role", access.CheckTokenRole(t.Role)), inField("expires", access.CheckExpiry(lasts)),
	); err != nil {
		return out, err
	}

	t.ID, out.Secret, t.Hash = access.NewToken()
	out.Status, out.Says = http.StatusCreated, admin.TokenMade{Token: tokenOf(t), Secret: out.Secret}

	return out, a.View.Tokens().CreateToken(c.Request().Context(), now, t, by)
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
