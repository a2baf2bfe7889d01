package postgres

import (
	"context"
	"time"

	"redrive/internal/store/db"
)

// Asking is a connection that writes and can be asked what became of its last commit.
type Asking struct{ *conn }

// NewAsking opens a connection, whose commits can be counted. The lease of its engine lasts for an
// hour without a renewal: a busy machine takes its time to start a server again.
func NewAsking(ctx context.Context, of db.Engine, numbered bool) (Asking, error) {
	e := of.(*engine)
	e.lease.stop()
	e.lease.ended.Wait()
	e.lease.renewed.Store(int64(time.Hour))

	c, err := newConn(ctx, e.writes, e.lease, options{numbered: numbered})

	return Asking{c}, err
}

// Backend is the process of the server that serves the connection.
func (a Asking) Backend() string { return a.backend }

// Ask asks what became of a commit.
func (a Asking) Ask(ctx context.Context) (committed bool, err error) { return a.ask(ctx) }
