// Package accounts is the book of who may do what, and who did: users, their
// sessions, tokens, and the audit log.
//
// The audit log is a chain: the hash of each entry covers the one before, so that
// none can be changed or taken out without all the later ones telling. The newest
// hash is kept beside the log, and every act of a person is written in the
// transaction of the act.
package accounts

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"redrive/internal/access"
	"redrive/internal/store/db"
)

// Book keeps accounts and the audit log.
type Book struct {
	writer  *db.Writer
	reader  *db.Reader
	guarded atomic.Bool // there is a user or a token
	head    head        // of the audit log, as of the last commit

	// Of the transaction that is under way.
	headNow    head
	guardedNow *bool // whether anybody has to log in, when that was changed
}

// New returns a book; Load reads what it knows in memory.
func New(writer *db.Writer, reader *db.Reader) *Book { return &Book{writer: writer, reader: reader} }

// Load reads whether anybody has to log in, and where the audit log goes on.
func (b *Book) Load(src db.Source) error {
	guarded, err := isGuarded(src)
	if err == nil {
		b.guarded.Store(guarded)
		err = b.loadHead(src)
	}
	if err != nil {
		return fmt.Errorf("read who has access: %w", err)
	}
	return nil
}

// Begin starts a transaction.
func (b *Book) Begin() { b.headNow, b.guardedNow = b.head, nil }

// Committed makes known what has become true.
func (b *Book) Committed(*db.Tx) {
	b.head = b.headNow
	if b.guardedNow != nil {
		b.guarded.Store(*b.guardedNow)
	}
}

// Guarded reports whether anybody has to log in: it is true from the first user
// or token on. It reads no file, so that no damage of one can make it false.
func (b *Book) Guarded() bool { return b.guarded.Load() }

func isGuarded(src db.Source) (is bool, err error) {
	const query = `SELECT EXISTS (SELECT 1 FROM users) OR EXISTS (SELECT 1 FROM tokens)`
	err = src.Query(query, func(rows *sql.Rows) error { return rows.Scan(&is) })
	return is, err
}

// guard takes note that users or tokens have come or gone.
func (b *Book) guard(t *db.Tx) error {
	is, err := isGuarded(t)
	b.guardedNow = &is
	return err
}

// Refused reports whether an act on an account was refused, having written
// nothing.
func Refused(err error) bool {
	return errors.As(err, new(*access.Refusal)) || errors.Is(err, access.ErrUnknown)
}

// change runs a write that gives nothing back.
func (b *Book) change(ctx context.Context, do func(*db.Tx) error) error {
	return b.writer.Do(ctx, 1, func(t *db.Tx) error {
		err := do(t)
		if err != nil && !Refused(err) {
			err = fmt.Errorf("change who has access: %w", err)
		}
		return err
	})
}

// orUnknown is the error of an update that met no row.
func orUnknown(err error) error {
	if err == nil {
		err = access.ErrUnknown
	}
	return err
}
