package transfer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"redrive/internal/store"
	"redrive/internal/store/db"
	"redrive/internal/store/health"
	"redrive/internal/store/location"
	"redrive/internal/store/moving"
	"redrive/internal/store/postgres/postgrestest"
	"redrive/internal/store/sqlite/sqlitetest"
	"redrive/internal/store/storetest"
)

func TestMain(m *testing.M) {
	batchRows = 400
	postgrestest.Run(m)
}

// Whatever a store can be asked for: what it leaves in its file goes to a server and back.
func TestLong_WhatEveryBehaviourLeavesGoesThereAndBack(t *testing.T) {
	storetest.FewHistories(t)
	storetest.Run(t, func(t *testing.T) func() *store.Store {
		path, server, back := sqlitetest.New(t), postgrestest.New(t), filepath.Join(t.TempDir(), "back.db")
		t.Cleanup(func() { thereAndBack(t, path, server, back) })

		return func() *store.Store { return openStore(t, path) }
	})
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// openStore opens a database as a dashboard does.
func openStore(tb testing.TB, where string) *store.Store {
	tb.Helper()
	s, err := store.Open(context.Background(), store.Options{Database: location.Of(where).Database(true), Attached: storetest.Attached})
	check(tb, err)
	return s
}

// run is Run without progress.
func run(from, to string) (Report, error) {
	return Run(context.Background(), location.Of(from), location.Of(to), func(Step, int64, int64) {})
}

// thereAndBack moves a database from a file to a server, and into another file, and compares
// all three.
func thereAndBack(tb testing.TB, path, server, back string) {
	tb.Helper()

	before := contents(tb, path)

	for _, way := range [][2]string{{path, server}, {server, back}} {
		_, err := run(way[0], way[1])
		check(tb, err)
		compare(tb, before, contents(tb, way[1]))
		sound(tb, way[1])
	}

	compare(tb, before, contents(tb, path))
}

// sound checks that doctor finds nothing.
func sound(tb testing.TB, where string) {
	tb.Helper()
	found, err := store.Examine(context.Background(), location.Of(where).Database(false))
	check(tb, err)
	for _, f := range found {
		if f.Problem != "" {
			tb.Errorf("%s: %s: %s", where, f.What, f.Problem)
		}
	}
}

// contents are the rows of every table that is copied, sorted, with the types of their values.
func contents(tb testing.TB, where string) map[string][]string {
	tb.Helper()

	e, err := location.Of(where).For(moving.ToCopy).Open(context.Background(), health.New(slog.New(slog.DiscardHandler)))
	check(tb, err)
	defer func() { check(tb, e.Close()) }()

	tables, err := e.Tables(context.Background())
	check(tb, err)

	all := map[string][]string{}
	for _, table := range tables {
		if leftOut[table.Name] != "" {
			continue
		}

		rows, err := e.Reads().Query(`SELECT * FROM "` + table.Name + `"`)
		all[table.Name] = nil
		check(tb, db.Scan(rows, err)(func(rows *sql.Rows) error {
			text, err := written(rows)
			all[table.Name] = append(all[table.Name], text)
			return err
		}))
		slices.Sort(all[table.Name])
	}

	return all
}

// written writes a row with the names of its columns, which need not be in one order.
func written(rows *sql.Rows) (string, error) {
	names, err := rows.Columns()
	values, into := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}

	row := map[string]string{}
	err = errors.Join(err, rows.Scan(into...))
	for i, name := range names {
		row[name] = fmt.Sprintf("%T %q", values[i], values[i])
		if number, ok := values[i].(float64); ok {
			row[name] = fmt.Sprintf("float64 %x", number)
		}
	}

	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(row)) {
		fmt.Fprintf(&text, "%s=%s ", name, row[name])
	}

	return text.String(), err
}

// compare compares the contents of two databases.
func compare(tb testing.TB, want, got map[string][]string) {
	tb.Helper()
	if !slices.Equal(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))) {
		tb.Errorf("the tables are %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	for name := range want {
		if slices.Equal(want[name], got[name]) {
			continue
		}
		tb.Errorf("%s has %d rows, want %d", name, len(got[name]), len(want[name]))
		for i := range min(len(want[name]), len(got[name])) {
			if want[name][i] != got[name][i] {
				tb.Errorf("%s\nwant\n%s", got[name][i], want[name][i])
				break
			}
		}
	}
}
