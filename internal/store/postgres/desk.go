package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// desk is a connection for what a process does now and then beside its work. It is opened when
// it is needed, and again when it was lost.
type desk struct {
	config *pgconn.Config

	mu     sync.Mutex // held while a statement runs
	server *pgconn.PgConn
}

// patience is how long a statement at the desk takes at most.
const patience = 10 * time.Second

// answer is what a statement gave.
type answer struct {
	changed int64 // rows
	rows    [][][]byte
}

// run runs a statement, which does no harm when it runs twice.
func (d *desk) run(ctx context.Context, text string, args ...any) (a answer, err error) {
	s, err := newStatement(0, text, args)
	if err != nil {
		return a, err
	}

	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	d.mu.Lock()
	defer d.mu.Unlock()

	// That the server has ended a connection is only seen when it is used again.
	reused := d.server != nil && !d.server.IsClosed()

	got, err := d.once(ctx, s)
	if reused && isLost(err) {
		got, err = d.once(ctx, s)
	}

	return got, err
}

// once runs a statement, on a new connection where none is open. The caller holds the mutex.
func (d *desk) once(ctx context.Context, s statement) (a answer, err error) {
	if d.server == nil || d.server.IsClosed() {
		d.server, err = pgconn.ConnectConfig(ctx, d.config)
		if err != nil {
			d.server = nil
			return a, err
		}
	}

	got := d.server.ExecParams(ctx, s.text, s.args, s.types, s.formats(), nil).Read()

	return answer{got.CommandTag.RowsAffected(), got.Rows}, got.Err
}

// close ends the connection.
func (d *desk) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.server == nil {
		return nil
	}

	return d.server.Close(context.Background())
}
