package sqlsource

import (
	"context"
	"database/sql"
	"fmt"

	"redrive/internal/source"
)

// maxNameless is how many rows without a key are refused one by one.
const maxNameless = 1000

// apart refuses the rows of an own table that have the same key: only its owner knows what
// its statements do, and those that name the key alone would change all of these rows.
// The list is in the order of the keys, so that the rows of one follow each other. A full
// page leaves those of its last key to the next one, which begins there, so that they come
// together. It returns where that begins.
func (o *Origin) apart(page *source.Page, last string, full bool) (next string) {
	records := page.Records

	// The rows of the last key may go on behind this page.
	if full && o.shares && len(records) > 0 {
		end := len(records) - 1
		for end > 0 && records[end-1].Key == records[len(records)-1].Key {
			end--
		}

		if end > 0 && len(page.Refused) == 0 { // else the page has to be taken as it is
			records, last = records[:end], records[end-1].Key
		}
	}

	// A key that one row alone has names that row. All rows of any other key are refused.
	rows := map[string]int{}
	for i := range records {
		rows[records[i].Key]++
	}

	page.Records = nil
	var shared []source.Record
	for _, r := range records {
		if rows[r.Key] == 1 {
			page.Records = append(page.Records, r)
		} else {
			shared = append(shared, r)
		}
	}

	page.Refused = append(page.Refused, refusals(shared, func(r source.Record) string {
		return fmt.Sprintf("%d rows of %s have this %s, so that no act could be on one of them alone.",
			rows[r.Key], o.listTable, o.preset.Unique.Column)
	})...)

	return last
}

// refusals are those of rows, which get names that differ.
func refusals(all []source.Record, why func(source.Record) string) (refused []source.Refusal) {
	named := map[string]int{}
	for _, r := range all {
		name := r.FullName()
		named[name]++
		if named[name] > 1 {
			name = fmt.Sprintf("%s, row %d", name, named[name])
		}

		refused = append(refused, source.Refusal{Key: name, Why: why(r)})
	}

	return refused
}

// readNameless reads which rows of an own table have no key.
func (o *Origin) readNameless(ctx context.Context) error {
	u := o.preset.Unique
	var all []source.Record

	err := o.reading(ctx, func(t *sql.Tx) error {
		query, args := o.bind(fmt.Sprintf("SELECT %s FROM %s WHERE %s AND %s IS NULL LIMIT %d",
			o.plain("witness", o.preset.Fields["witness"]), o.preset.From, o.preset.Where, u.By, maxNameless), nil)

		rows, err := t.QueryContext(ctx, o.engine.bounded+query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()

		for rows.Next() {
			var token any
			if err := rows.Scan(&token); err != nil {
				return err
			}

			all = append(all, source.Record{Key: "no " + u.Column, VersionToken: o.keep(token)})
		}

		return rows.Err()
	})
	if err != nil {
		return err
	}

	o.nameless = refusals(all, func(source.Record) string {
		return fmt.Sprintf("It has no %s, so that nothing names it for an act.", u.Column)
	})

	return nil
}
