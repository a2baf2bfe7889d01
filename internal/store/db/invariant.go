package db

import (
	"database/sql"
	"fmt"
)

// Invariant is a fact about the tables that holds after every commit: the query
// finds the ids of the rows that break it.
type Invariant struct{ What, Query string }

// Finding is one thing that was looked at in a database.
type Finding struct {
	What    string
	Problem string // empty: it is as it has to be
}

// Examine looks whether the invariant holds.
func (i Invariant) Examine(src Source) Finding {
	f, n, first := Finding{What: i.What}, 0, ""
	query := `SELECT count(*), coalesce(min(id), '') FROM (` + i.Query + `) AS broken`
	err := src.Query(query, func(rows *sql.Rows) error { return rows.Scan(&n, &first) })
	switch {
	case err != nil:
		f.Problem = err.Error()
	case n > 0:
		f.Problem = fmt.Sprintf("%d do not, the first is %s", n, first)
	}
	return f
}
