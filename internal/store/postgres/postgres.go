// Package postgres is the store's database on a PostgreSQL server: how it is connected,
// migrated and spoken to, what its errors mean, and the index of texts (pg_trgm). It is all
// that the store has of PostgreSQL; see package db for the seam.
//
// A trip to the server takes longer than most statements. Statements that only change
// rows wait, and travel together with the next query, or with the commit (see [wire]). The
// store writes its statements in SQL that both databases read but for a few words, which
// translate replaces.
//
// # Who works on the database
//
// One process works at a time: the one that has the lease (see [lease]). Everything that a start
// does to the database happens in this order:
//
//  1. A database without tables gets them. Processes that start at the same time do so one after
//     the other, behind an advisory lock.
//  2. The process takes the lease, or learns who has it.
//  3. It brings an older schema up to date, while it renews the lease. So a newer version of the
//     program that stands by leaves the schema alone under the older one at work. A process that
//     was frozen meanwhile cannot commit: the migration ends with the same fence as any commit.
//
// The second step runs on the schema of an older version of the program. The tables leases and
// nodes and the function check_lease therefore only ever change in ways that every version can
// read.
//
// # A server that is silent
//
// No wait for the server is without an end. A connection that is silent for longer than the
// server lets a statement run is ended (see [socket]), and what became of its commit is found
// out as after any lost answer. A try of the lease is much shorter. When the lease could not be
// renewed for nearly its length, or when the store is being closed and has had some seconds, all
// connections are ended at once, and with them whatever still waits.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/health"
	"redrive/internal/store/moving"
)

// Server is a database on a server.
type Server struct {
	DSN     string         // as postgres://user:password@host:port/database
	Relaxed bool           // faster, but when the server fails, it may lose the last moments
	For     moving.Purpose // what it is opened for; zero: to work on it
}

// Open connects to the database and brings its schema up to date.
func (s Server) Open(ctx context.Context, health *health.Health) (db.Engine, error) {
	config, parses, err := parse(s.DSN)
	if err != nil {
		return nil, err
	}

	e := newEngine(s, config, parses, health)

	err = e.open(ctx)
	if err != nil {
		return nil, errors.Join(e.Fault(err), e.Close())
	}

	return e, nil
}

func newEngine(s Server, config *pgconn.Config, parses bool, health *health.Health) *engine {
	e := &engine{
		name: config.Database, config: config, relaxed: s.Relaxed, purpose: s.For, health: health, node: job.NewID(),
		sockets: newSockets(silence, silenceAtStop),
	}
	config.RuntimeParams["application_name"] = sessionName(config.RuntimeParams["application_name"], e.node)

	pooled := config.Copy()
	pooled.DialFunc = e.sockets.dial
	pooled.OnNotice = endsWait
	endpoint := newEndpoint(pooled, &e.hosts, parses)
	e.writes = pool(connector{endpoint: endpoint}, writers)
	e.reads = pool(connector{endpoint: endpoint, reads: true}, readers)

	return e
}

// longestName is what the server keeps of the name of a session.
const longestName = 63

// sessionName names the sessions of a start of the program, which the next process ends when
// this one has died. The server keeps printable ASCII characters only.
func sessionName(name, node string) string {
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, name)

	return plain[:min(len(plain), longestName-1-len(node))] + " " + node
}

// The connections of a process: those that write, one for jobs and one for the index, and the
// pool that serves pages.
const (
	writers = 2
	readers = 6
)

// engine is an open database.
type engine struct {
	name    string // of the database
	node    string // the id of this start of the program
	config  *pgconn.Config
	relaxed bool // commits do not wait for the disk
	purpose moving.Purpose
	health  *health.Health
	made    bool // there were no tables before

	hosts   hosts
	sockets *sockets // of the two pools
	writes  *sql.DB
	reads   *sql.DB
	index   *index
	lease   *lease
	watch   *watch
}

func (e *engine) open(ctx context.Context) (err error) {
	e.made, err = e.prepare(ctx)
	if err != nil {
		return err
	}

	e.lease, err = take(ctx, e)
	if err == nil {
		err = e.update(ctx)
	}

	if err != nil {
		return err
	}

	// The process that made a copy has left it as it is, now that the lease is this one's.
	err = e.purpose.CheckWhole(ctx, e.reads)
	if errors.Is(err, moving.ErrUnfinished) {
		return e.unsuitable("%w", err)
	}

	if err != nil {
		return err
	}

	writer, err := newConn(ctx, e.writes, e.lease, options{relaxed: e.relaxed})
	if err != nil {
		return err
	}

	e.index = &index{conn: writer}
	e.watch = newWatch(e.reads, e.health)

	return nil
}

// Writer returns the connection that writes jobs.
func (e *engine) Writer(ctx context.Context) (db.Conn, error) {
	return newConn(ctx, e.writes, e.lease, options{numbered: true, relaxed: e.relaxed})
}

// Reads returns the pool that serves pages.
func (e *engine) Reads() *sql.DB { return e.reads }

// Text is a statement as PostgreSQL reads it.
func (*engine) Text(query string) string { return translate(query) }

// KeepsDeadRows is true: the entries of an index stay until no transaction can see them and the
// server has found time to remove them.
func (*engine) KeepsDeadRows() bool { return true }

// ReadsInWindows is true.
func (*engine) ReadsInWindows() bool { return true }

// Search is the index of texts.
func (e *engine) Search() db.Search { return e.index }

// Made reports whether there were no tables before.
func (e *engine) Made() bool { return e.made }

// Identity names the cluster, which has a number of its own, and the database in it.
func (e *engine) Identity() (string, error) {
	const query = `SELECT concat(system_identifier, ':', current_database(), ':', current_schema()) FROM pg_control_system()`

	var identity string
	err := e.reads.QueryRow(query).Scan(&identity)

	return identity, db.Wrap(e.Fault(err), "identify the database")
}

// Check finds nothing: a server has no files that could be moved away.
func (*engine) Check() error { return nil }

// Room is not asked for: what a server has room for is known when it is written.
func (*engine) Room(int) error { return nil }

// Committed notes nothing: the server looks after its log.
func (*engine) Committed(int) {}

// Announce leaves word of where this process answers requests. Other programs come without its
// key: the rights of a user of the database say nothing of the rights here.
func (e *engine) Announce(url, _ string) error { return e.lease.announce(url) }

// Hasten ends connections that are silent much earlier. A statement that takes longer is run again,
// and has no more time then.
func (e *engine) Hasten() { e.sockets.hasten() }

// Close ends all connections.
func (e *engine) Close() error {
	e.watch.close()

	var err error
	if e.index != nil {
		err = e.index.conn.Close()
	}

	// The lease goes last: another process begins to write then.
	err = errors.Join(err, e.writes.Close(), e.reads.Close())
	if e.lease != nil {
		err = errors.Join(err, e.lease.giveBack())
	}

	return err
}

// Abandon leaves the tables: without jobs they do no harm.
func (e *engine) Abandon() error { return e.Close() }
