package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store/db"
	"redrive/internal/store/health"
	"redrive/internal/store/sqlite"
	"redrive/internal/store/sqlite/sqlitetest"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func open(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Database == nil {
		o.Database = sqlite.File{Path: sqlitetest.New(t)}
	}
	s, err := Open(t.Context(), o)
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	return s
}

func testJob(payload string) job.Job {
	p := retry.Default()
	p.MaxAttempts = 1
	return job.Job{Queue: "orders", Type: "email.send", Policy: p, Timeout: time.Minute, Payload: []byte(payload)}
}

func enqueue(t testing.TB, s *Store, n int) []job.Enqueued {
	t.Helper()
	jobs := make([]job.Job, n)
	for i := range jobs {
		jobs[i] = testJob(strconv.Itoa(i))
	}
	done, err := s.Enqueue(context.Background(), testTime, jobs)
	check(t, err)
	return done
}

// pathOf is the file of a store.
func pathOf(t testing.TB, s *Store) (path string) {
	t.Helper()
	check(t, s.engine.Reads().QueryRow("SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&path))
	return path
}

// recorder remembers the text of every statement that a store asks for.
type recorder struct {
	mu    sync.Mutex
	texts map[string]bool
}

func (r *recorder) note(query string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts[query] = true
}

// forget forgets all texts.
func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = map[string]bool{}
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.texts))
}

// one is the only text with a part.
func (r *recorder) one(t *testing.T, part string) (found string) {
	t.Helper()
	for _, text := range r.all() {
		if strings.Contains(text, part) {
			if found != "" {
				t.Fatalf("%q is in two statements:\n%s\n%s", part, found, text)
			}
			found = text
		}
	}
	if found == "" {
		t.Fatalf("%q is in no statement", part)
	}
	return found
}

// openRecorded opens a store whose statements are recorded.
func openRecorded(t *testing.T) (*Store, *recorder) {
	t.Helper()
	r := &recorder{texts: map[string]bool{}}
	file := sqlite.File{Path: sqlitetest.New(t)}
	return open(t, Options{Database: recordedDatabase{file, r}}), r
}

type recordedDatabase struct {
	sqlite.File
	r *recorder
}

func (d recordedDatabase) Open(ctx context.Context, health *health.Health) (db.Engine, error) {
	e, err := d.File.Open(ctx, health)
	return recordedEngine{e, d.r}, err
}

type recordedEngine struct {
	db.Engine
	r *recorder
}

func (e recordedEngine) Text(query string) string {
	e.r.note(query)
	return e.Engine.Text(query)
}

func (e recordedEngine) Writer(ctx context.Context) (db.Conn, error) {
	c, err := e.Engine.Writer(ctx)
	return recordedConn{c, e.r}, err
}

type recordedConn struct {
	db.Conn
	r *recorder
}

func (c recordedConn) Exec(query string, args ...any) (int64, error) {
	c.r.note(query)
	return c.Conn.Exec(query, args...)
}

func (c recordedConn) Send(s db.Statement) error {
	c.r.note(s.Query)
	return c.Conn.Send(s)
}

func (c recordedConn) Query(query string, each func(*sql.Rows) error, args ...any) error {
	c.r.note(query)
	return c.Conn.Query(query, each, args...)
}

// setting is a pragma of the connection that writes.
func setting(t testing.TB, s *Store, pragma string) (value string) {
	t.Helper()
	check(t, s.writer.Do(t.Context(), 1, func(t *db.Tx) error {
		return t.Query("PRAGMA "+pragma, func(rows *sql.Rows) error { return rows.Scan(&value) })
	}))
	return value
}

// switchable is a database that can be made read-only while it is open.
type switchable struct {
	sqlite.File
	readOnly *atomic.Bool
}

// openSwitchable opens a store, and returns the switch.
func openSwitchable(t *testing.T) (*Store, *atomic.Bool) {
	t.Helper()
	d := switchable{sqlite.File{Path: sqlitetest.New(t)}, new(atomic.Bool)}
	return open(t, Options{Database: d}), d.readOnly
}

func (d switchable) Open(ctx context.Context, health *health.Health) (db.Engine, error) {
	e, err := d.File.Open(ctx, health)
	return switchableEngine{e, d.readOnly}, err
}

type switchableEngine struct {
	db.Engine
	readOnly *atomic.Bool
}

func (e switchableEngine) Writer(ctx context.Context) (db.Conn, error) {
	c, err := e.Engine.Writer(ctx)
	return switchableConn{c, e.readOnly}, err
}

type switchableConn struct {
	db.Conn
	readOnly *atomic.Bool
}

func (c switchableConn) Begin(ctx context.Context) error {
	pragma := "PRAGMA query_only = 0"
	if c.readOnly.Load() {
		pragma = "PRAGMA query_only = 1"
	}
	if _, err := c.Exec(pragma); err != nil {
		return err
	}
	return c.Conn.Begin(ctx)
}
