// Package rawtest is the yardstick of the benchmarks: what SQLite can do at
// most for a queue of jobs, through the same driver, with the same settings, on
// the same file system, with a full fsync for each commit.
//
// The queue is the plain one that a good programmer writes in an afternoon: one
// table with a unique id and a partial index that claims follow, one
// connection, prepared statements, the claim in the transaction that completes
// the jobs before. It has no leases, history, retries, counters or lists, and
// no other process reads it. A row is a UUIDv7, a queue, a type, a state, a priority,
// two times and a payload of 100 bytes, which a claim returns.
package rawtest

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver

	"redrive/internal/job"
)

const schema = `CREATE TABLE jobs (
		seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, queue TEXT NOT NULL, type TEXT NOT NULL, state TEXT NOT NULL,
		priority INTEGER NOT NULL, run_at INTEGER NOT NULL, finished_at INTEGER NOT NULL DEFAULT 0, payload BLOB NOT NULL) STRICT;
	CREATE INDEX ready ON jobs (queue, priority DESC, run_at, seq) WHERE state = 'available'`

// The statements of the queue.
const (
	columns = `INSERT INTO jobs (id, queue, type, state, priority, run_at, payload) VALUES `
	row     = `(?, 'default', 'email.send', 'available', 0, ?, ?)`
	insert  = columns + row
	claim   = `UPDATE jobs SET state = 'active' WHERE seq IN (SELECT seq FROM jobs
		WHERE queue = 'default' AND state = 'available' ORDER BY priority DESC, run_at, seq LIMIT 100) RETURNING id, type, payload`
	complete = `UPDATE jobs SET state = 'completed', finished_at = ? WHERE id = ? AND state = 'active'`
	replay   = `UPDATE jobs SET state = 'available', run_at = ? WHERE seq IN (
		SELECT seq FROM jobs WHERE state = 'dead' ORDER BY seq LIMIT 500)`
)

// Pragmas are the settings that both sides share.
func Pragmas() map[string]string {
	return map[string]string{
		"journal_mode": "wal", "synchronous": "2", "temp_store": "2", "page_size": "4096",
		"wal_autocheckpoint": "8000", "journal_size_limit": "67108864", "cache_size": "-16000",
	}
}

// Payload is what every job of a benchmark carries: 100 bytes.
func Payload() []byte {
	return []byte(`{"to":"someone@example.com","order":"` + strings.Repeat("7", 61) + `"}`)
}

// Queue is a database with that one table.
type Queue struct {
	tb    testing.TB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

// Open makes a database that lives as long as the test.
func Open(tb testing.TB) *Queue {
	tb.Helper()
	return OpenFile(tb, filepath.Join(tb.TempDir(), "raw.db"), false).made()
}

// OpenRelaxed makes one whose commits do not wait for the disk, as a store that
// is relaxed.
func OpenRelaxed(tb testing.TB) *Queue {
	tb.Helper()
	return OpenFile(tb, filepath.Join(tb.TempDir(), "raw.db"), true).made()
}

// OpenFile opens a database of the store, with nothing of the store around it, to measure
// what its statements cost alone.
func OpenFile(tb testing.TB, path string, relaxed bool) *Queue {
	tb.Helper()

	pragmas := Pragmas()
	if relaxed {
		pragmas["synchronous"] = "1"
	}

	params := url.Values{"_txlock": {"immediate"}}
	for name, value := range pragmas {
		params.Add("_pragma", name+"("+value+")")
	}

	db, err := sql.Open("sqlite", "file:"+path+"?"+params.Encode())
	q := &Queue{tb: tb, stmts: map[string]*sql.Stmt{}}
	q.check(err)
	q.conn, err = db.Conn(context.Background())
	q.check(err)
	tb.Cleanup(func() { q.check(q.conn.Close()); q.check(db.Close()) })

	return q
}

// made is the database with its table.
func (q *Queue) made() *Queue {
	q.tb.Helper()
	_, err := q.conn.ExecContext(context.Background(), schema)
	q.check(err)
	return q
}

func (q *Queue) check(err error) {
	q.tb.Helper()

	if err != nil {
		q.tb.Fatal(err)
	}
}

// prepare prepares each statement once.
func (q *Queue) prepare(query string) *sql.Stmt {
	q.tb.Helper()

	if q.stmts[query] == nil {
		stmt, err := q.conn.PrepareContext(context.Background(), query)
		q.check(err)
		q.stmts[query] = stmt
	}

	return q.stmts[query]
}

// Exec runs a statement, which is prepared once.
func (q *Queue) Exec(query string, args ...any) {
	q.tb.Helper()
	_, err := q.prepare(query).Exec(args...)
	q.check(err)
}

// Insert enqueues n jobs, each in its own commit.
func (q *Queue) Insert(n int) {
	q.tb.Helper()

	payload := Payload()
	for range n {
		q.Exec(insert, job.NewID(), time.Now().UnixMicro(), payload)
	}
}

// InsertThousand enqueues a thousand jobs with one statement.
func (q *Queue) InsertThousand() {
	q.tb.Helper()

	payload, now := Payload(), time.Now().UnixMicro()
	args := make([]any, 0, 3000)
	for range 1000 {
		args = append(args, job.NewID(), now, payload)
	}

	q.Exec(columns+row+strings.Repeat(", "+row, 999), args...)
}

// Fill enqueues n jobs in one commit.
func (q *Queue) Fill(n int) {
	q.tb.Helper()
	q.Exec("BEGIN IMMEDIATE")
	q.Insert(n)
	q.Exec("COMMIT")
}

// FillDead makes n dead jobs, which an index finds.
func (q *Queue) FillDead(n int) {
	q.tb.Helper()
	q.Fill(n)
	q.Exec("UPDATE jobs SET state = 'dead'")
	q.Exec("CREATE INDEX dead ON jobs (seq) WHERE state = 'dead'")
}

// Replay makes every dead job available again, 500 with each commit.
func (q *Queue) Replay() {
	q.tb.Helper()

	for n := int64(1); n > 0; {
		result, err := q.prepare(replay).Exec(time.Now().UnixMicro())
		q.check(err)
		n, err = result.RowsAffected()
		q.check(err)
	}
}

// WorkOff works off every job, with transactions that complete 100 jobs and
// claim 100.
func (q *Queue) WorkOff() {
	q.tb.Helper()

	for active := q.claim(); len(active) > 0; {
		q.Exec("BEGIN IMMEDIATE")

		now := time.Now().UnixMicro()
		for _, id := range active {
			q.Exec(complete, now, id)
		}

		active = q.claim()
		q.Exec("COMMIT")
	}
}

func (q *Queue) claim() (ids []string) {
	rows, err := q.prepare(claim).Query()
	q.check(err)

	defer rows.Close()

	for rows.Next() {
		var id, typ string
		var payload []byte
		q.check(rows.Scan(&id, &typ, &payload))
		ids = append(ids, id)
	}

	q.check(rows.Err())

	return ids
}

// Setting reads a pragma, so that tests can compare both sides.
func (q *Queue) Setting(name string) (value string) {
	q.check(q.conn.QueryRowContext(context.Background(), "PRAGMA "+name).Scan(&value))
	return value
}
