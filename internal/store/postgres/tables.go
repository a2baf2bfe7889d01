package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"redrive/internal/store/db"
	"redrive/internal/store/moving"
)

// makesTable finds the names of the tables that a migration makes.
var makesTable = regexp.MustCompile(`CREATE TABLE (\w+)`)

// ownTables are the names of Redrive's tables. Other programs can have some in the same schema.
func ownTables() (names db.Texts, err error) {
	text, _, err := stepsFrom(0)
	for _, found := range makesTable.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}

	return names, err
}

// Tables are those of the schema in which Redrive works.
func (e *engine) Tables(ctx context.Context) (all []moving.Table, err error) {
	const query = `SELECT t.relname, c.attname, coalesce(array_position(k.conkey, c.attnum), 0)
		FROM pg_class AS t JOIN pg_attribute AS c ON c.attrelid = t.oid AND c.attnum > 0 AND NOT c.attisdropped
		LEFT JOIN pg_constraint AS k ON k.conrelid = t.oid AND k.contype = 'p'
		WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind = 'r' AND t.relname = ANY($1)
		ORDER BY t.relname COLLATE "C", c.attnum`

	own, err := ownTables()
	if err != nil {
		return nil, err
	}

	rows, err := e.reads.QueryContext(ctx, query, own)

	return moving.Read(rows, err)
}

// Filled lets the numbers that tables give their rows follow those that are there, and counts
// what the planner of the server goes by.
func (e *engine) Filled(ctx context.Context, tables []moving.Table) error {
	const numbered = `SELECT a.attrelid::regclass::text, quote_ident(a.attname),
			pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)
		FROM pg_attribute AS a JOIN pg_class AS t ON t.oid = a.attrelid
		WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind = 'r' AND a.attidentity <> '' AND t.relname = ANY($1)`
	const follow = `SELECT setval('%[3]s', coalesce(max(%[2]s), 0) + 1, false) FROM %[1]s`

	// Another program's numbers are left alone.
	var names db.Texts
	var quoted []string
	for _, t := range tables {
		names = append(names, t.Name)
		quoted = append(quoted, `"`+t.Name+`"`)
	}

	var steps []string
	note := func(rows *sql.Rows) error {
		var table, column, sequence string
		err := rows.Scan(&table, &column, &sequence)
		steps = append(steps, fmt.Sprintf(follow, table, column, sequence))

		return err
	}

	rows, err := e.reads.QueryContext(ctx, numbered, names)

	err = db.Scan(rows, err)(note)
	if err != nil {
		return fmt.Errorf("read which tables give their rows numbers: %w", e.Fault(err))
	}

	server, err := e.alone(ctx)
	if err != nil {
		return e.Fault(err)
	}

	err = script(ctx, server, strings.Join(append(steps, "ANALYZE "+strings.Join(quoted, ", ")), "; "))
	if err != nil {
		err = fmt.Errorf("let numbers follow those that are there, and count rows: %w", e.Fault(err))
	}

	return errors.Join(err, closeSoon(server))
}
