package db

import (
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
	n, first, problem := 0, "", ""
	query := `SELECT count(*), coalesce(CAST(min(id) AS TEXT), '') FROM (` + i.Query + `) AS broken`
	switch _, err := Row(src, query, []any{&n, &first}); {
	case err != nil:
		problem = err.Error()
	case n > 0:
		problem = fmt.Sprintf("exceptions: %d, the first is %s", n, first)
	}

	return Finding{i.What, problem}
}
