// Package adminpage draws what concerns people: the login, /login; who may use
// the dashboard and its API, /access; and the audit log with what each of them
// did, /audit.
//
// The page of a job that was removed is here too: all that is left of it is in
// the audit log. The login shows nothing of the product.
//
// Every form says beside its button why the reader of the page cannot use it: the
// role may be too small, or the change would lock all users out.
package adminpage

import (
	"strconv"
	"time"

	"redrive/internal/access"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// Access is the page /access: who may use the dashboard and the API.
type Access struct {
	templates.Frame
	Users    []access.User
	Sessions []access.Session
	Own      string // the session of the reader of the page
	Tokens   []access.Token
	Open     bool        // no login is required
	Proxied  bool        // a proxy says who people are
	Made     string      // the token that was made just now, or empty
	Secret   string      // what its owner keeps
	Problem  string      // why something was not done
	Field    string      // that was wrong, or empty
	Name     string      // as it was typed
	Role     access.Role // as it was chosen
}

// denied says why the reader of the page cannot change access now, or nothing.
func (v Access) denied() string { return v.Denied(access.Manage, "manage users and tokens") }

// kept says why a user must stay an admin, or nothing. Without an admin no one
// could manage users on this page any more.
func (v Access) kept(u access.User) string {
	if why := v.denied(); why != "" {
		return why
	}

	if access.Last(u, v.Users) {
		return format.Visible(u.Name) + " is the last admin; make someone else an admin first"
	}

	return ""
}

// logins counts the sessions of a user.
func (v Access) logins(name string) (n int64) {
	for _, s := range v.Sessions {
		if s.User == name {
			n++
		}
	}

	return n
}

// styleOfToken draws whether a token lets its bearer in, and warns before it ends.
func styleOfToken(t access.Token, now time.Time) templates.Style {
	switch {
	case !t.Revoked.IsZero():
		return templates.Style{Class: "is-cancelled", Icon: "cancelled", Word: "revoked"}
	case !t.Live(now):
		return templates.Style{Class: "is-skipped", Icon: "expired", Word: "expired"}
	case t.Expires.Sub(now) < 7*24*time.Hour:
		return templates.Style{Class: "is-warn", Icon: "expired", Word: "ends soon"}
	}

	return templates.Style{Class: "is-succeeded", Icon: "check", Word: "valid"}
}

// lifetimes are how long a token can be made to last: values of the form, and their
// words.
func lifetimes() [][2]string {
	all := [][2]string{}
	for _, days := range []int{1, 7, 30, 90, 365} {
		all = append(all, [2]string{"P" + strconv.Itoa(days) + "D", format.Counted(days, "day", "days")})
	}

	return all
}

// usualLifetime is chosen before a person chooses.
func usualLifetime() string { return "P" + strconv.Itoa(int(access.TokenDefault/(24*time.Hour))) + "D" }

// Login is the page /login.
type Login struct {
	templates.Frame
	Next    string // the page here to which it leads
	Name    string // as it was typed before
	Problem string // why it was not accepted
	NoUsers bool   // no one can log in yet
}
