package postgres_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"redrive/internal/fault"
	"redrive/internal/store/db"
	"redrive/internal/store/postgres/postgrestest"
)

// A database on which Redrive cannot work is refused with what is wrong, and what to do.
func TestOpen_RefusesWhatItCannotWorkOn(t *testing.T) {
	for name, test := range map[string]struct {
		options, before string
		role            string // that connects, instead of the superuser
		want            string
	}{
		"another encoding":   {options: `ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`, want: "its encoding is SQL_ASCII"},
		"no right to create": {before: `CREATE EXTENSION pg_trgm; REVOKE CREATE ON SCHEMA public FROM PUBLIC`, role: "guest", want: "the role guest may not do this"},
		"no extension":       {before: `GRANT ALL ON SCHEMA public TO guest`, role: "guest", want: "CREATE EXTENSION pg_trgm"},
		"another's tables":   {before: `CREATE TABLE jobs (id text)`, want: "tables of another program"},
		"a newer schema": {
			before: `CREATE TABLE schema_version (one BIGINT PRIMARY KEY, n BIGINT); INSERT INTO schema_version VALUES (1, 999)`,
			want:   "its schema has version 999",
		},
		"no schema": {before: `ALTER ROLE lost SET search_path = nowhere`, role: "lost", want: "CREATE SCHEMA redrive AUTHORIZATION lost"},
	} {
		t.Run(name, func(t *testing.T) {
			dsn, run := postgrestest.Bare(t, test.options)
			if test.role != "" {
				run(`CREATE ROLE ` + test.role + ` LOGIN`)
				t.Cleanup(func() { run(`DROP OWNED BY ` + test.role + `; DROP ROLE ` + test.role) })

				dsn = strings.Replace(dsn, "postgres@", test.role+"@", 1)
			}

			if test.before != "" {
				run(test.before)
			}

			_, err := openAt(t, dsn)
			if !errors.Is(err, fault.ErrUnsafe) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it is opened with %v", err)
			}
		})
	}
}

// A start under a role whose transactions only read by default waits, as on a replica: its error says
// what to set, also where several hosts are named.
func TestOpen_WaitsUntilItsRoleWrites(t *testing.T) {
	dsn, role := postgrestest.NewRole(t)
	postgrestest.Admin(t, `ALTER ROLE `+role+` SET default_transaction_read_only = on`)

	for _, address := range []string{dsn, bothHosts(t, dsn, postgrestest.NewProxy(t, dsn).DSN)} {
		_, err := openAt(t, address)
		if !errors.Is(err, fault.ErrReadOnly) || !strings.Contains(err.Error(), "default_transaction_read_only") {
			t.Errorf("it is opened with %v", err)
		}
	}
}

