package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pressly/goose/v3"

	"redrive/internal/store/db"
)

// object is a table, an index, a trigger or a view of a schema.
type object struct{ kind, name, table string }

func (o object) String() string {
	if o.kind == "index" || o.kind == "trigger" {
		return fmt.Sprintf("%s %s on %s", o.kind, o.name, o.table)
	}
	return o.kind + " " + o.name
}

// schema is the text of every object of a database that a statement can have made. Objects whose
// names begin with sqlite_ are left out: SQLite makes those.
type schema map[object]string

func (s *schema) read(src func(each func(*sql.Rows) error) error) error {
	*s = schema{}

	return src(func(rows *sql.Rows) error {
		var o object
		var text string
		err := rows.Scan(&o.kind, &o.name, &o.table, &text)
		(*s)[o] = text

		return err
	})
}

const schemaQuery = `SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema WHERE substr(name, 1, 7) <> 'sqlite_'`

// made are the schemas that the migrations make, by their versions.
var made = struct {
	sync.Mutex
	schemas map[int64]schema
}{schemas: map[int64]schema{}}

// madeBy is the schema that the migrations make up to a version.
func madeBy(ctx context.Context, version int64) (s schema, err error) {
	made.Lock()
	defer made.Unlock()

	if s, ok := made.schemas[version]; ok {
		return s, nil
	}

	// The migrations are run on an empty database in memory.
	pool, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()

	pool.SetMaxOpenConns(1) // another connection would have another database

	steps, err := migrator(pool)
	if err != nil {
		return nil, err
	}

	if _, err := steps.UpTo(ctx, version); err != nil {
		return nil, db.Wrap(err, "make the schema of version %d", version)
	}

	err = s.read(func(each func(*sql.Rows) error) error { return db.Scan(pool.QueryContext(ctx, schemaQuery))(each) })
	if err == nil {
		made.schemas[version] = s
	}

	return s, err
}

// migrator are the migrations of a database. Each file is run as one text: SQLite finds the ends
// of its statements itself.
func migrator(writes *sql.DB) (*goose.Provider, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}

	var steps []*goose.Migration
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, err
		}

		text, err := migrations.ReadFile(name)
		if err != nil {
			return nil, err
		}

		run := func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, string(text))
			return err
		}
		steps = append(steps, goose.NewGoMigration(version, &goose.GoFunc{RunTx: run}, nil))
	}

	return goose.NewProvider(goose.DialectSQLite3, writes, nil, goose.WithGoMigrations(steps...),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
}

// foreign names the objects of a schema that no migration made, or that were changed since. A
// trigger among them runs with every write to its table, and can change what Redrive stores.
func (s schema) foreign(own schema) []string {
	var names []string
	for o, text := range s {
		was, known := own[o]

		// The text of a trigger or a view is what runs: a changed one is foreign too.
		runs := o.kind == "trigger" || o.kind == "view"
		if !known || runs && text != was {
			names = append(names, o.String())
		}
	}

	slices.Sort(names)

	return names
}

// missing names the objects that the migrations made and that are gone.
func (s schema) missing(own schema) []string {
	var names []string
	for o := range maps.Keys(own) {
		if _, there := s[o]; !there {
			names = append(names, o.String())
		}
	}

	slices.Sort(names)

	return names
}

// onlyOwn looks for objects that no migration made.
func onlyOwn(ctx context.Context, src db.Source, version int64) db.Finding {
	found := db.Finding{What: "the schema contains only what Redrive made"}
	var there schema

	own, err := madeBy(ctx, version)
	if err == nil {
		err = there.read(func(each func(*sql.Rows) error) error { return src.Query(schemaQuery, each) })
	}

	if err != nil {
		found.Problem = err.Error()
		return found
	}

	var problems []string
	if names := there.foreign(own); len(names) > 0 {
		problems = append(problems, "Redrive did not make the "+strings.Join(names, ", the ")+
			": find out where that comes from, stop the dashboard, and remove it with sqlite3 (DROP TRIGGER, DROP VIEW, DROP INDEX or DROP TABLE)")
	}

	if names := there.missing(own); len(names) > 0 {
		problems = append(problems, "the "+strings.Join(names, ", the ")+" was removed: restore a backup")
	}

	found.Problem = strings.Join(problems, "; ")

	return found
}

// checkSchema refuses a copy with objects that no migration made.
func checkSchema(ctx context.Context, copied, from string) error {
	version, err := checkVersion(ctx, copied, []string{"mode=ro", "immutable=1"})
	if err != nil {
		return err
	}

	own, err := madeBy(ctx, version)
	if err != nil {
		return err
	}

	// An immutable file is read without locks, and SQLite makes no files beside it.
	pool, err := sql.Open("sqlite", dsn(copied, append(safety(), "immutable=1")...))
	if err != nil {
		return err
	}

	var there schema

	err = there.read(func(each func(*sql.Rows) error) error { return db.Scan(pool.QueryContext(ctx, schemaQuery))(each) })
	if err := errors.Join(err, pool.Close()); err != nil {
		return err
	}

	// Only what was added or changed is refused here, and not what is missing.
	names := there.foreign(own)
	if len(names) == 0 {
		return nil
	}

	return unsafe(from, "%s contains what Redrive did not make: the %s; nothing was restored. Find out where that comes from, "+
		"remove it with sqlite3 '%s' (DROP TRIGGER, DROP VIEW, DROP INDEX or DROP TABLE), and restore again",
		from, strings.Join(names, ", the "), from)
}
