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
	"redrive/internal/audit"
	"redrive/internal/invalid"
	"redrive/internal/server/web"
	"redrive/internal/wire"
)

// The secrets of users, sessions and tokens are never part of an answer. The one
// exception is a new token, see createToken.

// shapeUser leaves out the hash of the password.
func shapeUser(u access.User) web.Object {
	return web.Object{"name", u.Name, "role", u.Role, "created_at?", u.Created, "changed_at?", u.Changed, "last_login_at?", u.LoggedIn}
}

// shapeSession leaves out the hash by which a cookie is recognised; the id is
// made from it and cannot be turned back.
func shapeSession(n access.Session) web.Object {
	return web.Object{
		"id", n.ID(), "user", n.User, "role", n.Role, "address?", n.Address,
		"created_at", n.Created, "seen_at", n.Seen, "ends_at", n.Ends(),
	}
}

// shapeToken leaves out the hash of the secret.
func shapeToken(t access.Token) web.Object {
	return web.Object{
		"id", t.ID, "name", t.Name, "role", t.Role, "created_at", t.Created, "created_by", t.CreatedBy,
		"expires_at", t.Expires, "used_at?", t.Used, "revoked_at?", t.Revoked,
	}
}

// users is GET /users.
func (a *API) users(c echo.Context) (web.Object, error) {
	all, err := a.View.Accounts().Users(c.Request().Context())
	return web.Object{"users", web.List(all, shapeUser)}, err
}

// sessions is GET /sessions: who is logged in.
func (a *API) sessions(c echo.Context) (web.Object, error) {
	all, err := a.View.Accounts().Sessions(c.Request().Context(), time.Now())
	return web.Object{"sessions", web.List(all, shapeSession)}, err
}

// tokens is GET /tokens.
func (a *API) tokens(c echo.Context) (web.Object, error) {
	all, err := a.View.Accounts().Tokens(c.Request().Context())
	return web.Object{"tokens", web.List(all, shapeToken)}, err
}

// AccessActs are the acts on users, sessions and tokens. After each of them the
// open connections are checked again, so that no client goes on watching with a
// permission that was just taken away.
func (a *API) AccessActs() []Act {
	accounts := a.View.Accounts()
	acts := []Act{
		{"/users", a.addUser}, {"/users/:name/role", a.setRole}, {"/users/:name/password", a.setPassword},
		{"/users/:name/remove", named("removed", "name", accounts.RemoveUser)}, {"/sessions/:id/end", named("ended", "id", a.end)},
		{"/tokens", a.createToken}, {"/tokens/:id/revoke", named("revoked", "id", accounts.RevokeToken)},
	}
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
	ctx, now := c.Request().Context(), time.Now().UTC()
	u, password := access.User{Created: now, Changed: now}, ""
	name, role := text{"name", aString, &u.Name}, text{"role", aString, (*string)(&u.Role)}
	if err := readTexts(c, name, role, text{"password", aString, &password}); err != nil {
		return out, err
	}
	if err := cmp.Or(inField("name", access.CheckUser(u.Name)), inField("role", access.CheckUserRole(u.Role))); err != nil {
		return out, err
	}
	if u.Password, err = a.passwords.Hash(ctx, password); err != nil {
		return out, inField("password", err)
	}
	err = a.View.Accounts().AddUser(ctx, now, u, web.Actor(c))
	return Outcome{Status: http.StatusCreated, Program: web.Object{"user", shapeUser(u)}}, err
}

// setRole gives the user in the address another role.
func (a *API) setRole(c echo.Context) (out Outcome, err error) {
	name, role := c.Param("name"), access.Role("")
	if err := readTexts(c, text{"role", aString, (*string)(&role)}); err != nil {
		return out, err
	}
	if err := inField("role", access.CheckUserRole(role)); err != nil {
		return out, err
	}
	err = a.View.Accounts().SetRole(c.Request().Context(), time.Now(), name, role, web.Actor(c))
	return Outcome{Program: web.Object{"user", shapeUser(access.User{Name: name, Role: role})}}, err
}

// setPassword gives the user in the address another password. Every session of
// that user ends with it.
func (a *API) setPassword(c echo.Context) (out Outcome, err error) {
	name, password := c.Param("name"), ""
	if err := readTexts(c, text{"password", aString, &password}); err != nil {
		return out, err
	}
	hash, err := a.passwords.Hash(c.Request().Context(), password)
	if err != nil {
		return out, inField("password", err)
	}
	err = a.View.Accounts().SetPassword(c.Request().Context(), time.Now(), name, hash, web.Actor(c))
	return Outcome{Program: web.Object{"changed", name}}, err
}

// named makes an act that needs no more than a name in the address.
func named(done, param string, do func(context.Context, time.Time, string, audit.Actor) error) func(echo.Context) (Outcome, error) {
	return func(c echo.Context) (Outcome, error) {
		err := readNothing(c)
		if err == nil {
			err = do(c.Request().Context(), time.Now(), c.Param(param), web.Actor(c))
		}
		return Outcome{Program: web.Object{done, c.Param(param)}}, err
	}
}

// end logs out the session with an id. Ids are looked up in the list because the
// database knows sessions by their hashes only.
func (a *API) end(ctx context.Context, now time.Time, id string, by audit.Actor) error {
	all, err := a.View.Accounts().Sessions(ctx, now)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(n access.Session) bool { return n.ID() == id })
	if i < 0 {
		return web.Fail(web.NotFound, "there is no such session; it may have ended")
	}
	return a.View.Accounts().EndSession(ctx, now, all[i].Hash, by)
}

// createToken makes a token. This answer is the only place where its secret is
// ever shown, because only a hash is stored.
func (a *API) createToken(c echo.Context) (out Outcome, err error) {
	var expires string
	t, now, by, lasts := access.Token{}, time.Now().UTC(), web.Actor(c), access.TokenDefault
	if err := readTexts(c, text{"name", aString, &t.Name}, text{"role", aString, (*string)(&t.Role)},
		text{"expires", "a duration, for example 90d or P90D", &expires}); err != nil {
		return out, err
	}
	if expires != "" {
		if lasts, err = wire.ParseDuration(expires); err != nil {
			return out, &invalid.Error{Field: "expires", Problem: err.Error()}
		}
	}
	if err := cmp.Or(
		inField("name", access.CheckToken(t.Name)), inField("role", access.CheckTokenRole(t.Role)), inField("expires", access.CheckExpiry(lasts)),
	); err != nil {
		return out, err
	}
	t.Created, t.CreatedBy, t.Expires = now, by.Name, now.Add(lasts)
	t.ID, out.Secret, t.Hash = access.NewToken()
	out.Status, out.Says = http.StatusCreated, web.Object{"token", shapeToken(t), "secret", out.Secret}
	return out, a.View.Accounts().CreateToken(c.Request().Context(), now, t, by)
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
