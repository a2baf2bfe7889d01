package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"redrive/internal/access"
	"redrive/internal/audit"
)

// Guarded reports whether anybody has to log in: it is true from the first user
// or token on. It reads no file, so that no damage of one can make it false.
func (s *Store) Guarded() bool { return s.guarded.Load() }

const isGuarded = `SELECT EXISTS (SELECT 1 FROM users) OR EXISTS (SELECT 1 FROM tokens)`

func (s *Store) loadGuarded(src source) error {
	return src.query(isGuarded, func(rows *sql.Rows) error {
		var is bool
		err := rows.Scan(&is)
		s.guarded.Store(is)
		return err
	})
}

// guard takes note that users or tokens have come or gone.
func (t *tx) guard() error {
	var is bool
	err := t.query(isGuarded, func(rows *sql.Rows) error { return rows.Scan(&is) })
	t.lockable = &is
	return err
}

// stillOpen refuses who may act only because nobody has to log in, when somebody
// has to since: of two first users at the same time one is the admin.
func (t *tx) stillOpen(by audit.Actor) error {
	if !by.Open {
		return nil
	}
	var guarded bool
	err := t.query(isGuarded, func(rows *sql.Rows) error { return rows.Scan(&guarded) })
	if err == nil && guarded {
		err = access.Refuse("somebody was added meanwhile, and now everybody logs in: do so, and try again")
	}
	return err
}

// AddUser adds a user, whose password is hashed already. The first one must be
// an admin: somebody has to be able to add the others.
func (s *Store) AddUser(ctx context.Context, now time.Time, u access.User, by audit.Actor) error {
	const insert = `INSERT INTO users (name, role, password, created_at, changed_at) VALUES ($1, $2, $3, $4, $4) ON CONFLICT (name) DO NOTHING`
	return s.accessWrite(ctx, func(t *tx) error {
		if err := t.stillOpen(by); err != nil {
			return err
		}
		admins, err := t.admins("")
		switch {
		case err != nil:
			return err
		case admins == 0 && u.Role != access.Admin:
			return access.Refuse("there is no admin yet: add one first")
		}
		n, err := t.exec(insert, u.Name, string(u.Role), u.Password, micros(now))
		if err != nil {
			return err
		}
		if n == 0 {
			return access.Refuse("the user %s exists already", u.Name)
		}
		if err := t.guard(); err != nil {
			return err
		}
		return t.audit(audit.Entry{At: now, Actor: by, Action: "user.add", Subject: u.Name, Count: 1, After: string(u.Role)})
	})
}

// SetRole gives a user another role. Sessions of before are over. The last
// admin stays one.
func (s *Store) SetRole(ctx context.Context, now time.Time, name string, role access.Role, by audit.Actor) error {
	const update = `UPDATE users SET role = $2, changed_at = $3 WHERE name = $1`
	return s.accessWrite(ctx, func(t *tx) error {
		u, err := user(t, name)
		if err != nil {
			return err
		}
		if u.Role == role {
			return nil
		}
		if err := t.keepAdmin(u); err != nil {
			return err
		}
		if _, err := t.exec(update, name, string(role), micros(now)); err != nil {
			return err
		}
		return t.audit(audit.Entry{At: now, Actor: by, Action: "user.role", Subject: name, Count: 1, Before: string(u.Role), After: string(role)})
	})
}

// SetPassword gives a user another password, hashed already. Sessions of before
// are over.
func (s *Store) SetPassword(ctx context.Context, now time.Time, name, hash string, by audit.Actor) error {
	const update = `UPDATE users SET password = $2, changed_at = $3 WHERE name = $1`
	return s.accessWrite(ctx, func(t *tx) error {
		n, err := t.exec(update, name, hash, micros(now))
		if err != nil || n == 0 {
			return orUnknown(err)
		}
		return t.audit(audit.Entry{At: now, Actor: by, Action: "user.password", Subject: name, Count: 1})
	})
}

// RemoveUser removes a user with all sessions. The last admin stays.
func (s *Store) RemoveUser(ctx context.Context, now time.Time, name string, by audit.Actor) error {
	return s.accessWrite(ctx, func(t *tx) error {
		u, err := user(t, name)
		if err != nil {
			return err
		}
		if err := t.keepAdmin(u); err != nil {
			return err
		}
		if _, err := t.exec(`DELETE FROM sessions WHERE user = $1`, name); err != nil {
			return err
		}
		if _, err := t.exec(`DELETE FROM users WHERE name = $1`, name); err != nil {
			return err
		}
		if err := t.guard(); err != nil {
			return err
		}
		return t.audit(audit.Entry{At: now, Actor: by, Action: "user.remove", Subject: name, Count: 1, Before: string(u.Role)})
	})
}

// keepAdmin refuses to take away the last admin.
func (t *tx) keepAdmin(u access.User) error {
	if u.Role != access.Admin {
		return nil
	}
	others, err := t.admins(u.Name)
	if err == nil && others == 0 {
		err = access.Refuse("%s is the last admin: make somebody else one first", u.Name)
	}
	return err
}

// admins counts the admins beside one.
func (t *tx) admins(beside string) (n int, err error) {
	const query = `SELECT count(*) FROM users WHERE role = 'admin' AND name <> $1`
	err = t.query(query, func(rows *sql.Rows) error { return rows.Scan(&n) }, beside)
	return n, err
}

// usersQuery must name its index: SQLite would rather read all logins than all
// that was done to one user.
const usersQuery = `SELECT name, role, created_at, changed_at, coalesce((SELECT at FROM audit INDEXED BY audit_subject
	WHERE subject = users.name AND action = 'login' ORDER BY seq DESC LIMIT 1), 0) FROM users ORDER BY name`

// Users are all users by name, without their passwords, each with the last
// login that the audit log knows of.
func (s *Store) Users(ctx context.Context) (all []access.User, err error) {
	err = s.reading(ctx).query(usersQuery, func(rows *sql.Rows) error {
		var u access.User
		var created, changed, login int64
		err := rows.Scan(&u.Name, &u.Role, &created, &changed, &login)
		u.Created, u.Changed, u.LoggedIn = fromMicros(created), fromMicros(changed), fromMicros(login)
		all = append(all, u)
		return err
	})
	return all, err
}

// User returns one user with the hash of the password, or access.ErrUnknown.
func (s *Store) User(ctx context.Context, name string) (access.User, error) {
	return user(s.reading(ctx), name)
}

func user(src source, name string) (u access.User, err error) {
	const query = `SELECT name, role, password, created_at, changed_at FROM users WHERE name = $1`
	err = src.query(query, func(rows *sql.Rows) error {
		var created, changed int64
		err := rows.Scan(&u.Name, &u.Role, &u.Password, &created, &changed)
		u.Created, u.Changed = fromMicros(created), fromMicros(changed)
		return err
	}, name)
	if err == nil && u.Name == "" {
		err = access.ErrUnknown
	}
	return u, err
}

// accessWrite is write for what gives nothing back.
func (s *Store) accessWrite(ctx context.Context, do func(*tx) error) error {
	_, err := write(ctx, s.writer, 1, func(t *tx) (struct{}, error) {
		err := do(t)
		if err != nil && !refused(err) {
			err = fmt.Errorf("change who has access: %w", err)
		}
		return struct{}{}, err
	})
	return err
}

// orUnknown is the error of an update that met no row.
func orUnknown(err error) error {
	if err == nil {
		err = access.ErrUnknown
	}
	return err
}
