package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
)

// connector opens connections to the file that is locked, and not to another file
// that is at its path by now.
type connector struct {
	main  *mainFile
	dsn   string
	index string // the path of the index that is attached, empty: none is
}

// pool are at most so many connections, which are kept.
func pool(c connector, size int) *sql.DB {
	pool := sql.OpenDB(c)
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	return pool
}

// fill opens the connections of a pool at once, so that pages can be read also
// while the file is not at its path.
func fill(ctx context.Context, pool *sql.DB, size int) error {
	var errs []error
	var all []*sql.Conn
	for range size {
		c, err := pool.Conn(ctx)
		if err != nil {
			errs = append(errs, err)
			break
		}

		all = append(all, c)
	}

	for _, c := range all {
		errs = append(errs, c.Close())
	}

	return errors.Join(errs...)
}

func (c connector) Driver() driver.Driver { return &sqlite.Driver{} }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := c.main.checkPath(); err != nil {
		return nil, err
	}

	conn, err := c.Driver().Open(c.dsn)
	if err != nil {
		return nil, err
	}

	err = read(ctx, conn)
	if err == nil {
		err = c.main.checkPath()
	}

	if err == nil && c.index != "" {
		_ = attach(ctx, conn, c.index) // without the index only searches fail, and say so
	}

	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}

	return conn, nil
}

// attach gives a connection that reads the tables of the index.
func attach(ctx context.Context, c driver.Conn, path string) error {
	const query = `ATTACH DATABASE ? AS search_file`
	const mapped = `PRAGMA search_file.mmap_size = 134217728`
	exec := c.(driver.ExecerContext)

	_, err := exec.ExecContext(ctx, query, []driver.NamedValue{{Ordinal: 1, Value: dsn(path, "mode=rw")}})
	if err == nil {
		_, err = exec.ExecContext(ctx, mapped, nil)
	}

	return err
}

// read lets the connection open the log, which SQLite does when it first reads.
func read(ctx context.Context, c driver.Conn) error {
	const query = `PRAGMA schema_version`

	rows, err := c.(driver.QueryerContext).QueryContext(ctx, query, nil)
	if err != nil {
		return err
	}

	err = rows.Next(make([]driver.Value, len(rows.Columns())))

	return errors.Join(err, rows.Close())
}
