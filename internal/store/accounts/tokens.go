package accounts

import (
	"context"
	"database/sql"
	"time"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/store/db"
)

// CreateToken keeps a new token. The first one of all, which ends that nobody has
// to log in, must be an admin's: somebody has to be able to add others.
func (b *Book) CreateToken(ctx context.Context, now time.Time, n access.Token, by audit.Actor) error {
	const insert = `INSERT INTO tokens (id, hash, name, role, created_at, created_by, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	return b.change(ctx, func(t *db.Tx) error {
		if err := b.stillOpen(t, by); err != nil {
			return err
		}
		if by.Open && n.Role != access.Admin {
			return access.Refuse("there is no admin yet, and from the first token on everybody logs in: add an admin first (dashboard user add NAME --role admin)")
		}
		if taken, err := b.liveToken(t, now, n.Name); err != nil {
			return err
		} else if taken {
			return access.Refuse("a token named %s is in use: revoke it first, or take another name", n.Name)
		}
		if _, err := t.Exec(insert, n.ID, n.Hash, n.Name, string(n.Role), db.Micros(now), by.Name, db.Micros(n.Expires)); err != nil {
			return err
		}
		if err := b.guard(t); err != nil {
			return err
		}
		return b.Log(t, audit.Entry{At: now, Actor: by, Action: "token.create", Subject: n.ID, Count: 1,
			After: n.Name + ", " + string(n.Role) + ", until " + n.Expires.UTC().Format(time.RFC3339)})
	})
}

// liveToken reports whether a token with that name lets somebody in. Histories
// show names, so that no two may have one at the same time.
func (b *Book) liveToken(t *db.Tx, now time.Time, name string) (taken bool, err error) {
	const query = `SELECT EXISTS (SELECT 1 FROM tokens WHERE name = $1 AND revoked_at = 0 AND expires_at > $2)`
	err = t.Query(query, func(rows *sql.Rows) error { return rows.Scan(&taken) }, name, db.Micros(now))
	return taken, err
}

// RevokeToken ends a token. One that is revoked already stays so.
func (b *Book) RevokeToken(ctx context.Context, now time.Time, id string, by audit.Actor) error {
	const update = `UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at = 0`
	return b.change(ctx, func(t *db.Tx) error {
		found, err := tokenOf(t, id)
		if err != nil {
			return err
		}
		n, err := t.Exec(update, id, db.Micros(now))
		if err != nil || n == 0 {
			return err
		}
		return b.Log(t, audit.Entry{At: now, Actor: by, Action: "token.revoke", Subject: id, Count: 1,
			Before: found.Name + ", " + string(found.Role)})
	})
}

// UseToken takes note that a token was used.
func (b *Book) UseToken(ctx context.Context, now time.Time, id string) error {
	const update = `UPDATE tokens SET used_at = $2 WHERE id = $1 AND used_at < $2`
	return b.change(ctx, func(t *db.Tx) error {
		_, err := t.Exec(update, id, db.Micros(now))
		return err
	})
}

const tokenColumns = `SELECT id, hash, name, role, created_at, created_by, expires_at, used_at, revoked_at FROM tokens `

func scanToken(rows *sql.Rows) (t access.Token, err error) {
	var created, expires, used, revoked int64
	err = rows.Scan(&t.ID, &t.Hash, &t.Name, &t.Role, &created, &t.CreatedBy, &expires, &used, &revoked)
	t.Created, t.Expires, t.Used, t.Revoked = db.FromMicros(created), db.FromMicros(expires), db.FromMicros(used), db.FromMicros(revoked)
	return t, err
}

// Tokens are all tokens, the newest first.
func (b *Book) Tokens(ctx context.Context) (all []access.Token, err error) {
	err = b.reader.In(ctx).Query(tokenColumns+`ORDER BY created_at DESC, id`, func(rows *sql.Rows) error {
		t, err := scanToken(rows)
		all = append(all, t)
		return err
	})
	return all, err
}

// Token returns a token by its id, whether or not it still lets anybody in, or
// access.ErrUnknown.
func (b *Book) Token(ctx context.Context, id string) (access.Token, error) {
	return tokenOf(b.reader.In(ctx), id)
}

func tokenOf(src db.Source, id string) (t access.Token, err error) {
	err = src.Query(tokenColumns+`WHERE id = $1`, func(rows *sql.Rows) (err error) {
		t, err = scanToken(rows)
		return err
	}, id)
	if err == nil && t.ID == "" {
		err = access.ErrUnknown
	}
	return t, err
}
