package accounts

import (
	"context"
	"database/sql"
	"time"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/store/db"
)

// stillOpen refuses who may act only because nobody has to log in, when somebody
// has to since: of two first users at the same time one is the admin.
func (b *Book) stillOpen(t *db.Tx, by audit.Actor) error {
	if !by.Open {
		return nil
	}
	guarded, err := isGuarded(t)
	if err == nil && guarded {
		err = access.Refuse("somebody was added meanwhile, and now everybody logs in: do so, and try again")
	}
	return err
}

// AddUser adds a user, whose password is hashed already. The first one must be
// an admin: somebody has to be able to add the others.
func (b *Book) AddUser(ctx context.Context, now time.Time, u access.User, by audit.Actor) error {
	const insert = `INSERT INTO users (name, role, password, created_at, changed_at) VALUES ($1, $2, $3, $4, $4) ON CONFLICT (name) DO NOTHING`
	return b.change(ctx, func(t *db.Tx) error {
		if err := b.stillOpen(t, by); err != nil {
			return err
		}
		admins, err := b.admins(t, "")
		switch {
		case err != nil:
			return err
		case admins == 0 && u.Role != access.Admin:
			return access.Refuse("there is no admin yet: add one first")
		}
		n, err := t.Exec(insert, u.Name, string(u.Role), u.Password, db.Micros(now))
		if err != nil {
			return err
		}
		if n == 0 {
			return access.Refuse("the user %s exists already", u.Name)
		}
		if err := b.guard(t); err != nil {
			return err
		}
		return b.Log(t, audit.Entry{At: now, Actor: by, Action: "user.add", Subject: u.Name, Count: 1, After: string(u.Role)})
	})
}

// SetRole gives a user another role. Sessions of before are over. The last
// admin stays one.
func (b *Book) SetRole(ctx context.Context, now time.Time, name string, role access.Role, by audit.Actor) error {
	const update = `UPDATE users SET role = $2, changed_at = $3 WHERE name = $1`
	return b.change(ctx, func(t *db.Tx) error {
		u, err := user(t, name)
		if err != nil {
			return err
		}
		if u.Role == role {
			return nil
		}
		if err := b.keepAdmin(t, u); err != nil {
			return err
		}
		if _, err := t.Exec(update, name, string(role), db.Micros(now)); err != nil {
			return err
		}
		return b.Log(t, audit.Entry{At: now, Actor: by, Action: "user.role", Subject: name, Count: 1, Before: string(u.Role), After: string(role)})
	})
}

// SetPassword gives a user another password, hashed already. Sessions of before
// are over.
func (b *Book) SetPassword(ctx context.Context, now time.Time, name, hash string, by audit.Actor) error {
	const update = `UPDATE users SET password = $2, changed_at = $3 WHERE name = $1`
	return b.change(ctx, func(t *db.Tx) error {
		n, err := t.Exec(update, name, hash, db.Micros(now))
		if err != nil || n == 0 {
			return orUnknown(err)
		}
		return b.Log(t, audit.Entry{At: now, Actor: by, Action: "user.password", Subject: name, Count: 1})
	})
}

// RemoveUser removes a user with all sessions. The last admin stays.
func (b *Book) RemoveUser(ctx context.Context, now time.Time, name string, by audit.Actor) error {
	return b.change(ctx, func(t *db.Tx) error {
		u, err := user(t, name)
		if err != nil {
			return err
		}
		if err := b.keepAdmin(t, u); err != nil {
			return err
		}
		if _, err := t.Exec(`DELETE FROM sessions WHERE "user" = $1`, name); err != nil {
			return err
		}
		if _, err := t.Exec(`DELETE FROM users WHERE name = $1`, name); err != nil {
			return err
		}
		if err := b.guard(t); err != nil {
			return err
		}
		return b.Log(t, audit.Entry{At: now, Actor: by, Action: "user.remove", Subject: name, Count: 1, Before: string(u.Role)})
	})
}

// keepAdmin refuses to take away the last admin.
func (b *Book) keepAdmin(t *db.Tx, u access.User) error {
	if u.Role != access.Admin {
		return nil
	}
	others, err := b.admins(t, u.Name)
	if err == nil && others == 0 {
		err = access.Refuse("%s is the last admin: make somebody else one first", u.Name)
	}
	return err
}

// admins counts the admins beside one.
func (b *Book) admins(t *db.Tx, beside string) (n int, err error) {
	const query = `SELECT count(*) FROM users WHERE role = 'admin' AND name <> $1`
	err = t.Query(query, func(rows *sql.Rows) error { return rows.Scan(&n) }, beside)
	return n, err
}

// usersQuery must name its index: SQLite would rather read all logins than all
// that was done to one user.
const usersQuery = `SELECT name, role, created_at, changed_at, coalesce((SELECT at FROM audit INDEXED BY audit_subject
	WHERE subject = users.name AND action = 'login' ORDER BY seq DESC LIMIT 1), 0) FROM users ORDER BY name`

// Users are all users by name, without their passwords, each with the last
// login that the audit log knows of.
func (b *Book) Users(ctx context.Context) (all []access.User, err error) {
	err = b.reader.In(ctx).Query(usersQuery, func(rows *sql.Rows) error {
		var u access.User
		var created, changed, login int64
		err := rows.Scan(&u.Name, &u.Role, &created, &changed, &login)
		u.Created, u.Changed, u.LoggedIn = db.FromMicros(created), db.FromMicros(changed), db.FromMicros(login)
		all = append(all, u)
		return err
	})
	return all, err
}

// User returns one user with the hash of the password, or access.ErrUnknown.
func (b *Book) User(ctx context.Context, name string) (access.User, error) {
	return user(b.reader.In(ctx), name)
}

func user(src db.Source, name string) (u access.User, err error) {
	const query = `SELECT name, role, password, created_at, changed_at FROM users WHERE name = $1`
	err = src.Query(query, func(rows *sql.Rows) error {
		var created, changed int64
		err := rows.Scan(&u.Name, &u.Role, &u.Password, &created, &changed)
		u.Created, u.Changed = db.FromMicros(created), db.FromMicros(changed)
		return err
	}, name)
	if err == nil && u.Name == "" {
		err = access.ErrUnknown
	}
	return u, err
}
