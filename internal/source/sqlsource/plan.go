package sqlsource

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"redrive/internal/source"
	"redrive/internal/source/preset"
)

// explain lets the database look at statements in a transaction that is taken back.
func (o *Origin) explain(ctx context.Context, statements []string) error {
	if only, err := o.readOnly(ctx); err != nil || only {
		return cmp.Or(err, errReadOnly)
	}

	t, err := o.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}

	// EXPLAIN does not run a statement, so NULL does for every value.
	nothing := map[string]any{}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(o.settings.Values)), preset.Given) {
		nothing[name] = inline("NULL")
	}

	for _, statement := range statements {
		query, _ := o.bind(statement, nothing)
		if _, err := t.ExecContext(ctx, "EXPLAIN "+query); err != nil {
			return errors.Join(err, t.Rollback())
		}
	}

	return t.Rollback()
}

// plan warns when the list reads the whole table. PostgreSQL is asked to avoid that, so
// that it does so only where no index helps, also for a small table.
func (o *Origin) plan(ctx context.Context, r *source.Report) error {
	query, args := o.bind(o.list, map[string]any{"limit": inline("100")})
	head := "EXPLAIN "
	if o.engine.name == "sqlite" {
		head = "EXPLAIN QUERY PLAN "
	}

	var steps []map[string]string
	err := o.reading(ctx, func(t *sql.Tx) error {
		if o.engine.name == "postgres" {
			if _, err := t.ExecContext(ctx, "SET LOCAL enable_seqscan = off"); err != nil {
				return err
			}
		}

		rows, err := t.QueryContext(ctx, head+query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()

		steps, err = allOf(rows)

		return err
	})
	if slices.ContainsFunc(steps, o.engine.reads) {
		r.Warnings = append(r.Warnings, "No index fits the list of dead records, so each look reads the whole table. "+
			"If the table is large, choose a longer interval with the field every.")
	}

	return err
}

// fewRows is how many rows MySQL reads without looking for an index.
const fewRows = 10_000

// reads reports whether a step of a plan reads a whole table.
func (e engine) reads(step map[string]string) bool {
	switch e.name {
	case "postgres":
		return strings.Contains(step["QUERY PLAN"], "Seq Scan")
	case "mysql":
		n, err := strconv.Atoi(step["rows"])
		return err == nil && n > fewRows && (step["type"] == "ALL" || strings.Contains(step["Extra"], "Using filesort"))
	}

	detail := step["detail"]

	return strings.Contains(detail, "USE TEMP B-TREE FOR ORDER BY") || strings.Contains(detail, "AUTOMATIC") ||
		strings.HasPrefix(detail, "SCAN") && strings.HasSuffix(detail, "LEFT-JOIN")
}

// mostRows are read of a plan.
const mostRows = 1000

// allOf are rows by the names of their columns, the first ones when there are too many.
func allOf(rows *sql.Rows) (all []map[string]string, err error) {
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}

	// The columns of a plan differ from database to database, so they are read as they come.
	cells, places := make([]any, len(columns)), make([]any, len(columns))
	for i := range cells {
		places[i] = &cells[i]
	}

	for len(all) < mostRows && rows.Next() {
		if err := rows.Scan(places...); err != nil {
			return nil, err
		}

		row := map[string]string{}
		for i, name := range columns {
			row[name] = textOf(cells[i])
		}

		all = append(all, row)
	}

	return all, rows.Err()
}
