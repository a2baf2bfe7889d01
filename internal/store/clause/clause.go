// Package clause writes the conditions of queries. It makes them of fixed texts, and leaves every value to a
// placeholder.
package clause

import (
	"fmt"
	"strings"
	"time"
)

// Where is the WHERE clause of a query, built from fixed texts only.
type Where struct {
	terms []string
	Args  []any
}

// Add appends a condition; each %s in it becomes the placeholder of a value.
func (w *Where) Add(term string, values ...any) {
	placeholders := make([]any, len(values))
	for i, v := range values {
		w.Args = append(w.Args, v)
		placeholders[i] = fmt.Sprintf("$%d", len(w.Args))
	}

	w.terms = append(w.terms, fmt.Sprintf(term, placeholders...))
}

// Equal adds the condition that a column has a text, unless that is empty.
func (w *Where) Equal(column, text string) {
	if text != "" {
		w.Add(column+" = %s", text)
	}
}

// Pattern adds a condition on a dotted name: exact, or a prefix such as
// "email.*". An empty pattern adds none.
func (w *Where) Pattern(column, pattern string) {
	if prefix, ok := strings.CutSuffix(pattern, ".*"); ok {
		w.Add(column+" > %s AND "+column+" < %s", prefix+".", prefix+"/") // '/' follows '.'
		return
	}

	w.Equal(column, pattern)
}

// Between adds the condition that a time is in a span, whose ends may be open.
func (w *Where) Between(column string, from, to time.Time) {
	if !from.IsZero() {
		w.Add(column+" >= %s", from.UnixMicro())
	}

	if !to.IsZero() {
		w.Add(column+" < %s", to.UnixMicro())
	}
}

// String is the clause, empty without conditions.
func (w *Where) String() string {
	if len(w.terms) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.terms, " AND ")
}

// Limit ends a query: at most n rows. The sum spares SQLite from preparing the
// statement again for each n.
func (w *Where) Limit(n int) (string, []any) {
	args := append(w.Args, n)
	return fmt.Sprintf(" LIMIT $%d + 0", len(args)), args
}

// Like is a text in a pattern of LIKE: % and _ mean themselves.
func Like(s string) string { return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s) }
