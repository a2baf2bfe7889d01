package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"redrive/internal/store/moving"
)

// whole says why a database cannot be used for a purpose: it is a copy that is not finished.
func whole(ctx context.Context, src moving.Asked, path string, purpose moving.Purpose) error {
	err := purpose.CheckWhole(ctx, src)
	if errors.Is(err, moving.ErrUnfinished) {
		return unsafe(path, "the database %s cannot be used: %w", path, err)
	}

	return err
}

// wholeOrOlder is whole for a database whose schema can be older: then it is no copy.
func wholeOrOlder(ctx context.Context, src *sql.DB, path string) error {
	const query = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'migration'`
	var there int

	err := src.QueryRowContext(ctx, query).Scan(&there)
	if err == nil && there > 0 {
		err = whole(ctx, src, path, moving.ToCopy)
	}

	return err
}

// Tables are those of the main file. The index has a file of its own.
func (e *engine) Tables(ctx context.Context) (all []moving.Table, err error) {
	const query = `SELECT t.name, c.name, c.pk FROM pragma_table_list AS t, pragma_table_info(t.name) AS c
		WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND t.name NOT LIKE 'goose\_%' ESCAPE '\'
		ORDER BY t.name, c.cid`

	rows, err := e.reads.QueryContext(ctx, query)

	return moving.Read(rows, err)
}

// Filled has nothing to do: the next number follows the largest one, and queries say themselves
// how they find their rows.
func (*engine) Filled(context.Context, []moving.Table) error { return nil }
