// Package accounts is the projection of who may do what, and who did: users, their
// sessions, tokens, and the audit log.
//
// The audit log is a chain: the hash of each entry covers the one before, so that
// none can be changed or taken out without all the later ones telling. The newest
// hash is kept beside the log, and every act of a person is written in the
// transaction of the act.
package accounts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/store/db"
)

// Projection keeps accounts and the audit log.
type Projection struct {
	writer  *db.Writer
	reader  *db.Reader
	guarded atomic.Bool // there is a user or a token
	head    head        // of the audit log, as of the last commit

	changes *db.Slot[changes]
}

// changes are what a transaction changed.
type changes struct {
	head    head  // of the audit log
	guarded *bool // whether users have to log in, when that was changed
}

// New returns a projection; Load reads what it knows in memory.
func New(writer *db.Writer, reader *db.Reader) *Projection {
	p := &Projection{writer: writer, reader: reader}
	p.changes = db.NewSlot(func() *changes { return &changes{head: p.head} })

	return p
}

// Load reads whether users have to log in, and where the audit log goes on.
func (p *Projection) Load(src db.Source) error {
	guarded, err := isGuarded(src)
	p.guarded.Store(guarded)
	return db.Wrap(cmp.Or(err, p.loadHead(src)), "read who has access")
}

// Committed makes known what has become true.
func (p *Projection) Committed(t *db.Tx) {
	changes := p.changes.In(t)
	p.head = changes.head
	if changes.guarded != nil {
		p.guarded.Store(*changes.guarded)
	}
}

// Guarded reports whether users have to log in: it is true from the first user or
// token on. It reads no file, so that no damaged file can make it false.
func (p *Projection) Guarded() bool { return p.guarded.Load() }

func isGuarded(src db.Source) (bool, error) {
	return db.Value[bool](src, `SELECT EXISTS (SELECT 1 FROM users) OR EXISTS (SELECT 1 FROM tokens)`)
}

// guard looks again whether users have to log in, after a user or token was added or removed.
func (p *Projection) guard(t *db.Tx) error {
	is, err := isGuarded(t)
	p.changes.In(t).guarded = &is
	return err
}

// Refused reports whether an act on an account was refused, having written
// nothing.
func Refused(err error) bool {
	return errors.As(err, new(*access.Refusal)) || errors.Is(err, access.ErrUnknown)
}

// change runs a write that gives nothing back.
func (p *Projection) change(ctx context.Context, do func(*db.Tx) error) error {
	return p.writer.Do(ctx, 1, func(t *db.Tx) error {
		err := do(t)
		if err != nil && !Refused(err) {
			err = fmt.Errorf("change who has access: %w", err)
		}

		return err
	})
}

// act is a change that a person makes. do says what the audit log tells of it; an
// act that changed nothing has no action, and no entry.
func (p *Projection) act(ctx context.Context, now time.Time, by audit.Actor, do func(*db.Tx) (audit.Entry, error)) error {
	return p.change(ctx, func(t *db.Tx) error {
		e, err := do(t)
		if err != nil || e.Action == "" {
			return err
		}

		e.At, e.Actor, e.Count = now, by, 1

		return p.Log(t, e)
	})
}

// stillOpen refuses an actor who may act only because no login was required, when one
// is required by now: of two first users at the same time only one is the admin.
func (p *Projection) stillOpen(t *db.Tx, by audit.Actor) error {
	if !by.Open {
		return nil
	}

	guarded, err := isGuarded(t)
	if err == nil && guarded {
		err = access.Refuse("a user or token was added in the meantime, so a login is now required; log in and try again")
	}

	return err
}

// AddUser adds a user, whose password is hashed already. The first one must be
// an admin, who can add the others.
func (p *Projection) AddUser(ctx context.Context, now time.Time, u access.User, by audit.Actor) error {
	const insert = `INSERT INTO users (name, role, password, created_at, changed_at) VALUES ($1, $2, $3, $4, $4) ON CONFLICT (name) DO NOTHING`

	return p.act(ctx, now, by, func(t *db.Tx) (e audit.Entry, err error) {
		if err := p.stillOpen(t, by); err != nil {
			return e, err
		}

		// Without an admin, no user could add the next one.
		if admins, err := p.admins(t, ""); err != nil {
			return e, err
		} else if admins == 0 && u.Role != access.Admin {
			return e, access.Refuse("there is no admin yet: add one first")
		}

		n, err := t.Exec(insert, u.Name, string(u.Role), u.Password, db.Micros(now))
		if err == nil && n == 0 {
			err = access.Refuse("the user %s exists already", u.Name)
		}

		if err != nil {
			return e, err
		}

		return audit.Entry{Action: "user.add", Subject: u.Name, After: string(u.Role)}, p.guard(t)
	})
}

