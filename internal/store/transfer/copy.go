package transfer

import (
	"context"
	"fmt"
	"slices"

	"redrive/internal/store/db"
	"redrive/internal/store/moving"
)

// The bounds of one transaction. Payloads can be of a megabyte each. Tests have more transactions
// of fewer rows.
var (
	batchRows  = 5000
	batchBytes = 4 << 20
)

// copy copies the rows that are not there yet.
func (m *move) copy(ctx context.Context) error {
	m.tell(Copying, m.copied(), m.all)

	for _, t := range m.tables {
		err := m.copyTable(ctx, t)
		if err != nil {
			return fmt.Errorf("copy the table %s: %w", t.Name, err)
		}
	}

	return nil
}

func (m *move) copyTable(ctx context.Context, t moving.Table) error {
	var waiting batch
	err := m.source.read(ctx, t, m.states[t.Name].copied, func(row []any) error {
		err := waiting.add(t, row)
		if err != nil || len(waiting.rows) < batchRows && waiting.bytes < batchBytes {
			return err
		}

		err = m.write(ctx, t, waiting)
		waiting = batch{rows: waiting.rows[:0]}

		return err
	})
	if err == nil && len(waiting.rows) > 0 {
		err = m.write(ctx, t, waiting)
	}

	return err
}

// batch are rows that are written together.
type batch struct {
	rows   [][]any
	bytes  int
	mended int64 // texts
}

// add adds a row, with texts that every database can keep.
func (b *batch) add(t moving.Table, row []any) error {
	for i, value := range row {
		switch value := value.(type) {
		case string:
			clean := db.Clean(value)
			if clean != value {
				b.mended++
				row[i] = clean
			}

			b.bytes += len(clean)
		case []byte:
			b.bytes += len(value)
		}
	}

	if b.mended > 0 && slices.Contains(unmended, t.Name) {
		return fmt.Errorf("the row %v has a text that not every database can keep, and it must not be changed", row[0])
	}

	b.rows = append(b.rows, row)

	return nil
}

// write writes a batch and how far the table has come with it.
func (m *move) write(ctx context.Context, t moving.Table, b batch) error {
	const note = `UPDATE migration SET copied = $1, mended = $2 WHERE name = $3`

	err := m.source.lost()
	if err != nil {
		return err
	}

	before := m.states[t.Name]
	now := progress{copied: before.copied + int64(len(b.rows)), mended: before.mended + b.mended}

	err = m.target.write(ctx, len(b.rows), func(tx *db.Tx) error {
		if before.copied == 0 && slices.Contains(firstRows, t.Name) {
			err := tx.Run("DELETE FROM " + quoted(t.Name))
			if err != nil {
				return err
			}
		}

		into := db.NewBatch(len(t.Columns), "INSERT INTO "+quoted(t.Name)+" ("+list(t.Columns)+") VALUES ", "")
		for _, row := range b.rows {
			err := into.Add(tx, row...)
			if err != nil {
				return err
			}
		}

		err := into.Flush(tx)
		if err != nil {
			return err
		}

		tx.Wrote()

		return tx.ExecExactly(1, note, now.copied, now.mended, t.Name)
	})
	if err != nil {
		return fmt.Errorf("write to %s: %w", m.target.where, err)
	}

	m.states[t.Name] = now
	m.tell(Copying, m.copied(), m.all)

	return nil
}
