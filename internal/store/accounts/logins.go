package accounts

import (
	"context"
	"slices"
	"time"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/store/db"
)

// maxSessions is how many logins one user can have at once; the oldest end.
const maxSessions = 50

// StartSession keeps a new login, and forgets those that are over. Who was
// removed or changed since the password was checked gets access.ErrUnknown.
func (p *Projection) StartSession(ctx context.Context, now time.Time, n access.Session, checked access.User, by audit.Actor) error {
	const over = `DELETE FROM sessions WHERE seen_at <= $1 OR created_at <= $2`
	const extra = `DELETE FROM sessions WHERE "user" = $1 AND hash NOT IN
		(SELECT hash FROM sessions WHERE "user" = $1 ORDER BY created_at DESC, hash LIMIT $2)`
	const insert = `INSERT INTO sessions (hash, "user", created_at, seen_at, address) VALUES ($1, $2, $3, $3, $4)`

	return p.act(ctx, now, by, func(t *db.Tx) (e audit.Entry, err error) {
		u, err := user(t, n.User)
		if err == nil && (!u.Changed.Equal(checked.Changed) || u.Password != checked.Password) {
			err = access.ErrUnknown
		}

		if err != nil {
			return e, err
		}

		return audit.Entry{Action: "login", Subject: n.User}, db.Steps(t,
			db.Any(over, db.Micros(now.Add(-access.Idle)), db.Micros(now.Add(-access.Lifetime))),
			db.Any(extra, n.User, maxSessions-1), db.Any(insert, n.Hash, n.User, db.Micros(now), n.Address))
	})
}

// sessionsQuery leaves out the logins that are older than their user's password
// or role.
const sessionsQuery = `SELECT s.hash, s."user", u.role, s.created_at, s.seen_at, s.address FROM sessions s
	JOIN users u ON u.name = s."user" WHERE s.created_at >= u.changed_at`

func sessionFields(s *access.Session) []any {
	return []any{&s.Hash, &s.User, &s.Role, db.Time(&s.Created), db.Time(&s.Seen), &s.Address}
}

// Session returns a login with its user's role, or access.ErrUnknown when it is
// over: too old, not used for too long, or older than its user's password or
// role.
func (p *Projection) Session(ctx context.Context, now time.Time, hash []byte) (access.Session, error) {
	const query = sessionsQuery + ` AND s.hash = $1`

	var found access.Session
	_, err := db.Row(p.reader.In(ctx), query, sessionFields(&found), hash)
	if err == nil && (!access.SameHash(found.Hash, hash) || !found.Live(now)) {
		return access.Session{}, access.ErrUnknown
	}

	return found, err
}

// SeeSession records that a login is in use.
func (p *Projection) SeeSession(ctx context.Context, now time.Time, hash []byte) error {
	const update = `UPDATE sessions SET seen_at = $2 WHERE hash = $1 AND seen_at < $2`
	return p.change(ctx, func(t *db.Tx) error { return t.Run(update, hash, db.Micros(now)) })
}

// Sessions are the logins that are not over, the newest first.
func (p *Projection) Sessions(ctx context.Context, now time.Time) ([]access.Session, error) {
	const query = sessionsQuery + ` ORDER BY s.created_at DESC, s.hash`
	all, err := db.All(p.reader.In(ctx), query, sessionFields)
	return slices.DeleteFunc(all, func(s access.Session) bool { return !s.Live(now) }), err
}

// EndSession ends a login: the user logs out, or an admin ends another user's login.
// One that is over already stays so.
func (p *Projection) EndSession(ctx context.Context, now time.Time, hash []byte, by audit.Actor) error {
	const remove = `DELETE FROM sessions WHERE hash = $1 RETURNING "user"`

	return p.act(ctx, now, by, func(t *db.Tx) (e audit.Entry, err error) {
		user, err := db.Value[string](t, remove, hash)
		switch {
		case err != nil || user == "":
			return e, err
		case user == by.Name:
			e.Action = "logout"
		default:
			e.Action = "session.end"
		}

		e.Subject = user

		return e, nil
	})
}

