package postgres

import (
	"context"
	"time"

	"redrive/internal/store/db"
	"redrive/internal/store/health"
)

// Impatient is a server whose connections wait for a second only.
type Impatient struct{ Server }

func (i Impatient) Open(ctx context.Context, h *health.Health) (db.Engine, error) {
	config, parses, err := parse(i.DSN)
	if err != nil {
		return nil, err
	}

	e := newEngine(i.Server, config, parses, h)
	e.sockets.silence = time.Second

	return e, e.open(ctx)
}
