package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/source"
	"redrive/internal/store/sqlite"
	"redrive/internal/wire"
)

// schemas are the files of empty databases by the versions of their schemas, the first at 0, made
// as earlier programs made them. They are made together, because goose takes longer to read the
// migrations than to run them.
var schemas = sync.OnceValues(func() (files [][]byte, err error) {
	dir, err := os.MkdirTemp("", "redrive-schemas")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	path := filepath.Join(dir, "jobs.db")
	pool, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()

	steps, err := goose.NewProvider(goose.DialectSQLite3, pool, os.DirFS("sqlite/migrations"), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, err
	}

	for {
		_, err := steps.UpByOne(context.Background())
		if errors.Is(err, goose.ErrNoNextVersion) {
			return files, nil
		}

		if err != nil {
			return nil, err
		}

		file, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}

		files = append(files, file)
	}
})

// databaseOf makes a database whose schema has a version, with one job that waits
// to be tried again.
func databaseOf(t *testing.T, version int64) (path string) {
	t.Helper()
	files, err := schemas()
	check(t, err)
	path = filepath.Join(t.TempDir(), "jobs.db")
	check(t, os.WriteFile(path, files[version-1], 0o600))
	pool, err := sql.Open("sqlite", "file:"+path)
	check(t, err)
	shelf := "list_state"
	if version < 8 {
		shelf = "shelf"
	}
	for _, insert := range []string{
		`INSERT INTO policies (id, policy, origins) VALUES (1, $1, '')`,
		`INSERT INTO jobs (seq, id, queue, type, state, ` + shelf + `, attempts, execution, priority, policy_id, ttr, run_at, enqueued_at, changed_at)
			VALUES (1, 'old', 'orders', 'email.send', 'retryable', 'retryable', 1, 1, 0, 1, 60000000, 7, 5, 6)`,
		`INSERT INTO attempts (job_seq, execution, run, number, worker, started_at, finished_at, outcome, error_type, error_message,
			action, decided_by, delay, note, trace) VALUES (1, 1, 1, 1, 'w', 5, 6, 'failed', '', '', 'retry', '', '', '', '')`,
		`INSERT INTO bodies (job_seq, expires_at, trace_id, message_id, note, payload) VALUES (1, 0, '', '', '', x'01')`,
		`INSERT INTO depths (queue, status, n) VALUES ('orders', 'retryable', 1)`,
		`UPDATE revision SET newest = 1`,
	} {
		_, err := pool.Exec(insert, string(wire.EncodePolicy(retry.Default())))
		check(t, err)
	}
	check(t, pool.Close())
	return path
}

// Earlier programs left the files to goose, which splits them into statements. A schema that
// another way of reading made would be refused as one that Redrive did not make.
func TestMigrations_MakeTheSchemaThatEarlierProgramsMade(t *testing.T) {
	schemaOf := func(path string) map[string]string {
		pool, err := sql.Open("sqlite", "file:"+path)
		check(t, err)
		defer func() { check(t, pool.Close()) }()
		rows, err := pool.Query(`SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_schema`)
		check(t, err)
		texts := map[string]string{}
		for rows.Next() {
			var object, text string
			check(t, rows.Scan(&object, &text))
			texts[object] = text
		}
		check(t, errors.Join(rows.Err(), rows.Close()))
		return texts
	}

	files, err := filepath.Glob("sqlite/migrations/*.sql")
	check(t, err)
	earlier := schemaOf(databaseOf(t, int64(len(files))))
	path := filepath.Join(t.TempDir(), "new.db")
	s, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}})
	check(t, err)
	check(t, s.Close())

	if now := schemaOf(path); !maps.Equal(now, earlier) {
		for object := range now {
			if now[object] != earlier[object] {
				t.Errorf("%s is %q, was %q", object, now[object], earlier[object])
			}
		}
		t.Errorf("%d objects, were %d", len(now), len(earlier))
	}
}

