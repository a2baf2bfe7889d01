package db

import "testing"

// The texts of jobs are large, and a batch may wait long for its next row.
func TestBatch_KeepsNothingThatItForgot(t *testing.T) {
	b := NewBatch(2, "", "")
	for range 3 {
		if err := b.Add(nil, "a large text", []byte("another")); err != nil {
			t.Fatal(err)
		}
	}
	b.Reset()
	for i, value := range b.args[:cap(b.args)] {
		if value != nil {
			t.Errorf("the value %d is still there: %v", i, value)
		}
	}
}
