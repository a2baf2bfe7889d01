package db

import "strings"

// Batch gathers rows for one statement that has a list of VALUES, which takes
// half the time of one statement for each row. Its placeholders have no numbers,
// because the driver would look each of them up by its name.
type Batch struct {
	Head, Row, Tail string
	Columns         int
	args            []any
}

// batchRows is how many rows wait at most.
const batchRows = 64

// Add gathers a row, and writes the rows that wait once there are enough.
func (b *Batch) Add(t *Tx, values ...any) error {
	b.args = append(b.args, values...)
	if len(b.args) < batchRows*b.Columns {
		return nil
	}
	return b.Flush(t)
}

// Flush writes the rows that wait. Every one of them has to be written.
func (b *Batch) Flush(t *Tx) error {
	waiting := len(b.args) / b.Columns
	if waiting == 0 {
		return nil
	}
	query := b.Head + strings.Repeat(b.Row+", ", waiting-1) + b.Row + b.Tail
	err := t.ExecExactly(waiting, query, b.args...)
	b.args = b.args[:0]
	return err
}

// Reset forgets the rows that wait.
func (b *Batch) Reset() { b.args = b.args[:0] }
