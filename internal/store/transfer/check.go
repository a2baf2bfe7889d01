package transfer

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"

	"redrive/internal/store/db"
	"redrive/internal/store/moving"
)

// finish looks whether the copy is what it has to be, and lets stores open it.
func (m *move) finish(ctx context.Context) error {
	err := m.target.engine.Filled(ctx, m.tables)
	if err == nil {
		err = m.compare(ctx)
	}

	if err != nil {
		return err
	}

	problem, err := m.target.examine(ctx)
	if err == nil && problem != "" {
		err = fmt.Errorf("%s: %w: %s", m.target.where, errUnsound, problem)
	}

	if err != nil {
		return err
	}

	return m.complete(ctx)
}

// complete ends the migration. The index of the target has nothing of the copied jobs: it gets the
// mark of no index, so that the store that opens the database rebuilds it from the first job on.
func (m *move) complete(ctx context.Context) error {
	const rebuild = `UPDATE redaction SET fingerprint = '', index_mark = $1, again = (SELECT coalesce(max(seq), 0) + 1 FROM jobs)`
	const finished = `DELETE FROM migration`

	err := m.source.lost()
	if err == nil {
		err = m.target.write(ctx, len(m.tables), func(t *db.Tx) error {
			return db.Steps(t, db.Exactly(1, rebuild, rand.Text()), db.Any(finished))
		})
	}

	return db.Wrap(err, "note that the migration into %s is finished", m.target.where)
}

// compare reads both databases, table by table.
func (m *move) compare(ctx context.Context) error {
	done := int64(0)
	m.tell(Checking, done, m.all)

	for _, t := range m.tables {
		var there sum
		var failed error
		read := make(chan struct{})
		go func() {
			defer close(read)

			there, failed = m.target.sum(ctx, t, func() {})
		}()

		here, err := m.source.sum(ctx, t, func() {
			done++
			if done%int64(batchRows) == 0 {
				m.tell(Checking, done, m.all)
			}
		})

		<-read

		switch {
		case err != nil:
			return err
		case failed != nil:
			return failed
		case here != there:
			return fmt.Errorf("%s: %w: of the table %s, it has %d rows, and %s has %d, which are others",
				m.target.where, errUnsound, t.Name, there.rows, m.source.where, here.rows)
		}
	}

	m.tell(Checking, m.all, m.all)

	return nil
}

// sum is what a table holds, in whatever order: how many rows, and the sum of their hashes.
type sum struct {
	rows   int64
	hashes [4]uint64
}

// sum adds up the rows of a table, with their texts as every database can keep them.
func (e *end) sum(ctx context.Context, t moving.Table, each func()) (all sum, err error) {
	h := sha256.New()
	err = e.read(ctx, t, 0, func(row []any) error {
		h.Reset()
		for _, value := range row {
			add(h, value)
		}

		all.add(h.Sum(nil))
		each()

		return nil
	})

	return all, err
}

func (s *sum) add(row []byte) {
	s.rows++
	for i := range s.hashes {
		s.hashes[i] += binary.BigEndian.Uint64(row[8*i:])
	}
}

// add adds a value with its type and its length, so that no other values look the same.
func add(to hash.Hash, value any) {
	kind, content := byte('0'), []byte(nil)
	switch value := value.(type) {
	case int64:
		kind, content = 'n', binary.BigEndian.AppendUint64(nil, uint64(value))
	case float64:
		kind, content = 'f', binary.BigEndian.AppendUint64(nil, math.Float64bits(value))
	case string:
		kind, content = 't', []byte(db.Clean(value))
	case []byte:
		kind, content = 'b', value
	}

	head := binary.BigEndian.AppendUint64([]byte{kind}, uint64(len(content)))
	_, _ = to.Write(head) // a hash takes everything
	_, _ = to.Write(content)
}
