package view

import (
	"context"
	"time"

	"redrive/internal/access"
	"redrive/internal/audit"
)

// Guarded reports whether anybody has to log in.
func (v *View) Guarded() bool { return v.store.Accounts.Guarded() }

// Users lists the users.
func (v *View) Users(ctx context.Context) ([]access.User, error) { return v.store.Accounts.Users(ctx) }

// User is the user with a name, or access.ErrUnknown.
func (v *View) User(ctx context.Context, name string) (access.User, error) {
	return v.store.Accounts.User(ctx, name)
}

// AddUser adds a user.
func (v *View) AddUser(ctx context.Context, now time.Time, u access.User, by audit.Actor) error {
	return v.store.Accounts.AddUser(ctx, now, u, by)
}

// SetRole gives a user another role.
func (v *View) SetRole(ctx context.Context, now time.Time, name string, role access.Role, by audit.Actor) error {
	return v.store.Accounts.SetRole(ctx, now, name, role, by)
}

// SetPassword gives a user another password.
func (v *View) SetPassword(ctx context.Context, now time.Time, name, hash string, by audit.Actor) error {
	return v.store.Accounts.SetPassword(ctx, now, name, hash, by)
}

// RemoveUser removes a user.
func (v *View) RemoveUser(ctx context.Context, now time.Time, name string, by audit.Actor) error {
	return v.store.Accounts.RemoveUser(ctx, now, name, by)
}

// Sessions lists who is logged in.
func (v *View) Sessions(ctx context.Context, now time.Time) ([]access.Session, error) {
	return v.store.Accounts.Sessions(ctx, now)
}

// Session is the session of a secret's hash, or access.ErrUnknown.
func (v *View) Session(ctx context.Context, now time.Time, hash []byte) (access.Session, error) {
	return v.store.Accounts.Session(ctx, now, hash)
}

// StartSession begins a session of a user whose password was checked.
func (v *View) StartSession(ctx context.Context, now time.Time, n access.Session, checked access.User, by audit.Actor) error {
	return v.store.Accounts.StartSession(ctx, now, n, checked, by)
}

// SeeSession notes that a session is in use.
func (v *View) SeeSession(ctx context.Context, now time.Time, hash []byte) error {
	return v.store.Accounts.SeeSession(ctx, now, hash)
}

// EndSession ends a session.
func (v *View) EndSession(ctx context.Context, now time.Time, hash []byte, by audit.Actor) error {
	return v.store.Accounts.EndSession(ctx, now, hash, by)
}

// LoginFailed writes a failed login down.
func (v *View) LoginFailed(ctx context.Context, now time.Time, name string, by audit.Actor) error {
	return v.store.Accounts.LoginFailed(ctx, now, name, by)
}

// Tokens lists the tokens.
func (v *View) Tokens(ctx context.Context) ([]access.Token, error) {
	return v.store.Accounts.Tokens(ctx)
}

// Token is the token with an id, or access.ErrUnknown.
func (v *View) Token(ctx context.Context, id string) (access.Token, error) {
	return v.store.Accounts.Token(ctx, id)
}

// UseToken notes that a token is in use.
func (v *View) UseToken(ctx context.Context, now time.Time, id string) error {
	return v.store.Accounts.UseToken(ctx, now, id)
}

// CreateToken adds a token.
func (v *View) CreateToken(ctx context.Context, now time.Time, t access.Token, by audit.Actor) error {
	return v.store.Accounts.CreateToken(ctx, now, t, by)
}

// RevokeToken ends a token.
func (v *View) RevokeToken(ctx context.Context, now time.Time, id string, by audit.Actor) error {
	return v.store.Accounts.RevokeToken(ctx, now, id, by)
}

// Audit is a page of the audit log, the newest first.
func (v *View) Audit(ctx context.Context, f audit.Filter, before int64, limit int) (audit.List, error) {
	list, err := v.store.Accounts.Audit(ctx, f, before, limit)
	each(list.Entries, v.entry)
	return list, err
}

// Record writes an entry about what changes nothing in the database.
func (v *View) Record(ctx context.Context, e audit.Entry) error {
	return v.store.Accounts.Record(ctx, e)
}
