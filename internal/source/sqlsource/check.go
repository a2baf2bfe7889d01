package sqlsource

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"redrive/internal/clip"
	"redrive/internal/source"
	"redrive/internal/source/bounded"
	"redrive/internal/source/preset"
)

// Check looks whether the tables are those of the preset, what the rights allow, and how
// much work the list is, and reads one record.
func (o *Origin) Check(ctx context.Context) (r source.Report, err error) {
	r = source.Report{Version: o.preset.Version}
	if err := o.describe(ctx, &r); err != nil {
		return r, err
	}

	if _, err := o.Scan(ctx, "", 1); err != nil {
		return r, err
	}
	defer o.line.Begin(ctx, bounded.MaxAnswer)(&err)

	for _, look := range []func(context.Context, *source.Report) error{o.tellsApart, o.others, o.rights} {
		if err := look(ctx, &r); err != nil {
			return r, err
		}
	}

	if err := o.reaches(ctx, &r); err != nil {
		return r, err
	}

	if err := o.tells(ctx, &r); err != nil {
		return r, err
	}

	return r, o.plan(ctx, &r)
}

// describe looks whether the tables are those of the preset, and which version wrote them.
func (o *Origin) describe(ctx context.Context, r *source.Report) (err error) {
	defer o.line.Begin(ctx, bounded.MaxAnswer)(&err)

	if err := o.shape(ctx); err != nil {
		return err
	}

	return o.version(ctx, r)
}

// tells looks whether the user may read which jobs have succeeded. One who may not sees the
// dead letters and replays them all the same.
func (o *Origin) tells(ctx context.Context, r *source.Report) error {
	if o.preset.Succeeded == "" {
		return nil
	}

	err := o.reading(ctx, func(t *sql.Tx) error {
		query, _ := o.bind(o.preset.Succeeded, map[string]any{"keys": inline("NULL")})
		_, err := t.ExecContext(ctx, "EXPLAIN "+query)
		return err
	})
	if err == nil {
		r.Tells = true
		return nil
	}

	_, k, says := errorOf(err)
	if k == lost {
		return err
	}

	r.Warnings = append(r.Warnings, fmt.Sprintf("Redrive cannot read which replayed jobs have succeeded: %s.", says))

	return nil
}

// countedRows is how many rows are looked at to see whether they can be told apart.
const countedRows = 100_000

// tellsApart looks whether each row has a key of its own, where the database does not see
// to that, and says how many rows do not and which statement gives them one.
func (o *Origin) tellsApart(ctx context.Context, r *source.Report) error {
	u := o.preset.Unique
	if u == nil {
		return nil
	}

	// Count rows by what should tell them apart.
	const query = `SELECT coalesce(sum(CASE WHEN k IS NULL THEN n ELSE 0 END), 0),
		coalesce(sum(CASE WHEN k IS NOT NULL AND n > 1 THEN n ELSE 0 END), 0)
		FROM (SELECT k, count(*) AS n FROM (SELECT %s AS k FROM %s WHERE %s LIMIT %d) AS looked GROUP BY k) AS counted`
	var nameless, shared int64

	err := o.reading(ctx, func(t *sql.Tx) error {
		query, args := o.bind(fmt.Sprintf(query, u.By, o.preset.From, o.preset.Where, countedRows), nil)
		return t.QueryRowContext(ctx, o.engine.bounded+query, args...).Scan(&nameless, &shared)
	})
	if err != nil {
		return err
	}

	// Say which rows have none, and which have the same as another row.
	isKey := u.By == o.preset.Fields["key"] // else rows without it have another key

	o.nameless, o.shares = nil, shared > 0
	mend, _ := o.bind(u.Mend, nil)
	if nameless > 0 {
		if isKey {
			if err := o.readNameless(ctx); err != nil {
				return err
			}
		}

		r.Warnings = append(r.Warnings, fmt.Sprintf("%d rows of %s have no %s. %s To give each row one: %s",
			nameless, o.lies, u.Column, u.Nameless, mend))
	}

	if shared > 0 {
		how := "They are in quarantine, because no act could be on one of them alone. To give each row its own: " + mend
		if !o.preset.Own {
			how = fmt.Sprintf("Redrive shows the newest row of each %[1]s, and has the others in quarantine. "+
				"To find them: SELECT %[1]s FROM %[2]s GROUP BY %[1]s HAVING count(*) > 1", u.Column, o.lies)
			r.Shared = fmt.Sprintf("A newer row of %s has the same %s. This one is shown when that has left.", o.lies, u.Column)
		}

		r.Warnings = append(r.Warnings, fmt.Sprintf("%d rows of %s have the same %s as another row. %s", shared, o.lies, u.Column, how))
	}

	return nil
}

