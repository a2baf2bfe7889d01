package store

import "context"

// Ping returns nil when the writer can write: it has committed a transaction
// that takes the file's lock and room on the disk, and changes nothing.
func (s *Store) Ping(ctx context.Context) error {
	_, err := write(ctx, s.writer, 1, probe)
	return err
}
