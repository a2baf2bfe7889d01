package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"redrive/internal/fault"
	"redrive/internal/store/db"
	"redrive/internal/store/health"
)

//go:embed migrations/*.sql
var migrations embed.FS

// FirstRows are the statements that give a new database the rows that it has to have.
//
//go:embed first.sql
var FirstRows string

// lookWithin is how long it may take to find out what the database is.
const lookWithin = 10 * time.Second

// makeWithin is how long it may take to make the tables of a new database.
const makeWithin = time.Minute

// prepare refuses a database that does not suit, and makes the schema where there is none. It
// leaves an older schema alone, on which another process can be at work.
func (e *engine) prepare(ctx context.Context) (made bool, err error) {
	server, err := e.alone(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, closeSoon(server)) }()

	look, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()

	version := 0
	err = e.suits(look, server)
	if err == nil {
		version, err = schemaVersion(look, server)
	}

	if err == nil && version > 0 {
		_, err = e.steps(version)
	}

	if err == nil {
		err = e.checkPurpose(version)
	}

	if err != nil || version > 0 {
		return false, silentOf(ctx, err)
	}

	within, cancelMaking := context.WithTimeout(ctx, makeWithin)
	defer cancelMaking()

	version, err = e.migrate(within, server, `SELECT`)
	err = silentOf(ctx, err)

	return version == 0 && err == nil, err
}

// checkPurpose refuses a database whose schema does not suit what it is opened for.
func (e *engine) checkPurpose(version int) error {
	_, newest, err := stepsFrom(version)
	if err == nil {
		err = e.purpose.CheckSchema(int64(version), int64(newest))
	}

	return db.Wrap(err, "the database %s cannot be used", e.name)
}

// update brings an older schema up to date. This process has the lease.
func (e *engine) update(ctx context.Context) error {
	found, err := e.lease.desk.run(ctx, readVersion)
	if err != nil {
		return fmt.Errorf("read the version of the schema: %w", err)
	}

	version, err := strconv.Atoi(found.text(0))
	if err != nil {
		return err
	}

	text, err := e.steps(version)
	if err != nil || text == "" {
		return err
	}

	// When the lease is over, nothing more is to be waited for.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.lease.over, cancel)()

	server, err := e.alone(ctx)
	if err != nil {
		return err
	}

	_, err = e.migrate(ctx, server, fmt.Sprintf(`SELECT check_lease('%s')`, e.node))

	return errors.Join(err, closeSoon(server))
}

// alone is a connection beside those of the pools. Its statements may take long.
func (e *engine) alone(ctx context.Context) (*pgconn.PgConn, error) {
	server, err := e.hosts.connect(ctx, e.config)
	return server, silentOf(ctx, err)
}

// closeSoon ends a connection, and with it a transaction, also when the server is silent.
func closeSoon(server *pgconn.PgConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), tryFor)
	defer cancel()

	return server.Close(ctx)
}

// migrate brings the schema up to date in one transaction, which runs the fence before its end.
// It returns the version that it found.
func (e *engine) migrate(ctx context.Context, server *pgconn.PgConn, fence string) (from int, err error) {
	const begin = `BEGIN; SET LOCAL lock_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '30s';
		SELECT pg_advisory_xact_lock(7310576482401);
		CREATE TABLE IF NOT EXISTS schema_version (one BIGINT PRIMARY KEY CHECK (one = 1), n BIGINT NOT NULL);
		INSERT INTO schema_version (one, n) VALUES (1, 0) ON CONFLICT DO NOTHING`

	err = script(ctx, server, begin)
	if err == nil {
		from, err = schemaVersion(ctx, server)
	}

	if err != nil {
		return 0, e.whyNotYet(err)
	}

	text, err := e.steps(from)
	if err != nil || text == "" {
		return from, err
	}

	// Where the extension is was decided by who made it.
	schema, err := trigrams(ctx, server)
	if err != nil {
		return from, e.whyNot(err)
	}

	text = strings.ReplaceAll(text, "gin_trgm_ops", schema+".gin_trgm_ops")
	if from == 0 {
		text += ";" + FirstRows
	}

	err = script(ctx, server, text+";"+fence+"; COMMIT")
	if err != nil {
		return from, fmt.Errorf("bring the schema up to date from version %d: %w", from, e.whyNotYet(err))
	}

	return from, nil
}

// whyNotYet says what to do when another process is in the way of a migration.
func (e *engine) whyNotYet(err error) error {
	const lockNotAvailable = "55P03"

	if codeOf(err) != lockNotAvailable {
		return e.whyNot(err)
	}

	return &health.Fault{
		Kind: fault.ErrBusy, Err: err, Where: slog.String("database", e.name),
		Words: fmt.Sprintf("another process is changing the tables of the database %s, or has locked them; try again in a minute, "+
			"and look at pg_stat_activity for what keeps a transaction open", e.name),
	}
}

// readVersion reads the version of the schema.
const readVersion = `SELECT n FROM schema_version`

// schemaVersion is the version of the schema, 0 when there is none.
func schemaVersion(ctx context.Context, server *pgconn.PgConn) (int, error) {
	read := server.ExecParams(ctx, readVersion, nil, nil, nil, nil).Read()
	if codeOf(read.Err) == undefinedTable {
		return 0, nil
	}

	if read.Err != nil {
		return 0, fmt.Errorf("read the version of the schema: %w", read.Err)
	}

	if len(read.Rows) == 0 {
		return 0, nil
	}

	return strconv.Atoi(string(read.Rows[0][0]))
}

// steps are the statements that bring a schema of some version up to date, none when it is.
// A schema that is newer than this program is refused.
func (e *engine) steps(version int) (text string, err error) {
	text, newest, err := stepsFrom(version)
	if err != nil {
		return "", err
	}

	if version > newest {
		return "", e.unsuitable("its schema has version %d, and this program knows none after %d; use a newer version of Redrive",
			version, newest)
	}

	if text != "" {
		text += fmt.Sprintf("; UPDATE schema_version SET n = %d", newest)
	}

	return text, nil
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
