package sqlsource

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"redrive/internal/source"
	"redrive/internal/source/codec"
	"redrive/internal/source/preset"
)

// compose makes the statements of the list.
func (o *Origin) compose() {
	p := o.preset

	var fields []string
	var sizes, large []string // how large a field is that is too large, and its name
	for _, name := range fieldNames {
		text, ok := p.Fields[name]
		if !ok {
			continue
		}

		text = o.plain(name, text)
		if most := longest[name]; most > 0 {
			length := o.engine.length(text)
			sizes = append(sizes, fmt.Sprintf("WHEN %s > %d THEN %s", length, most, length))
			large = append(large, fmt.Sprintf("WHEN %s > %d THEN '%s'", length, most, name))
			text = fmt.Sprintf("CASE WHEN %s > %d THEN NULL ELSE %s END", length, most, text)
		}

		o.columns = append(o.columns, name)
		fields = append(fields, text+" AS "+o.engine.quote("f_"+name))
	}

	if len(sizes) > 0 {
		o.columns = append(o.columns, "size", "large")
		fields = append(fields, "CASE "+strings.Join(sizes, " ")+" ELSE 0 END AS "+o.engine.quote("f_size"),
			"CASE "+strings.Join(large, " ")+" ELSE '' END AS "+o.engine.quote("f_large"))
	}

	// The newest records come first.
	order := make([]string, len(p.Order))
	for i, field := range p.Order {
		order[i] = field + " DESC"
	}

	tail := " ORDER BY " + strings.Join(order, ", ") + " LIMIT :limit"

	where := p.Where
	if p.Unique != nil && p.Unique.By == p.Fields["key"] { // the check tells of rows without a key
		where += " AND " + p.Unique.By + " IS NOT NULL"
	}

	list := func(after string) string {
		head := "SELECT " + strings.Join(fields, ", ") + " FROM " + p.From + " WHERE " + where
		if len(p.Each) == 0 {
			return head + after + tail
		}

		// Each condition makes a list of its own, and the lists are merged in their order.
		lists := make([]string, len(p.Each))
		for i, condition := range p.Each {
			lists[i] = "(" + head + " AND " + condition + after + tail + ")"
		}

		return "SELECT * FROM (" + strings.Join(lists, " UNION ALL ") + ") AS lists ORDER BY " +
			o.engine.quote("f_a") + " DESC, " + o.engine.quote("f_b") + " DESC LIMIT :limit"
	}
	after := " AND " + p.Order[0] + " < :a"
	if len(p.Order) == 2 { // the first condition alone lets an index on both be used
		after = " AND " + p.Order[0] + " <= :a AND (" + strings.Join(p.Order, ", ") + ") < (:a, :b)"
	}

	o.list, o.more = list(""), list(after)
	o.same = "SELECT " + o.plain("witness", p.Fields["witness"]) + " FROM " + p.From + " WHERE " + p.Same
	if _, ok := codec.Fault(p.Codec); ok {
		o.raw = "SELECT " + o.plain("raw", p.Fields["raw"]) + " FROM " + p.From + " WHERE " + p.Same
	}

	// The first table in From is the one of the list.
	preset.Expand(p.From, func(name string) string {
		o.listTable = cmp.Or(o.listTable, o.settings.Names[name])
		return ""
	}, func(string) string { return "" })

	o.clean = p.Work != nil
	for _, statements := range p.Replay {
		o.clean = o.clean || preset.Uses(statements, "clean") || preset.Uses(statements, "target")
	}
}

// plain is a field as the database keeps it. SQLite keeps a time as a text, of which the
// driver would make a time without its offset, and a statement could not compare that with
// the text any more. It leaves alone what is an expression.
func (o *Origin) plain(name, text string) string {
	if o.engine.name == "sqlite" && slices.Contains([]string{"witness", "failed_at", "created_at"}, name) {
		return "+(" + text + ")"
	}
	return text
}

// fieldNames are what a record can have, in the order in which it is read.
var fieldNames = []string{
	"key", "thread", "witness", "queue", "type", "raw", "error_type", "error", "trace", "history", "reason",
	"attempts", "limit", "failed_at", "created_at", "elsewhere", "a", "b",
}

// longest are the bytes that fields may have. The database leaves one out that has more,
// because the driver would have to hold all of it.
var longest = map[string]int{
	"raw": source.MaxRecord, "error": source.MaxRecord, "trace": source.MaxRecord, "history": source.MaxRecord,
	"thread": 100_000, "queue": 100_000, "type": 100_000, "error_type": 100_000, "reason": 100_000,
}

// fieldsAs are the names of fields in sentences.
var fieldsAs = map[string]string{
	"thread": "job's name", "queue": "queue's name", "type": "type", "error_type": "error's type", "reason": "reason",
	"error": "error message", "trace": "stack trace", "history": "history of failures",
}

// inline is SQL of our own that stands in the statement itself.
type inline string

// bind puts the names of tables into a statement, and gives it the placeholders of the
// database with their values. A list has a placeholder for each of its values.
func (o *Origin) bind(statement string, values map[string]any) (query string, args []any) {
	numbers := map[string]int{}
	name := func(name string) string { return o.engine.table(o.settings.Names[name]) }
	query = preset.Expand(o.words(statement), name, func(name string) string {
		value, ok := values[name]
		if !ok {
			value = o.settings.Values[name]
		}

		switch value := value.(type) {
		case inline:
			return string(value)
		// A list such as :keys in IN (:keys) becomes IN ($1, $2, $3).
		case []any:
			marks := make([]string, len(value))
			for i, v := range value {
				args = append(args, v)
				marks[i] = o.engine.mark(len(args))
			}

			return strings.Join(marks, ", ")
		}

		// PostgreSQL numbers its placeholders: a value that stands twice in a statement is sent
		// once.
		if n := numbers[name]; n > 0 && o.engine.numbered {
			return o.engine.mark(n)
		}

		args = append(args, value)
		numbers[name] = len(args)

		return o.engine.mark(len(args))
	})

	return query, args
}

// words puts the words of the database into a statement.
func (o *Origin) words(statement string) string {
	words := o.preset.Words[o.engine.name]
	name := func(name string) string {
		if text, ok := words[name]; ok {
			return text
		}
		return "{" + name + "}"
	}

	return preset.Expand(statement, name, func(value string) string { return ":" + value })
}
