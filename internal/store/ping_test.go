package store

import (
	"errors"
	"testing"

	"redrive/internal/fault"
)

func TestPing_FindsWhatKeepsTheWriterFromWriting(t *testing.T) {
	s := open(t, Options{})
	check(t, s.Ping(t.Context()))
	other := rival(t, s)
	_, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	check(t, err)
	if err := s.Ping(t.Context()); !errors.Is(err, fault.ErrBusy) {
		t.Errorf("while another process writes: %v", err)
	}
	_, err = other.ExecContext(t.Context(), "ROLLBACK")
	check(t, err)
	check(t, s.Ping(t.Context()))
	if now := s.Snapshot(); now.Seq != 0 {
		t.Errorf("it wrote something: %+v", now)
	}
}
