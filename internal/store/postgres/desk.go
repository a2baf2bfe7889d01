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
	hosts  *hosts
	writes bool // its statements may write, whatever the default of the role is

	mu     sync.Mutex // held while a statement runs
	server *pgconn.PgConn
}

// tryFor is how long a statement at the desk is tried. Several tries have to find room in the
// time for which a lease lasts.
const tryFor = leaseLength / 4

// shortestDial is how long a try waits for one of several hosts at least.
const shortestDial = 500 * time.Millisecond

// newDesk returns a desk that connects in the time of one try, also when the first of several
// hosts is silent.
func newDesk(config *pgconn.Config, of *hosts) *desk {
	config = config.Copy()
	config.ConnectTimeout = min(config.ConnectTimeout, max(tryFor/time.Duration(1+len(config.Fallbacks)), shortestDial))

	config.OnNotice = endsWait

	return &desk{config: config, hosts: of}
}

// answer is what a statement gave.
type answer struct {
	changed int64 // rows
	rows    [][][]byte
}

// text is a value of the first row.
func (a answer) text(column int) string { return string(a.rows[0][column]) }

// run runs a statement, which does no harm when it runs twice.
func (d *desk) run(ctx context.Context, text string, args ...any) (a answer, err error) {
	s, err := newStatement(0, text, args)
	if err != nil {
		return a, err
	}

	d.mu.Lock()
	defer d.mu.Unlock()

	// That the server has ended a connection is only seen when it is used again.
	reused := d.server != nil && !d.server.IsClosed()

	got, err := d.try(ctx, s)
	if reused && isLost(err) {
		got, err = d.try(ctx, s)
	}

	return got, err
}

// try runs a statement, on a new connection where none is open. The caller holds the mutex.
func (d *desk) try(caller context.Context, s statement) (a answer, err error) {
	ctx, cancel := context.WithTimeout(caller, tryFor)
	defer cancel()

	if d.server == nil || d.server.IsClosed() {
		d.server, err = d.hosts.dial(ctx, d.config)
		if err != nil {
			d.server = nil
			return a, silentOf(caller, err)
		}
	}

	a, err = d.send(ctx, s)

	// After any error the next try connects again: the server may have become a replica.
	if err != nil {
		_ = d.server.Close(ctx)
	}

	return a, silentOf(caller, err)
}

// What a statement that writes is sent together with, which makes one transaction: it may write, and the
// server says when it gives up its wait for a replica.
const (
	mayWrite  = `SET transaction_read_only = off`
	tellsMore = `SELECT set_config('client_min_messages', 'warning', true)`
)

// send makes one trip to the server.
func (d *desk) send(ctx context.Context, s statement) (a answer, err error) {
	all := new(pgconn.Batch)
	if d.writes {
		all.ExecParams(mayWrite, nil, nil, nil, nil)
		all.ExecParams(tellsMore, nil, nil, nil, nil)
	}

	all.ExecParams(s.text, s.args, s.types, s.formats(), nil)

	got, err := d.server.ExecBatch(ctx, all).ReadAll()
	if err == nil {
		err = replicated(d.server)
	}

	if err != nil {
		return a, asReadOnly(err)
	}

	last := got[len(got)-1]

	return answer{last.CommandTag.RowsAffected(), last.Rows}, nil
}

// close ends the connection.
func (d *desk) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.server == nil {
		return nil
	}

	ctx, cancel := context.WithTimeout(context.Background(), tryFor)
	defer cancel()

	return d.server.Close(ctx)
}
