package sqlsource

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"redrive/internal/clip"
	"redrive/internal/source"
)

// warnOfOtherRows warns of rows of the table that are left to another source: how many there are,
// and what they have in common.
func (o *Origin) warnOfOtherRows(ctx context.Context, r *source.Report) error {
	if o.preset.Others == nil {
		return nil
	}

	var groups []string

	total := 0
	err := o.reading(ctx, func(t *sql.Tx) error {
		query, args := o.bind(o.preset.Others.Count, nil)

		rows, err := t.QueryContext(ctx, o.engine.bounded+query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()

		for rows.Next() {
			// A row of the answer stands for several rows of the table: it has what they have in
			// common, and their number.
			var name sql.NullString
			n := 0
			if err := rows.Scan(&name, &n); err != nil {
				return err
			}

			total += n
			groups = append(groups, fmt.Sprintf("%s (%d)", clip.Text(name.String, 64), n))
		}

		return rows.Err()
	})
	if err != nil || total == 0 {
		return err
	}

	// Name at most ten groups. The total counts all of them.
	slices.Sort(groups)
	r.Warnings = append(r.Warnings, fmt.Sprintf("%d more rows of %s are not shown here: %s. %s",
		total, o.listTable, strings.Join(groups[:min(len(groups), 10)], ", "), o.preset.Others.Why))

	return nil
}

// checkTargetQueue checks the queue to which replays go, if that is on another server. If the queue
// does not allow replays, the source does not allow them either.
func (o *Origin) checkTargetQueue(ctx context.Context, r *source.Report) error {
	if o.work == nil {
		return nil
	}

	queue, err := o.work.Check(ctx)
	r.Warnings = append(r.Warnings, queue.Warnings...)
	if !slices.Contains(queue.May, source.Replay) {
		r.May = slices.DeleteFunc(r.May, func(k source.Kind) bool { return k == source.Replay })
	}

	return err
}

// shape compares tables with what the preset expects.
func (o *Origin) shape(ctx context.Context) error {
	for _, table := range slices.Sorted(maps.Keys(o.preset.Columns)) {
		expected := o.preset.Columns[table]

		found, err := o.columnsOf(ctx, table)
		if err != nil {
			// A lost connection says nothing about the tables.
			if _, k, _ := errorOf(err); k == lost {
				return err
			}
			return o.stranger(ctx, table, expected, err)
		}

		missing := slices.DeleteFunc(slices.Clone(expected), func(c string) bool { return slices.Contains(found, c) })
		if len(missing) > 0 {
			return fmt.Errorf("this is not %s: its table %s has the columns %s, but not %s",
				o.preset.Title, o.settings.Names[table], strings.Join(found, ", "), strings.Join(missing, ", "))
		}

		if err := o.hidden(ctx, table); err != nil {
			return err
		}
	}

	return nil
}

// columnsOf are the columns of a table.
func (o *Origin) columnsOf(ctx context.Context, table string) (columns []string, err error) {
	err = o.reading(ctx, func(t *sql.Tx) error {
		rows, err := t.QueryContext(ctx, "SELECT * FROM "+o.engine.table(o.settings.Names[table])+" WHERE 1 = 0")
		if err != nil {
			return err
		}

		columns, err = rows.Columns()

		return errors.Join(err, rows.Err(), rows.Close())
	})

	return columns, err
}

// mostTables are named in an error.
const mostTables = 20

// stranger is the error about a database that does not have the tables of the preset.
func (o *Origin) stranger(ctx context.Context, table string, columns []string, cause error) error {
	_, _, says := errorOf(cause)
	var there []string
	err := o.reading(ctx, func(t *sql.Tx) error {
		rows, err := t.QueryContext(ctx, o.engine.tables)
		if err != nil {
			return err
		}
		defer rows.Close()

		// One name more than is shown tells that there are others.
		for len(there) <= mostTables && rows.Next() {
			name := ""
			if err := rows.Scan(&name); err != nil {
				return err
			}

			there = append(there, name)
		}

		return rows.Err()
	})

	switch {
	case len(there) == 0:
		there = []string{"none"}
	case len(there) > mostTables:
		there = append(there[:mostTables], "and others")
	}

	return errors.Join(fmt.Errorf("this is not %s, or its tables have other names: expected a table %s with the columns %s; "+
		"the tables that this user can see are: %s (the database says: %s)",
		o.preset.Title, o.settings.Names[table], strings.Join(columns, ", "), strings.Join(there, ", "), says), err)
}

// hidden refuses a table of PostgreSQL whose rows are hidden from the user: everything
// would look well, and nothing would be seen.
func (o *Origin) hidden(ctx context.Context, table string) error {
	if o.engine.name != "postgres" {
		return nil
	}

	hides := false

	name := o.engine.table(o.settings.Names[table])
	err := o.reading(ctx, func(t *sql.Tx) error {
		return t.QueryRowContext(ctx, "SELECT row_security_active(to_regclass($1))", name).Scan(&hides)
	})
	if err == nil && hides {
		err = fmt.Errorf("row level security hides the rows of %s from this user: "+
			"connect as the owner of the table, or give the role BYPASSRLS", name)
	}

	return err
}