// LoginFailed writes down that a login failed. The name is that of a user, or
// empty: what was typed may be a password.
func (p *Projection) LoginFailed(ctx context.Context, now time.Time, name string, by audit.Actor) error {
	return p.act(ctx, now, by, func(*db.Tx) (audit.Entry, error) { return audit.Entry{Action: "login.failed", Subject: name}, nil })
}

// CreateToken keeps a new token. The first one of all, from which on users have to
// log in, must be an admin's, who can add others.
func (p *Projection) CreateToken(ctx context.Context, now time.Time, n access.Token, by audit.Actor) error {
	const insert = `INSERT INTO tokens (id, hash, name, role, created_at, created_by, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`

	return p.act(ctx, now, by, func(t *db.Tx) (e audit.Entry, err error) {
		if err := p.stillOpen(t, by); err != nil {
			return e, err
		}

		if by.Open && n.Role != access.Admin {
			return e, access.Refuse("there is no admin yet, and the first token makes a login required: " +
				"add an admin first (dashboard user add NAME --role admin)")
		}

		if taken, err := p.liveToken(t, now, n.Name); err != nil {
			return e, err
		} else if taken {
			return e, access.Refuse("a token named %s is in use: revoke it first, or take another name", n.Name)
		}

		what := n.Name + ", " + string(n.Role) + ", until " + n.Expires.UTC().Format(time.RFC3339)

		return audit.Entry{Action: "token.create", Subject: n.ID, After: what}, db.Steps(t,
			db.Any(insert, n.ID, n.Hash, n.Name, string(n.Role), db.Micros(now), by.Name, db.Micros(n.Expires)), p.guard)
	})
}

// liveToken reports whether there is a valid token with that name. Histories show
// names, so no two tokens may have the same one at the same time.
func (p *Projection) liveToken(t *db.Tx, now time.Time, name string) (bool, error) {
	const query = `SELECT EXISTS (SELECT 1 FROM tokens WHERE name = $1 AND revoked_at = 0 AND expires_at > $2)`
	return db.Value[bool](t, query, name, db.Micros(now))
}

// RevokeToken ends a token. One that is revoked already stays so.
func (p *Projection) RevokeToken(ctx context.Context, now time.Time, id string, by audit.Actor) error {
	const update = `UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at = 0`

	return p.act(ctx, now, by, func(t *db.Tx) (e audit.Entry, err error) {
		found, err := tokenOf(t, id)
		if err != nil {
			return e, err
		}

		n, err := t.Exec(update, id, db.Micros(now))
		if err != nil || n == 0 {
			return e, err
		}

		return audit.Entry{Action: "token.revoke", Subject: id, Before: found.Name + ", " + string(found.Role)}, nil
	})
}

// UseToken records that a token was used.
func (p *Projection) UseToken(ctx context.Context, now time.Time, id string) error {
	const update = `UPDATE tokens SET used_at = $2 WHERE id = $1 AND used_at < $2`
	return p.change(ctx, func(t *db.Tx) error { return t.Run(update, id, db.Micros(now)) })
}

const tokenColumns = `SELECT id, hash, name, role, created_at, created_by, expires_at, used_at, revoked_at FROM tokens `

func tokenFields(t *access.Token) []any {
	return []any{
		&t.ID, &t.Hash, &t.Name, &t.Role, db.Time(&t.Created), &t.CreatedBy, db.Time(&t.Expires), db.Time(&t.Used), db.Time(&t.Revoked),
	}
}

// Tokens are all tokens, the newest first.
func (p *Projection) Tokens(ctx context.Context) ([]access.Token, error) {
	return db.All(p.reader.In(ctx), tokenColumns+`ORDER BY created_at DESC, id`, tokenFields)
}

// Token returns a token by its id, whether or not it is still valid, or
// access.ErrUnknown.
func (p *Projection) Token(ctx context.Context, id string) (access.Token, error) {
	return tokenOf(p.reader.In(ctx), id)
}

func tokenOf(src db.Source, id string) (t access.Token, err error) {
	found, err := db.Row(src, tokenColumns+`WHERE id = $1`, tokenFields(&t), id)
	if err == nil && !found {
		err = access.ErrUnknown
	}

	return t, err
}
