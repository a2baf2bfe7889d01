package postgres

import (
	"context"

	"redrive/internal/store/db"
)

// Asking is a connection that writes and can be asked what became of its last commit.
type Asking struct{ *conn }

// NewAsking opens a connection, whose commits can be counted.
func NewAsking(ctx context.Context, of db.Engine, numbered bool) (Asking, error) {
	e := of.(*engine)
	c, err := newConn(ctx, e.writes, e.lease, options{numbered: numbered})

	return Asking{c}, err
}

// Ask asks what became of a commit.
func (a Asking) Ask(ctx context.Context) (committed bool, err error) { return a.ask(ctx) }
