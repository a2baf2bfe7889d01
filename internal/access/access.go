// Package access says who may do what, and keeps the secrets by which they are
// known.
//
// A role is a set of permissions, and every route of the server names the one
// permission that it needs: a route without one does not exist (see
// internal/server). Nothing is derived from a path.
//
// No secret is kept as it is. A password is kept as argon2id, slow on purpose
// because people choose it; a session and a token are 256 random bits, which
// no one can guess, and are kept as their SHA-256. A person who reads the database
// or a backup of it can use none of them.
//
// Whatever is empty, unknown or cannot be read allows nothing.
package access

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Permission is what a route needs.
type Permission string

const (
	Public  Permission = "public"  // no login needed: static files, the login itself, probes
	View    Permission = "view"    // read pages, lists and counters
	Enqueue Permission = "enqueue" // bring jobs
	Operate Permission = "operate" // replay, discard, cancel, pause, bulk operations, notes
	Reveal  Permission = "reveal"  // see what is redacted; audited each time
	Manage  Permission = "manage"  // users, tokens, the whole audit log
)

// Permissions lists all permissions.
func Permissions() []Permission {
	return []Permission{Public, View, Enqueue, Operate, Reveal, Manage}
}

// Role is what a user or a token may do altogether.
type Role string

const (
	Viewer   Role = "viewer"
	Producer Role = "producer" // for tokens: enqueues and sees nothing
	Operator Role = "operator"
	Admin    Role = "admin"
)

// Roles lists all roles, the weakest first.
func Roles() []Role { return []Role{Producer, Viewer, Operator, Admin} }

// UserRoles lists the roles of people.
func UserRoles() []Role { return []Role{Viewer, Operator, Admin} }

// May reports whether the role includes the permission. An unknown role may do
// nothing.
func (r Role) May(p Permission) bool {
	switch p {
	case Public:
		return true
	case View:
		return r == Viewer || r == Operator || r == Admin
	case Enqueue:
		return r == Producer || r == Operator || r == Admin
	case Operate:
		return r == Operator || r == Admin
	case Reveal, Manage:
		return r == Admin
	}

	return false
}

// Stronger returns the stronger of two roles. What is no role is weaker than
// every other.
func (r Role) Stronger(other Role) Role {
	if slices.Index(Roles(), other) > slices.Index(Roles(), r) {
		return other
	}
	return r
}

// Asks names, for people, whom to ask for a permission.
func (p Permission) Asks() string {
	if p == Manage || p == Reveal {
		return "an admin"
	}
	return "an operator"
}

// How long things last.
const (
	Idle         = 12 * time.Hour      // of a session that is not used
	Lifetime     = 7 * 24 * time.Hour  // of a session, however much it is used
	TokenDefault = 90 * 24 * time.Hour // of a token that was made without saying otherwise
	TokenLongest = 5 * 365 * 24 * time.Hour
)

// User is a person who may log in.
type User struct {
	Name     string
	Role     Role
	Password string // as [Passwords.Hash] makes it
	Created  time.Time
	Changed  time.Time // the role or the password; older sessions are over
	LoggedIn time.Time // last, in lists; zero: never
}

// Session is a login.
type Session struct {
	Hash    []byte // of its secret
	User    string
	Role    Role // of the user, now
	Created time.Time
	Seen    time.Time
	Address string // from where it was begun
}

// ID names a session without saying its secret, or the hash that is compared.
func (s Session) ID() string { return hex.EncodeToString(digest(string(s.Hash))[:8]) }

// Ends is when a session is over if it is not used any more.
func (s Session) Ends() time.Time {
	idle, last := s.Seen.Add(Idle), s.Created.Add(Lifetime)
	if idle.Before(last) {
		return idle
	}

	return last
}

// Live reports whether a session is not over yet.
func (s Session) Live(now time.Time) bool { return now.Before(s.Ends()) }

// Token lets a program in.
type Token struct {
	ID        string
	Hash      []byte // of its secret
	Name      string
	Role      Role
	Created   time.Time
	CreatedBy string
	Expires   time.Time
	Used      time.Time // zero: never
	Revoked   time.Time // zero: not
}

// Live reports whether a token lets its bearer in.
func (t Token) Live(now time.Time) bool { return t.Revoked.IsZero() && now.Before(t.Expires) }

// Last reports whether the user is the only admin of all. At least one user has to be
// able to manage the others.
func Last(u User, all []User) bool {
	return u.Role == Admin && !slices.ContainsFunc(all, func(other User) bool {
		return other.Name != u.Name && other.Role == Admin
	})
}

// Refusal says why users or tokens cannot be changed so. Nothing was changed.
type Refusal struct{ Problem string }

func (r *Refusal) Error() string { return r.Problem }

// Refuse makes a Refusal.
func Refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// ErrUnknown says that a user, a session or a token does not exist.
var ErrUnknown = errors.New("there is no such user or token")

const (
	maxName     = 64
	minPassword = 10
	maxPassword = 256
)

// CheckUser says what is wrong with the name of a user. It has no spaces, so
// that no user can be taken for a token or for an address in a history.
func CheckUser(name string) error {
	if name == "" || len(name) > maxName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_@+") != "" {
		return Refuse("a user name must have 1 to %d characters: letters, digits and . - _ @ +", maxName)
	}
	return nil
}

// CheckToken says what is wrong with the name of a token.
func CheckToken(name string) error {
	if CheckUser(name) != nil {
		return Refuse("a token name must have 1 to %d characters: letters, digits and . - _ @ +", maxName)
	}
	return nil
}

// CheckPassword says what is wrong with a password.
func CheckPassword(password string) error {
	switch {
	case strings.TrimSpace(password) == "":
		return Refuse("the password is empty")
	case len(password) < minPassword:
		return Refuse("a password has at least %d characters", minPassword)
	case len(password) > maxPassword:
		return Refuse("a password has at most %d bytes", maxPassword)
	}

	return nil
}

// CheckUserRole says whether a person can have the role.
func CheckUserRole(r Role) error {
	if !slices.Contains(UserRoles(), r) {
		return Refuse("a user's role is viewer, operator or admin")
	}
	return nil
}

// CheckTokenRole says whether a token can have the role.
func CheckTokenRole(r Role) error {
	if !slices.Contains(Roles(), r) {
		return Refuse("a token's role is producer, viewer, operator or admin")
	}
	return nil
}

// CheckExpiry says whether a token may last so long.
func CheckExpiry(d time.Duration) error {
	if d <= 0 || d > TokenLongest {
		return Refuse("a token must be valid for more than zero and at most five years")
	}
	return nil
}
