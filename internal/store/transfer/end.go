package transfer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"redrive/internal/store"
	"redrive/internal/store/db"
	"redrive/internal/store/health"
	"redrive/internal/store/location"
	"redrive/internal/store/moving"
	"redrive/internal/usage"
)

// end is one of the two databases, locked for this process.
type end struct {
	where   location.Location
	purpose moving.Purpose

	health *health.Health
	engine db.Engine
	reader *db.Reader
	writer *db.Writer // of the target
	begun  bool       // the target is no longer what it was before
}

// statements is how many texts of queries are kept prepared.
const statements = 16

// open opens and locks a database.
func open(ctx context.Context, where location.Location, purpose moving.Purpose) (e *end, err error) {
	e = &end{where: where, purpose: purpose, health: health.New(slog.New(slog.DiscardHandler))}

	e.engine, err = where.For(purpose).Open(ctx, e.health)

	locked, inUse := errors.AsType[*health.LockedError](err)
	switch {
	case inUse && purpose == moving.ToFill && locked.PID == os.Getpid():
		return nil, usage.Errorf("--from and --to name the same database; name a new one after --to")
	case inUse && locked.Holder == "":
		return nil, usage.Of(err)
	case inUse:
		return nil, usage.Errorf("%w; stop it, and what stands by for it, and run this command again", err)
	case errors.Is(err, fs.ErrNotExist) && purpose == moving.ToCopy:
		return nil, usage.Errorf("there is no database at %s; name one after --from: %w", where, err)
	case err != nil:
		return nil, err
	}

	e.reader = db.NewReader(e.engine, e.health, statements)

	return e, nil
}

// openSource opens the database to copy. What doctor finds in it has to be solved there.
func openSource(ctx context.Context, where location.Location) (*end, error) {
	e, err := open(ctx, where, moving.ToCopy)
	if err != nil {
		return nil, err
	}

	problem, err := e.examine(ctx)
	if err == nil && problem != "" {
		err = fmt.Errorf("%s is not sound, and nothing was copied: %s; dashboard doctor says more: restore a backup, and report "+
			"a problem that comes back", where, problem)
	}

	if err != nil {
		return nil, errors.Join(err, e.close())
	}

	return e, nil
}

// openTarget opens the database to fill.
func openTarget(ctx context.Context, where location.Location) (*end, error) {
	e, err := open(ctx, where, moving.ToFill)
	if err != nil {
		return nil, err
	}

	e.writer, err = db.NewWriter(ctx, e.engine, e.health, db.Options{Refused: func(error) bool { return false }, Probe: probe})
	if err == nil {
		err = e.writer.Start()
	}

	if err != nil {
		return nil, errors.Join(e.engine.Fault(err), e.abandon())
	}

	return e, nil
}

// probe changes a row twice, because a database may not write what is equal.
func probe(t *db.Tx) error {
	return db.Steps(t, db.Exactly(1, "UPDATE revision SET n = n + 1"), db.Exactly(1, "UPDATE revision SET n = n - 1"))
}

// close ends the work on the database. Closing again does nothing.
func (e *end) close() error { return e.release(func() error { return e.engine.Close() }) }

// abandon is close, and removes a file that was made and has nothing in it.
func (e *end) abandon() error {
	if e.begun {
		return e.close()
	}

	return e.release(func() error { return e.engine.Abandon() })
}

// release ends the writer before the engine through which it writes.
func (e *end) release(engine func() error) error {
	if e.engine == nil {
		return nil
	}

	var err error
	if e.writer != nil {
		err = e.writer.Close()
	}

	err = errors.Join(err, engine())
	e.engine = nil

	return err
}

// examine says what doctor finds wrong, empty when all is well.
func (e *end) examine(ctx context.Context) (problem string, err error) {
	found, err := store.Examine(ctx, e.where.For(e.purpose))
	if err != nil {
		return "", fmt.Errorf("examine %s: %w", e.where, err)
	}

	for _, f := range found {
		if f.Problem != "" {
			return f.What + ": " + f.Problem, nil
		}
	}

	return "", nil
}

// mark tells the database and its state: it is another one after each commit that moves a job or
// is in the audit log.
func (e *end) mark(ctx context.Context) (string, error) {
	const query = `SELECT r.n, r.newest, a.seq FROM revision AS r, audit_head AS a`
	var revision, newest, audited int64

	identity, err := e.engine.Identity()
	if err == nil {
		_, err = db.Row(e.reader.In(ctx), query, []any{&revision, &newest, &audited})
	}

	return fmt.Sprintf("%s at %d, %d, %d", identity, revision, newest, audited), db.Wrap(err, "tell the state of %s", e.where)
}

// count is how many rows a table has.
func (e *end) count(ctx context.Context, t moving.Table) (int64, error) {
	n, err := db.Value[int64](e.reader.In(ctx), "SELECT count(*) FROM "+quoted(t.Name))
	return n, db.Wrap(err, "count the rows of %s in %s", t.Name, e.where)
}

// read gives each row of a table to a function, in the order of its key, from one on. The values
// belong to the function.
func (e *end) read(ctx context.Context, t moving.Table, from int64, each func([]any) error) error {
	err := e.reader.In(ctx).Query(rowsOf(t), func(rows *sql.Rows) error {
		row := make([]any, len(t.Columns))
		into := make([]any, len(row))
		for i := range row {
			into[i] = &row[i]
		}

		err := rows.Scan(into...)
		if err != nil {
			return err
		}

		// Bytes that are empty are not NULL.
		for i, value := range row {
			if bytes, ok := value.([]byte); ok && len(bytes) == 0 {
				row[i] = []byte{}
			}
		}

		return each(row)
	}, int64(everyRow), from)

	return db.Wrap(err, "read the table %s of %s", t.Name, e.where)
}

// write runs do in one transaction.
func (e *end) write(ctx context.Context, rows int, do func(*db.Tx) error) error {
	return e.writer.Do(ctx, rows, do)
}

// lost says why the database can no longer be trusted, or nil: another process has taken it.
func (e *end) lost() error {
	if e.health.Broken() {
		return e.health.Problem()
	}

	return nil
}
