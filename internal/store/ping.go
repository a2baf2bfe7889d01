package store

import "context"

// Ping returns nil when the writer answers: it has taken an operation, begun a
// write transaction (which takes the file's lock for writing) and ended it, so
// nobody else keeps the file busy and the store has not failed. Nothing is
// written: whether the disk has room shows only at the next write.
func (s *Store) Ping(ctx context.Context) error {
	_, err := write(ctx, s.writer, 1, func(*tx) (struct{}, error) { return struct{}{}, nil })
	return err
}
