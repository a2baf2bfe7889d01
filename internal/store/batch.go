package store

import "strings"

// batch gathers rows for one statement that has a list of VALUES: half the time
// of a statement for each. Its placeholders have no numbers, because the driver
// would look up each of them by its name.
type batch struct {
	head, row, tail string
	columns         int
	args            []any
}

// batchRows is how many rows wait at most.
const batchRows = 64

func (b *batch) add(t *tx, values ...any) error {
	b.args = append(b.args, values...)
	return b.flush(t, batchRows)
}

// flush writes the rows that wait, when there are n at least. Every one of them
// has to be written.
func (b *batch) flush(t *tx, n int) error {
	waiting := len(b.args) / b.columns
	if waiting < n {
		return nil
	}
	query := b.head + strings.Repeat(b.row+", ", waiting-1) + b.row + b.tail
	changed, err := t.exec(query, b.args...)
	b.args = b.args[:0]
	return expect(int64(waiting), changed, err)
}
