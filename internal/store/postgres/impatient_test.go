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
	e, err := i.Server.Open(ctx, h)
	if err != nil {
		return nil, err
	}

	e.(*engine).sockets.silence = time.Second

	return e, nil
}