// others says how many rows of the table are left to another source.
func (o *Origin) others(ctx context.Context, r *source.Report) error {
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

	slices.Sort(groups)
	r.Warnings = append(r.Warnings, fmt.Sprintf("%d more rows of %s are not shown here: %s. %s",
		total, o.lies, strings.Join(groups[:min(len(groups), 10)], ", "), o.preset.Others.Why))

	return nil
}

// reaches looks whether replays get to a queue that is elsewhere.
func (o *Origin) reaches(ctx context.Context, r *source.Report) error {
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

// version reads what the system says about itself.
func (o *Origin) version(ctx context.Context, r *source.Report) error {
	if o.preset.Probe == "" {
		return nil
	}

	var version sql.NullString
	err := o.reading(ctx, func(t *sql.Tx) error {
		query, args := o.bind(o.preset.Probe, nil)
		return t.QueryRowContext(ctx, query, args...).Scan(&version)
	})
	if err == nil && version.String != "" {
		r.Version = "schema version " + version.String
	}

	return err
}

// rights finds out which acts the rights allow: the database explains their statements
// without carrying them out, for which it wants the same rights.
func (o *Origin) rights(ctx context.Context, r *source.Report) error {
	replay := o.preset.Replay[source.Once]
	for _, act := range []struct {
		kind       source.Kind
		statements []string
	}{{source.Replay, replay}, {source.Discard, o.preset.Discard}} {
		if len(act.statements) == 0 {
			continue
		}

		err := o.explain(ctx, act.statements)
		if err == nil {
			r.May = append(r.May, act.kind)
			continue
		}

		_, k, says := errorOf(err)
		switch k {
		case lost:
			return err
		case refused:
			return fmt.Errorf("this is not %s, or its tables have other names: its statement for a %s is not accepted (the database says: %s)",
				o.preset.Title, act.kind, says)
		}

		r.Warnings = append(r.Warnings, fmt.Sprintf("The database user may not %s: %s.", act.kind, says))
	}

	return nil
}

// explain lets the database look at statements in a transaction that is taken back.
func (o *Origin) explain(ctx context.Context, statements []string) error {
	if only, err := o.readOnly(ctx); err != nil || only {
		return cmp.Or(err, errReadOnly)
	}

	t, err := o.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}

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

// readOnly reports whether the database takes no writes, whatever the rights are.
func (o *Origin) readOnly(ctx context.Context) (only bool, err error) {
	switch o.engine.name {
	case "postgres":
		err = o.db.QueryRowContext(ctx, "SELECT current_setting('transaction_read_only') = 'on'").Scan(&only)
	case "mysql": // the database says so when it explains
	default:
		var c *sql.Conn
		if c, err = o.db.Conn(ctx); err != nil {
			return false, err
		}

		err = c.Raw(func(driver any) (err error) {
			only, err = driver.(interface {
				IsReadOnly(schema string) (bool, error)
			}).IsReadOnly("main")
			return err
		})
		err = errors.Join(err, c.Close())
	}

	return only, err
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
