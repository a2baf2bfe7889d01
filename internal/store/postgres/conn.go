package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"redrive/internal/fault"
	"redrive/internal/pause"
	"redrive/internal/store/db"
)

// conn is a connection that writes. It is opened again when it was lost.
type conn struct {
	from  *sql.DB
	lease *lease            // that every commit has to have
	texts map[string]string // statements as PostgreSQL reads them, by their texts
	lists map[string]list   // those with a list of rows, as they are sent

	conn    *sql.Conn
	wire    *wire  // of the connection, which package sql holds
	backend string // which process of the server serves it, and since when
	demoted bool   // the server takes no writes any more: another one may have become the primary
	former  string // the process that served the connection that was lost, until it has ended

	options
	asked context.Context // of the transaction under way: whose end asks to make haste

	// Why the transaction under way cannot be committed: a statement that had waited failed. The
	// caller who hears of it first may be another one than the one who sent the statement.
	failed error
}

// options are how a connection commits.
type options struct {
	numbered bool // its commits are counted, which only one connection of a process can have: see lost
	relaxed  bool // commits do not wait for the disk
}

// newConn takes a connection out of a pool.
func newConn(ctx context.Context, from *sql.DB, held *lease, o options) (*conn, error) {
	c := &conn{from: from, lease: held, texts: map[string]string{}, lists: map[string]list{}, options: o}
	return c, c.connect(ctx)
}

// connect takes a connection out of the pool, in place of one that was lost, whose session on the
// server it ends.
func (c *conn) connect(ctx context.Context) error {
	const backend = `SELECT concat(pid, ' since ', backend_start) FROM pg_stat_activity WHERE pid = pg_backend_pid()`

	if c.conn != nil {
		c.wire.endpoint.giveUp() // those that read may be to a server that no longer takes writes
		_ = c.conn.Close()
		c.conn = nil

		// What an attempt has opened that failed on its way has no locks.
		c.former = cmp.Or(c.former, c.backend)
	}

	taken, err := c.from.Conn(ctx)
	if err != nil {
		return silentOf(ctx, err)
	}

	c.conn = taken
	c.demoted = false

	err = taken.Raw(func(l any) error {
		c.wire = l.(*link).wire
		return nil
	})
	if err != nil {
		return err
	}

	asked, cancel := context.WithTimeout(ctx, reconnectWithin)
	defer cancel()

	err = taken.QueryRowContext(asked, backend).Scan(&c.backend)
	if err == nil && c.former != "" {
		err = c.endFormer(asked)
	}

	return silentOf(ctx, err)
}

// text is a statement as PostgreSQL reads it.
func (c *conn) text(query string) string {
	text, known := c.texts[query]
	if !known {
		text = translate(query)
		c.texts[query] = text
	}

	return text
}

// begin starts a transaction, and bounds how long its statements wait for locks and run. What it sets
// ends with the transaction: a pooler in between gives the session to others.
//
// It also keeps the server from plans that read a whole table, or sort all jobs that wait. The
// statements of the store find each row by an index and claim in the order of one, as they have to on
// SQLite. The server would read a table instead that is small when it plans a statement, and go on to
// do so while the table grows: it keeps a plan until it looks at the tables again, which can take a
// minute. The cost that it gives to plans that it is kept from, where there is no other, would also
// make it compile them (jit).
//
// And it lets the server say when it gives up its wait for a replica: see endsWait.
const begin = `SELECT set_config('lock_timeout', '10s', true), set_config('statement_timeout', '60s', true),
	set_config('idle_in_transaction_session_timeout', '60s', true), set_config('jit', 'off', true),
	set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true),
	set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
	set_config('client_min_messages', 'warning', true)`

