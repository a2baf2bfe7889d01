package postgres

import (
	"context"
	"errors"
	"fmt"

	"redrive/internal/store/health"
)

// Holder says which process works on the database, nil when none does. It changes nothing.
func (s Server) Holder(ctx context.Context) (*health.LockedError, error) {
	watch, err := s.Watch()
	if err != nil {
		return nil, err
	}

	held, err := watch.Holder(ctx)
	err = errors.Join(err, watch.Close())
	if err != nil {
		return nil, err
	}

	return held, nil
}

// Watch looks again and again who works on a database, on one connection.
type Watch struct{ desk *desk }

// Watch returns a watch on the database, which connects when it first looks.
func (s Server) Watch() (*Watch, error) {
	config, _, err := parse(s.DSN)
	if err != nil {
		return nil, err
	}

	return &Watch{newDesk(config, new(hosts))}, nil
}

// Holder says which process works on the database now, nil when none does. While the server
// cannot be reached, the error is a fault.ErrUnreachable.
func (w *Watch) Holder(ctx context.Context) (*health.LockedError, error) {
	const query = `SELECT n.name, n.url FROM leases AS l JOIN nodes AS n ON n.id = l.holder WHERE l.name = 'main' AND l.until > now()`

	found, err := w.desk.run(ctx, query)
	if codeOf(err) == undefinedTable {
		return nil, nil // a database without a schema has never been worked on
	}

	database := w.desk.config.Database
	if err != nil {
		return nil, fmt.Errorf("read who works on the database %s: %w", database, faultOf(database, err))
	}

	if len(found.rows) == 0 {
		return nil, nil
	}

	return &health.LockedError{Path: database, Holder: found.text(0), URL: found.text(1)}, nil
}

// Guarded reports whether the database has users or tokens, so that people have to log in.
func (w *Watch) Guarded(ctx context.Context) (bool, error) {
	const query = `SELECT EXISTS (SELECT 1 FROM users) OR EXISTS (SELECT 1 FROM tokens)`

	found, err := w.desk.run(ctx, query)
	if err != nil {
		return false, fmt.Errorf("read whether the database %s has users: %w", w.desk.config.Database, err)
	}

	return found.text(0) == "t", nil
}

// Close ends the connection.
func (w *Watch) Close() error { return w.desk.close() }

// undefinedTable is the code of the error about a table that does not exist.
const undefinedTable = "42P01"
