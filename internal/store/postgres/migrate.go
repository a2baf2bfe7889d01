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

// migrate brings the schema up to date, one transaction for each step together with its
// number, and reports whether there was no schema before.
func (e *engine) migrate(ctx context.Context) (made bool, err error) {
	server, err := pgconn.ConnectConfig(ctx, e.config)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, server.Close(context.Background())) }()

	version, err := schemaOf(ctx, server)
	if err != nil {
		return false, err
	}

	made = version == 0

	steps, err := migrations.ReadDir("migrations")
	if err != nil {
		return false, err
	}

	for _, step := range steps {
		number, _, _ := strings.Cut(step.Name(), "_")

		n, err := strconv.Atoi(number)
		if err != nil {
			return false, err
		}

		if n <= version {
			continue
		}

		text, err := migrations.ReadFile("migrations/" + step.Name())
		if err != nil {
			return false, err
		}

		rows := fmt.Sprintf("UPDATE schema_version SET n = %d;", n)
		if version == 0 {
			rows += FirstRows
		}

		err = script(ctx, server, "BEGIN;"+string(text)+rows+"COMMIT;")
		if err != nil {
			return false, fmt.Errorf("bring the schema from version %d to %d: %w", version, n, err)
		}

		version = n
	}

	return made, nil
}

// schemaOf is the version of the schema, 0 when there is none.
func schemaOf(ctx context.Context, server *pgconn.PgConn) (int, error) {
	const prepare = `CREATE TABLE IF NOT EXISTS schema_version (one BIGINT PRIMARY KEY CHECK (one = 1), n BIGINT NOT NULL);
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

// script runs several statements.
func script(ctx context.Context, server *pgconn.PgConn, text string) error {
	_, err := server.Exec(ctx, text).ReadAll()
	return err
}
