package view

import (
	"context"
	"errors"
	"time"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retention"
	"redrive/internal/store/db"
)

// Nothing of what these methods return came with a job, so they hide nothing.

// Snapshot is the newest totals, without a look at the database.
func (v *View) Snapshot() job.Snapshot { return v.store.Snapshot() }

// QueueNames lists the queues that had a job.
func (v *View) QueueNames() []string { return v.store.Counters.QueueNames() }

// Queues lists the queues that had a job, with their numbers.
func (v *View) Queues(ctx context.Context, now time.Time) ([]queues.Info, error) {
	return v.store.Counters.Queues(ctx, now)
}

// Held counts the jobs that wait for others with their key.
func (v *View) Held(ctx context.Context) ([]queues.Held, error) { return v.store.Counters.Held(ctx) }

// Tallies is the counters by queue and type.
func (v *View) Tallies(ctx context.Context) ([]queues.Tally, error) {
	return v.store.Counters.Tallies(ctx)
}

// LastHour is the totals of the last hour by the minute.
func (v *View) LastHour(ctx context.Context, now time.Time) ([]job.Totals, error) {
	return v.store.Counters.LastHour(ctx, now)
}

// Series is the totals of a queue, a type or both over a time.
func (v *View) Series(ctx context.Context, now time.Time, queue, typ string, scale queues.Scale) ([]job.Totals, error) {
	return v.store.Counters.Series(ctx, now, queue, typ, scale)
}

// Reasons counts the open dead letters by reason.
func (v *View) Reasons(ctx context.Context) ([]filter.ReasonCount, error) {
	return v.store.Counters.Reasons(ctx)
}

// Usage is how full the dead-letter queue is.
func (v *View) Usage(ctx context.Context, now time.Time) (retention.Usage, error) {
	return v.store.LetterUsage(ctx, now)
}

// Paused says since when a queue is paused, and by whom.
func (v *View) Paused(ctx context.Context, queue string) (at time.Time, by string, err error) {
	return v.store.Paused(ctx, queue)
}

// Pause stops a queue.
func (v *View) Pause(ctx context.Context, now time.Time, queue string, by audit.Actor) error {
	return v.store.Pause(ctx, now, queue, by)
}

// Resume lets a queue run. One that is only configured runs already.
func (v *View) Resume(ctx context.Context, now time.Time, queue string, by audit.Actor) error {
	if err := v.store.Resume(ctx, now, queue, by); !errors.Is(err, job.ErrNotFound) {
		return err
	}
	return nil
}

// Ping reports whether the database can be written.
func (v *View) Ping(ctx context.Context) error { return v.store.Ping(ctx) }

// Problem says why nothing can be written, or nothing.
func (v *View) Problem() string {
	if file := v.store.Problem(); file != nil {
		return file.Advice()
	}
	return ""
}

// Advice says what to do about an error of the database file; empty for any
// other error.
func Advice(err error) string {
	if file := new(db.FileError); errors.As(err, &file) {
		return file.Advice()
	}
	return ""
}

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
