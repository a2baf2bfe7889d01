package sqlsource

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"redrive/internal/source"
	"redrive/internal/source/bounded"
)

// Check checks whether the database is what the preset describes, and what Redrive can do there.
// It reads one record, and returns a report with warnings of what a user should know. The error
// says that the database does not answer, or that its tables are not those of the preset: then
// the source cannot be used.
func (o *Origin) Check(ctx context.Context) (r source.Report, err error) {
	r = source.Report{Version: o.preset.Version}
	if err := o.describe(ctx, &r); err != nil {
		return r, err
	}

	// Reading a record shows whether the query of the list works.
	if _, err := o.Scan(ctx, "", 1); err != nil {
		return r, err
	}
	defer o.line.Begin(ctx, bounded.MaxAnswer)(&err)

	// The steps in the order in which their warnings are shown.
	for _, step := range []func(context.Context, *source.Report) error{
		o.checkKeys, o.warnOfOtherRows, o.checkRights, o.checkTargetQueue, o.checkSucceeded, o.plan,
	} {
		if err := step(ctx, &r); err != nil {
			return r, err
		}
	}

	return r, nil
}

// describe checks whether the tables are those of the preset, and reads which version wrote them.
func (o *Origin) describe(ctx context.Context, r *source.Report) (err error) {
	defer o.line.Begin(ctx, bounded.MaxAnswer)(&err)

	if err := o.shape(ctx); err != nil {
		return err
	}

	return o.version(ctx, r)
}

// version reads which version of the system wrote the tables, if the preset says how.
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

// countedRows is how many rows checkKeys looks at.
const countedRows = 100_000

// checkKeys checks whether each row has a key of its own, for a system whose database does not
// ensure that. It warns of rows without a key and of rows that share one, with the statement that
// gives them keys.
func (o *Origin) checkKeys(ctx context.Context, r *source.Report) error {
	u := o.preset.Unique
	if u == nil {
		return nil
	}

	// Count the rows without a key, and the rows whose key other rows have as well.
	const query = `SELECT coalesce(sum(n), 0), coalesce(sum(CASE WHEN k IS NULL THEN n ELSE 0 END), 0),
		coalesce(sum(CASE WHEN k IS NOT NULL AND n > 1 THEN n ELSE 0 END), 0)
		FROM (SELECT k, count(*) AS n FROM (SELECT %s AS k FROM %s WHERE %s LIMIT %d) AS looked GROUP BY k) AS counted`
	var looked, nameless, shared int64

	err := o.reading(ctx, func(t *sql.Tx) error {
		query, args := o.bind(fmt.Sprintf(query, u.By, o.preset.From, o.preset.Where, countedRows+1), nil)
		return t.QueryRowContext(ctx, o.engine.bounded+query, args...).Scan(&looked, &nameless, &shared)
	})
	if err != nil {
		return err
	}

	// Of a larger table, not all rows were looked at.
	atLeast := ""
	if looked > countedRows {
		atLeast = "At least "
	}

	// Warn of the rows without a key. If the key of a record is another column, such rows can still
	// be read.
	isKey := u.By == o.preset.Fields["key"]

	o.nameless, o.shares = nil, shared > 0
	mend, _ := o.bind(u.Mend, nil)
	if nameless > 0 {
		if isKey {
			if err := o.readNameless(ctx); err != nil {
				return err
			}
		}

		r.Warnings = append(r.Warnings, fmt.Sprintf("%s%d rows of %s have no %s. %s To give each row one: %s",
			atLeast, nameless, o.listTable, u.Column, u.Nameless, mend))
	}

	// Warn of the rows that share a key.
	if shared > 0 {
		how := "They are in quarantine, because no act could be on one of them alone. To give each row its own: " + mend
		if !o.preset.Own {
			how = fmt.Sprintf("Redrive shows the newest row of each %[1]s, and has the others in quarantine. "+
				"To find them: SELECT %[1]s FROM %[2]s GROUP BY %[1]s HAVING count(*) > 1", u.Column, o.listTable)
			r.Shared = fmt.Sprintf("A newer row of %s has the same %s. This one is shown when that has left.", o.listTable, u.Column)
		}

		r.Warnings = append(r.Warnings, fmt.Sprintf("%s%d rows of %s have the same %s as another row. %s",
			atLeast, shared, o.listTable, u.Column, how))
	}

	return nil
}

// checkRights finds out which acts the database user may carry out, and warns of the others. It
// has the database explain their statements, which needs the same rights as carrying them out.
func (o *Origin) checkRights(ctx context.Context, r *source.Report) error {
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

		// A statement that the database does not understand shows that this is another system.
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

// checkSucceeded checks whether the user may read which jobs have succeeded. If not, dead letters
// can be seen and replayed all the same.
func (o *Origin) checkSucceeded(ctx context.Context, r *source.Report) error {
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

// readOnly reports whether the database refuses all writes, whatever the rights of the user are.
// It reports false for MySQL.
func (o *Origin) readOnly(ctx context.Context) (only bool, err error) {
	switch o.engine.name {
	case "postgres":
		err = o.db.QueryRowContext(ctx, "SELECT current_setting('transaction_read_only') = 'on'").Scan(&only)
	case "mysql": // its EXPLAIN fails if the database is read-only
	default:
		var c *sql.Conn

		c, err = o.db.Conn(ctx)
		if err != nil {
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
