package transfer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"redrive/internal/store/moving"
	"redrive/internal/usage"
)

// The reasons for which tables are left out.
const (
	index   = "the search index is rebuilt after the next start"
	process = "it tells which processes work on the database"
	own     = "it tells how far the migration is"
)

// leftOut are the tables that are not copied.
var leftOut = map[string]string{
	"sessions": "everyone logs in again",

	"redaction":      index,
	"search_backlog": index,
	"search_texts":   index,
	"search_state":   index,

	"leases":    process,
	"nodes":     process,
	"migration": own,
}

// firstRows are the tables in which a new database has a row already, which a copied one
// replaces.
var firstRows = []string{"audit_head", "removal_notice", "retention_clock", "retention_notice", "revision"}

// unmended are the tables whose texts have to stay as they are: each entry of the audit log has a
// hash of them.
var unmended = []string{"audit"}

// common are the tables to copy, as the source has them. On a server, other programs can have
// tables beside those of Redrive.
func common(source, target []moving.Table) (all []moving.Table, err error) {
	there := map[string]moving.Table{}
	for _, t := range target {
		there[t.Name] = t
	}

	for _, t := range source {
		other, both := there[t.Name]
		if !both || leftOut[t.Name] != "" {
			continue
		}

		if !slices.Equal(slices.Sorted(slices.Values(t.Columns)), slices.Sorted(slices.Values(other.Columns))) {
			return nil, fmt.Errorf("the table %s has the columns %v in one database and %v in the other", t.Name, t.Columns, other.Columns)
		}

		all = append(all, t)
	}

	return all, nil
}

// checkEmpty refuses a target that has more than the rows of a new database.
func (m *move) checkEmpty(ctx context.Context) error {
	var filled []string
	for _, t := range m.tables {
		if slices.Contains(firstRows, t.Name) {
			continue
		}

		n, err := m.target.count(ctx, t)
		if err != nil {
			return err
		}

		if n > 0 {
			filled = append(filled, fmt.Sprintf("%s (%d)", t.Name, n))
		}
	}

	if len(filled) > 0 {
		return usage.Errorf("%s is not empty, and was left as it is: it has rows in %s; name a new database after --to",
			m.target.where, strings.Join(filled, ", "))
	}

	return nil
}

// quoted writes a name as both databases read it, whatever words are reserved there.
func quoted(name string) string { return `"` + name + `"` }

// list writes names for a statement.
func list(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = quoted(name)
	}

	return strings.Join(all, ", ")
}

// rowsOf reads the rows of a table in the order of its key, from one on. Both databases order
// texts by their bytes.
func rowsOf(t moving.Table) string {
	query := "SELECT " + list(t.Columns) + " FROM " + quoted(t.Name)
	if len(t.Key) > 0 {
		query += " ORDER BY " + list(t.Key)
	}

	return query + " LIMIT $1 OFFSET $2"
}

// everyRow is more rows than a table can have.
const everyRow = 1 << 50
