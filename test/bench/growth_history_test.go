package bench_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/app"
	"redrive/internal/config"
	"redrive/internal/job"
	"redrive/internal/seed"
	"redrive/internal/store"
	"redrive/internal/store/sqlite"
)

// history is a database full of jobs that are over. The ordinary calls write the
// first of them, a tenth of which are dead. A history grows tenfold by copies of
// these, each with its own ids and times, since the ordinary calls would take an
// hour for ten million jobs. What is counted grows with them, and the search index
// is made by the product, so that doctor finds nothing wrong with it.
type history struct {
	path  string
	first int // jobs that the ordinary calls wrote
	jobs  int
	begin time.Time // of the copies; the jobs that were written are older
}

// span is the time between one copy and the next: a thousand of them fill a month.
const span = 30 * 24 * time.Hour / 1000

func newHistory(ctx context.Context, path string, first int, now time.Time) (*history, error) {
	h := &history{path: path, first: first, jobs: first, begin: now.Add(-1000 * span)}
	err := h.edit(ctx, func(s *store.Store) error {
		plan := seed.Plan{Jobs: first, Dead: first / 10, Seed: 1, Now: h.begin}
		return plan.Write(ctx, s, s.Search, func(int, int) {})
	})
	return h, err
}

// edit opens the database as the product does.
func (h *history) edit(ctx context.Context, do func(*store.Store) error) error {
	s, err := store.Open(ctx, store.Options{Database: sqlite.File{Path: h.path, Relaxed: true}, Redact: app.Redaction(config.Default())})
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// grow makes ten times as many jobs of those that are there. told is given how many
// there are.
func (h *history) grow(ctx context.Context, told func(jobs int)) (err error) {
	// Nothing has to survive a crash.
	file, err := sql.Open("sqlite", "file:"+h.path+"?_pragma=synchronous(off)&_pragma=journal_mode(off)&_pragma=cache_size(-500000)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	file.SetMaxOpenConns(1)
	for _, table := range []string{"jobs", "bodies", "attempts", "dead_letters"} {
		insert, err := h.copying(ctx, file, table)
		for n := h.jobs / h.first; n < 10*h.jobs/h.first && err == nil; n++ {
			_, err = file.ExecContext(ctx, insert, n)
			told(n * h.first)
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", table, err)
		}
	}
	h.jobs *= 10
	for _, update := range []string{
		`UPDATE counters SET succeeded = 10 * succeeded, failed = 10 * failed, requeued = 10 * requeued, failed_permanently = 10 * failed_permanently`,
		`UPDATE depths SET n = 10 * n`,
		`UPDATE reasons SET n = 10 * n`,
		`UPDATE groups SET failures = 10 * failures, dead = 10 * dead`,
		`UPDATE group_queues SET failures = 10 * failures`,
		`UPDATE revision SET newest = (SELECT max(seq) FROM jobs)`,
		`UPDATE redaction SET fingerprint = 'another'`, // so that all failures come to the index again
	} {
		if _, err := file.ExecContext(ctx, update); err != nil {
			return fmt.Errorf("%s: %w", update, err)
		}
	}
	return nil
}

// index makes every failure searchable, and puts the index in order.
func (h *history) index(ctx context.Context) error {
	return h.edit(ctx, func(s *store.Store) error {
		_, err := s.Search.Update(ctx)
		return err
	})
}

// copying is the statement that writes the $1-th copy of the first jobs into a
// table, with numbers and times that follow those of the copy before.
func (h *history) copying(ctx context.Context, file *sql.DB, table string) (string, error) {
	number := "job_seq"
	if table == "jobs" {
		number = "seq"
	}
	columns, err := columnsOf(ctx, file, table)
	values := slices.Clone(columns)
	for i, c := range columns {
		switch {
		case c == number:
			values[i] = fmt.Sprintf("%s + $1 * %d", c, h.first)
		case c == "id": // a UUIDv7 begins with its time
			ms := "(" + h.moved("enqueued_at") + ") / 1000"
			values[i] = fmt.Sprintf("printf('%%08x-%%04x-', %s >> 16, %s & 65535) || substr(id, 15)", ms, ms)
		case strings.HasSuffix(c, "_at") || c == "lease_until" || c == "last_seen":
			values[i] = h.moved(c)
		}
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s WHERE %s <= %d ORDER BY %s",
		table, strings.Join(columns, ", "), strings.Join(values, ", "), table, number, h.first, number), err
}

// moved is a time in the $1-th copy. The months of the jobs that were written are
// pressed into one span.
func (h *history) moved(column string) string {
	return fmt.Sprintf("CASE WHEN %[1]s > 0 THEN %[2]d + $1 * %[3]d + (%[1]s - %[2]d) / 1000 ELSE %[1]s END",
		column, h.begin.UnixMicro(), span.Microseconds())
}

func columnsOf(ctx context.Context, file *sql.DB, table string) (all []string, err error) {
	rows, err := file.QueryContext(ctx, "SELECT name FROM pragma_table_info($1)", table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		all = append(all, name)
	}
	return all, rows.Err()
}

// A history that grew is what the product would have written: doctor finds nothing
// wrong with it, and a copy's failure can be searched.
func TestHistory_IsSoundWhenItHasGrown(t *testing.T) {
	h, err := newHistory(t.Context(), filepath.Join(t.TempDir(), "history.db"), 100, time.Now())
	for range 2 {
		if err == nil {
			err = h.grow(t.Context(), func(int) {})
		}
	}
	if err == nil {
		err = h.index(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	examine(t, h.path)
	err = h.edit(t.Context(), func(s *store.Store) error {
		depths := s.Snapshot().Depths
		if depths.Jobs() != 10_000 || depths[job.StatusDeadLetter] != 1000 {
			t.Errorf("%d jobs: %v", depths.Jobs(), depths)
		}
		lag, err := s.Search.Lag(t.Context())
		if lag != 0 {
			t.Errorf("%d failures cannot be searched", lag)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
