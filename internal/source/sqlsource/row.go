package sqlsource

import (
	"database/sql"
	"fmt"
	"slices"
	"time"

	"redrive/internal/source"
)

// tooLarge is the refusal of a record with a field of so many bytes.
func tooLarge(key, field string, size int64) source.Refusal {
	if field == "raw" { // which is the record as other families know it
		return source.TooLarge(key, size)
	}

	has, limit := source.Sizes(size, int64(longest[field]))
	why := fmt.Sprintf("Its %s has %s, which is larger than the limit of %s.", fieldsAs[field], has, limit)

	return source.Refusal{Key: key, Why: why}
}

// row has the cells of one row of the list, in the order of the columns.
type row struct {
	columns []string // as in Origin
	cells   []any
}

// row reads the row at which a list is. instants says which of its columns have an instant.
func (o *Origin) row(rows *sql.Rows, instants []bool) (row, error) {
	cells := make([]any, len(o.columns))
	places := make([]any, len(cells))
	for i := range cells {
		places[i] = &cells[i]
	}

	err := rows.Scan(places...)
	if err != nil {
		return row{}, err
	}

	for i := range cells {
		at, ok := cells[i].(time.Time)
		if ok && instants[i] {
			cells[i] = instant(at)
		}
	}

	return row{o.columns, cells}, nil
}

// value is a field of the row, nil where the preset does not have it.
func (r row) value(name string) any {
	if i := slices.Index(r.columns, name); i >= 0 {
		return r.cells[i]
	}
	return nil
}

func (r row) text(name string) string { return textOf(r.value(name)) }

// size is the number of bytes of the row's texts.
func (r row) size() (n int) {
	for _, cell := range r.cells {
		switch cell := cell.(type) {
		case string:
			n += len(cell)
		case []byte:
			n += len(cell)
		}
	}

	return n
}

// record is what identifies the record of a row and tells whether it has changed.
func (o *Origin) record(from row) source.Record {
	r := source.Record{
		Key: o.keep(from.value("key")), Lineage: o.keep(from.value("thread")), VersionToken: o.keep(from.value("witness")), Place: o.listTable,
	}
	if o.clean { // it is part of the mark
		r.Raw = []byte(from.text("raw"))
	}

	return r
}

// complete reads the rest of a record from its row.
func (o *Origin) complete(r *source.Record, from row) {
	r.Queue, r.Type, r.Trace = from.text("queue"), from.text("type"), from.text("trace")
	r.Attempts, r.Limit = int(numberOf(from.value("attempts"))), int(numberOf(from.value("limit")))
	r.FailedAt, r.CreatedAt = o.timeOf(from.value("failed_at")), o.timeOf(from.value("created_at"))

	r.Raw = []byte(from.text("raw"))
	r.Error.Type, r.Error.Message = from.text("error_type"), from.text("error")
	if h := from.text("history"); h != "" {
		r.History = historyOf(h)
	}

	o.codec.Read(r)

	if !o.clean {
		r.Raw = nil
	}

	if numberOf(from.value("elsewhere")) != 0 {
		r.Warnings = append(r.Warnings, o.preset.Refused)
	}

	if r.Type == "" {
		r.Type = "unknown"
	}
}
