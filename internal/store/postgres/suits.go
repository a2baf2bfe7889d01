package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"redrive/internal/fault"
	"redrive/internal/store/db"
	"redrive/internal/store/health"
)

// oldest is the oldest version of PostgreSQL that is supported, as the server writes it.
const oldest = 140000

// suits reports whether the database is one that Redrive can work on: the error says why not, and
// what to do.
func (e *engine) suits(ctx context.Context, server *pgconn.PgConn) error {
	const query = `SELECT current_setting('server_version_num'), current_setting('server_encoding'), pg_is_in_recovery(),
		current_setting('transaction_read_only'), coalesce(current_schema(), '')`

	found := server.ExecParams(ctx, query, nil, nil, nil, nil).Read()
	if found.Err != nil {
		return found.Err
	}

	said := func(column int) string { return string(found.Rows[0][column]) }

	version, err := strconv.Atoi(said(0))
	if err != nil {
		return fmt.Errorf("read the version of the server: %w", err)
	}

	encoding, schema := said(1), said(4)
	replica, readOnly := said(2) == "t", said(3) == "on"

	switch {
	case version < oldest:
		return e.unsuitable("its server is PostgreSQL %d; Redrive needs %d or newer", version/10000, oldest/10000)
	case encoding != "UTF8":
		return e.unsuitable("its encoding is %s; create a database for Redrive with ENCODING 'UTF8' TEMPLATE template0", encoding)
	case replica:
		return e.onlyReads(errNotPrimary, "its server is a replica, which can only be read; name the primary or all hosts; "+
			"work begins when it becomes the primary")
	case readOnly:
		return e.onlyReads(errReads, "the transactions of its role can only read; set default_transaction_read_only to off for it; "+
			"work begins when they can write")
	case schema == "":
		return e.unsuitable("none of the schemas of search_path exists for this role; "+
			"create one: CREATE SCHEMA redrive AUTHORIZATION %s", e.config.User)
	}

	return nil
}

// errReads says that transactions of a role only read by default.
var errReads = errors.New("default_transaction_read_only is on")

// onlyReads is the error about a database that can only be read, which may pass: after a failover, a name
// can lead to a replica for a while, and some providers let transactions only read while a disk is full.
func (e *engine) onlyReads(err error, why string) error {
	return &health.Fault{
		Kind: fault.ErrReadOnly, Err: err, Where: slog.String("database", e.name),
		Words: fmt.Sprintf("the database %s cannot be written: %s", e.name, why),
	}
}

// unsuitable is the error about a database on which Redrive cannot work.
func (e *engine) unsuitable(why string, about ...any) error {
	return newFault(e.name, fault.ErrUnsafe, fmt.Errorf("the database %s cannot be used: "+why, append([]any{e.name}, about...)...))
}

// whyNot says what to do when the schema cannot be made.
func (e *engine) whyNot(err error) error {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}

	switch refused.Code {
	case "42501": // insufficient_privilege
		return e.unsuitable("the role %s may not do this: %s; let the owner of the database grant it CREATE on the schema, "+
			"and run CREATE EXTENSION pg_trgm", e.config.User, refused.Message)
	case "58P01", "0A000": // undefined_file, feature_not_supported: of an extension
		return e.unsuitable("its server lacks the extension pg_trgm (%s); install PostgreSQL's contrib modules", refused.Message)
	case "42P07", "42723": // duplicate_table, duplicate_function
		return e.unsuitable("it has tables of another program (%s); use a database or a schema of its own: "+
			"add ?search_path=redrive to the address", refused.Message)
	}

	return err
}

// trigrams is the schema in which the extension pg_trgm is, which is made where it is missing.
func trigrams(ctx context.Context, server *pgconn.PgConn) (schema string, err error) {
	const make = `CREATE EXTENSION IF NOT EXISTS pg_trgm`
	const query = `SELECT quote_ident(nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
		WHERE extname = 'pg_trgm'`

	err = script(ctx, server, make)
	if err != nil {
		return "", err
	}

	found := server.ExecParams(ctx, query, nil, nil, nil, nil).Read()
	if found.Err != nil || len(found.Rows) == 0 {
		return "", db.Wrap(found.Err, "find the extension pg_trgm")
	}

	return string(found.Rows[0][0]), nil
}