// No error has the password of an address.
func TestOpen_HidesThePassword(t *testing.T) {
	for _, dsn := range []string{
		"postgres://me:hidden-word@127.0.0.1:1/jobs?connect_timeout=1",
		"postgres://me:hidden-word@127.0.0.1:port/jobs",
		"postgres://me:hidden-word@[::1/jobs",
		"host=127.0.0.1 port=1 user=me password=hidden-word dbname=jobs sslmode=wrong",
	} {
		_, err := openAt(t, dsn)
		if err == nil || strings.Contains(err.Error(), "hidden-word") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

// The extension can be in another schema, the locale any, and the tables in a schema of their
// own beside others.
func TestOpen_WorksWhereItCan(t *testing.T) {
	for name, test := range map[string]struct{ options, before, parameter string }{
		"the extension elsewhere": {before: `CREATE SCHEMA tools; CREATE EXTENSION pg_trgm SCHEMA tools`},
		"locale C":                {options: `LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`},
		"settings of the role": {before: `DO $$ DECLARE setting text; BEGIN
			FOREACH setting IN ARRAY ARRAY['bytea_output = escape', 'standard_conforming_strings = off', 'client_encoding = latin1',
				'default_transaction_isolation = serializable', 'DateStyle = German'] LOOP
				EXECUTE format('ALTER DATABASE %I SET ', current_database()) || setting;
			END LOOP; END $$`},
		"a schema of its own": {before: `CREATE TABLE jobs (id text); CREATE SCHEMA redrive`, parameter: "&search_path=redrive"},
	} {
		t.Run(name, func(t *testing.T) {
			dsn, run := postgrestest.Bare(t, test.options)
			if test.before != "" {
				run(test.before)
			}

			for range 2 {
				s := mustOpen(t, dsn+test.parameter)
				check(t, add(t.Context(), s))
				check(t, s.Close())
			}

			keepsBytes(t, dsn+test.parameter)
		})
	}
}

// keepsBytes checks that a database gives back what it was given, whatever its bytes are, and
// that texts are found in it.
func keepsBytes(t *testing.T, dsn string) {
	t.Helper()

	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}

	engine := openEngine(t, dsn)
	conn, err := engine.Writer(t.Context())
	check(t, err)

	var bytes []byte
	var text, isolation string
	check(t, db.Transact(t.Context(), conn, func(tx *db.Tx) error {
		_, err := db.Row(tx, `SELECT $1, $2, current_setting('transaction_isolation')`, []any{&bytes, &text, &isolation}, every, `é\x%`)
		return err
	}))

	if string(bytes) != string(every) || text != `é\x%` || isolation != "read committed" {
		t.Errorf("it gives %x and %q, its transactions are %s", bytes, text, isolation)
	}

	var found int
	check(t, engine.Reads().QueryRowContext(t.Context(), `SELECT count(*) WHERE $1 LIKE $2 ESCAPE '\'`, `50% of é`, `50\%%é`).Scan(&found))

	if found != 1 {
		t.Error("a text is not found")
	}

	check(t, conn.Close())
	check(t, engine.Close())
}

// A role that owns the database needs no other right.
func TestOpen_WorksForTheOwnerOfTheDatabase(t *testing.T) {
	dsn, run := postgrestest.Bare(t, `ENCODING 'UTF8' TEMPLATE template0`)
	run(`CREATE ROLE owner LOGIN`)
	t.Cleanup(func() { run(`REASSIGN OWNED BY owner TO postgres; DROP OWNED BY owner; DROP ROLE owner`) })
	run(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO owner', current_database()); END $$`)

	s := mustOpen(t, strings.Replace(dsn, "postgres@", "owner@", 1))
	check(t, add(t.Context(), s))

	if _, err := s.Identity(); err != nil {
		t.Error(err)
	}

	check(t, s.Close())
}

// The statements of docs/postgres.md give one role what makes the schema, and the role of the
// dashboard what works on it, and no more.
func TestOpen_WorksWithTheLeastRights(t *testing.T) {
	document, err := os.ReadFile("../../../docs/postgres.md")
	check(t, err)

	_, statements, found := strings.Cut(string(document), "```sql\nCREATE ROLE redrive_owner")
	statements, _, ended := strings.Cut("CREATE ROLE redrive_owner"+statements, "```")
	if !found || !ended {
		t.Fatal("the document has no such statements")
	}

	dsn, run := postgrestest.Bare(t, `ENCODING 'UTF8' TEMPLATE template0`)
	run(statements)
	t.Cleanup(func() {
		run(`DROP OWNED BY redrive, redrive_owner`)
		run(`DROP ROLE redrive, redrive_owner`)
	})
	owner, worker := strings.Replace(dsn, "postgres@", "redrive_owner@", 1), strings.Replace(dsn, "postgres@", "redrive@", 1)

	if _, err := openAt(t, worker); !errors.Is(err, fault.ErrUnsafe) {
		t.Errorf("without a schema it is opened with %v", err)
	}

	check(t, mustOpen(t, owner).Close())

	s := mustOpen(t, worker)
	check(t, add(t.Context(), s))
	check(t, s.Close())
	keepsBytes(t, worker)

	const unlike = `SELECT string_agg(relname, ' ') FROM pg_class WHERE relnamespace = 'redrive'::regnamespace AND
		CASE relkind WHEN 'r' THEN NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT') AND
				has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')) OR has_table_privilege(oid, 'TRUNCATE')
			WHEN 'S' THEN NOT has_sequence_privilege(oid, 'USAGE') ELSE false END`
	if tables := postgrestest.Query(t, worker, unlike); tables != "" {
		t.Errorf("it has other rights on %s", tables)
	}

	const more = `SELECT has_schema_privilege('redrive', 'CREATE') OR has_schema_privilege('public', 'CREATE')
		OR has_database_privilege(current_database(), 'CREATE') OR pg_has_role('redrive_owner', 'MEMBER')`
	if postgrestest.Query(t, worker, more) == "t" {
		t.Error("it could make tables")
	}
}