// beginWriting begins a transaction that writes, whatever the default of the role is.
const beginWriting = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`

// locksWait is how long the server lets a statement wait for a lock.
const locksWait = 10 * time.Second

// statementsRun is how long the server lets a statement run.
const statementsRun = 60 * time.Second

// Begin waits for the first statement of the transaction, with which it travels.
func (c *conn) Begin(ctx context.Context) error {
	err := c.lease.check()
	if err == nil && (c.conn == nil || c.wire.server.IsClosed() || c.demoted) {
		err = c.reconnect(ctx)
	}

	if err != nil {
		return err
	}

	c.asked = ctx
	if c.numbered {
		c.lease.endsWith(ctx)
	}

	c.failed, c.wire.waiting = nil, nil
	c.laterBegin()
	if c.relaxed {
		c.wire.later(statement{text: `SELECT set_config('synchronous_commit', 'off', true)`, want: db.AnyNumber})
	}

	return nil
}

// laterBegin lets the begin of a transaction wait for the next trip.
func (c *conn) laterBegin() {
	c.wire.later(control(beginWriting))
	c.wire.later(statement{text: begin, want: db.AnyNumber})
}

// Query runs a query, together with what was sent before it.
func (c *conn) Query(query string, each func(*sql.Rows) error, args ...any) error {
	if c.failed != nil {
		return c.failed
	}

	return c.remember(db.Scan(c.conn.QueryContext(context.Background(), c.text(query), args...))(each))
}

// remember keeps an error of a statement that had waited, after which nothing more of the
// transaction counts, and returns the error.
func (c *conn) remember(err error) error {
	if codeOf(err) == readOnly {
		c.demoted = true
	}

	if early, ok := errors.AsType[*earlier](err); ok {
		c.failed = early.error
		err = early.error
	}

	// What this process expects is no longer there when another one works on the database.
	if kindOf(err) == fault.ErrBroken && c.lease.isTaken() {
		c.failed = c.lease.taken()
		return c.failed
	}

	return err
}

// Exec runs a statement, together with what was sent before it.
func (c *conn) Exec(query string, args ...any) (int64, error) {
	if c.failed != nil {
		return 0, c.failed
	}

	s, err := newStatement(db.AnyNumber, c.text(query), args)
	if err != nil {
		return 0, err
	}

	changed, err := c.wire.exec(context.Background(), s)

	return changed, c.remember(err)
}

// Send lets a statement wait for the next trip.
func (c *conn) Send(sent db.Statement) error {
	if c.failed != nil {
		return c.failed
	}

	s, listed := c.inColumns(sent)
	if !listed {
		var err error

		s, err = newStatement(sent.Want, c.text(sent.Query), sent.Args)
		if err != nil {
			return err
		}
	}

	s.numbers = sent.Numbers
	c.wire.later(s)

	return nil
}

// Commit travels together with what was sent before it. A statement among that which has to
// change so many rows checks that itself: the answer would come after the commit. So does the
// lease.
func (c *conn) Commit() error {
	err := c.lease.check()
	if err == nil {
		err = c.sendFence()
	}

	if err != nil {
		return err
	}

	var asked []statement
	for i := range c.wire.waiting {
		s := &c.wire.waiting[i]
		s.checkItself()

		if s.numbers != nil {
			asked = append(asked, *s)
		}
	}

	_, err = c.wire.exec(context.Background(), control("COMMIT"))
	if err == nil {
		err = c.wire.unreplicated() // as if its answer was lost
	}

	err = c.remember(err)
	if isLost(err) && c.numbered {
		err = c.lost(err)
		if err == nil {
			err = c.askAgain(asked)
		}
	}

	switch {
	case err == nil && c.numbered:
		c.lease.acknowledged.Add(1)
	case codeOf(err) == codeTaken:
		err = c.lease.taken()
	}

	return err
}

// askAgain asks what a commit asked whose answer was lost. The commit took place, so that the
// answer is the same.
func (c *conn) askAgain(asked []statement) error {
	for len(asked) > 0 {
		_, err := c.wire.exec(context.Background(), asked[0])
		switch {
		case err == nil:
			asked = asked[1:]
		case !isLost(err) || c.asked.Err() != nil || c.lease.check() != nil:
			return fmt.Errorf("%w: ask again after a lost answer: %w", fault.ErrBroken, err)
		default:
			pause.For(c.asked, lookAgain)
			_ = c.connect(c.asked) // if it fails, so does the next try
		}
	}

	return nil
}

// sendFence lets the commit fail unless this process has the lease, and notes the number of the
// commit, which has to follow the one before: a commit that was thought lost and takes place all the
// same lets this one fail. The row of the lease is locked until the end of the transaction, so that another
// process that takes the lease sees everything that was written under it.
func (c *conn) sendFence() error {
	const held = `SELECT check_lease($1)`
	const number = `UPDATE nodes SET commits = $2 WHERE id = $1 AND commits = $2 - 1`

	err := c.Send(db.Statement{Query: held, Args: []any{c.lease.node}, Want: db.AnyNumber})
	if err != nil || !c.numbered {
		return err
	}

	return c.Send(db.Statement{Query: number, Args: []any{c.lease.node, c.lease.acknowledged.Load() + 1}, Want: 1})
}

// checkItself lets the statement fail when it changes another number of rows than it has to.
func (s *statement) checkItself() {
	if s.want == db.AnyNumber || s.insertsAll() {
		return
	}

	s.text = fmt.Sprintf(`WITH changed AS (%s RETURNING 1) SELECT expect(count(*), $%d) FROM changed`, s.text, len(s.args)+1)
	s.types = append(s.types, typeInt8)
	s.args = append(s.args, strconv.AppendInt(nil, int64(s.want), 10))
	s.want = db.AnyNumber
}

// insertsAll reports whether the statement inserts as many rows as are listed in it, or fails: no
// condition leaves any of them out.
func (s *statement) insertsAll() bool {
	return strings.HasPrefix(s.text, "INSERT") && (s.listed || strings.Contains(s.text, "VALUES")) &&
		!strings.Contains(s.text, "DO NOTHING") && !strings.Contains(s.text, "WHERE")
}

// Rollback undoes a transaction. The server itself has undone one whose connection was lost.
func (c *conn) Rollback(error) error {
	c.wire.waiting = nil
	if c.wire.server.IsClosed() {
		return nil
	}

	_, err := c.wire.exec(context.Background(), control("ROLLBACK"))
	if err != nil && !isLost(err) {
		return fmt.Errorf("%w: roll back: %w", fault.ErrBroken, err)
	}

	return nil
}

// Close gives the connection back.
func (c *conn) Close() error {
	if c.conn == nil {
		return nil
	}
	return c.conn.Close()
}
