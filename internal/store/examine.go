package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	lib "modernc.org/sqlite/lib"

	"redrive/internal/job"
)

// Finding is one thing that was looked at in a database.
type Finding struct {
	What    string
	Problem string // empty: it is as it has to be
}

// ErrForeign says that a path names nothing that this program made.
var ErrForeign = errors.New("no database of Redrive")

// Examine looks at a database without writing to it, also while a program has
// it open. SQLite may leave its files for the log beside it, empty. What it finds
// damaged it says, and goes on; it returns an error that is job.ErrCorrupt when the
// file itself cannot be read as a whole, and ErrForeign for what is none of ours.
func Examine(ctx context.Context, path string) (found []Finding, err error) {
	if err := examinable(ctx, path); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn(path, append(safety(), "mode=ro", pragma("busy_timeout", "2000"), pragma("query_only", "1"))...))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // one state, whoever writes meanwhile
	if err != nil {
		return nil, classify(path, err)
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	src := examined{ctx, tx}
	whole := integrity(src)
	found = append(found, whole)
	for _, i := range invariants() {
		found = append(found, i.examine(src))
	}
	found = append(found, chain(src))
	if whole.Problem != "" {
		return found, &FileError{Path: path, Kind: job.ErrCorrupt, Err: errors.New(whole.Problem)}
	}
	return found, nil
}

// examinable returns an error for what cannot be looked at: another thing than a
// database of this program, or one with another schema. It opens no file itself,
// because that would drop the locks of a store in this process.
func examinable(ctx context.Context, path string) error {
	what, err := os.Stat(path)
	if err != nil {
		return err
	}
	if what.IsDir() {
		return fmt.Errorf("%s is %w: it is a directory", path, ErrForeign)
	}
	version, err := checkVersion(ctx, path, schemaVersion)
	switch {
	case primary(err) == lib.SQLITE_NOTADB:
		return fmt.Errorf("%s is %w, or its beginning is damaged: %w", path, ErrForeign, err)
	case err != nil:
		return classify(path, err)
	case version == 0:
		return fmt.Errorf("%s is %w: it is empty", path, ErrForeign)
	case version < schemaVersion:
		return fmt.Errorf("%s has schema %d, this program looks at schema %d: start the dashboard with it once", path, version, schemaVersion)
	}
	return nil
}

// examined runs queries on the state that is looked at.
type examined struct {
	ctx context.Context
	tx  *sql.Tx
}

func (e examined) query(query string, each func(*sql.Rows) error, args ...any) error {
	return scan(e.tx.QueryContext(e.ctx, query, args...))(each)
}

// integrity asks SQLite about the file, page by page.
func integrity(src source) Finding {
	f, first := Finding{What: "the file is sound"}, ""
	err := src.query(`PRAGMA integrity_check(1)`, func(rows *sql.Rows) error { return rows.Scan(&first) })
	if err != nil {
		f.Problem = err.Error()
	} else if first != "ok" {
		f.Problem = first
	}
	return f
}

// chain verifies the audit log.
func chain(src source) Finding {
	n, err := verifyAudit(src)
	f := Finding{What: fmt.Sprintf("the audit log is whole, %d entries", n)}
	if err != nil {
		f = Finding{What: "the audit log is whole", Problem: err.Error()}
	}
	return f
}

// invariant is a fact about the tables: the query finds what breaks it.
type invariant struct{ what, query string }

func (i invariant) examine(src source) Finding {
	f, n, first := Finding{What: i.what}, 0, ""
	err := src.query(`SELECT count(*), coalesce(min(id), '') FROM (`+i.query+`)`, func(rows *sql.Rows) error { return rows.Scan(&n, &first) })
	switch {
	case err != nil:
		f.Problem = err.Error()
	case n > 0:
		f.Problem = fmt.Sprintf("%d do not, the first is %s", n, first)
	}
	return f
}