// SetRole gives a user another role. Sessions of before are over. The last
// admin stays one.
func (p *Projection) SetRole(ctx context.Context, now time.Time, name string, role access.Role, by audit.Actor) error {
	const update = `UPDATE users SET role = $2, changed_at = $3 WHERE name = $1`

	return p.act(ctx, now, by, func(t *db.Tx) (e audit.Entry, err error) {
		u, err := user(t, name)
		if err != nil || u.Role == role {
			return e, err
		}

		if err := p.keepAdmin(t, u); err != nil {
			return e, err
		}

		e = audit.Entry{Action: "user.role", Subject: name, Before: string(u.Role), After: string(role)}

		return e, t.Run(update, name, string(role), db.Micros(now))
	})
}

// SetPassword gives a user another password, hashed already. Sessions of before
// are over.
func (p *Projection) SetPassword(ctx context.Context, now time.Time, name, hash string, by audit.Actor) error {
	const update = `UPDATE users SET password = $2, changed_at = $3 WHERE name = $1`

	return p.act(ctx, now, by, func(t *db.Tx) (audit.Entry, error) {
		n, err := t.Exec(update, name, hash, db.Micros(now))
		if err == nil && n == 0 {
			err = access.ErrUnknown
		}

		return audit.Entry{Action: "user.password", Subject: name}, err
	})
}

// RemoveUser removes a user with all sessions. The last admin stays.
func (p *Projection) RemoveUser(ctx context.Context, now time.Time, name string, by audit.Actor) error {
	return p.act(ctx, now, by, func(t *db.Tx) (e audit.Entry, err error) {
		u, err := user(t, name)
		if err != nil {
			return e, err
		}

		if err := p.keepAdmin(t, u); err != nil {
			return e, err
		}

		e = audit.Entry{Action: "user.remove", Subject: name, Before: string(u.Role)}

		return e, db.Steps(t, db.Any(`DELETE FROM sessions WHERE "user" = $1`, name), db.Any(`DELETE FROM users WHERE name = $1`, name), p.guard)
	})
}

// keepAdmin refuses to take away the last admin.
func (p *Projection) keepAdmin(t *db.Tx, u access.User) error {
	if u.Role != access.Admin {
		return nil
	}

	others, err := p.admins(t, u.Name)
	if err == nil && others == 0 {
		err = access.Refuse("%s is the last admin; make someone else an admin first", u.Name)
	}

	return err
}

// admins counts the admins beside one.
func (p *Projection) admins(t *db.Tx, beside string) (int, error) {
	return db.Value[int](t, `SELECT count(*) FROM users WHERE role = 'admin' AND name <> $1`, beside)
}

// usersQuery must name its index: SQLite would rather read all logins than all
// that was done to one user.
const usersQuery = `SELECT name, role, created_at, changed_at, coalesce((SELECT at FROM audit INDEXED BY audit_subject
	WHERE subject = users.name AND action = 'login' ORDER BY seq DESC LIMIT 1), 0) FROM users ORDER BY name`

// Users are all users by name, without their passwords, each with the last
// login that the audit log knows of.
func (p *Projection) Users(ctx context.Context) ([]access.User, error) {
	return db.All(p.reader.In(ctx), usersQuery, func(u *access.User) []any {
		return []any{&u.Name, &u.Role, db.Time(&u.Created), db.Time(&u.Changed), db.Time(&u.LoggedIn)}
	})
}

// User returns one user with the hash of the password, or access.ErrUnknown.
func (p *Projection) User(ctx context.Context, name string) (access.User, error) {
	return user(p.reader.In(ctx), name)
}

func user(src db.Source, name string) (u access.User, err error) {
	const query = `SELECT name, role, password, created_at, changed_at FROM users WHERE name = $1`

	found, err := db.Row(src, query, []any{&u.Name, &u.Role, &u.Password, db.Time(&u.Created), db.Time(&u.Changed)}, name)
	if err == nil && !found {
		err = access.ErrUnknown
	}

	return u, err
}
