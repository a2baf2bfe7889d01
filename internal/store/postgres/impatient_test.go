package postgres

import (
	"context"
	"time"

	"redrive/internal/store/db"
	"redrive/internal/store/health"
)

// Impatient is a server whose connections wait as long as a test says, while the process works and
// while it stops.
type Impatient struct {
	Server
	Silence, AtStop time.Duration
}

func (i Impatient) Open(ctx context.Context, h *health.Health) (db.Engine, error) {
	config, parses, err := parse(i.DSN)
	if err != nil {
		return nil, err
	}

	e := newEngine(i.Server, config, parses, h)
	e.sockets.silence.Store(int64(i.Silence))
	e.sockets.atStop = i.AtStop

	return e, e.open(ctx)
}
