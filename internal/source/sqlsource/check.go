package sqlsource

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"redrive/internal/source"
	"redrive/internal/source/bounded"
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

	err = o.plan(ctx, &r) // before r is returned

	return r, err
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

		r.Warnings = append(r.Warnings, fmt.Sprintf("%s%d rows of %s have no %s. %s To give each row one: %s",
			atLeast, nameless, o.listTable, u.Column, u.Nameless, mend))
	}

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

		// A statement that the database does not understand is one for another system.
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

// readOnly reports whether the database takes no writes, whatever the rights are.
func (o *Origin) readOnly(ctx context.Context) (only bool, err error) {
	switch o.engine.name {
	case "postgres":
		err = o.db.QueryRowContext(ctx, "SELECT current_setting('transaction_read_only') = 'on'").Scan(&only)
	case "mysql": // the database says so when it explains
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
