// Package moving is what a database has to know when it is copied into another one, or becomes
// the copy: what it is opened for, whether it is complete, and of which tables it is made.
package moving

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"redrive/internal/fault"
)

// Purpose is what a database is opened or looked at for.
type Purpose int

const (
	// ToWork is how a dashboard opens its database: one that is missing is made, an older schema
	// is brought up to date, and a copy that is not finished is refused.
	ToWork Purpose = iota

	// ToChange is how a command opens a database that has to be there: it is made by no mistyped
	// name. Apart from that it is ToWork.
	ToChange

	// ToCopy leaves a database as it is, to make a copy of it: it has to be there, with the newest
	// schema, and to be no unfinished copy itself.
	ToCopy

	// ToFill makes a database a copy of another one: it is made when it is missing, and can be a
	// copy that is not finished.
	ToFill
)

// CheckSchema says why a database cannot be opened for the purpose, whose schema has a version:
// 0 when there is none. A database that is not there is an fs.ErrNotExist.
func (p Purpose) CheckSchema(version, newest int64) error {
	switch {
	case p == ToWork || p == ToChange && version > 0 || version == newest || p == ToFill && version == 0:
		return nil
	case version == 0:
		return fmt.Errorf("there is no database of Redrive: %w", fs.ErrNotExist)
	}

	return fmt.Errorf("its schema has version %d, and this program copies version %d: start the dashboard with it once, and stop it",
		version, newest)
}

// Asked is what one row can be read of: a pool, a connection or a transaction.
type Asked interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// CheckWhole says why a database cannot be used: it is to become a copy of another one, and that
// is not finished. The one who makes the copy may use it.
func (p Purpose) CheckWhole(ctx context.Context, src Asked) error {
	const query = `SELECT coalesce(max(source), '') FROM migration`

	if p == ToFill {
		return nil
	}

	var source string

	err := src.QueryRowContext(ctx, query).Scan(&source)
	if err != nil {
		return fmt.Errorf("read whether the database is complete: %w", err)
	}

	if source != "" {
		return fmt.Errorf("%w: it is to become a copy of %s; run dashboard migrate again with the same --from and --to, which goes on "+
			"where it was, or name another database", ErrUnfinished, source)
	}

	return nil
}

// ErrUnfinished says that a database is a copy of another one that is not finished. It is a
// fault.ErrUnsafe: another start does not help.
var ErrUnfinished = error(unfinished{})

type unfinished struct{}

func (unfinished) Error() string { return "a migration into it is not finished" }

// Unwrap gives the kind.
func (unfinished) Unwrap() error { return fault.ErrUnsafe }

// Table is one of the tables of a database.
type Table struct {
	Name    string
	Columns []string
	Key     []string // the columns that tell its rows apart, in their order; none: it has one row
}

// Tables is what an engine knows of all its tables, whatever is in them.
type Tables interface {
	// Tables are those of the database itself, but for those that belong to the engine.
	Tables(ctx context.Context) ([]Table, error)

	// Filled is called when these tables were filled with rows that have brought their numbers
	// along: rows that come later get others. Queries are planned by what the tables hold now.
	Filled(ctx context.Context, tables []Table) error
}

// Read reads tables from the answer of an engine, which has a row for each column: the name of
// its table, its own, and its place in the key, 0 when it is no part of it. The columns of a
// table come one after the other.
func Read(rows *sql.Rows, err error) (all []Table, failed error) {
	if err != nil {
		return nil, fmt.Errorf("read the tables of the database: %w", err)
	}

	defer rows.Close() // closing it again does nothing

	places := map[string]int{} // of the columns of the last table
	for rows.Next() {
		var table, column string
		var place int
		err := rows.Scan(&table, &column, &place)
		if err != nil {
			return nil, fmt.Errorf("read the tables of the database: %w", err)
		}

		if len(all) == 0 || all[len(all)-1].Name != table {
			all = append(all, Table{Name: table})
			clear(places)
		}

		t := &all[len(all)-1]
		t.Columns = append(t.Columns, column)

		if place > 0 {
			places[column] = place
			t.Key = append(t.Key, column)
			slices.SortFunc(t.Key, func(a, b string) int { return cmp.Compare(places[a], places[b]) })
		}
	}

	return all, errors.Join(rows.Err(), rows.Close())
}