// invariants are what holds after every commit.
func invariants() []invariant {
	return []invariant{
		{"jobs by state are counted right", `SELECT queue || ' ' || status AS id FROM (
			SELECT queue, status, n FROM depths WHERE status NOT IN ('dead_letter', 'dlq_failed', 'held', 'trashed')
			UNION ALL SELECT queue, state, -count(*) FROM jobs GROUP BY queue, state) GROUP BY queue, status HAVING sum(n) <> 0`},
		{"jobs by view are counted right", `SELECT queue || ' ' || status AS id FROM (
			SELECT queue, status, n FROM depths WHERE status IN ('dead_letter', 'dlq_failed', 'held', 'trashed')
			UNION ALL SELECT queue, CASE letter WHEN 'stored' THEN 'dead_letter' WHEN 'refused' THEN 'dlq_failed' ELSE 'trashed' END, -count(*)
				FROM jobs WHERE letter <> '' GROUP BY 1, 2
			UNION ALL SELECT queue, 'held', -count(*) FROM jobs WHERE held = 1 GROUP BY queue) GROUP BY queue, status HAVING sum(n) <> 0`},
		{"what is counted adds up", `SELECT queue || ' ' || type AS id FROM counters WHERE failed <> requeued + failed_permanently`},
		{"the shelf of a job repeats its state", `SELECT id FROM jobs
			WHERE shelf <> CASE WHEN state IN ('available', 'active', 'completed') THEN '' ELSE state END`},
		{"only discarded jobs have letters", `SELECT id FROM jobs WHERE letter <> '' AND state <> 'discarded'`},
		{"stored letters are open, and no others are", `SELECT j.id AS id FROM jobs AS j LEFT JOIN dead_letters AS l ON l.job_seq = j.seq AND l.run = j.run
			WHERE (j.letter = 'stored') <> (coalesce(l.open, 0) = 1)`},
		{"letters are open for the current run only", `SELECT job_seq AS id FROM dead_letters AS l WHERE open = 1
			AND NOT EXISTS (SELECT 1 FROM jobs WHERE seq = l.job_seq AND run = l.run)`},
		{"the trash knows where its jobs were", `SELECT id FROM jobs AS j
			WHERE (letter = 'trashed') <> EXISTS (SELECT 1 FROM trash WHERE job_seq = j.seq)`},
		{"attempts are counted right", `SELECT id FROM jobs AS j WHERE state <> 'completed' AND attempts <> (
			SELECT count(*) FROM attempts AS a WHERE a.job_seq = j.seq AND a.run = j.run AND a.number > 0)`},
		{"each run but the first was replayed once", `SELECT id FROM jobs AS j WHERE run - 1 <> (SELECT count(*) FROM replays WHERE job_seq = j.seq)`},
		{"open dead letters are counted right", `SELECT reason AS id FROM (SELECT reason, n FROM reasons
			UNION ALL SELECT reason, -count(*) FROM dead_letters WHERE open = 1 GROUP BY reason) GROUP BY reason HAVING sum(n) <> 0`},
		{"the jobs of error groups are counted right", `SELECT fingerprint AS id FROM groups LEFT JOIN (
				SELECT group_id, sum(letter IN ('stored', 'refused')) AS lie,
					sum(state IN ('scheduled', 'pending', 'available', 'active', 'retryable')) AS wait
				FROM jobs WHERE group_id <> 0 GROUP BY group_id) ON group_id = groups.id
			WHERE dead <> coalesce(lie, 0) OR retrying <> coalesce(wait, 0)`},
		{"jobs belong to error groups that are there", `SELECT id FROM jobs WHERE group_id <> 0 AND group_id NOT IN (SELECT id FROM groups)`},
		{"operations add up", `SELECT id FROM operations WHERE total <> pending + done + skipped + failed`},
		{"operations count their items right", operationsMiscounted},
		{"operations know when their items were done", `SELECT id FROM operations
			WHERE done <> (SELECT coalesce(sum(n), 0) FROM operation_pace WHERE operation_id = operations.id)`},
		{"nothing is left of jobs that are gone", `SELECT job_seq AS id FROM (SELECT job_seq FROM bodies UNION SELECT job_seq FROM attempts
			UNION SELECT job_seq FROM dead_letters UNION SELECT job_seq FROM replays UNION SELECT job_seq FROM trash
			UNION SELECT job_seq FROM earlier_runs UNION SELECT job_seq FROM search_backlog UNION SELECT id FROM search_docsize)
			WHERE job_seq NOT IN (SELECT seq FROM jobs)`},
		{"the audit log refuses every change", `SELECT column1 AS id FROM (VALUES ('audit_keeps', 'BEFORE UPDATE ON audit BEGIN'),
				('audit_stays', 'BEFORE DELETE ON audit BEGIN'))
			WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND name = column1
				AND instr(sql, column2) > 0 AND instr(sql, 'raise(ABORT') > 0)`},
	}
}

// operationsMiscounted finds operations whose meters say something else than their
// items. The items of operations that ended are removed after a time, and some of
// them may be gone already.
const operationsMiscounted = `SELECT id FROM operations AS o LEFT JOIN (
		SELECT operation_id, count(*) AS n, sum(state = 'pending') AS waiting, sum(state = 'done') AS did, sum(state = 'skipped') AS passed,
			sum(state = 'failed') AS broke, sum(outcome = 'succeeded') AS good, sum(outcome = 'relapsed') AS bad, sum(outcome = 'dropped') AS gave_up
		FROM operation_items GROUP BY operation_id) AS i ON i.operation_id = o.id
	WHERE (coalesce(i.n, 0) = o.total OR o.state NOT IN ('finished', 'aborted')) AND o.total + coalesce(i.n, 0) > 0
		AND (i.n IS NULL OR (i.n, waiting, did, passed, broke, good, bad, gave_up) <>
			(o.total, o.pending, o.done, o.skipped, o.failed, o.succeeded, o.relapsed, o.dropped))`
