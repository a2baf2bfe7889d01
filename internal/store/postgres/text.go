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

	// What tells SQLite how to find rows: PostgreSQL has statistics, and [begin] where they mislead.
	{`INDEXED BY`, regexp.MustCompile(` INDEXED BY \w+`), ``},
	{`CROSS JOIN`, regexp.MustCompile(`CROSS JOIN (\w+(?: AS \w+)?) ON`), `JOIN $1 ON`},

	// The first rows of each of several lists: PostgreSQL does not see that each row of a list is one of them.
	{`j.seq IN (SELECT j.seq`, regexp.MustCompile(`JOIN jobs AS j(.*) WHERE j\.seq IN \(SELECT j\.seq FROM (jobs AS j .*)\) ORDER BY`),
		`JOIN LATERAL (SELECT j.* FROM $2) AS j$1 ORDER BY`},

	// What repeats the condition of an index. PostgreSQL sees that it holds, and would take it for one
	// condition more, which fewer rows fulfil: it would rather sort these few than follow an index.
	{`j.letter <> ''`, regexp.MustCompile(` AND j\.letter <> ''`), ``},
	{`j.list_state <> ''`, regexp.MustCompile(` AND j\.list_state <> ''`), ``},
	{`list_state IN`, regexp.MustCompile(`(j\.list_state = '\w+') AND j\.list_state IN \('\w+', '\w+'\)`), `$1`},
	{`list_state IN`, regexp.MustCompile(`list_state IN \('\w+', '\w+'\) AND (list_state = '\w+')`), `$1`},

	// A few rows that are looked up: PostgreSQL would read the whole table for as many as it fears.
	{`+ 0)`, regexp.MustCompile(`([\w.]+) NOT IN \((SELECT [^()]+ LIMIT \$\d+ \+ 0)\)`), `$1 <> ALL (ARRAY($2))`},
	{`+ 0)`, regexp.MustCompile(`(\w+) IN \((SELECT [^()]+ LIMIT \$\d+ \+ 0)\)`), `$1 = ANY (ARRAY($2))`},

	// What else is read of each job of a page: PostgreSQL fears that there is nothing for most jobs, so
	// that it would have to look through the whole list.
	{`FROM jobs AS j JOIN`, regexp.MustCompile(
		`(?s)FROM jobs AS j( JOIN (?:dead_letters AS l ON l\.job_seq = j\.seq AND l\.run = j\.run JOIN )?bodies AS b ON b\.job_seq = j\.seq)` +
			`( WHERE .+ ORDER BY (.+) LIMIT \$\d+ \+ 0)$`),
		`FROM (SELECT j.* FROM jobs AS j$2) AS j$1 ORDER BY $3`},

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
