package postgres

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// change replaces a word of SQLite's by PostgreSQL's.
type change struct {
	word string // a part of all that is changed: most statements have none, which is quickly seen
	what *regexp.Regexp
	by   string
}

// changes are made in this order. The store writes SQL that both read but for these words.
var changes = []change{
	// A list that is one argument: an array.
	{`NOT IN (SELECT value`, regexp.MustCompile(`NOT IN \(SELECT value FROM json_each\((\$\d+)\)\)`), `<> ALL ($1)`},
	{`IN (SELECT value`, regexp.MustCompile(`IN \(SELECT value FROM json_each\((\$\d+)\)\)`), `= ANY ($1)`},

	// What tells SQLite how to find rows: PostgreSQL has statistics.
	{`INDEXED BY`, regexp.MustCompile(` INDEXED BY \w+`), ``},
	{`CROSS JOIN`, regexp.MustCompile(`CROSS JOIN (\w+(?: AS \w+)?) ON`), `JOIN $1 ON`},

	// A statement that fails halfway leaves nothing behind anyway.
	{`OR FAIL`, regexp.MustCompile(`\b(INSERT|UPDATE) OR FAIL\b`), `$1`},

	// The largest of several values is no aggregate.
	{`max(`, regexp.MustCompile(`\bmax\(([^(),]+(?:, [^(),]+)+)\)`), `greatest($1)`},
	{`min(`, regexp.MustCompile(`\bmin\(([^(),]+(?:, [^(),]+)+)\)`), `least($1)`},

	{`instr(`, regexp.MustCompile(`\binstr\(`), `strpos(`},
	{`LIKE`, regexp.MustCompile(`\bLIKE\b`), `ILIKE`},
	{`GLOB`, regexp.MustCompile(`([\w.]+) GLOB ([\w.]+)`), `$1 LIKE replace($2, '*', '%')`},
	{`json_extract(`, regexp.MustCompile(`json_extract\(([\w.]+), '\$\.(\w+)'\)`), `CAST(CAST($1 AS jsonb) ->> '$2' AS BIGINT)`},
}

// each is a list that is the source of a query: of rows when the query takes values out of
// its elements, and otherwise of plain values.
var each = regexp.MustCompile(`json_each\((\$\d+)\)(?: AS (\w+))?`)

// translate writes a statement of the store as PostgreSQL reads it.
func translate(query string) string {
	for _, c := range changes {
		if strings.Contains(query, c.word) {
			query = c.what.ReplaceAllString(query, c.by)
		}
	}

	rows := strings.Contains(query, "value ->>")

	query = each.ReplaceAllStringFunc(query, func(found string) string {
		part := each.FindStringSubmatch(found)
		argument, name := part[1], cmp.Or(part[2], "list")
		if rows {
			return fmt.Sprintf(`jsonb_array_elements(CAST(%s AS jsonb)) AS %s(value)`, argument, name)
		}

		return fmt.Sprintf(`unnest(%s) AS %s(value)`, argument, name)
	})

	return numbered(query)
}

// numbered gives placeholders that are question marks their numbers.
func numbered(query string) string {
	if !strings.Contains(query, "?") {
		return query
	}

	var text strings.Builder
	n, quoted := 0, false
	for _, r := range query {
		switch {
		case r == '\'':
			quoted = !quoted
		case r == '?' && !quoted:
			n++
			fmt.Fprintf(&text, "$%d", n)

			continue
		}

		text.WriteRune(r)
	}

	return text.String()
}
