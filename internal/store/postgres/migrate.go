package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed migrations/*.sql
var migrations embed.FS

// FirstRows are the statements that give a new database the rows that it has to have.
//
//go:embed first.sql
var FirstRows string

// migrate brings the schema up to date in one transaction, and reports whether there was none
// before. Processes that start at the same time do so one after the other.
func (e *engine) migrate(ctx context.Context) (made bool, err error) {
	server, err := e.endpoint.connect(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, server.Close(context.Background())) }() // which also ends a transaction

	err = e.suits(ctx, server)
	if err == nil {
		err = script(ctx, server, "BEGIN")
	}

	if err != nil {
		return false, err
	}

	version, err := schemaVersion(ctx, server)
	if err != nil {
		return false, e.whyNot(err)
	}

	text, newest, err := stepsFrom(version)
	if err != nil {
		return false, err
	}

	if version > newest {
		return false, e.unsuitable("its schema has version %d, and this program knows none after %d; use a newer version of Redrive",
			version, newest)
	}

	err = e.purpose.CheckSchema(int64(version), int64(newest))
	if err != nil {
		return false, fmt.Errorf("the database %s cannot be copied: %w", e.name, err)
	}

	// Where the extension is was decided by who made it.
	schema, err := trigrams(ctx, server)
	if err != nil {
		return false, e.whyNot(err)
	}

	text = strings.ReplaceAll(text, "gin_trgm_ops", schema+".gin_trgm_ops")
	if version == 0 {
		text += FirstRows
	}

	err = script(ctx, server, fmt.Sprintf("%s; UPDATE schema_version SET n = %d; COMMIT", text, newest))
	if err != nil {
		return false, fmt.Errorf("bring the schema from version %d to %d: %w", version, newest, e.whyNot(err))
	}

	return version == 0, nil
}

// schemaVersion is the version of the schema, 0 when there is none. It waits for other processes
// that are looking for it, until their transactions end.
func schemaVersion(ctx context.Context, server *pgconn.PgConn) (int, error) {
	const prepare = `SELECT pg_advisory_xact_lock(7310576482401);
		CREATE TABLE IF NOT EXISTS schema_version (one BIGINT PRIMARY KEY CHECK (one = 1), n BIGINT NOT NULL);
		INSERT INTO schema_version (one, n) VALUES (1, 0) ON CONFLICT DO NOTHING`

	err := script(ctx, server, prepare)
	if err != nil {
		return 0, fmt.Errorf("make the table of the version of the schema: %w", err)
	}

	read := server.ExecParams(ctx, `SELECT n FROM schema_version`, nil, nil, nil, nil).Read()
	if read.Err != nil {
		return 0, fmt.Errorf("read the version of the schema: %w", read.Err)
	}

	return strconv.Atoi(string(read.Rows[0][0]))
}

// stepsFrom are the statements of the steps after a version, and the newest version.
func stepsFrom(version int) (text string, newest int, err error) {
	steps, err := migrations.ReadDir("migrations")
	if err != nil {
		return "", 0, err
	}

	// The names of the files begin with their numbers, in whose order they are listed.
	for _, step := range steps {
		number, _, _ := strings.Cut(step.Name(), "_")

		newest, err = strconv.Atoi(number)
		if err != nil {
			return "", 0, err
		}

		if newest <= version {
			continue
		}

		statements, err := migrations.ReadFile("migrations/" + step.Name())
		if err != nil {
			return "", 0, err
		}

		text += string(statements)
	}

	return text, newest, nil
}

// script runs several statements.
func script(ctx context.Context, server *pgconn.PgConn, text string) error {
	_, err := server.Exec(ctx, text).ReadAll()
	return err
}
