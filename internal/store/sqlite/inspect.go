package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	lib "modernc.org/sqlite/lib"

	"redrive/internal/fault"
	"redrive/internal/store/db"
)

// Inspect runs do on one state of the file, without writing to it, also while a
// program has it open, and tells it what SQLite itself finds. When a program opens the
// file meanwhile, do runs again. It returns an error that is
// fault.ErrCorrupt when the file cannot be read as a whole, and ErrForeign for what
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

	// A database at rest is read as it is. When a program opens it meanwhile, all is read again.
	before := restOf(path)
	err = f.look(ctx, path, before.mode(), do)
	if before.what != nil && !before.lasts() {
		return f.look(ctx, path, rest{}.mode(), do)
	}

	return err
}

// look is Inspect of a file that can be examined.
func (f File) look(ctx context.Context, path string, mode []string, do func(src db.Source, found []db.Finding)) (err error) {
	pool, err := sql.Open("sqlite", dsn(path, append(safety(), append(mode, pragma("busy_timeout", "2000"), pragma("query_only", "1"))...)...))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()

	src, err := inspect(ctx, pool, path, mode)
	if err != nil {
		return classify(path, err)
	}

	defer func() { err = errors.Join(err, src.close()) }()

	if err := whole(ctx, src.tx, path, f.For); err != nil {
		return err
	}

	// What SQLite and the schema say of it comes first, and then what its rows say.
	whole := integrity(src, "main", "the database file is intact")
	found := []db.Finding{whole, onlyOwn(ctx, src, schemaVersion), keepsAudit().Examine(src)}
	do(src, append(found, src.searchable()...))

	if whole.Problem != "" {
		return faultOf(path, fault.ErrCorrupt, errors.New(whole.Problem))
	}

	return nil
}

// examinable returns an error for what cannot be looked at: another thing than a
// database of this program, or one with another schema. It opens no file itself,
// because that would drop the locks of a store in this process.
func examinable(ctx context.Context, path string) error {
	_, missing := os.Stat(path)
	if err := cmp.Or(checkNames(path), checkThere(path, false), missing, checkLog(path)); err != nil {
		return denied(path, err)
	}

	version, err := checkVersion(ctx, path, restOf(path).mode())
	if refused := unreadable(path, err); refused != nil {
		return refused
	}

	switch {
	case primary(err) == lib.SQLITE_NOTADB:
		return fmt.Errorf("%s is %w, or its beginning is damaged: %w", path, ErrForeign, err)
	case err != nil:
		return classify(path, err)
	case version == 0:
		return fmt.Errorf("%s is %w: it is empty", path, ErrForeign)
	case errors.Is(access(path+indexSuffix, unix.R_OK), fs.ErrPermission):
		return denied(path, fmt.Errorf("read %s: %w", path+indexSuffix, fs.ErrPermission))
	case version < schemaVersion:
		return fmt.Errorf("%s has schema %d, this program looks at schema %d: start the dashboard with it once", path, version, schemaVersion)
	}

	return nil
}

// inspected runs queries on the state that is looked at.
type inspected struct {
	ctx   context.Context
	conn  *sql.Conn
	tx    *sql.Tx // one state, whatever is written meanwhile
	index error   // why the search index cannot be looked at
}

// inspect begins to look at the file at a path, and at its search index.
func inspect(ctx context.Context, pool *sql.DB, path string, mode []string) (i inspected, err error) {
	const attach = `ATTACH DATABASE ? AS search_file`

	i.ctx = ctx

	i.conn, err = pool.Conn(ctx)
	if err != nil {
		return i, err
	}

	_, i.index = os.Stat(path + indexSuffix)
	if i.index == nil {
		_, i.index = i.conn.ExecContext(ctx, attach, dsn(path+indexSuffix, mode...))
	}

	// Begin a transaction in which the file and its index belong together.
	for range pins {
		i.tx, err = i.conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return i, errors.Join(err, i.conn.Close())
		}

		if i.index != nil {
			return i, nil
		}

		var together bool
		together, i.index = i.together()
		if together || i.index != nil {
			return i, nil
		}

		if err := errors.Join(i.tx.Rollback(), ctx.Err()); err != nil {
			return i, errors.Join(err, i.conn.Close())
		}
	}

	// They never did: the file is looked at without the index.
	i.index = errOtherIndex

	i.tx, err = i.conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return i, errors.Join(err, i.conn.Close())
	}

	return i, nil
}

// pins is how often a state of the file and one of its index are looked for that
// belong together: a program may write to one after the other meanwhile.
const pins = 100

// errOtherIndex says that the index will be rebuilt at the next start.
var errOtherIndex = errors.New("the search index belongs to another state of the database")

// together reads the state of the index and then that of the file, and reports
// whether they belong together.
func (i inspected) together() (bool, error) {
	const index = `SELECT mark, before, revision FROM search_state`
	const database = `SELECT index_mark, n FROM redaction, revision`

	var there, here db.IndexState
	if _, err := db.Row(i, index, []any{&there.Version, &there.Before, &there.Revision}); err != nil {
		return false, err
	}

	_, err := db.Row(i, database, []any{&here.Version, &here.Revision})

	return there.BelongsTo(here), err
}

func (i inspected) close() error { return errors.Join(i.tx.Rollback(), i.conn.Close()) }

// searchable looks at the search index, unless it is missing or will be rebuilt.
func (i inspected) searchable() []db.Finding {
	const what = "the search index is intact"
	const remedy = "; stop the dashboard, remove the file that ends with " + indexSuffix + " and start again: the index will be rebuilt"
	switch {
	case errors.Is(i.index, fs.ErrNotExist) || errors.Is(i.index, errOtherIndex):
		return nil
	case i.index != nil:
		return []db.Finding{{What: what, Problem: i.index.Error() + remedy}}
	}

	sound := integrity(i, "search_file", what)
	if sound.Problem != "" {
		sound.Problem += remedy
	}

	return []db.Finding{sound, noneGone().Examine(i)}
}

func (i inspected) Query(query string, each func(*sql.Rows) error, args ...any) error {
	return db.Scan(i.tx.QueryContext(i.ctx, query, args...))(each)
}

// integrity asks SQLite about a file, page by page.
func integrity(src db.Source, schema, what string) db.Finding {
	first, err := db.Value[string](src, `PRAGMA `+schema+`.integrity_check(1)`)
	switch {
	case err != nil:
		first = err.Error()
	case first == "ok":
		first = ""
	}

	return db.Finding{What: what, Problem: first}
}

// keepsAudit looks at the triggers that keep the audit log.
func keepsAudit() db.Invariant {
	return db.Invariant{What: "the audit log is protected against changes", Query: `SELECT column1 AS id FROM (VALUES
			('audit_keeps', 'BEFORE UPDATE ON audit BEGIN'), ('audit_stays', 'BEFORE DELETE ON audit BEGIN'))
		WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND name = column1
			AND instr(sql, column2) > 0 AND instr(sql, 'raise(ABORT') > 0)`}
}

// noneGone looks for texts of jobs that are gone and do not wait for their removal.
func noneGone() db.Invariant {
	return db.Invariant{What: "the search index contains no removed jobs",
		Query: `SELECT id FROM (SELECT id FROM search_docsize UNION SELECT job_seq FROM search_texts)
			WHERE id NOT IN (SELECT seq FROM jobs) AND id NOT IN (SELECT job_seq FROM search_backlog WHERE execution = -1)`}
}
