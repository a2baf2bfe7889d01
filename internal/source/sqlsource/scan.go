package sqlsource

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"redrive/internal/clip"
	"redrive/internal/source"
	"redrive/internal/source/bounded"
)

// Scan reads the records after a place, the newest first.
func (o *Origin) Scan(ctx context.Context, after string, limit int) (page source.Page, err error) {
	defer o.line.Begin(ctx, bounded.MaxRequest)(&err)

	limit = min(limit, o.step)
	query, args := o.after(after, limit)
	rowOf := map[identity]row{}
	last, n, size := "", 0, 0

	// A page that is full before its last row ends the connection: the driver would read
	// all the others first.
	reading, enough := context.WithCancel(ctx)
	defer enough()

	full := false
	err = o.reading(reading, func(t *sql.Tx) error {
		rows, err := t.QueryContext(reading, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()

		instants, err := instantsOf(rows)
		if err != nil {
			return err
		}

		for !full && rows.Next() {
			from, err := o.row(rows, instants)
			if err != nil {
				return err
			}

			last = o.place(from)
			if size := numberOf(from.value("size")); size > 0 {
				page.Refused = append(page.Refused, tooLarge(o.keep(from.value("key")), from.text("large"), size))
			} else {
				r := o.record(from)
				if _, twice := rowOf[identityOf(&r)]; !twice { // the mirror, too, keeps the first one
					rowOf[identityOf(&r)] = from
				}

				page.Records = append(page.Records, r)
			}

			n++
			size += from.size()
			full = n == limit || size > pageBytes
		}

		if n < limit && full {
			enough()
			return nil
		}

		return rows.Err()
	})
	if full && n < limit {
		err = nil // it was ended from here
	}

	if err == nil {
		o.fit(n, size)
	}

	if o.preset.Own {
		last = o.apart(&page, last, full)
	}

	if after == "" {
		page.Refused = append(page.Refused, o.nameless...)
	}

	page.Read = func(r *source.Record) { o.complete(r, rowOf[identityOf(r)]) }
	if full {
		page.Next = last
	}

	if err == nil && full && last == after {
		err = fmt.Errorf("the list stands still at %q: what it is ordered by does not fall from row to row", clip.Text(last, 64))
	}

	return page, err
}

// fit sets how many rows the next page asks for, by how large those of this one were.
func (o *Origin) fit(rows, bytes int) {
	switch {
	case bytes > pageBytes:
		o.step = max(1, rows-1)
	case bytes < pageBytes/4:
		o.step = min(maxStep, 2*o.step)
	}
}

// after is the query of the list from a place on.
func (o *Origin) after(place string, limit int) (query string, args []any) {
	statement, values := o.list, map[string]any{"limit": inline(fmt.Sprint(limit))}
	if place != "" {
		statement = o.more

		parts := strings.SplitN(place, "\n", 2)
		values["a"] = meant(parts[0])
		if len(parts) == 2 {
			values["b"] = meant(parts[1])
		}
	}

	query, args = o.bind(statement, values)

	return o.engine.bounded + query, args
}

// identity tells the records of a page apart.
type identity struct{ key, versionToken string }

func identityOf(r *source.Record) identity { return identity{r.Key, r.VersionToken} }

// place is where the list goes on after a row.
func (o *Origin) place(r row) string {
	if slices.Contains(o.columns, "b") {
		return o.keep(r.value("a")) + "\n" + o.keep(r.value("b"))
	}
	return o.keep(r.value("a"))
}
