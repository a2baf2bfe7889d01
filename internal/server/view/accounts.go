package view

import (
	"context"
	"time"

	"redrive/internal/access"
	"redrive/internal/audit"
)

// Nothing of who may use the server came with a job, so nothing of it is hidden. The
// server may call no other methods of the store's projection.

// Users are the people who can log in.
type Users interface {
	Users(ctx context.Context) ([]access.User, error)
	User(ctx context.Context, name string) (access.User, error)
	AddUser(ctx context.Context, now time.Time, u access.User, by audit.Actor) error
	SetRole(ctx context.Context, now time.Time, name string, role access.Role, by audit.Actor) error
	SetPassword(ctx context.Context, now time.Time, name, hash string, by audit.Actor) error
	RemoveUser(ctx context.Context, now time.Time, name string, by audit.Actor) error
}

// Sessions are the logins that have not ended, and those that failed.
type Sessions interface {
	Sessions(ctx context.Context, now time.Time) ([]access.Session, error)
	Session(ctx context.Context, now time.Time, hash []byte) (access.Session, error) // by the hash of its secret
	StartSession(ctx context.Context, now time.Time, n access.Session, checked access.User, by audit.Actor) error
	SeeSession(ctx context.Context, now time.Time, hash []byte) error // notes that it is in use
	EndSession(ctx context.Context, now time.Time, hash []byte, by audit.Actor) error
	LoginFailed(ctx context.Context, now time.Time, name string, by audit.Actor) error // for the audit log
}

// Tokens are what programs prove with who they are.
type Tokens interface {
	Tokens(ctx context.Context) ([]access.Token, error)
	Token(ctx context.Context, id string) (access.Token, error)
	UseToken(ctx context.Context, now time.Time, id string) error // notes that it is in use
	CreateToken(ctx context.Context, now time.Time, t access.Token, by audit.Actor) error
	RevokeToken(ctx context.Context, now time.Time, id string, by audit.Actor) error
}

// Guarded reports whether callers have to log in.
func (v *View) Guarded() bool { return v.store.Accounts.Guarded() }

// Users returns the users of the store.
func (v *View) Users() Users { return v.store.Accounts }

// Sessions returns the sessions of the store.
func (v *View) Sessions() Sessions { return v.store.Accounts }

// Tokens returns the tokens of the store.
func (v *View) Tokens() Tokens { return v.store.Accounts }
