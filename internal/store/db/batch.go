package db

import (
	"cmp"
	"slices"
	"strings"
)

// Batch gathers rows for one statement with a list of VALUES, which takes half the
// time of one statement for each row. Its placeholders have no numbers, because
// the driver would look each of them up by its name.
type Batch struct {
	head, row, tail string
	columns         int
	common          int // how many of the arguments come before the rows
	args            []any
}

// batchRows is how many rows wait at most.
const batchRows = 64

// NewBatch returns a batch for the statement with a list of VALUES between head
// and tail.
func NewBatch(columns int, head, tail string) Batch {
	return Batch{head: head, row: "(" + strings.Repeat("?, ", columns-1) + "?)", tail: tail, columns: columns}
}

// Common gives the values of the placeholders in the head, while no row waits.
func (b *Batch) Common(values ...any) {
	b.Reset()
	b.common = len(values)
	b.args = append(b.args, values...)
}

// Add gathers a row, and writes the rows that wait once there are enough.
func (b *Batch) Add(t *Tx, values ...any) error {
	b.args = append(b.args, values...)
	if b.rows() < batchRows {
		return nil
	}

	return b.Flush(t)
}

// rows is how many rows wait.
func (b *Batch) rows() int { return (len(b.args) - b.common) / b.columns }

// Flush writes the rows that wait. Every one of them has to be written.
func (b *Batch) Flush(t *Tx) error {
	waiting := b.rows()
	if waiting == 0 {
		return nil
	}

	query := b.head + strings.Repeat(b.row+", ", waiting-1) + b.row + b.tail
	err := t.send(Statement{Query: query, Args: b.args, Rows: waiting, Want: waiting})
	b.cut(b.common)

	return err
}

// Reset forgets the rows that wait, and the texts in them: they can be large, and
// the next rows may come much later.
func (b *Batch) Reset() {
	b.cut(0)
	b.common = 0
}

func (b *Batch) cut(n int) {
	clear(b.args[n:])
	b.args = b.args[:n]
}

// AddSums writes a row for each sum, in the order of the rows' first columns:
// several writers would otherwise wait for one another in a circle. For a sum
// that needs none, row returns nil.
func AddSums[K comparable, V any](t *Tx, to Batch, sums map[K]V, row func(K, V) []any) error {
	if len(sums) == 0 {
		return nil
	}

	rows := make([][]any, 0, len(sums))
	for k, sum := range sums {
		if values := row(k, sum); values != nil {
			rows = append(rows, values)
		}
	}

	slices.SortFunc(rows, compareRows)

	for _, values := range rows {
		if err := to.Add(t, values...); err != nil {
			return err
		}
	}

	return to.Flush(t)
}

// compareRows orders rows by their numbers and texts, from the first column on.
func compareRows(a, b []any) int {
	for i := range a {
		order := 0
		switch value := a[i].(type) {
		case int64:
			order = cmp.Compare(value, b[i].(int64))
		case string:
			order = cmp.Compare(value, b[i].(string))
		}

		if order != 0 {
			return order
		}
	}

	return 0
}
