package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	lib "modernc.org/sqlite/lib"

	"redrive/internal/job"
	"redrive/internal/store/db"
)

// Inspect runs do on one state of the file, without writing to it, also while a
// program has it open, and tells it what SQLite itself finds. SQLite may leave
// its files for the log beside it, empty. It returns an error that is
// job.ErrCorrupt when the file cannot be read as a whole, and ErrForeign for what
// is none of ours.
func (f File) Inspect(ctx context.Context, do func(src db.Source, found []db.Finding)) (err error) {
	path, err := filepath.Abs(f.Path)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if err := examinable(ctx, path); err != nil {
		return err
	}
	pool, err := sql.Open("sqlite", dsn(path, append(safety(), "mode=ro", pragma("busy_timeout", "2000"), pragma("query_only", "1"))...))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	tx, err := pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // one state, whoever writes meanwhile
	if err != nil {
		return classify(path, err)
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	src := inspected{ctx, tx}
	whole := integrity(src)
	found := []db.Finding{whole}
	for _, invariant := range invariants() {
		found = append(found, invariant.Examine(src))
	}
	do(src, found)
	if whole.Problem != "" {
		return &db.FileError{Path: path, Kind: job.ErrCorrupt, Err: errors.New(whole.Problem)}
	}
	return nil
}

// examinable returns an error for what cannot be looked at: another thing than a
// database of this program, or one with another schema. It opens no file itself,
// because that would drop the locks of a store in this process.
func examinable(ctx context.Context, path string) error {
	if err := errors.Join(checkNames(path), checkThere(path, false)); err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	version, err := checkVersion(ctx, path, schemaVersion)
	switch {
	case halfWritten(err):
		return unsafe(path, "%s was left half written by a process that was killed; start the dashboard with it once to undo that", path)
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

// inspected runs queries on the state that is looked at.
type inspected struct {
	ctx context.Context
	tx  *sql.Tx
}

func (i inspected) Query(query string, each func(*sql.Rows) error, args ...any) error {
	return db.Scan(i.tx.QueryContext(i.ctx, query, args...))(each)
}

// integrity asks SQLite about the file, page by page.
func integrity(src db.Source) db.Finding {
	first, err := db.Value[string](src, `PRAGMA integrity_check(1)`)
	switch {
	case err != nil:
		first = err.Error()
	case first == "ok":
		first = ""
	}
	return db.Finding{What: "the file is sound", Problem: first}
}

// invariants are those of what only SQLite has: the triggers that keep the audit
// log, and the index of texts.
func invariants() []db.Invariant {
	return []db.Invariant{
		{What: "the audit log refuses every change", Query: `SELECT column1 AS id FROM (VALUES
				('audit_keeps', 'BEFORE UPDATE ON audit BEGIN'), ('audit_stays', 'BEFORE DELETE ON audit BEGIN'))
			WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND name = column1
				AND instr(sql, column2) > 0 AND instr(sql, 'raise(ABORT') > 0)`},
		{What: "no job that is gone can be found by its texts",
			Query: `SELECT id FROM search_docsize WHERE id NOT IN (SELECT seq FROM jobs)`},
	}
}
