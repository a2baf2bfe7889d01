package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	"redrive/internal/store/db"
)

// Inspect runs do on the database, also while a program works on it. Each query sees one state of
// the database, and a later query can see a later one: one state for all of them would keep the
// server from cleaning up until the last has ended. A database without Redrive's tables is an
// fs.ErrNotExist.
func (s Server) Inspect(ctx context.Context, do func(src db.Source, found []db.Finding)) (err error) {
	config, parses, err := parse(s.DSN)
	if err != nil {
		return err
	}

	reads := pool(connector{endpoint: newEndpoint(config, new(hosts), parses), reads: true}, 1)
	defer func() { err = errors.Join(err, reads.Close()) }()

	var version, newest int
	err = reads.QueryRowContext(ctx, `SELECT n FROM schema_version`).Scan(&version)
	if codeOf(err) == undefinedTable {
		return fmt.Errorf("%w: the database %s has no tables of Redrive", fs.ErrNotExist, config.Database)
	}

	if err == nil {
		_, newest, err = stepsFrom(version)
	}

	if err != nil {
		return fmt.Errorf("read the version of the schema: %w", faultOf(config.Database, err))
	}

	if version != newest {
		return fmt.Errorf("the schema of the database %s has version %d, and this program examines version %d; "+
			"use the version of Redrive that works on it", config.Database, version, newest)
	}

	err = s.For.CheckWhole(ctx, reads)
	if err != nil {
		return fmt.Errorf("the database %s cannot be examined: %w", config.Database, err)
	}

	do(inspected{ctx, reads}, nil)

	return nil
}

// inspected is a database that is only read.
type inspected struct {
	ctx   context.Context
	reads *sql.DB
}

// Query calls each for every row.
func (i inspected) Query(query string, each func(*sql.Rows) error, args ...any) error {
	return db.Scan(i.reads.QueryContext(i.ctx, translate(query), args...))(each)
}
