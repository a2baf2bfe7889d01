package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	"redrive/internal/store/db"
)

// Inspect runs do on one state of the database, also while a program works on it. A database
// without Redrive's tables is an fs.ErrNotExist.
func (s Server) Inspect(ctx context.Context, do func(src db.Source, found []db.Finding)) (err error) {
	config, parses, err := parse(s.DSN)
	if err != nil {
		return err
	}

	reads := pool(connector{endpoint: newEndpoint(config, new(hosts), parses), reads: true}, 1)
	defer func() { err = errors.Join(err, reads.Close()) }()

	tx, err := reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()

	var version, newest int
	err = tx.QueryRowContext(ctx, `SELECT n FROM schema_version`).Scan(&version)
	if codeOf(err) == undefinedTable {
		return fmt.Errorf("%w: the database %s has no tables of Redrive", fs.ErrNotExist, config.Database)
	}

	if err == nil {
		_, newest, err = stepsFrom(version)
	}

	if err != nil {
		return fmt.Errorf("read the version of the schema: %w", err)
	}

	if version != newest {
		return fmt.Errorf("the schema of the database %s has version %d, and this program examines version %d; "+
			"use the version of Redrive that works on it", config.Database, version, newest)
	}

	err = s.For.CheckWhole(ctx, tx)
	if err != nil {
		return fmt.Errorf("the database %s cannot be examined: %w", config.Database, err)
	}

	do(inspected{ctx, tx}, nil)

	return nil
}

// inspected is one state of a database.
type inspected struct {
	ctx context.Context
	tx  *sql.Tx
}

// Query calls each for every row. A query that fails leaves the others alone.
func (i inspected) Query(query string, each func(*sql.Rows) error, args ...any) error {
	_, err := i.tx.ExecContext(i.ctx, `SAVEPOINT query`)
	if err != nil {
		return err
	}

	err = db.Scan(i.tx.QueryContext(i.ctx, translate(query), args...))(each)
	if err != nil {
		_, back := i.tx.ExecContext(i.ctx, `ROLLBACK TO SAVEPOINT query`)
		return errors.Join(err, back)
	}

	_, err = i.tx.ExecContext(i.ctx, `RELEASE SAVEPOINT query`)

	return err
}
