package postgres

import (
	"context"
	"errors"
	"fmt"

	"redrive/internal/store/health"
)

// Holder says which process works on the database, nil when none does. It changes nothing.
func (s Server) Holder(ctx context.Context) (*health.LockedError, error) {
	const query = `SELECT n.name, n.url FROM leases AS l JOIN nodes AS n ON n.id = l.holder WHERE l.name = 'main' AND l.until > now()`

	endpoint, err := parse(s.DSN)
	if err != nil {
		return nil, err
	}

	// A database without a schema has never been worked on.
	config := endpoint.config
	d := desk{config: config}

	found, err := d.run(ctx, query)
	if codeOf(err) == undefinedTable {
		return nil, d.close()
	}

	err = errors.Join(err, d.close())
	if err != nil {
		return nil, fmt.Errorf("read who works on the database %s: %w", config.Database, err)
	}

	if len(found.rows) == 0 {
		return nil, nil
	}

	return &health.LockedError{Path: config.Database, Holder: string(found.rows[0][0]), URL: string(found.rows[0][1])}, nil
}

// undefinedTable is the code of the error about a table that does not exist.
const undefinedTable = "42P01"
