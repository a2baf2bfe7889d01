package store

import (
	"context"

	"redrive/internal/audit"
)

// Record writes entries of the audit log about what changes nothing in the
// database.
func (s *Store) Record(ctx context.Context, entries ...audit.Entry) error {
	_, err := write(ctx, s.writer, len(entries), func(t *tx) (struct{}, error) { return struct{}{}, t.audit(entries...) })
	return err
}
