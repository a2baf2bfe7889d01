package accounts

import (
	"context"
	"database/sql"
	"time"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/store/db"
)

// maxSessions is how many logins one user can have at once; the oldest end.
const maxSessions = 50

// StartSession keeps a new login, and forgets those that are over. Who was
// removed or changed since the password was checked gets access.ErrUnknown.
func (b *Book) StartSession(ctx context.Context, now time.Time, n access.Session, checked access.User, by audit.Actor) error {
	const (
		over  = `DELETE FROM sessions WHERE seen_at <= $1 OR created_at <= $2`
		extra = `DELETE FROM sessions WHERE "user" = $1 AND hash NOT IN
			(SELECT hash FROM sessions WHERE "user" = $1 ORDER BY created_at DESC, hash LIMIT $2)`
		insert = `INSERT INTO sessions (hash, "user", created_at, seen_at, address) VALUES ($1, $2, $3, $3, $4)`
	)
	return b.change(ctx, func(t *db.Tx) error {
		u, err := user(t, n.User)
		if err != nil {
			return err
		}
		if !u.Changed.Equal(checked.Changed) || u.Password != checked.Password {
			return access.ErrUnknown
		}
		if _, err := t.Exec(over, db.Micros(now.Add(-access.Idle)), db.Micros(now.Add(-access.Lifetime))); err != nil {
			return err
		}
		if _, err := t.Exec(extra, n.User, maxSessions-1); err != nil {
			return err
		}
		if _, err := t.Exec(insert, n.Hash, n.User, db.Micros(now), n.Address); err != nil {
			return err
		}
		return b.Log(t, audit.Entry{At: now, Actor: by, Action: "login", Subject: n.User, Count: 1})
	})
}

// Session returns a login with its user's role, or access.ErrUnknown when it is
// over: too old, not used for too long, or older than its user's password or
// role.
func (b *Book) Session(ctx context.Context, now time.Time, hash []byte) (access.Session, error) {
	const query = `SELECT s.hash, s."user", u.role, s.created_at, s.seen_at, s.address, u.changed_at
		FROM sessions s JOIN users u ON u.name = s."user" WHERE s.hash = $1`
	var found access.Session
	err := b.reader.In(ctx).Query(query, func(rows *sql.Rows) error {
		var created, seen, changed int64
		err := rows.Scan(&found.Hash, &found.User, &found.Role, &created, &seen, &found.Address, &changed)
		if created < changed {
			found.Hash = nil
		}
		found.Created, found.Seen = db.FromMicros(created), db.FromMicros(seen)
		return err
	}, hash)
	if err == nil && (!access.SameHash(found.Hash, hash) || !found.Live(now)) {
		return access.Session{}, access.ErrUnknown
	}
	return found, err
}

// SeeSession takes note that a login is in use.
func (b *Book) SeeSession(ctx context.Context, now time.Time, hash []byte) error {
	const update = `UPDATE sessions SET seen_at = $2 WHERE hash = $1 AND seen_at < $2`
	return b.change(ctx, func(t *db.Tx) error {
		_, err := t.Exec(update, hash, db.Micros(now))
		return err
	})
}

// Sessions are the logins that are not over, the newest first.
func (b *Book) Sessions(ctx context.Context, now time.Time) (all []access.Session, err error) {
	const query = `SELECT s.hash, s."user", u.role, s.created_at, s.seen_at, s.address FROM sessions s JOIN users u ON u.name = s."user"
		WHERE s.created_at >= u.changed_at ORDER BY s.created_at DESC, s.hash`
	err = b.reader.In(ctx).Query(query, func(rows *sql.Rows) error {
		var found access.Session
		var created, seen int64
		err := rows.Scan(&found.Hash, &found.User, &found.Role, &created, &seen, &found.Address)
		if found.Created, found.Seen = db.FromMicros(created), db.FromMicros(seen); found.Live(now) {
			all = append(all, found)
		}
		return err
	})
	return all, err
}

// EndSession ends a login: a logout, or what an admin does to somebody else's.
// One that is over already stays so.
func (b *Book) EndSession(ctx context.Context, now time.Time, hash []byte, by audit.Actor) error {
	const remove = `DELETE FROM sessions WHERE hash = $1 RETURNING "user"`
	return b.change(ctx, func(t *db.Tx) error {
		var user string
		err := t.Query(remove, func(rows *sql.Rows) error { return rows.Scan(&user) }, hash)
		if err != nil || user == "" {
			return err
		}
		action := "logout"
		if user != by.Name {
			action = "session.end"
		}
		return b.Log(t, audit.Entry{At: now, Actor: by, Action: action, Subject: user, Count: 1})
	})
}

// LoginFailed writes down that somebody did not get in. The name is that of a
// user, or empty: what was typed may be a password.
func (b *Book) LoginFailed(ctx context.Context, now time.Time, name string, by audit.Actor) error {
	return b.change(ctx, func(t *db.Tx) error {
		return b.Log(t, audit.Entry{At: now, Actor: by, Action: "login.failed", Subject: name, Count: 1})
	})
}