func TestMigrations_OfTheVersionBefore(t *testing.T) {
	path := databaseOf(t, 7)
	s := open(t, Options{Database: sqlite.File{Path: path}})
	page, err := s.Jobs(t.Context(), filter.Filter{Status: job.Status(job.Retryable)}, filter.Cursor{}, 9)
	if err != nil || len(page.Jobs) != 1 || page.Jobs[0].ID != "old" {
		t.Errorf("the list has %+v, %v", page.Jobs, err)
	}
	due, err := s.NextDue(t.Context(), time.UnixMicro(1))
	if err != nil || due.UnixMicro() != 7 {
		t.Errorf("the next job is due at %v, %v", due, err)
	}
	if got := problems(t, path); len(got) > 0 {
		t.Errorf("%q", got)
	}
	claimed, _, err := s.Exchange(t.Context(), nil, job.Claim{
		Now: testTime, Lease: time.Minute, Worker: "w", Free: map[string]int{"orders": 1},
	})
	if err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %d jobs, %v", len(claimed), err)
	}
	_, err = s.Cancel(t.Context(), testTime, "old", 1, audit.Actor{Name: "ana"})
	check(t, errors.Join(err, s.Close()))
	if got := problems(t, path); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// The index of texts is rebuilt in the background.
func TestMigrations_OldFailuresAreFoundAgain(t *testing.T) {
	path := databaseOf(t, 10)
	edit(t, path, `INSERT INTO search (rowid, ident, kind, failure, content, meta_text) VALUES (1, 'old', 'email.send', '', '', '')`)
	s := open(t, Options{Database: sqlite.File{Path: path}})
	if lag, err := s.Search.Lag(t.Context()); lag == 0 || !s.Search.Reindexing() || err != nil {
		t.Errorf("the lag is %d, %v", lag, err)
	}
	_, err := s.Search.Update(t.Context())
	check(t, err)
	if n := finds(t, s, "EMAIL.send"); n != 1 || s.Search.Reindexing() {
		t.Errorf("%d jobs are found", n)
	}
	check(t, s.Close())
	if got := problems(t, path); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// A key from before callers were recorded names its job for every caller, and what
// it was used for is what the job is.
func TestMigrations_OldIdempotencyKeysGoOn(t *testing.T) {
	path := databaseOf(t, 7)
	edit(t, path, `UPDATE jobs SET key = 'k'`)
	edit(t, path, `INSERT INTO operations (kind, state, filter, source, until, cursor, start, rate, spread, canary, guard, created_at, created_by, key)
		VALUES ('replay', 'aborted', 'queue:orders', 0, 0, '', 0, 0, 0, 0, 0, 0, 'ana', 'k')`)
	s := open(t, Options{Database: sqlite.File{Path: path}})
	again := job.Job{
		Queue: "orders", Type: "email.send", Payload: []byte{1}, Policy: retry.Default(), Timeout: time.Minute,
		Key: "k", Caller: "token a", Content: "hash",
	}
	done, err := s.Enqueue(t.Context(), testTime, []job.Job{again})
	if err != nil || !done[0].Repeat || done[0].Job.ID != "old" {
		t.Errorf("the repeat gave %+v, %v", done, err)
	}
	reused := new(job.KeyReused)
	again.Payload = []byte{2}
	if _, err = s.Enqueue(t.Context(), testTime, []job.Job{again}); !errors.As(err, &reused) || reused.First != "old" {
		t.Errorf("another payload gave %v", err)
	}
	f, err := filter.Parse("queue:orders", testTime)
	check(t, err)
	request := operation.Request{Kind: operation.Replay, Filter: f, Key: "k", Caller: "token a", Content: "hash"}
	if o, err := s.Operations.New(t.Context(), testTime, request, audit.Actor{Name: "ana"}); err != nil || !o.Repeat {
		t.Errorf("the repeated operation gave %+v, %v", o, err)
	}
	request.Kind = operation.Discard
	if _, err := s.Operations.New(t.Context(), testTime, request, audit.Actor{Name: "ana"}); !errors.As(err, &reused) || reused.First != "1" {
		t.Errorf("another operation gave %v", err)
	}
	if got := problems(t, path); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// Letters that an earlier version counted in as "other" and out under their own
// names are counted again, and the names that it told apart stay.
func TestMigrations_CountDriftedDeadLettersAgain(t *testing.T) {
	path := databaseOf(t, 8)
	pool, err := sql.Open("sqlite", "file:"+path)
	check(t, err)
	_, err = pool.Exec(`UPDATE jobs SET state = 'discarded', list_state = 'discarded', letter = 'stored', reason = 'attempts_exhausted';
		UPDATE depths SET status = 'discarded'; INSERT INTO depths VALUES ('orders', 'dead_letter', 1), ('idle', 'completed', 0);
		INSERT INTO dead_letters (job_seq, run, open, refused, reason, exception, cause, failed_at, queue, attempts, forwarded_at,
			forwarded_to, problem, error) VALUES (1, 1, 1, 0, 'attempts_exhausted', '', '', 6, 'orders', 1, 0, '', '', '');
		INSERT INTO reasons VALUES ('orders', 'email.send', 'attempts_exhausted', -1), ('other', 'email.send', 'attempts_exhausted', 2);
		INSERT INTO counters VALUES ('first', 'report', 1, 0, 0, 0, 0, 0); INSERT INTO held VALUES ('orders', 'gone', 0)`)
	check(t, errors.Join(err, pool.Close()))
	s := open(t, Options{Database: sqlite.File{Path: path}})
	facets, err := s.Counters.Facets(t.Context(), filter.Filter{Status: job.StatusDeadLetter})
	if err != nil || len(facets.Queues) != 1 || facets.Queues[0] != (filter.NameCount{Name: "orders", Count: 1}) {
		t.Errorf("the letters by queue are %+v, %v", facets.Queues, err)
	}
	for _, name := range []string{"first", "orders", "idle"} {
		if s.Counters.Label(name) != name {
			t.Errorf("%s is not told apart any more", name)
		}
	}
	check(t, s.Close())
	if got := problems(t, path); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// What older versions wrote beside a dead letter is known from elsewhere now.
func TestMigrations_OldDeadLettersKeepWhatBecameOfThem(t *testing.T) {
	path := databaseOf(t, 12)
	edit(t, path, `UPDATE jobs SET state = 'discarded', list_state = 'discarded', letter = 'stored', reason = 'attempts_exhausted', run = 2`)
	edit(t, path, `UPDATE depths SET status = 'discarded'`)
	edit(t, path, `UPDATE attempts SET run = 2`)
	edit(t, path, `INSERT INTO depths VALUES ('orders', 'dead_letter', 1)`)
	edit(t, path, `INSERT INTO reasons VALUES ('orders', 'email.send', 'attempts_exhausted', 1)`)
	edit(t, path, `INSERT INTO labels VALUES ('queue', 'orders'), ('type', 'email.send')`)
	edit(t, path, `INSERT INTO replays VALUES (1, 1, 'discarded', 'attempts_exhausted', 1, 5, 'ana', 0, 0)`)
	edit(t, path, `INSERT INTO dead_letters (job_seq, run, open, refused, reason, exception, cause, failed_at, queue, attempts, forwarded_at,
			forwarded_to, problem, error, replayed_at, replayed_by)
		VALUES (1, 1, 0, 0, 'attempts_exhausted', '', '', 4, 'orders', 1, 0, '', '', '', 5, 'ana'),
			(1, 2, 1, 0, 'attempts_exhausted', '', '', 6, 'orders', 1, 0, '', '', '', 0, '')`)
	s := open(t, Options{Database: sqlite.File{Path: path}})
	page, err := s.DeadLetters(t.Context(), filter.Filter{Queue: "orders"}, filter.Cursor{}, 9)
	if err != nil || len(page.DeadLetters) != 1 || page.DeadLetters[0].DeadLetter.Run != 2 || page.DeadLetters[0].DeadLetter.FailedAt.UnixMicro() != 6 {
		t.Errorf("the open letters are %+v, %v", page.DeadLetters, err)
	}
	d, err := s.Job(t.Context(), "old")
	if err != nil || len(d.DeadLetters) != 2 || d.DeadLetters[0].ReplayedBy != "ana" || !d.DeadLetters[1].ReplayedAt.IsZero() {
		t.Errorf("the letters of the job are %+v, %v", d.DeadLetters, err)
	}
	check(t, s.Close())
	if got := problems(t, path); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// An earlier version counted refused dead letters of an error group as dead.
func TestMigrations_RefusedDeadLettersAreCountedApart(t *testing.T) {
	path := databaseOf(t, 17)
	edit(t, path, `UPDATE jobs SET state = 'discarded', list_state = 'discarded', letter = 'refused', reason = 'attempts_exhausted', group_id = 1`)
	edit(t, path, `UPDATE depths SET status = 'discarded'`)
	edit(t, path, `INSERT INTO depths VALUES ('orders', 'dlq_failed', 1)`)
	edit(t, path, `INSERT INTO labels VALUES ('queue', 'orders'), ('type', 'email.send')`)
	edit(t, path, `INSERT INTO groups (id, fingerprint, type, class, message, frames, state, first_seen, last_seen,
			sample_seq, sample_execution, failures, dead, retrying, replayed, recovered, relapsed)
		VALUES (1, 'f', 'email.send', 'c', 'm', '', 'open', 5, 6, 1, 1, 1, 1, 0, 0, 0, 0)`)
	edit(t, path, `INSERT INTO dead_letters (job_seq, run, open, refused, reason, exception, cause, failed_at, queue, attempts, forwarded_at,
			forwarded_to, problem, error) VALUES (1, 1, 1, 1, 'attempts_exhausted', '', '', 6, 'orders', 1, 0, '', 'full', '')`)
	s := open(t, Options{Database: sqlite.File{Path: path}})
	g, err := s.Groups.Get(t.Context(), testTime, "f")
	if err != nil || g.Dead != 0 || g.Refused != 1 {
		t.Errorf("the group counts %d dead and %d refused, %v", g.Dead, g.Refused, err)
	}
	check(t, s.Close())
	if got := problems(t, path); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// An earlier version counted the types of a source among those of its own queues.
func TestMigrations_TypesOfASourceAreCountedApart(t *testing.T) {
	path := databaseOf(t, 22)
	edit(t, path, `UPDATE jobs SET queue = 'orders@shop', state = 'discarded', list_state = 'discarded', letter = 'stored', reason = 'attempts_exhausted'`)
	edit(t, path, `UPDATE depths SET status = 'discarded', queue = 'orders@shop'`)
	edit(t, path, `INSERT INTO depths VALUES ('orders@shop', 'dead_letter', 1)`)
	edit(t, path, `INSERT INTO labels VALUES ('queue', 'orders@shop'), ('type', 'email.send')`)
	edit(t, path, `INSERT INTO reasons VALUES ('orders@shop', 'email.send', 'attempts_exhausted', 1)`)
	edit(t, path, `INSERT INTO dead_letters (job_seq, run, open, refused, reason, exception, cause, failed_at, queue, attempts, forwarded_at,
			forwarded_to, problem, error) VALUES (1, 1, 1, 0, 'attempts_exhausted', '', '', 6, 'orders@shop', 1, 0, '', '', '')`)
	edit(t, path, `INSERT INTO mirrored (job_seq, source, key, thread, place, witness, mark, lies, seen_at, warnings)
			VALUES (1, 'shop', '7', '', 'failed', '', 0, 1, 6, '[]')`)
	s := open(t, Options{Database: sqlite.File{Path: path}})
	facets, err := s.Counters.Facets(t.Context(), filter.Filter{Status: job.StatusDeadLetter, Queue: "orders@shop"})
	if err != nil || len(facets.Types) != 1 || facets.Types[0] != (filter.NameCount{Name: "email.send", Count: 1}) {
		t.Errorf("the letters by type are %+v, %v", facets.Types, err)
	}
	_, err = s.Mirror.Vanished(t.Context(), testTime, "shop", []int64{1})
	check(t, errors.Join(err, s.Close()))
	if got := problems(t, path); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// What an earlier version had made up for jobs of sources is unknown now, as far as it can be
// told from what the source had said.
func TestMigrations_WhatASourceHadNotSaidIsUnknown(t *testing.T) {
	path := databaseOf(t, 22)
	for i, attempts := range []int{0, 3} {
		seq, made := 2+i, 40+10*i // the second source says when the job was made
		for _, insert := range []string{
			`INSERT INTO jobs (seq, id, queue, type, state, list_state, letter, attempts, execution, priority, policy_id, ttr, run_at, enqueued_at,
				changed_at, finished_at, reason) VALUES (%[1]d, 'job %[1]d', 'orders@shop', 'charge', 'discarded', 'discarded', 'stored', %[2]d, 1, 0,
				1, 60000000, 90-%[3]d, 90-%[3]d, 50, 50, 'attempts_exhausted')`,
			`INSERT INTO bodies (job_seq, expires_at, trace_id, message_id, note, payload) VALUES (%[1]d, 0, '', '', '', x'01')`,
			`INSERT INTO attempts (job_seq, execution, run, number, worker, started_at, finished_at, outcome, error_type, error_message,
				action, decided_by, delay, note, trace) VALUES (%[1]d, 1, 1, max(1, %[2]d), '', 50, 50, 'failed', '', '', 'dead_letter', '', '', '', '')`,
			`INSERT INTO dead_letters (job_seq, run, open, refused, reason, exception, failed_at, queue, attempts, error, cause, forwarded_at,
				forwarded_to, problem) VALUES (%[1]d, 1, 0, 0, 'attempts_exhausted', '', 50, 'orders@shop', %[2]d, '', '', 0, '', '')`,
			`INSERT INTO mirrored (job_seq, source, key, thread, place, witness, mark, lies, seen_at, warnings)
				VALUES (%[1]d, 'shop', '%[1]d', '', '', '', 1, 1, 60, '[]')`,
		} {
			edit(t, path, fmt.Sprintf(insert, seq, attempts, made))
		}
	}
	edit(t, path, `INSERT INTO depths (queue, status, n) VALUES ('orders@shop', 'discarded', 2), ('orders@shop', 'dead_letter', 2)`)
	edit(t, path, `INSERT INTO labels (kind, name) VALUES ('queue', 'orders@shop'), ('type', 'charge')`)
	edit(t, path, `INSERT INTO reasons (queue, type, reason, n) VALUES ('orders@shop', 'charge', 'attempts_exhausted', 2)`)
	edit(t, path, `UPDATE revision SET newest = 3`)

	s := open(t, Options{Database: sqlite.File{Path: path}})
	for id, want := range map[string]string{
		"job 2": "0 attempts, unknown, enqueued 0, ttr 0s, number 0, started 0",
		"job 3": "3 attempts, attempts_exhausted, enqueued 40, ttr 0s, number 3, started 0",
	} {
		d, err := s.Job(t.Context(), id)
		check(t, err)
		j, a := d.Job, d.Attempts[0]
		got := fmt.Sprintf("%d attempts, %s, enqueued %d, ttr %s, number %d, started %d", j.Attempts, j.Reason, micros(j.EnqueuedAt), j.Timeout,
			a.Number, micros(a.StartedAt))
		if got != want || d.DeadLetters[0].Reason != j.Reason {
			t.Errorf("%s has %s, want %s; its letter %s", id, got, want, d.DeadLetters[0].Reason)
		}
	}
	check(t, s.Close())
	if got := problems(t, path); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// foreign adds jobs of the source "shop" to a database of version 22, each dead there and
// without a number of attempts, as that version wrote them. The first of them has the number 2.
func foreign(t *testing.T, path string, jobs int) {
	t.Helper()
	for seq := 2; seq < 2+jobs; seq++ {
		for _, insert := range []string{
			`INSERT INTO jobs (seq, id, queue, type, state, list_state, letter, attempts, execution, priority, policy_id, ttr, run_at, enqueued_at,
				changed_at, finished_at, reason) VALUES (%[1]d, 'job %[1]d', 'orders@shop', 'charge', 'discarded', 'discarded', 'stored', 0, 1, 0,
				1, 60000000, 50, 50, 50, 50, 'attempts_exhausted')`,
			`INSERT INTO bodies (job_seq, expires_at, trace_id, message_id, note, payload) VALUES (%[1]d, 0, '', '', '', x'01')`,
			`INSERT INTO attempts (job_seq, execution, run, number, worker, started_at, finished_at, outcome, error_type, error_message,
				action, decided_by, delay, note, trace) VALUES (%[1]d, 1, 1, 1, '', 50, 50, 'failed', '', '', 'dead_letter', '', '', '', '')`,
			`INSERT INTO dead_letters (job_seq, run, open, refused, reason, exception, failed_at, queue, attempts, error, cause, forwarded_at,
				forwarded_to, problem) VALUES (%[1]d, 1, 0, 0, 'attempts_exhausted', '', 50, 'orders@shop', 0, '', '', 0, '', '')`,
			fmt.Sprintf(`INSERT INTO mirrored (job_seq, source, key, thread, place, witness, mark, lies, seen_at, warnings)
				VALUES (%%[1]d, 'shop', '%%[1]d', '', '', '', %d, 1, 60, '[]')`, new(source.Record).Version()),
		} {
			edit(t, path, fmt.Sprintf(insert, seq))
		}
	}
	edit(t, path, fmt.Sprintf(`INSERT INTO depths (queue, status, n) VALUES ('orders@shop', 'discarded', %[1]d), ('orders@shop', 'dead_letter', %[1]d);
		INSERT INTO labels (kind, name) VALUES ('queue', 'orders@shop'), ('type', 'charge');
		INSERT INTO reasons (queue, type, reason, n) VALUES ('orders@shop', 'charge', 'attempts_exhausted', %[1]d);
		UPDATE revision SET newest = %[2]d`, jobs, 1+jobs))
}

// An earlier version left a job alone whose replay had ended as unknown: it stayed pending
// without a worker, as if its source had still to be asked.
func TestMigrations_AnUnknownReplayIsItsSourcesToTell(t *testing.T) {
	path := databaseOf(t, 22)
	foreign(t, path, 1)
	edit(t, path, `UPDATE jobs SET state = 'pending', list_state = 'pending', letter = '', run = 2, changed_at = 70, finished_at = 0, reason = '',
			attempts = 0 WHERE seq = 2;
		UPDATE depths SET status = 'pending' WHERE queue = 'orders@shop' AND status = 'discarded';
		DELETE FROM depths WHERE queue = 'orders@shop' AND status = 'dead_letter'; DELETE FROM reasons;
		UPDATE mirrored SET lies = 0; UPDATE bodies SET payload = x'02' WHERE job_seq = 2;
		INSERT INTO replays VALUES (2, 1, 'discarded', 'attempts_exhausted', 0, 70, 'ana', 0, 1);
		INSERT INTO earlier_runs (job_seq, run, queue, type, priority, policy_id, ttr, payload) VALUES (2, 1, 'orders@shop', 'charge', 0, 1, 0, x'01');
		INSERT INTO source_acts (source, job_seq, run, kind, mode, state, asked_at, ended_at, by, operation_id, why)
			VALUES ('shop', 2, 2, 'replay', '', 'unknown', 70, 80, 'ana', 1, 'the line broke');
		INSERT INTO operations (kind, state, filter, source, until, cursor, start, rate, spread, canary, guard, created_at, created_by, key,
			total, done, position) VALUES ('replay', 'finished', '', 0, 65, '', 0, 0, 0, 0, 0, 65, 'ana', '', 1, 1, 1);
		INSERT INTO operation_items (operation_id, n, job_seq, run, state, at) VALUES (1, 1, 2, 1, 'done', 70);
		INSERT INTO operation_pace VALUES (1, 0, 1)`)

	s := open(t, Options{Database: sqlite.File{Path: path}})
	d, err := s.Job(t.Context(), "job 2")
	check(t, err)
	if j := d.Job; j.Worker != "shop" || !j.Unbegun || micros(j.ChangedAt) != 80 {
		t.Errorf("the job has the worker %q, unbegun %t, changed at %d", j.Worker, j.Unbegun, micros(j.ChangedAt))
	}
	returned, err := s.Sources.Returned(t.Context(), "shop", source.ReplayedJob{}, 9)
	if err != nil || len(returned) != 1 {
		t.Errorf("the source is asked for %+v, %v", returned, err)
	}
	o, err := s.Operations.Get(t.Context(), 1)
	if err != nil || o.Unknown != 1 || o.Unsettled() != 0 {
		t.Errorf("the operation counts %d unknown and %d unsettled, %v", o.Unknown, o.Unsettled(), err)
	}

	_, err = s.Mirror.Update(t.Context(), testTime, "shop", []source.Record{{Key: "2", Queue: "orders", Type: "charge"}})
	check(t, err)
	d, err = s.Job(t.Context(), "job 2")
	if j := d.Job; err != nil || j.Status() != job.StatusDeadLetter || j.Run != 2 || string(j.Payload) != "\x01" || j.Unbegun {
		t.Errorf("found again, the job is %s in run %d with %q, unbegun %t, %v", j.Status(), j.Run, j.Payload, j.Unbegun, err)
	}
	check(t, s.Close())
	if got := problems(t, path); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// Earlier versions did not note where a source is. It is where it is first looked for.
func TestMigrations_ASourceIsWhereItIsFoundFirst(t *testing.T) {
	path := databaseOf(t, 22)
	foreign(t, path, 1)
	s := open(t, Options{Database: sqlite.File{Path: path}})
	earlier, err := s.Sources.Locate(t.Context(), "shop", "db1/shop", "")
	if err != nil || earlier != "" {
		t.Errorf("at the first look, the jobs are from %q, %v", earlier, err)
	}
	earlier, err = s.Sources.Locate(t.Context(), "shop", "db2/shop", "")
	if err != nil || earlier != "db1/shop" {
		t.Errorf("at another address, the jobs are from %q, %v", earlier, err)
	}
	check(t, s.Close())
}

// What is in the trash is put back with the reason that it has by now.
func TestMigrations_WhatIsInTheTrashHasNoMadeUpReason(t *testing.T) {
	path := databaseOf(t, 22)
	foreign(t, path, 1)
	edit(t, path, `UPDATE jobs SET letter = 'trashed', reason = 'manual', changed_at = 70 WHERE seq = 2;
		UPDATE depths SET status = 'trashed' WHERE queue = 'orders@shop' AND status = 'dead_letter'; DELETE FROM reasons;
		INSERT INTO trash VALUES (2, 70, 'ana', 'discarded', 'stored', 'attempts_exhausted', 50, 50, 0);
		INSERT INTO source_acts (source, job_seq, run, kind, mode, state, asked_at, by, operation_id)
			VALUES ('shop', 2, 1, 'discard', '', 'begun', 70, 'ana', 0)`)

	s := open(t, Options{Database: sqlite.File{Path: path}})
	check(t, s.Mirror.SettleActs(t.Context(), testTime, []source.Result{{ID: 1, State: source.Refused, Why: "no rights"}}))
	d, err := s.Job(t.Context(), "job 2")
	if err != nil || d.Job.Status() != job.StatusDeadLetter || d.Job.Reason != retry.ReasonUnknown {
		t.Errorf("put back, the job is %s for the reason %q, %v", d.Job.Status(), d.Job.Reason, err)
	}
	check(t, s.Close())
	if got := problems(t, path); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// Every schema that a release or a commit has had is brought to today's, and nothing that is
// counted or kept twice differs afterwards.
func TestMigrations_FromEveryOlderSchema(t *testing.T) {
	files, err := filepath.Glob("sqlite/migrations/*.sql")
	check(t, err)
	for version := 1; version < len(files); version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			t.Parallel()
			path := databaseOf(t, int64(version))
			own, withSource := 1, 0
			if version == 22 {
				withSource = 3
				foreign(t, path, withSource)
			}

			s := open(t, Options{Database: sqlite.File{Path: path}})
			for source, want := range map[string]int{"": own + withSource, "shop": withSource} {
				page, err := s.Jobs(t.Context(), filter.Filter{Source: source}, filter.Cursor{}, 9)
				if err != nil || len(page.Jobs) != want {
					t.Errorf("%d jobs of source %q, %v; want %d", len(page.Jobs), source, err, want)
				}
			}
			check(t, s.Close())
			if got := problems(t, path); len(got) > 0 {
				t.Errorf("%q", got)
			}
		})
	}
}

// What a source has back, or is to get, was pending in the words of an earlier version, and
// its worker told the two apart. A job of Redrive's own never was.
func TestMigrations_WhatASourceHasBackIsReturned(t *testing.T) {
	path := databaseOf(t, 22)
	foreign(t, path, 4)
	edit(t, path, `UPDATE jobs SET state = 'pending', list_state = 'pending', letter = '', run = 2, changed_at = 70 + seq, finished_at = 0,
			reason = '', attempts = 0, worker = CASE seq WHEN 2 THEN '' ELSE 'shop' END WHERE seq IN (2, 3, 4);
		UPDATE depths SET n = 1 WHERE queue = 'orders@shop';
		INSERT INTO depths (queue, status, n) VALUES ('orders@shop', 'pending', 3);
		UPDATE reasons SET n = 1; UPDATE mirrored SET lies = 0 WHERE job_seq IN (2, 3, 4);
		INSERT INTO replays SELECT seq, 1, 'discarded', 'attempts_exhausted', 0, 70, 'ana', 0, 0 FROM jobs WHERE run = 2;
		INSERT INTO source_acts (source, job_seq, run, kind, mode, state, asked_at, ended_at, by, operation_id, why) VALUES
			('shop', 2, 2, 'replay', '', 'asked', 70, 0, 'ana', 0, ''), ('shop', 3, 2, 'replay', '', 'done', 70, 73, 'ana', 0, ''),
			('shop', 4, 2, 'replay', '', 'done', 70, 74, 'ana', 0, '');
		INSERT INTO operations (kind, state, filter, source, until, cursor, start, rate, spread, canary, guard, created_at, created_by, key)
			VALUES ('discard', 'finished', 'state:pending queue:orders@shop', 0, 65, '', 0, 0, 0, 0, 0, 65, 'ana', '')`)

	s := open(t, Options{Database: sqlite.File{Path: path}})
	for id, want := range map[string]string{
		"job 2": "returning in run 2, shop, ''", "job 3": "returned in run 2, shop, 'shop'", "job 5": "discarded in run 1, shop, ''",
		"old": "retryable in run 1, , ''",
	} {
		d, err := s.Job(t.Context(), id)
		check(t, err)
		if got := fmt.Sprintf("%s in run %d, %s, '%s'", d.Job.State, d.Job.Run, d.Job.Source, d.Job.Worker); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	o, err := s.Operations.Get(t.Context(), 1)
	if err != nil || o.Filter != "state:returned queue:orders@shop" {
		t.Errorf("the scope of the operation is %q, %v", o.Filter, err)
	}
	for status, want := range map[job.State]int{job.Returning: 1, job.Returned: 2} {
		page, err := s.Jobs(t.Context(), filter.Filter{Status: job.Status(status), Source: "shop"}, filter.Cursor{}, 9)
		if n := s.Snapshot().Depths[job.Status(status)]; err != nil || len(page.Jobs) != want || n != int64(want) {
			t.Errorf("%d jobs are listed as %s and %d counted, %v; want %d", len(page.Jobs), status, n, err, want)
		}
	}
	check(t, s.Close())
	if got := problems(t, path); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// To bring a large database to a new schema can take a while, so its log says what goes on.
func TestMigrations_SayWhatTheyDo(t *testing.T) {
	path := databaseOf(t, 25)
	var said bytes.Buffer
	s := open(t, Options{Database: sqlite.File{Path: path}, Log: slog.New(slog.NewTextHandler(&said, nil))})
	check(t, s.Close())
	for _, want := range []string{"from=25 to=", "The database has the schema of this version."} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is not said in %s", want, said.String())
		}
	}
}

// Groups of an earlier version are those of the source that brought all of their failures. Any
// other, and the group of all that came past the limit, counts against the limit of our own.
func TestMigrations_GroupsOfASourceAreCountedApart(t *testing.T) {
	path := databaseOf(t, 22)
	for i, queues := range [][]string{
		{"orders@shop", "mail@shop"}, {"orders@shop", "orders"}, {"orders@shop", "orders@mail"}, {"orders"}, {}, {"orders@shop"},
	} {
		edit(t, path, fmt.Sprintf(`INSERT INTO groups (id, fingerprint, type, class, message, frames, state, first_seen, last_seen,
				sample_seq, sample_execution, failures, dead, refused, retrying, replayed, recovered, relapsed)
			VALUES (%[1]d, 'f%[1]d', 'email.send', 'c', 'm', '', 'open', 5, 6, 1, 1, %[2]d, 0, 0, 0, 0, 0, 0)`, i+1, len(queues)))
		for _, queue := range queues {
			edit(t, path, fmt.Sprintf(`INSERT INTO group_queues (group_id, queue, failures) VALUES (%d, '%s', 1)`, i+1, queue))
		}
	}
	edit(t, path, `UPDATE groups SET fingerprint = 'other', type = '', class = 'other' WHERE id = 6`)

	s := open(t, Options{Database: sqlite.File{Path: path}})
	check(t, s.Close())
	pool, err := sql.Open("sqlite", "file:"+path)
	check(t, err)
	var got string
	err = pool.QueryRow(`SELECT group_concat(id || ' ' || source, ', ') FROM (SELECT id, source FROM groups ORDER BY id)`).Scan(&got)
	check(t, errors.Join(err, pool.Close()))
	if want := "1 shop, 2 , 3 , 4 , 5 , 6 "; got != want {
		t.Errorf("the groups and their sources are %q, want %q", got, want)
	}
}

// micros is a time in microseconds, and 0 when it is unknown.
func micros(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMicro()
}
